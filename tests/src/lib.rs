//! Tests that span crates.
#![forbid(unsafe_code)]

pub mod conformance;
pub mod differential;
mod quiet;
mod shared;
