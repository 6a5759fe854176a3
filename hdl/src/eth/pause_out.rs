//! Pauses to ask the peer for (PFC): what each class holds of the packet buffer, and what is too much (`docs/classes.md`).
//!
//! A class **holds** the beats of payload that are kept and have not left, and the packets of which the last beat, or of those
//! without beats the `RxMeta`, has not left. Beats are those of the data path; registers count units of 64 bytes, and what is not
//! a whole unit does not count.
//!
//! * A class **asks** for a pause from when it holds as much as XOFF says, of either, until it holds less than XON says, of both.
//!   While much waits in front of the engine (`backlog`), each asks.
//!   Only a class asks of which a priority sends pauses. `pause_send` has these priorities, and each of its bits stays as it is for
//!   16 cycles at least (CMAC, PG203), but in a reset.
//! * **Storm**: a class that asks for longer than `storm` milliseconds, and a millisecond more at most, while no beat and no packet
//!   of it leaves, is out of `pause_send` until it asks no more. What does not fit is dropped then. A warning comes at 27/32 of it.
//! * **Admission**: while any class sends pauses, those that send none are refused together when they hold as much as `lossy` says,
//!   of either. As that is 6 cycles behind the packet, they hold a frame of the largest and 5 packets of one beat more at most.
//!
//! Latency from a packet that is kept: 7 cycles to `pause_send`, 6 to `refuse`.
//!
//! Assumes: an `RxMeta` leaves before the last beat of its packet, as in the engine. Where one does not, its place in the queue of
//! these is not counted.

// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

use super::packet_buffer::BufferMoves;
use crate::bus::time::CLOCK_MHZ;
use crate::egress::CLASSES;
use crate::egress::types::{ClassSetup, PauseCounts};
use crate::prelude::*;

/// Priorities.
const PRIORITIES: usize = 8;
/// The cycle before the last one of a millisecond.
const MILLISECOND: u64 = 1000 * CLOCK_MHZ as u64 - 2;
/// Cycles for which a level stays, less one.
const STAYS: u64 = 15;

/// The block, for beats of `K` bytes.
#[derive(Clone, Debug, Block)]
pub struct PauseOut<const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What the host says.
    pub setup: Signal<In, ClassSetup>,
    /// What enters the packet buffer, and leaves it.
    pub moves: Signal<In, BufferMoves>,
    /// Much waits in front of the engine.
    pub backlog: Signal<In, Bit>,
    /// Classes of which no frame is to be kept.
    pub refuse: Signal<Out, Bits<CLASSES>>,
    /// Priorities that the peer is to pause.
    pub pause_send: Signal<Out, Bits<PRIORITIES>>,
    /// Counter pulses.
    pub counts: Signal<Out, PauseCounts>,
    moved: Reg<BufferMoves>,
    has_backlog: Reg<Bit>,
    /// What a cycle changes, and what is held.
    beats_by: [Reg<Bits<16>>; CLASSES],
    packets_by: [Reg<Bits<16>>; CLASSES],
    beats: [Reg<Bits<16>>; CLASSES],
    packets: [Reg<Bits<16>>; CLASSES],
    /// Classes of which something left.
    left: Reg<Bits<CLASSES>>,
    /// Classes that send pauses.
    lossless: Reg<Bits<CLASSES>>,
    over: Reg<Bits<CLASSES>>,
    under: Reg<Bits<CLASSES>>,
    asks: Reg<Bits<CLASSES>>,
    time: Reg<Bits<18>>,
    /// The millisecond of each class, a cycle apart: no two of them count an event in the same cycle.
    tick: Reg<Bits<CLASSES>>,
    /// Milliseconds for which it asks, one that began included.
    age: [Reg<Bits<13>>; CLASSES],
    warned: Reg<Bits<CLASSES>>,
    stopped: Reg<Bits<CLASSES>>,
    /// Milliseconds to a warning.
    soon: Reg<Bits<13>>,
    events: Reg<PauseCounts>,
    wanted: Reg<Bits<PRIORITIES>>,
    sent: Reg<Bits<PRIORITIES>>,
    stays: [Reg<Bits<4>>; PRIORITIES],
    /// What the classes that send none hold: two of them, all.
    lossy_beats: [Reg<Bits<16>>; 2],
    lossy_packets: [Reg<Bits<16>>; 2],
    all_beats: Reg<Bits<16>>,
    all_packets: Reg<Bits<16>>,
    refused: Reg<Bits<CLASSES>>,
}

impl<const K: usize> PauseOut<K> {
    /// Log2 of the beats in a unit.
    const UNIT: u64 = {
        assert!(K.is_power_of_two() && K <= 64, "a unit is whole beats");
        6 - K.ilog2() as u64
    };
}

impl<const K: usize> Logic for PauseOut<K> {
    describe!(
        "pause_out",
        format!("k{K}"),
        "Pauses to ask the peer for, by what each class holds."
    );

