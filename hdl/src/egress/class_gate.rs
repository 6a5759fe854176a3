//! Classes of which nothing is to start: those that are paused, those whose data queue may not have room for all that is under
//! way, and those of which a frame of the host waits for room ([`host_gate`](super::host_gate)).
//!
//! What is under way is bounded, whatever class it is of ([`UNDER_WAY`]). While a class is not `closed` its queue has room for all of
//! that; for a part of a request that cannot be of the largest, less is enough. A turn of responses adds nothing to the requests that
//! are granted, so it asks for those that there are (`ahead`). That is some cycles old: what was granted since asked for its own room.
//! So what was granted before a class closed finds room, and holds up no other, however long the pause.
//!
//! What needs less room would keep what needs more from it for as long as it comes. So while a request that was refused waits
//! ([`claims`](super::claims)), requests that need less room than it and turns of responses leave it that.
//!
//! An acknowledgement goes to the control queue, or behind responses that stand in the data queue
//! ([`class_entry`](super::class_entry)). It waits while that one has no room; a part of that of data is for it. A CNP goes to the
//! control queue. What finds no room there goes to the data queue. Of a flood of acknowledgements
//! ([`ack_share`](super::ack_share)) all wait.
//!
//! Latency: a cycle from `shut` and `no_acks`, two from `room`, three from `ahead`; `cnps_wait` a cycle more. In each a beat may enter
//! its queue, and as much start: it counts among those in pipelines.
use super::claims::Claims;
use super::class_of::{class_bit, class_of_priority, priority_of};
use super::types::{ClassSetup, ClosedClasses, RequestsAhead};
use super::{CLASSES, DATA_BYTES};
use crate::prelude::*;

/// Units of 64 bytes of requests that are granted and not cut into packets, at most (`requester/part_count` keeps to it).
pub const MOST_AHEAD: u64 = 1614;
/// Of these, units of the largest part: 64 KiB of payload in 128 packets, each with two units of headers and what is not whole.
pub const LARGEST_PART: u64 = 1024 + 2 * 128 + 2;
/// Units of a part of 32 packets, at most.
pub const LONG_PART: u64 = 1024 + 2 * 32 + 2;
/// Units of a part of less than 8 KiB in 63 packets, at most.
pub const SHORT_PART: u64 = 128 + 2 * 63 + 2;
/// Units that leave at 100 Gb/s while a WQE is read again: some 300 cycles.
const READ_AGAIN: u64 = 230;
/// Packets of requests between the segmenter and the queues: descriptors, those that may be recalled, headers, assembler.
const REQUESTS: u64 = 129 + 33 + 31 + 7;
/// Packets of responses between the cutter and the queues, and acknowledgements: those at the exit, descriptors, headers, assembler.
const RESPONSES: u64 = 17 + 129 + 31 + 7;
/// Units of the largest packet.
const LARGEST: u64 = 66;
/// Units of payload in both lanes of `gather` from which on no request and no packet of a response is added.
pub const PAYLOAD: u64 = 640;
/// Packets of requests and of responses whose payload `gather` does not know of then.
const UNSEEN: u64 = 5 + 3;
/// Beats in pipelines, in units.
const PIPELINES: u64 = 64;
/// Units that can be under way: parts of requests, of each packet the beats beside those of its payload, payload, beats between `gather`
/// and the queues.
pub const UNDER_WAY: u64 =
    MOST_AHEAD + 2 * (REQUESTS + RESPONSES) + PAYLOAD + UNSEEN * LARGEST + PIPELINES;
/// Units of room that acknowledgements may take of a data queue whose class is closed already.
pub const OF_ACKS: u64 = 64;
// 128 units may wait for the wire while all classes are open
const _: () = assert!(UNDER_WAY + OF_ACKS + 128 <= DATA_BYTES / 64);
/// Units of room in the control queue from which on an acknowledgement or a CNP may leave: one for each that is under way.
const ACKS: u64 = RESPONSES + 8;

