//! In front of the class queues: which queue a frame goes to, and whether its beats have room there.
//!
//! * Data goes to the data queue of its class, a CNP to the control queue. An acknowledgement goes to the control queue while no
//!   response to a READ or an atomic stands in the data queue of its class; else to that, behind them: a requester takes one that
//!   passed READ responses as a sign that they were lost (IB1 9.7.5.1.4). It may pass an older acknowledgement, which says less.
//!   An acknowledgement or a CNP of which the control queue may not have room for all goes to the data queue too. That queue has
//!   room for all that is under way when its class closes, unless it had closed before
//!   ([`ClassGate`](super::class_gate::ClassGate)).
//! * A beat is taken while its queue has room, and some stays free ([`ClassEgress`](super::class_egress::ClassEgress)). A queue that is full holds up what comes behind, whatever its class.
//!
//! A beat a cycle, no latency.
//!
//! Assumes: the block behind is always ready, and reserves in the cycle in which it is asked to; `mark` is the same for all beats of
//! a frame.
use super::types::{FrameMark, Space};
use super::{CLASSES, QUEUES};
use crate::bus::valid::Valid;
use crate::cell::count::one_less;
use crate::prelude::*;

/// Bit of the number of a control queue.
const CONTROL: u64 = CLASSES as u64;

/// The block, for beats of `W` bits = `K` bytes.
#[derive(Clone, Debug, Block)]
pub struct ClassEntry<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Frames.
    pub s_axis: AxisIn<W, K>,
    /// With each beat: what its frame is.
    pub mark: Signal<In, FrameMark>,
    /// Frames.
    pub m_axis: AxisOut<W, K>,
    /// With each beat: the queue of its frame.
    pub queue: Signal<Out, Bits<4>>,
    /// The last beat of a request leaves.
    pub request: Signal<Out, Bit>,
    /// Classes whose data queue holds a response to a READ or an atomic.
    pub responds: Signal<Out, Bits<CLASSES>>,
    /// Room for a beat that leaves in this cycle.
    pub reserve: Signal<Out, Valid<Space>>,
    /// Beats that each queue has room for.
    pub room: [Signal<In, Bits<16>>; QUEUES],
    /// Queue of which a beat leaves, if any.
    pub pop: Signal<In, Bits<QUEUES>>,
    spare: Reg<Bits<QUEUES>>,
    /// Classes whose control queue may not have room for a whole frame.
    scarce: Reg<Bits<CLASSES>>,
    inside: Reg<Bit>,
    begun: Dff<Bits<4>>,
    /// Beats in each data queue, and of these up to the last one of a response.
    level: [Reg<Bits<16>>; CLASSES],
    to_response: [Reg<Bits<16>>; CLASSES],
    /// There are such.
    stands: Reg<Bits<CLASSES>>,
}

impl<const W: usize, const K: usize> ClassEntry<W, K> {
    /// Beats of room below which none is taken: 64 bytes and four beats stay free, one of which is taken because `spare` is a
    /// cycle old.
    const LEAST: u64 = 64 / K as u64 + 4;
    /// Beats of room with which a frame is begun in a control queue: one of up to 128 bytes has room to its end.
    const WHOLE: u64 = Self::LEAST + 128 / K as u64;
}

impl<const W: usize, const K: usize> Logic for ClassEntry<W, K> {
    describe!(
        "class_entry",
        format!("w{W}"),
        "Queue of each frame by its class, and room for its beats."
    );

    #[kernel]
    fn update(&mut self) {
        let mut follows = false;
        let mut lacks_room = false;
        let mut next_scarce = bits::<CLASSES>(0);
        for c in 0..CLASSES {
            if mark.packet_class == c {
                follows = stands.bit(c);
                lacks_room = scarce.bit(c);
            }
            next_scarce = next_scarce.replace_bit(c, room[CLASSES + c] < Self::WHOLE);
        }
        scarce = next_scarce;
        let beside = mark.cnp | (mark.ack & !follows);
        let mut chosen = mark.packet_class.resize::<4>();
        if beside & !lacks_room {
            chosen = mark.packet_class.resize::<4>() | CONTROL;
        }
        if inside {
            chosen = begun;
        }
        let mut free = bits::<QUEUES>(0);
        let mut goes = false;
        for i in 0..QUEUES {
            free = free.replace_bit(i, room[i] >= Self::LEAST);
            if (chosen == i) & spare.bit(i) {
                goes = true;
            }
        }
        spare = free;
        let fire = s_axis.tvalid & goes;
        s_axis.tready = goes;
        copy!(m_axis <= s_axis; tdata, tkeep, tlast, tuser);
        m_axis.tvalid = fire;
        queue = chosen;
        request = fire & s_axis.tlast & mark.request;
        reserve.valid = fire;
        reserve.payload.queue = chosen;
        reserve.payload.beats = bits::<14>(1);
        if fire {
            inside = !s_axis.tlast;
            begun = chosen;
        }
        let mut some = bits::<CLASSES>(0);
        for c in 0..CLASSES {
            let pushes = fire & (chosen == c);
            let responds = pushes & mark.response & !mark.ack;
            let more = level[c] + 1;
            if pushes & !pop.bit(c) {
                level[c] = more;
            } else if pop.bit(c) & !pushes {
                level[c] = one_less(level[c]);
            }
            let at_response = if pop.bit(c) { level[c] } else { more };
            if responds {
                to_response[c] = at_response;
            } else if pop.bit(c) & to_response[c].any() {
                to_response[c] = one_less(to_response[c]);
            }
            some = some.replace_bit(c, responds | to_response[c].any());
        }
        stands = some;
        responds = stands;
    }
}
