//! Time in cycles.

/// Clock that timers, rates and figures assume, in MHz.
pub const CLOCK_MHZ: u16 = 250;