/// The block, for beats of `K` bytes.
#[derive(Clone, Debug, Block)]
pub struct ClassGate<const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Beats that the data queue of each class has room for.
    pub room: [Signal<In, Bits<16>>; CLASSES],
    /// Beats that its control queue has room for.
    pub control_room: [Signal<In, Bits<16>>; CLASSES],
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
    /// DSCP of CNPs.
    pub cnp_dscp: Signal<In, Bits<6>>,
    /// Their PCP, if they have a tag.
    pub cnp_pcp: Signal<In, Bits<3>>,
    /// Requests that are granted and not cut into packets, and those that were refused.
    pub ahead: Signal<In, RequestsAhead>,
    /// Classes that are paused.
    pub shut: Signal<In, Bits<CLASSES>>,
    /// Classes of which a frame of the host waits.
    pub wanted: Signal<In, Bits<CLASSES>>,
    /// No acknowledgement is to leave, of any class.
    pub no_acks: Signal<In, Bit>,
    /// Classes whose data queue holds a response.
    pub responds: Signal<In, Bits<CLASSES>>,
    /// Classes of which something is not to start.
    pub closed: Signal<Out, ClosedClasses>,
    /// Classes of which no acknowledgement is to leave.
    pub acks_wait: Signal<Out, Bits<CLASSES>>,
    /// No CNP is to leave.
    pub cnps_wait: Signal<Out, Bit>,
    claims: Claims,
    /// Beats that an acknowledgement behind responses, and a turn of them, needs.
    acks: Dff<Bits<16>>,
    turn: Dff<Bits<16>>,
    /// Classes without room for: a turn of responses, and parts of each kind.
    turns_q: Reg<Bits<CLASSES>>,
    any_q: Reg<Bits<CLASSES>>,
    long_q: Reg<Bits<CLASSES>>,
    short_q: Reg<Bits<CLASSES>>,
    again_q: Reg<Bits<CLASSES>>,
    /// For an acknowledgement: in the control queue, behind responses.
    control_q: Reg<Bits<CLASSES>>,
    scarce_q: Reg<Bits<CLASSES>>,
    closed_q: Reg<ClosedClasses>,
    acks_q: Reg<Bits<CLASSES>>,
    /// Classes that are shut, or whose control queue may be full.
    cnps_barred: Reg<Bits<CLASSES>>,
    cnp_prio: Dff<Bits<3>>,
    /// Classes that a CNP may be of, with a tag or without.
    cnp_classes: Dff<Bits<CLASSES>>,
    cnps_q: Reg<Bit>,
}

impl<const K: usize> ClassGate<K> {
    /// Beside what is granted.
    const ACK: u64 = (UNDER_WAY - MOST_AHEAD) * 64 / K as u64;
    const TURN: u64 = Self::ACK + OF_ACKS * 64 / K as u64;
    const MORE: u64 = (UNDER_WAY + OF_ACKS) * 64 / K as u64;
    /// Cycles of a period of claims, less one.
    const PERIOD: u64 = 8192 * 64 / K as u64 - 1;
    /// log2 of the beats of a unit.
    const SHIFT: u64 = 6 - K.ilog2() as u64;
    const LONG: u64 = Self::MORE - (LARGEST_PART - LONG_PART) * 64 / K as u64;
    const SHORT: u64 = Self::MORE - (LARGEST_PART - SHORT_PART) * 64 / K as u64;
    const AGAIN: u64 = Self::LONG - READ_AGAIN * 64 / K as u64;
    const ACK_BEATS: u64 = ACKS * 64 / K as u64;
}

impl<const K: usize> Logic for ClassGate<K> {
    describe!(
        "class_gate",
        format!("{K}"),
        "Classes of which nothing is to start."
    );

    #[kernel]
    fn update(&mut self) {
        claims.refused = ahead.refused;
        claims.period = bits::<16>(Self::PERIOD);
        let claimed = claims.claimed;
        let granted = ahead.units << Self::SHIFT;
        acks = granted + Self::ACK;
        turn = granted + Self::TURN;
        let stops = shut | wanted;
        let mut turns = bits::<CLASSES>(0);
        let mut any = bits::<CLASSES>(0);
        let mut long = bits::<CLASSES>(0);
        let mut short = bits::<CLASSES>(0);
        let mut again = bits::<CLASSES>(0);
        let mut control = bits::<CLASSES>(0);
        let mut scarce = bits::<CLASSES>(0);
        for c in 0..CLASSES {
            turns = turns.replace_bit(c, room[c] < turn);
            any = any.replace_bit(c, room[c] < Self::MORE);
            long = long.replace_bit(c, room[c] < Self::LONG);
            short = short.replace_bit(c, room[c] < Self::SHORT);
            again = again.replace_bit(c, room[c] < Self::AGAIN);
            control = control.replace_bit(c, control_room[c] < Self::ACK_BEATS);
            scarce = scarce.replace_bit(c, room[c] < acks);
        }
        turns_q = turns;
        any_q = any;
        long_q = long;
        short_q = short;
        again_q = again;
        control_q = control;
        scarce_q = scarce;
        // what longer parts claim
        let of_any = any_q & claimed.any;
        let of_long = of_any | (long_q & claimed.long);
        closed_q = ClosedClasses {
            turns: turns_q | of_long | (again_q & claimed.short) | stops,
            any: any_q | stops,
            long: long_q | of_any | stops,
            short: short_q | of_long | stops,
            waits: again_q | stops,
            waits_short: again_q | of_long | stops,
        };
        closed = closed_q;
        let stops_all = shut | control_q;
        cnps_barred = stops_all;
        let waits = stops_all | (responds & scarce_q);
        acks_q = if no_acks { !bits::<CLASSES>(0) } else { waits };
        acks_wait = acks_q;
        cnp_prio = priority_of(classes, cnp_dscp, true, cnp_pcp);
        let tagged = class_bit(class_of_priority(classes, cnp_prio));
        let untagged = class_bit(class_of_priority(classes, classes.default_prio));
        cnp_classes = if classes.by_pcp {
            tagged | untagged
        } else {
            tagged
        };
        cnps_q = (cnp_classes & cnps_barred).any();
        cnps_wait = cnps_q;
    }
}
