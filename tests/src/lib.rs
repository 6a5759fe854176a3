//! Tests that span crates.
#![forbid(unsafe_code)]

pub mod conformance;
pub mod coverage;
pub mod differential;
pub mod former;
pub mod hostile;
pub mod inherited;
pub mod mutation;
pub mod paused;
mod quiet;
mod scene;
pub mod seeded;
mod shared;
pub mod soak;
pub mod world;
