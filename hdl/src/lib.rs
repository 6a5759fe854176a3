//! The engine, in rust-hdl.
#![forbid(unsafe_code)]

pub mod bus;
