//! What [`csr`](super::csr) tells its parts of a write and a read.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::prelude::*;

payload! {
    /// An access to registers.
    RegisterAccess {
        /// A whole register is written in this cycle.
        write: Bit,
        /// Its number.
        at: Bits<6>,
        /// Its value.
        data: Bits<32>,
        /// All are as after reset.
        clear: Bit,
        /// Register to read.
        from: Bits<6>,
    }
}
