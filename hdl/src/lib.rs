//! The engine, in rust-hdl.
//!
//! A block is a struct of signals with a `#[kernel]`, which [`front`] makes run as Rust. [`emit`] turns a block and everything below it into
//! Verilog with the meaning the kernel has in Rust; [`cell`] and [`bus`] hold what every block is made of.
//! How to write one: `docs/hdl.md`.
#![forbid(unsafe_code)]
// what the macros of `ferroce-kernel` write names this crate
extern crate self as ferroce_hdl;

pub mod bus;
pub mod cell;
pub mod control;
pub mod egress;
pub mod engine;
pub mod eth;
pub mod front;
pub mod ib;
pub mod memory;
pub mod prelude;
pub mod queue;
pub mod transport;

pub use ferroce_emit as emit;
