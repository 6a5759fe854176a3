//! Streams and buses between blocks.

pub mod axi;
pub mod axis;
pub mod dma;
pub mod dma_client;
pub mod frame;
pub mod layout;
pub mod path;
pub(crate) mod payload;
pub mod qp_state;
pub mod stream;
pub mod syndrome;
pub mod time;
pub mod types;
pub mod unpack;
pub mod valid;
