//! The driver against a card at the level of its rings.

mod attributes;
mod completions;
mod datagram;
mod fake;
mod modify;
mod no_alloc;
mod objects;
mod open;
mod posting;
mod rings;
mod setup;
mod srq;
mod threads;
