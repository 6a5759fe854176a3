//! Verilog with the meaning a kernel has in Rust.
//!
//! rust-hdl's own generator drops brackets and widths, so this layer prints kernels itself. `#[kernel]` leaves their text
//! in a prefix form; [`verilog`] walks the hierarchy (`collect`), gives every expression its Rust type and refuses what
//! cannot keep it (`lower`),
//! checks the drivers (`check`), cuts the kernel into independent pieces (`group`) and prints them (`print`,
//! `module`); what a child takes under another name stands in its port list itself (`direct`). Identical blocks share a
//! module; `parametric` makes one of all sizes of a block.
#![forbid(unsafe_code)]

mod check;
mod collect;
mod describe;
mod design;
mod direct;
mod error;
mod group;
mod ir;
mod lower;
mod module;
mod name;
mod parametric;
mod print;
mod register;
mod scope;
mod unused;
mod value;

/// First word of the text that stands for a kernel.
pub const KERNEL: &str = "(kernel ";

pub use describe::description;
pub use design::{Design, Direction, Field, Module, Port, verilog, with_stack};
pub use error::{EmitError, Reason};
pub use name::block_of;
pub use parametric::{Kind, parametric};
pub use register::register;

/// The value of a literal.
pub fn bits_of(literal: &rust_hdl_core::prelude::VerilogLiteral) -> num_bigint::BigUint {
    value::of_literal(literal).1
}
