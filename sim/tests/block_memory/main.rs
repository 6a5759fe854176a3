//! The memory blocks of the engine as Verilog, against host memory behind an AXI4 port and against plain Rust.
mod common;
mod dma_read;
mod dma_write;
mod gather;
mod mr_table;
mod reader;
mod scatter;
mod write_faults;