    #[kernel]
    fn update(&mut self) {
        let mut sends = bits::<CLASSES>(0);
        let mut wants = bits::<PRIORITIES>(0);
        for k in 0..PRIORITIES {
            for c in 0..CLASSES {
                if setup.sends.bit(k) & (setup.prio_class.slice::<2>(4 * k) == c) {
                    sends = sends.replace_bit(c, true);
                    wants = wants.replace_bit(k, asks.bit(c) & !stopped.bit(c));
                }
            }
        }
        lossless = sends;
        wanted = wants;

        // what is held: a cycle for what changes, a cycle for the sum, a cycle to compare
        moved = moves;
        let mut leaves = bits::<CLASSES>(0);
        let mut too_much = bits::<CLASSES>(0);
        let mut little = bits::<CLASSES>(0);
        for c in 0..CLASSES {
            let enters = moved.kept & (moved.kept_class == c);
            let beat = moved.beat & (moved.beat_class == c);
            let last = moved.last & (moved.beat_class == c);
            let bare = moved.bare & (moved.bare_class == c);
            let mut more = bits::<16>(0);
            let mut one = bits::<16>(0);
            if enters {
                more = moved.kept_beats.resize::<16>();
                one = bits::<16>(1);
            }
            beats_by[c] = more;
            if beat {
                beats_by[c] = more - 1;
            }
            packets_by[c] = one;
            if last & bare {
                packets_by[c] = one - 2;
            } else if last | bare {
                packets_by[c] = one - 1;
            }
            leaves = leaves.replace_bit(c, beat | last | bare);
            assert!(
                !beats_by[c].bit(15) | beats[c].any(),
                "a beat leaves that is not held"
            );
            beats[c] = beats[c] + beats_by[c];
            packets[c] = packets[c] + packets_by[c];
            let units = beats[c] >> Self::UNIT;
            too_much = too_much.replace_bit(
                c,
                (units >= setup.xoff.low::<16>()) | (packets[c] >= setup.xoff.slice::<16>(16)),
            );
            little = little.replace_bit(
                c,
                (units < setup.xon.low::<16>()) & (packets[c] < setup.xon.slice::<16>(16)),
            );
        }
        left = leaves;
        over = too_much;
        under = little;
        has_backlog = backlog;
        let mut all = bits::<CLASSES>(0);
        if has_backlog {
            all = !all;
        }
        asks = lossless & (over | all | (asks & !under));

        // storms
        time = time + 1;
        tick = (tick << 1).replace_bit(0, time == MILLISECOND);
        if tick.bit(0) {
            time = bits::<18>(0);
        }
        soon = setup.storm - (setup.storm >> 3) - (setup.storm >> 5);
        let mut warnings = warned;
        let mut stops = stopped & asks;
        let mut warning = false;
        let mut error = false;
        for c in 0..CLASSES {
            if !asks.bit(c) | left.bit(c) {
                age[c] = bits::<13>(0);
                warnings = warnings.replace_bit(c, false);
            } else if tick.bit(c) & !stopped.bit(c) & setup.storm.any() {
                age[c] = age[c] + 1;
                if (age[c] >= soon) & !warned.bit(c) {
                    warning = true;
                    warnings = warnings.replace_bit(c, true);
                }
                if age[c] >= setup.storm {
                    error = true;
                    stops = stops.replace_bit(c, true);
                }
            }
        }
        warned = warnings;
        stopped = stops;

        // a level that stays for a while
        let mut level = sent;
        let mut begun = bits::<PRIORITIES>(0);
        for k in 0..PRIORITIES {
            if stays[k].any() {
                stays[k] = stays[k] - 1;
            } else if wanted.bit(k) ^ sent.bit(k) {
                stays[k] = bits::<4>(STAYS);
                level = level.replace_bit(k, wanted.bit(k));
                begun = begun.replace_bit(k, wanted.bit(k));
            }
        }
        sent = level;
        pause_send = sent;
        events = PauseCounts {
            begun: begun,
            warning: warning,
            error: error,
        };
        counts = events;

        // admission
        lossy_beats[0] = unless(lossless.bit(0), beats[0]) + unless(lossless.bit(1), beats[1]);
        lossy_beats[1] = unless(lossless.bit(2), beats[2]) + unless(lossless.bit(3), beats[3]);
        lossy_packets[0] =
            unless(lossless.bit(0), packets[0]) + unless(lossless.bit(1), packets[1]);
        lossy_packets[1] =
            unless(lossless.bit(2), packets[2]) + unless(lossless.bit(3), packets[3]);
        all_beats = lossy_beats[0] + lossy_beats[1];
        all_packets = lossy_packets[0] + lossy_packets[1];
        let full = ((all_beats >> Self::UNIT) >= setup.lossy.low::<16>())
            | (all_packets >= setup.lossy.slice::<16>(16));
        refused = bits::<CLASSES>(0);
        if full & lossless.any() {
            refused = !lossless;
        }
        refuse = refused;
    }
}

/// What counts of a class: nothing if it sends pauses.
#[kernel_fn]
fn unless(is_out: Bit, held: Bits<16>) -> Bits<16> {
    let counted: Bits<16> = if is_out { 0 } else { held };
    counted
}
