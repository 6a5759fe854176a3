//! State of the queue pairs: which replies wait, which atomics run, which acknowledgement is due, which queue pair is served next.
//!
//! One table behind one pipeline takes one operation a cycle ([`OpKind`]); all that follows from it leaves in the cycle
//! after the decision, 4 cycles after the operation came. Nothing waits here: the block that admits operations checks
//! that the queues after this one have room.
//!
//! [`rules`](super::rules) defines what each operation does.
//!
//! ```text
//!  op ─► (0) ─► (1) table is read ─► (2) state, PSNs compared ─► rules ─► (3) what leaves
//! ```
use super::atomic_types::{AtomicChange, AtomicWord, RunEntry, RunStart};
use super::order::ReplyOrder;
use super::rules::{ReplyRules, may_start};
use super::types::*;
use crate::bus::types::PlaceError;
use crate::bus::types::image::AvCtx;
use crate::bus::valid::Valid;
use crate::egress::CLASSES;
use crate::egress::class_of::{class_bit, class_of_priority, priority_of};
use crate::egress::path_marks::PathMarks;
use crate::egress::types::ClassSetup;
use crate::prelude::*;
use ferroce_proto::abi::cq::status::GENERAL_ERR;
use ferroce_proto::wire::Opcode;

const RC_ACK: u64 = Opcode::RcAck.code() as u64;

/// State of 2^Q queue pairs.
#[derive(Block)]
pub struct ReplyTable<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An operation enters.
    pub valid: Signal<In, Bit>,
    /// The operation.
    pub op: Signal<In, Op>,
    /// The reply, with Reply.
    pub word: Signal<In, RingWord>,
    /// An acknowledgement may leave at once.
    pub room: Signal<In, Bit>,
    /// A command writes the address vector of `image_qpn`.
    pub av_we: Signal<In, Bit>,
    /// Queue pair of the address vector.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// Address vector.
    pub av_image: Signal<In, AvCtx>,
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
    /// Classes of which no turn is to start.
    pub closed: Signal<In, Bits<CLASSES>>,
    /// Classes of which no acknowledgement is to leave.
    pub acks_wait: Signal<In, Bits<CLASSES>>,
    /// An acknowledgement leaves.
    pub ack_valid: Signal<Out, Bit>,
    /// The acknowledgement.
    pub ack: Signal<Out, ReplyPacket>,
    /// A queue pair is to be listed.
    pub list_valid: Signal<Out, Bit>,
    /// Which.
    pub list_qpn: Signal<Out, Bits<16>>,
    /// Its oldest reply may be answered.
    pub list_runs: Signal<Out, Bit>,
    /// The queue pair that may be listed in two cycles.
    pub ahead_qpn: Signal<Out, Bits<Q>>,
    /// A queue pair waits for its class.
    pub holds: Signal<Out, Bit>,
    /// Which.
    pub holds_qpn: Signal<Out, Bits<16>>,
    /// Its class.
    pub holds_class: Signal<Out, Bits<2>>,
    /// It would have sent an acknowledgement.
    pub holds_ack: Signal<Out, Bit>,
    /// A queue pair has atomics to run.
    pub run_list: Signal<Out, Valid<RunEntry>>,
    /// An atomic runs.
    pub run: Signal<Out, Valid<RunStart>>,
    /// None ran, though it was asked for.
    pub runs_none: Signal<Out, Bit>,
    /// How atomics end.
    pub change: Signal<Out, Valid<AtomicChange>>,
    /// A reply is answered.
    pub start_valid: Signal<Out, Bit>,
    /// Which.
    pub start: Signal<Out, Start>,
    /// A reply enters the ring.
    pub enter: Signal<Out, Bit>,
    /// Its fence.
    pub entry: Signal<Out, Fence>,
    /// Its slot.
    pub slot: Signal<Out, Bits<5>>,
    /// The reply.
    pub entered: Signal<Out, ReplyWord>,
    /// With `enter`: it is an atomic to run, which has this slot there.
    pub run_slot: Signal<Out, Valid<Bits<4>>>,
    /// The atomic.
    pub run_word: Signal<Out, AtomicWord>,
    /// A reply that is no duplicate is finished.
    pub replied: Signal<Out, Bit>,
    /// A queue pair failed.
    pub failed: Signal<Out, Bit>,
    /// The queue pair of `replied` or `failed`, its incarnation, and how it failed.
    pub report: Signal<Out, PlaceError>,
    /// The sweep after reset is done.
    pub ready: Signal<Out, Bit>,

    table: Rmw<ReplyState, Q>,
    order: ReplyOrder,
    rules: ReplyRules,
    marks: PathMarks<Q>,
    prio_1: Dff<Bits<3>>,
    own_1: Dff<Bit>,
    class_2: Dff<Bits<2>>,
    of_class_2: Dff<Bits<CLASSES>>,
    closed_2: Dff<Bit>,
    ack_waits_2: Dff<Bit>,
    valid_0: Reg<Bit>,
    op_0: Dff<Op>,
    word_0: Dff<RingWord>,
    op_1: Dff<Op>,
    word_1: Dff<RingWord>,
    packets_less_1: Dff<Bits<24>>,
    op_2: Dff<Op>,
    word_2: Dff<RingWord>,
    last_2: Dff<Bits<24>>,

    leaves_q: Reg<Bit>,
    ack_q: Dff<ReplyPacket>,
    lists_q: Reg<Bit>,
    qpn_q: Dff<Bits<16>>,
    /// See [`may_start`].
    first_runs_q: Dff<Bit>,
    released_q: Dff<Bits<6>>,
    done_q: Dff<Bits<5>>,
    holds_q: Reg<Bit>,
    holds_ack_q: Dff<Bit>,
    class_q: Dff<Bits<2>>,
    run_lists_q: Reg<Bit>,
    runs_q: Reg<Bit>,
    runs_none_q: Reg<Bit>,
    run_q: Dff<RunStart>,
    /// An atomic came, that enters or is void.
    came_q: Reg<Bit>,
    over_q: Reg<Bit>,
    voids_q: Reg<Bits<5>>,
    starts_q: Reg<Bit>,
    start_q: Dff<Start>,
    enters_q: Reg<Bit>,
    entry_q: Dff<Fence>,
    slot_q: Dff<Bits<5>>,
    run_slot_q: Dff<Bits<4>>,
    word_q: Dff<RingWord>,
    replies_q: Reg<Bit>,
    fails_q: Reg<Bit>,
    report_q: Dff<PlaceError>,
}

