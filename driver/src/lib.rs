//! Verbs over the card.

mod backend;

pub use backend::{Backend, BackendError};
