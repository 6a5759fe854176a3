//! Egress side: from frames to the wire, or back to the port itself. Wiring only.
//!
//! ```text
//!  s_axis, mark ─► loopback ─┬─► class_entry ─► class_port ─► m_axis_tx
//!                            └─► own                 │ room, pauses ─► class_gate ─► closed, acks_wait, cnps_wait
//!                                              │ room ─► host_gate ─► host_may_leave
//!                                              │ what leaves ─► ack_share ─► class_gate
//!                                                    │ departed
//!  started ─► passage ◄──────────────────────────────┘
//!                └─► left
//! ```
use crate::bus::types::{Activity, Departure};
use crate::bus::valid::Valid;
use crate::egress::ack_share::AckShare;
use crate::egress::class_entry::ClassEntry;
use crate::egress::class_gate::ClassGate;
use crate::egress::class_port::ClassPort;
use crate::egress::host_gate::HostGate;
use crate::egress::passage::Passage;
use crate::egress::types::{ClassSetup, ClosedClasses, FrameMark, RequestsAhead, Space};
use crate::egress::{CLASSES, QUEUES};
use crate::eth::loopback::Loopback;
use crate::prelude::*;
use crate::transport::congestion::notify_types::NotifySetup;

/// The side, for beats of `W` bits = `K` bytes; the others as of [`ClassPort`].
#[derive(Clone, Debug, Block)]
pub struct EgressSide<
    const W: usize,
    const K: usize,
    const A: usize,
    const B: usize,
    const F: usize,
    const T: usize,
> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Frames.
    pub s_axis: AxisIn<W, K>,
    /// With each beat: what its frame is.
    pub mark: Signal<In, FrameMark>,
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
    /// Frames to the port itself.
    pub own: AxisOut<W, K>,
    /// Frames to the wire.
    pub m_axis_tx: AxisOut<W, K>,
    /// Priorities that the peer pauses, in this clock.
    pub pause_req: Signal<In, Bits<8>>,
    /// Priorities whose pause time runs in the MAC, see [`PauseIn`](crate::egress::pause_in::PauseIn).
    pub pause_ack: Signal<Out, Bits<8>>,
    /// What the host says of CNPs.
    pub notify: Signal<In, NotifySetup>,
    /// A frame of the host waits for room, or takes it.
    pub host_waits: Signal<In, Bit>,
    /// Its class.
    pub host_class: Signal<In, Bits<2>>,
    /// Its beats that have not left.
    pub host_beats: Signal<In, Bits<13>>,
    /// It may leave.
    pub host_may_leave: Signal<Out, Bit>,
    /// Classes of which something is not to start.
    pub closed: Signal<Out, ClosedClasses>,
    /// Requests that are granted and not cut into packets, and those that were refused.
    pub ahead: Signal<In, RequestsAhead>,
    /// Classes of which no acknowledgement is to leave.
    pub acks_wait: Signal<Out, Bits<CLASSES>>,
    /// No CNP is to leave.
    pub cnps_wait: Signal<Out, Bit>,
    /// Priorities of which a pause that is obeyed begins.
    pub paused: Signal<Out, Bits<8>>,
    /// No frame is to begin.
    pub stall: Signal<In, Bit>,
    /// None is under way.
    pub stalled: Signal<Out, Bit>,
    /// A frame of a request is begun in the assembler; one cycle.
    pub started_valid: Signal<In, Bit>,
    /// Its departure.
    pub started: Signal<In, Departure>,
    /// Packets stand in the assemblers.
    pub assembling: Signal<In, Bit>,
    /// A frame leaves them; one cycle.
    pub enters: Signal<In, Bit>,
    /// Whoever takes `left` has room.
    pub left_room: Signal<In, Bit>,
    /// A request has left; one cycle.
    pub left_valid: Signal<Out, Bit>,
    /// Which.
    pub left: Signal<Out, Departure>,
    /// Packets between their headers and the queues.
    pub passage: Signal<Out, Activity>,
    /// Frames that come from now on do not count in `queued`.
    pub note: Signal<In, Bit>,
    /// Frames in the queues.
    pub queued: Signal<Out, Activity>,
    loopback: Loopback<W, K>,
    entry: ClassEntry<W, K>,
    queues: ClassPort<W, K, A, B, F, T>,
    gate: ClassGate<K>,
    share: AckShare<K>,
    frame_gate: HostGate<K>,
    way: Passage,
    no_space: Zero<Valid<Space>>,
}

impl<const W: usize, const K: usize, const A: usize, const B: usize, const F: usize, const T: usize>
    Logic for EgressSide<W, K, A, B, F, T>
{
    describe!(
        "egress_side",
        format!("w{W}_e{A}_{B}_{T}"),
        "From frames to the wire, or back to the port itself."
    );

    #[kernel]
    fn update(&mut self) {
        forward!(s_axis <= loopback.s);
        copy!(loopback <= self; mark, mac);
        forward!(own <= loopback.own);
        loopback.hold = way.hold_own;
        forward!(entry.s_axis <= loopback.m);
        entry.mark = loopback.m_mark;
        forward!(queues.s_axis <= entry.m_axis);
        copy!(queues <= entry; queue, reserve, request);
        queues.departure = way.departure;
        queues.give_back = no_space;
        entry.pop = queues.pop;
        for i in 0..QUEUES {
            entry.room[i] = queues.room[i];
        }
        for c in 0..CLASSES {
            gate.room[c] = queues.room[c];
            gate.control_room[c] = queues.room[c + CLASSES];
            frame_gate.room[c] = queues.room[c];
        }
        frame_gate.waits = host_waits;
        frame_gate.packet_class = host_class;
        frame_gate.beats = host_beats;
        host_may_leave = frame_gate.may_leave;
        copy!(share <= queues; pop, waiting, shut);
        gate.no_acks = share.no_acks;
        gate.wanted = frame_gate.wanted;
        gate.shut = queues.shut;
        gate.ahead = ahead;
        gate.responds = entry.responds;
        gate.classes = classes;
        gate.cnp_dscp = notify.dscp;
        gate.cnp_pcp = notify.prio;
        copy!(self <= gate; closed, acks_wait, cnps_wait);
        queues.setup = classes;
        copy!(queues <= self; pause_req, note);
        queues.stall = stall;
        queues.hold = way.hold;
        forward!(m_axis_tx <= queues.m_axis);
        copy!(self <= queues; pause_ack, paused, stalled);
        queued.busy = queues.stands;
        // waited for to the last of those that are noted
        queued.moved = false;
        queued.level = 1;

        copy!(way <= self; started_valid, started, assembling, enters);
        way.room = left_room;
        copy!(way <= loopback; passes, returned);
        way.queued = entry.request;
        way.departed = queues.departed;
        copy!(self <= way; left_valid, left);
        passage = way.activity;
    }
}
