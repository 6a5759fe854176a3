//! Host memory: DMA, memory regions, payload gathering and placement.
pub mod align;
pub mod dma_read;
pub mod dma_write;
pub mod gather;
pub mod host_port;
pub mod mr_table;
pub mod scatter;
pub mod split;
pub mod types;
pub mod write_faults;
