//! Room for a frame of the host. It waits in the exception queue, and not in the path that all classes share.
//!
//! A frame may leave when the queue of its class has room for it beside [all that can be under way](super::class_gate::UNDER_WAY).
//! Until that room is there, and until the frame has taken it, its class is to be closed for requests and responses. A frame for which there is
//! never so much, one of more than 10,368 bytes, waits until its queue is empty.
//!
//! Latency: 3 cycles.
use super::class_gate::{OF_ACKS, UNDER_WAY};
use super::class_of::class_bit;
use super::{CLASSES, DATA_BYTES};
use crate::prelude::*;

/// The block, for beats of `K` bytes.
#[derive(Clone, Debug, Block)]
pub struct HostGate<const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Beats that the data queue of each class has room for.
    pub room: [Signal<In, Bits<16>>; CLASSES],
    /// A frame waits, or leaves.
    pub waits: Signal<In, Bit>,
    /// Its class.
    pub packet_class: Signal<In, Bits<2>>,
    /// Its beats that have not left.
    pub beats: Signal<In, Bits<13>>,
    /// It may leave.
    pub may_leave: Signal<Out, Bit>,
    /// Its class, without the room.
    pub wanted: Signal<Out, Bits<CLASSES>>,
    needed: Dff<Bits<16>>,
    there: Dff<Bits<16>>,
    /// Cycles since it came.
    since: Reg<Bits<2>>,
    may_q: Reg<Bit>,
    wanted_q: Reg<Bits<CLASSES>>,
}

impl<const K: usize> HostGate<K> {
    const BESIDE: u64 = (UNDER_WAY + OF_ACKS) * 64 / K as u64;
    const EMPTY: u64 = DATA_BYTES / K as u64;
}

impl<const K: usize> Logic for HostGate<K> {
    describe!("host_gate", format!("{K}"), "Room for a frame of the host.");

    #[kernel]
    fn update(&mut self) {
        let all = beats.resize::<16>() + Self::BESIDE;
        needed = if all > Self::EMPTY {
            bits::<16>(Self::EMPTY)
        } else {
            all
        };
        there = room[0];
        for c in 1..CLASSES {
            if packet_class == c {
                there = room[c];
            }
        }
        since = if !waits {
            0
        } else if since.bit(1) {
            since
        } else {
            since + 1
        };
        let fits = there >= needed;
        let settled = waits & since.bit(1);
        may_q = settled & fits;
        may_leave = may_q;
        wanted_q = if settled & !fits {
            class_bit(packet_class)
        } else {
            0
        };
        wanted = wanted_q;
    }
}
