//! Congestion control (docs/congestion.md): the reaction point, and the pace of the queue pairs.
//!
//! ```text
//!  events ─► front ─► dcqcn ─► verdicts ─► gap ─► calendar ─► queue pairs that may start
//!                      │ ▲                          │ ▲
//!             alpha, periods, cut      orders ──────┘ wheel
//! ```
//!
//! An algorithm is a block with the two streams of [`types`]: events in, verdicts out. It keeps what it remembers of a queue pair
//! itself.

pub mod alpha;
pub mod calendar;
pub mod cut;
pub mod dcqcn;
pub mod dcqcn_terms;
pub mod front;
pub mod gap;
pub mod pace_types;
pub mod periods;
pub mod types;
pub mod wheel;
