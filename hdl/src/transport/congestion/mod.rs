//! Congestion control (docs/congestion.md): the notification point [`notify`]; the reaction point, and the pace of the queue pairs.
//!
//! ```text
//!  events ─► choice ─┬─► front ─► dcqcn ─┬─► rate_limits ─► gap ─► calendar ─► queue pairs that may start
//!                    └─► queue ─► swift ─┘                          │ ▲
//!                                                      orders ──────┘ wheel
//! ```
//!
//! An algorithm is a block with the two streams of [`types`]: events in, rate updates out. It keeps what it remembers of a queue pair
//! itself.

pub mod alpha;
pub mod calendar;
pub mod choice;
pub mod cut;
pub mod dcqcn;
pub mod dcqcn_due;
pub mod dcqcn_order;
pub mod dcqcn_rules;
pub mod dcqcn_terms;
pub mod front;
pub mod gap;
pub mod inverse_root;
pub mod notify;
pub mod notify_types;
pub mod pace_classes;
pub mod pace_merge;
pub mod pace_types;
pub mod periods;
pub mod rate_limits;
pub mod reaction_point;
pub mod round_trip;
pub mod scale;
pub mod send_pace;
pub mod swift;
pub mod swift_aim;
pub mod swift_queue;
pub mod swift_types;
pub mod types;
pub mod wheel;
