//! Verilog with the meaning a kernel has in Rust.
mod describe;
mod register;

pub use describe::description;
pub use register::register;
