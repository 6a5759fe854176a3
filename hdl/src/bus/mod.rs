//! Streams and buses between blocks.

pub mod axi;
pub mod axis;
pub mod dma;
pub mod stream;
pub mod types;
