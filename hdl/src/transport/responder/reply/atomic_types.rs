//! Packed types of the atomics inside `reply`. First field = lowest bits.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::prelude::*;

payload! {
    /// An atomic in the ring of those to run.
    AtomicWord {
        /// See [`RingWord`](super::types::RingWord).
        add: Bit,
        /// See [`RingWord`](super::types::RingWord).
        psn: Bits<24>,
        /// See [`RingWord`](super::types::RingWord).
        pd: Bits<24>,
        /// See [`RingWord`](super::types::RingWord).
        va: Bits<64>,
        /// See [`RingWord`](super::types::RingWord).
        rkey: Bits<32>,
        /// See [`RingWord`](super::types::RingWord).
        swap_add: Bits<64>,
        /// See [`RingWord`](super::types::RingWord).
        compare: Bits<64>,
    }

    /// Atomics of a queue pair, from their fence until they run.
    RunState {
        /// Stands in the list of atomics to run, or its latest one is being checked.
        listed: Bit,
        /// An atomic failed: none behind it runs.
        stopped: Bit,
        /// Atomics that may run.
        to_run: Bits<5>,
        /// The next of these.
        slot: Bits<4>,
        /// Where the next atomic enters.
        enter_slot: Bits<4>,
    }

    /// How atomics of a queue pair end.
    AtomicChange {
        /// Queue pair.
        qpn: Bits<16>,
        /// One runs.
        starts: Bit,
        /// One is over.
        ends: Bit,
        /// So many behind those that run are void.
        void: Bits<5>,
    }

    /// Atomics of a queue pair, modulo 2^5.
    OverState {
        /// Over, or void behind those.
        over: Bits<5>,
        /// Those that run and are not over.
        running: Bits<5>,
        /// Void behind these.
        void: Bits<5>,
    }

    /// A queue pair in the list of those with atomics to run.
    RunEntry {
        /// Queue pair.
        qpn: Bits<16>,
        /// Generation.
        generation: Bits<2>,
        /// The rkey of its latest one was no good.
        denied: Bit,
    }

    /// An atomic that runs now.
    RunStart {
        /// Queue pair.
        qpn: Bits<16>,
        /// Generation.
        generation: Bits<2>,
        /// Its slot.
        slot: Bits<4>,
    }

    /// An atomic to execute.
    AtomicOp {
        /// Queue pair.
        qpn: Bits<16>,
        /// Generation.
        generation: Bits<2>,
        /// PSN.
        psn: Bits<24>,
        /// Address.
        va: Bits<64>,
        /// Fetch and add; else compare and swap.
        add: Bit,
        /// Its rkey was no good; from the verdict on.
        denied: Bit,
        /// Swap value, or the value to add.
        swap_add: Bits<64>,
        /// Value to compare with.
        compare: Bits<64>,
        /// Where the result is kept.
        slot: Bits<4>,
    }

    /// What the memory held.
    Original {
        /// The value.
        value: Bits<64>,
        /// It could not be read.
        error: Bit,
    }

    /// An atomic whose write is issued, if it has one.
    Written {
        /// Queue pair.
        qpn: Bits<16>,
        /// Generation.
        generation: Bits<2>,
        /// PSN.
        psn: Bits<24>,
        /// Where the result is kept.
        slot: Bits<4>,
        /// Its rkey was no good.
        denied: Bit,
        /// What the memory held.
        original: Bits<64>,
        /// It could not be read.
        error: Bit,
        /// It writes, itself.
        writes: Bit,
        /// Atomic writes that must be done.
        fence: Bits<16>,
    }

    /// An atomic is over.
    AtomicEnd {
        /// Queue pair.
        qpn: Bits<16>,
        /// Generation to which it belongs.
        generation: Bits<2>,
        /// It failed.
        failed: Bit,
    }

    /// Result of an atomic.
    Saved {
        /// PSN.
        psn: Bits<24>,
        /// What the memory held.
        original: Bits<64>,
        /// It was not executed, as its rkey was no good.
        denied: Bit,
        /// It could not be read or written.
        failed: Bit,
    }

    /// What is written to memory by an atomic.
    NewValue {
        /// The value.
        value: Bits<64>,
        /// Place in its beat, in words of 8 bytes.
        word: Bits<3>,
    }
}
