//! Types of the class queues.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::prelude::*;

payload! {
    /// Room of a queue that a frame will take.
    Space {
        /// Queue.
        queue: Bits<4>,
        /// Beats.
        beats: Bits<10>,
    }
}
