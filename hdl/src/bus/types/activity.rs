//! What stirs in the sections of the engine.
// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

use crate::bus::payload::payload;
use crate::prelude::*;

payload! {
    /// What stirs in a section of the engine, for `control/drain`.
    Activity {
        /// Something is in the section, or waits in front of it.
        busy: Bit,
        /// Something left the section in this cycle; things leave in the order in which they came.
        moved: Bit,
        /// No fewer are in the section, or wait in front of it and count in no section before: when so many more have
        /// left it these have. One that leaves in this cycle counts.
        level: Bits<16>,
    }
}

/// `count` things if `there`, for the level of [`Activity`].
#[kernel_fn]
pub fn if_there(there: Bit, count: Bits<16>) -> Bits<16> {
    let things: Bits<16> = if there { count } else { 0 };
    things
}

/// Something that came before `mark` is not over: of all up to `latest`, modulo 2^16, the last `under_way` are not.
#[kernel_fn]
pub fn waits_for(mark: Bits<16>, latest: Bits<16>, under_way: Bits<16>) -> Bit {
    latest - mark < under_way
}
