//! Ethernet as cards and fabric see it: rate and delay of a line, pauses by priority, the MAC that takes them.
//!
//! Time is counted in whole picoseconds, so that nothing is rounded at 100 Gb/s (80 ps a byte).

pub mod line;
pub mod mac;
pub mod pause;

pub use line::Line;

/// A time or a duration in picoseconds.
pub type Time = u64;

/// Later than everything.
pub const NEVER: Time = Time::MAX;

/// Picoseconds of a nanosecond.
pub const NS: Time = 1_000;

/// Picoseconds of a microsecond.
pub const US: Time = 1_000_000;

/// Picoseconds of a millisecond.
pub const MS: Time = 1_000_000_000;

/// Picoseconds of a second.
pub const SECOND: Time = 1_000_000_000_000;

/// Priorities of a wire (802.1Q).
pub const CLASSES: usize = 8;

/// From the destination MAC address to the last byte before the FCS.
pub type Frame = Vec<u8>;
