//! The queues of the classes with the pauses of the peer: weights, classes and what is obeyed come from registers. Wiring only.
//!
//! ```text
//!  s_axis, queue ─► class_egress ─► m_axis
//!                    ▲ pause │ active, waiting
//!  pause_req ─► pause_in ◄───┘ ─► pause_ack
//! ```
//!
//! Queue c holds data of class c, queue c + 4 its acknowledgements and CNPs, which are strict.
use super::class_egress::ClassEgress;
use super::pause_in::PauseIn;
use super::types::{ClassSetup, Space};
use super::{CLASSES, DATA, QUEUES};
use crate::bus::types::Departure;
use crate::bus::valid::Valid;
use crate::prelude::*;

/// Queues of `W` bits = `K` bytes; the others as of [`ClassEgress`].
#[derive(Clone, Debug, Block)]
pub struct ClassPort<
    const W: usize,
    const K: usize,
    const A: usize,
    const B: usize,
    const M: usize,
    const T: usize,
> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What the host says.
    pub setup: Signal<In, ClassSetup>,
    /// Frames.
    pub s_axis: AxisIn<W, K>,
    /// With each beat: the queue of its frame.
    pub queue: Signal<In, Bits<4>>,
    /// With a last beat: of a request.
    pub request: Signal<In, Bit>,
    /// Which.
    pub departure: Signal<In, Departure>,
    /// A frame will come.
    pub reserve: Signal<In, Valid<Space>>,
    /// It will not come, or is shorter.
    pub give_back: Signal<In, Valid<Space>>,
    /// Beats that each queue has room for.
    pub room: [Signal<Out, Bits<16>>; QUEUES],
    /// Queues with room for a frame of any length.
    pub open: Signal<Out, Bits<QUEUES>>,
    /// Queues that hold a beat.
    pub waiting: Signal<Out, Bits<QUEUES>>,
    /// Queue of which a beat leaves, if any.
    pub pop: Signal<Out, Bits<QUEUES>>,
    /// What comes from now on does not count in `stands`.
    pub note: Signal<In, Bit>,
    /// A beat is here; with `note`: of those before it.
    pub stands: Signal<Out, Bit>,
    /// A request has left; one cycle.
    pub departed: Signal<Out, Valid<Departure>>,
    /// No data queue is to start a frame.
    pub hold: Signal<In, Bit>,
    /// No queue is to start a frame.
    pub stall: Signal<In, Bit>,
    /// No frame of any is under way.
    pub stalled: Signal<Out, Bit>,
    /// Classes that are paused.
    pub shut: Signal<Out, Bits<CLASSES>>,
    /// Priorities of which a pause that is obeyed begins.
    pub paused: Signal<Out, Bits<8>>,
    /// Priorities that the peer pauses, in this clock.
    pub pause_req: Signal<In, Bits<8>>,
    /// Priorities whose pause time runs in the MAC, see [`PauseIn`](crate::egress::pause_in::PauseIn).
    pub pause_ack: Signal<Out, Bits<8>>,
    /// Frames.
    pub m_axis: AxisOut<W, K>,
    queues: ClassEgress<W, K, A, B, M, T>,
    pauses: PauseIn,
}

impl<const W: usize, const K: usize, const A: usize, const B: usize, const M: usize, const T: usize>
    Logic for ClassPort<W, K, A, B, M, T>
{
    describe!(
        "class_port",
        format!("w{W}_{}_{T}", 1usize << A),
        "Queues of frames by class, with the pauses of the peer."
    );

    #[kernel]
    fn update(&mut self) {
        forward!(s_axis <= queues.s_axis);
        copy!(queues <= self; queue, request, departure, reserve, give_back, note);
        copy!(self <= queues; open, waiting, pop, stands, departed);
        for i in 0..QUEUES {
            room[i] = queues.room[i];
        }
        for c in 0..CLASSES {
            queues.weight[c] = setup.weight.slice::<7>(8 * c);
            queues.weight[c + CLASSES] = bits::<7>(0);
        }
        pauses.setup = setup;
        pauses.request = pause_req;
        pauses.stall = stall;
        stalled = pauses.stalled;
        paused = pauses.paused;
        pause_ack = pauses.acknowledge;
        pauses.active = queues.active;
        pauses.waiting = queues.waiting;
        queues.pause = pauses.pause;
        shut = pauses.pause.low::<CLASSES>();
        if hold {
            queues.pause = pauses.pause | DATA;
        }
        forward!(m_axis <= queues.m_axis);
    }
}
