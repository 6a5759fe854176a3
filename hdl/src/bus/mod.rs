//! Streams and buses between blocks.

pub mod types;
