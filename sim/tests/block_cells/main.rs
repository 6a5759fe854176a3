//! Cells as Verilog, each alone and in every cycle against plain Rust.
mod queues;
mod table;
