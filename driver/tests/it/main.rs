//! The driver against a card at the level of its rings.

mod attributes;
mod classes;
mod completions;
mod congestion;
mod datagram;
mod events;
mod fake;
mod lost;
mod modify;
mod no_alloc;
mod no_syscalls;
mod objects;
mod open;
mod owned;
mod posting;
mod read_only;
mod regions;
mod rings;
mod setup;
mod srq;
#[cfg(feature = "tokio")]
mod streams;
mod threads;
mod windows;
