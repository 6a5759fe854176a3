//! Streams and buses between blocks.

pub mod axis;
pub mod stream;
pub mod types;
