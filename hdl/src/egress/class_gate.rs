//! Classes of which no request is to start: those that are paused, and those whose queue of data may not have room for all that is
//! under way.
//!
//! What is under way of requests is bounded, whatever class it is of ([`UNDER_WAY`]). While a class is not `closed` its queue has
//! room for all of that. So what was granted before it closed finds room, and holds up no other class, however long the pause.
//!
//! Latency: a cycle; the bound has the frames of as long as it takes until a START sees it.
use super::CLASSES;
use crate::prelude::*;

/// Units of 64 bytes that are granted and not cut into packets, at most (`requester/part_count` keeps to it).
pub const MOST_AHEAD: u64 = 1932;
/// Bytes of the payload store of a lane of `gather` (`engine/builds.rs`).
const STORE: u64 = 1 << 16;
/// Packets between the segmenter and the queues: descriptors, those that may be recalled, headers, assembler.
const PACKETS: u64 = 129 + 33 + 31 + 7;
/// Beats in pipelines, in units.
const PIPELINES: u64 = 64;
/// Units of 64 bytes that requests under way can fill: parts, payload that is read, of each packet the beats beside those of its
/// payload, pieces between the segmenter and `gather`, beats between `gather` and the queues.
pub const UNDER_WAY: u64 = MOST_AHEAD + STORE / 64 + 2 * PACKETS + 3 * 66 + PIPELINES;

/// The block, for beats of `K` bytes.
#[derive(Clone, Debug, Block)]
pub struct ClassGate<const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Beats that the queue of data of each class has room for.
    pub room: [Signal<In, Bits<16>>; CLASSES],
    /// Classes that are paused.
    pub shut: Signal<In, Bits<CLASSES>>,
    /// Classes of which no request is to start.
    pub closed: Signal<Out, Bits<CLASSES>>,
    out: Reg<Bits<CLASSES>>,
}

impl<const K: usize> ClassGate<K> {
    const BEATS: u64 = UNDER_WAY * 64 / K as u64;
}

impl<const K: usize> Logic for ClassGate<K> {
    describe!(
        "class_gate",
        format!("{K}"),
        "Classes of which no request is to start."
    );

    #[kernel]
    fn update(&mut self) {
        let mut closes = shut;
        for c in 0..CLASSES {
            if room[c] < Self::BEATS {
                closes = closes.replace_bit(c, true);
            }
        }
        out = closes;
        closed = out;
    }
}
