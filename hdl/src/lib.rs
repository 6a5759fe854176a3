//! The engine, in rust-hdl.
#![forbid(unsafe_code)]