impl<const Q: usize> Logic for ReplyTable<Q> {
    describe!(
        "reply_table",
        format!("q{Q}"),
        "Replies and acknowledgement that wait of each queue pair."
    );

    #[kernel]
    fn update(&mut self) {
        // two cycles to the state; the last PSN of a READ on the way
        valid_0 = valid;
        op_0 = op;
        word_0 = word;
        table.valid = valid_0;
        table.addr = op_0.qpn.low::<Q>();
        op_1 = op_0;
        word_1 = word_0;
        packets_less_1 = if !word_0.len.any() {
            0
        } else {
            (((word_0.len - 1) >> 7) >> word_0.mtu).resize::<24>()
        };
        op_2 = op_1;
        word_2 = word_1;
        last_2 = op_1.psn + packets_less_1;

        // likewise to its class
        marks.we = av_we;
        marks.number = image_qpn;
        marks.av = av_image;
        marks.mac = mac;
        marks.re = true;
        marks.raddr = op.qpn.low::<Q>();
        let mark = marks.mark;
        prio_1 = priority_of(classes, mark.dscp, mark.tagged, mark.pcp);
        own_1 = mark.own;
        let packet_class = class_of_priority(classes, prio_1);
        // packets to the port itself are of none
        let of_class: Bits<CLASSES> = if own_1 { 0 } else { class_bit(packet_class) };
        class_2 = packet_class;
        of_class_2 = of_class;
        closed_2 = (of_class & closed).any();
        ack_waits_2 = (of_class & acks_wait).any();

        let state = table.current;
        order.psn = op_1.psn;
        order.asks = op_1.kind == OpKind::Reply;
        order.next_word = table.next_word;
        order.same = table.x_valid & (op_1.qpn.low::<Q>() == table.x_addr);
        order.earlier_psn = op_2.psn;
        order.earlier_last = last_2;
        rules.op = op_2;
        rules.last = last_2;
        rules.state = state;
        rules.order = order.order;
        rules.room = room & !ack_waits_2;
        rules.closed = closed_2;
        rules.ack_waits = ack_waits_2;
        let decision = rules.decision;
        table.write = true;
        table.result = rules.next_state;
        order.writes = decision.writes;

        qpn_q = op_2.qpn;
        leaves_q = table.x_valid & decision.leaves;
        ack_q.qpn = op_2.qpn;
        ack_q.opcode = RC_ACK;
        ack_q.plen = 0;
        ack_q.path = 0;
        ack_q.value = 0;
        copy!(ack_q <= op_2; psn, msn, syndrome);
        if op_2.kind == OpKind::Turn {
            copy!(ack_q <= state; psn, msn, syndrome);
        }
        lists_q = table.x_valid & decision.lists;
        holds_q = table.x_valid & decision.holds;
        holds_ack_q = decision.holds_ack;
        class_q = class_2;
        first_runs_q = rules.next_state.runs.bit(0);
        released_q = rules.next_state.released;
        done_q = rules.next_state.done;
        run_lists_q = table.x_valid & decision.run_lists;
        runs_q = table.x_valid & decision.runs;
        runs_none_q = table.x_valid & (op_2.kind == OpKind::Run) & !decision.runs;
        came_q = table.x_valid & (op_2.kind == OpKind::Reply) & op_2.runs;
        over_q = table.x_valid & (op_2.kind == OpKind::Atomic);
        voids_q = if table.x_valid { decision.voids } else { 0 };
        run_q.qpn = op_2.qpn;
        run_q.generation = state.generation;
        run_q.slot = state.running.slot;
        starts_q = table.x_valid & decision.starts;
        copy!(start_q <= op_2; qpn, log_bytes);
        copy!(start_q <= state; offset, generation, save, saved, dup_first, dup_last);
        start_q.slot = state.head;
        start_q.of_class = of_class_2;
        start_q.repeats = state.duplicates.any();
        start_q.earlier = state.earlier.any();
        enters_q = table.x_valid & decision.enters;
        slot_q = state.head + state.count.low::<5>();
        run_slot_q = state.running.enter_slot;
        entry_q = Fence {
            qpn: op_2.qpn,
            generation: state.generation,
            fence: op_2.fence,
            runs: op_2.runs,
        };
        word_q = word_2;
        replies_q = table.x_valid & decision.replies;
        fails_q = table.x_valid & decision.fails;
        report_q = PlaceError {
            qpn: op_2.qpn,
            incarnation: state.incarnation,
            spared: false,
            syndrome: op_2.syndrome,
            status: GENERAL_ERR,
        };

        ack_valid = leaves_q;
        ack = ack_q;
        list_valid = lists_q;
        list_qpn = qpn_q;
        list_runs = may_start(first_runs_q, released_q, done_q);
        holds = holds_q;
        holds_qpn = qpn_q;
        holds_class = class_q;
        holds_ack = holds_ack_q;
        run_list.valid = run_lists_q;
        copy!(run_list.payload <= run_q; qpn, generation);
        run_list.payload.denied = false;
        run.valid = runs_q;
        run.payload = run_q;
        runs_none = runs_none_q;
        let refused = came_q & !enters_q;
        change.valid = refused | runs_q | over_q | voids_q.any();
        change.payload.qpn = qpn_q;
        change.payload.starts = runs_q;
        change.payload.ends = over_q;
        change.payload.void = voids_q | bits::<5>(0).replace_bit(0, refused);
        ahead_qpn = op_1.qpn.low::<Q>();
        start_valid = starts_q;
        start = start_q;
        enter = enters_q;
        entry = entry_q;
        slot = slot_q;
        copy!(entered <= word_q; atomic, duplicate, psn, msn, mtu, pd, va, rkey, len);
        run_slot.valid = enters_q & entry_q.runs;
        run_slot.payload = run_slot_q;
        copy!(run_word <= word_q; add, psn, pd, va, rkey, swap_add, compare);
        replied = replies_q;
        failed = fails_q;
        report = report_q;
        ready = table.ready;
    }
}
