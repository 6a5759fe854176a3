//! Congestion control: the reaction point (docs/congestion.md).
//!
//! ```text
//!  events ─► front ─► dcqcn ─► verdicts
//!                      │ ▲
//!             alpha, periods, cut
//! ```
//!
//! An algorithm is a block with the two streams of [`types`]: events in, verdicts out. It keeps what it remembers of a queue pair
//! itself.

pub mod alpha;
pub mod cut;
pub mod dcqcn;
pub mod dcqcn_terms;
pub mod front;
pub mod periods;
pub mod types;
