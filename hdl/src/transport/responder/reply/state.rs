//! State of the queue pairs: which replies wait, which acknowledgement is due, which queue pair is served next.
//!
//! One table behind one pipeline takes one operation a cycle ([`OpKind`]); all that follows from it leaves in the cycle
//! after the decision, 4 cycles after the operation came. Nothing waits here: the block that admits operations checks
//! that the queues after this one have room.
//!
//! | operation | what it does |
//! |---|---|
//! | Ack | with nothing else of its queue pair waiting and room on the way out it leaves at once; else it waits, in the place of an older one (which stays if an ACK is of PSNs before it) |
//! | Reply | enters the ring, held back for its fence; a new one makes a waiting acknowledgement superfluous; a duplicate is dropped that is due already or finds 16 of its kind |
//! | Release | the oldest reply held back may run |
//! | Turn | the oldest reply runs; without replies the acknowledgement leaves |
//! | Served | the reply has sent some packets, or all, or none, or failed; the queue pair is listed again if more waits |
//! | Atomic | an atomic is done: with the last of them, READs and acknowledgements behind it may go |
//! | Lost | the queue pair fails, and its NAK leaves |
//! | Halt | nothing of what waits is answered; the turn under way goes to its end |
//! | Reset | all that waits is forgotten; what is under way belongs to an earlier generation |
//!
//! A queue pair that has failed, or was halted, answers nothing until a reset.
use super::order::ReplyOrder;
use super::types::*;
use crate::bus::types::PlaceError;
use crate::prelude::*;
use ferroce_proto::abi::cq::status;
use ferroce_proto::wire::Opcode;

const GENERAL_ERR: u64 = status::GENERAL_ERR as u64;
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
    /// An acknowledgement leaves.
    pub ack_valid: Signal<Out, Bit>,
    /// The acknowledgement.
    pub ack: Signal<Out, ReplyPacket>,
    /// A queue pair is to be listed.
    pub list_valid: Signal<Out, Bit>,
    /// Which.
    pub list_qpn: Signal<Out, Bits<Q>>,
    /// A reply runs.
    pub start_valid: Signal<Out, Bit>,
    /// Which.
    pub start: Signal<Out, Start>,
    /// A reply enters the ring.
    pub enter: Signal<Out, Bit>,
    /// Its slot and fence.
    pub entry: Signal<Out, Fence>,
    /// Its slot.
    pub slot: Signal<Out, Bits<5>>,
    /// The reply.
    pub entered: Signal<Out, RingWord>,
    /// A reply that is no duplicate is finished.
    pub replied: Signal<Out, Bit>,
    /// A queue pair failed.
    pub failed: Signal<Out, Bit>,
    /// Which, and the incarnation of `replied` too.
    pub report: Signal<Out, PlaceError>,
    /// The sweep after reset is done.
    pub ready: Signal<Out, Bit>,

    table: Rmw<ReplyState, Q>,
    order: ReplyOrder,
    valid_0: Reg<Bit>,
    op_0: Dff<Op>,
    word_0: Dff<RingWord>,
    op_1: Dff<Op>,
    word_1: Dff<RingWord>,
    more_1: Dff<Bits<24>>,
    e: Dff<Op>,
    word_2: Dff<RingWord>,
    last: Dff<Bits<24>>,

    leaves_q: Reg<Bit>,
    ack_q: Dff<ReplyPacket>,
    lists_q: Reg<Bit>,
    qpn_q: Dff<Bits<16>>,
    starts_q: Reg<Bit>,
    start_q: Dff<Start>,
    enters_q: Reg<Bit>,
    entry_q: Dff<Fence>,
    slot_q: Dff<Bits<5>>,
    word_q: Dff<RingWord>,
    replies_q: Reg<Bit>,
    fails_q: Reg<Bit>,
    report_q: Dff<PlaceError>,
    blank: Zero<ReplyState>,
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
        let less = word_0.len - 1;
        more_1 = ((less >> 7) >> word_0.mtu).resize::<24>();
        if word_0.atomic | !word_0.len.any() {
            more_1 = bits::<24>(0);
        }
        e = op_1;
        word_2 = word_1;
        last = op_1.psn + more_1;

        let c = table.current;
        let mut next = c;
        let empty = !c.count.any();
        let idle = empty & !c.atomics.any();
        let current = (e.generation == c.generation) & !c.dead;
        let stays = c.ack_due & !e.syndrome.slice::<2>(5).any() & order.before_ack;

        // a duplicate whose answer is due: of a reply not executed before, or of the latest run of duplicates
        let fresh = c.count != c.duplicates.resize::<6>();
        order.psn = op_1.psn;
        order.next_word = table.next_word;
        order.same = table.x_valid & (op_1.qpn.low::<Q>() == table.x_addr);
        order.put_psn = e.psn;
        order.put_last = last;
        let due = (fresh & !order.before_due) | (c.duplicates.any() & order.in_run);
        let refused = c.count.bit(5) | (e.duplicate & (c.duplicates.bit(4) | due));
        let more = c.released.slice::<5>(1).any();

        // See there.
        let mut puts: Bits<4> = bits::<4>(0);
        let mut enters = false;
        let mut leaves = false;
        let mut lists = false;
        let mut starts = false;
        let mut replies = false;
        let mut fails = false;
        match e.kind {
            OpKind::Ack => {
                if !c.dead {
                    if idle & !c.listed & room {
                        leaves = true;
                    } else {
                        next.ack_due = true;
                        if !stays {
                            puts = bits::<4>(1);
                            copy!(next <= e; psn, msn, syndrome);
                        }
                        lists = idle & !c.listed;
                    }
                }
            }
            OpKind::Reply => {
                if !c.dead & !refused {
                    enters = true;
                    next.live = true;
                    next.incarnation = e.incarnation;
                    next.count = c.count + 1;
                    if e.duplicate {
                        next.duplicates = c.duplicates + 1;
                        next.high = last;
                        puts = bits::<4>(8);
                        if !c.duplicates.any() | !order.after_dup_last {
                            next.low = e.psn;
                            puts = bits::<4>(12);
                        }
                    } else {
                        next.ack_due = false;
                        if !fresh {
                            puts = bits::<4>(2);
                            next.due_psn = e.psn;
                        }
                    }
                }
            }
            OpKind::Reset => {
                next = blank;
                next.listed = c.listed;
                next.generation = c.generation + 1;
            }
            OpKind::Halt => {
                next.dead = true;
            }
            OpKind::Release => {
                if current {
                    next.released = c.released + 1;
                    lists = !c.listed;
                }
            }
            OpKind::Turn => {
                if !c.dead & c.released.any() {
                    starts = true;
                } else {
                    next.listed = false;
                    if !c.dead & idle & c.ack_due {
                        next.ack_due = false;
                        leaves = true;
                    }
                }
            }
            OpKind::Served => {
                next.listed = false;
                if !current {
                    // it was reset while it was served, or failed
                    lists = !c.dead & (c.released.any() | (idle & c.ack_due));
                } else if e.waits {
                    lists = !(e.blocked & c.atomics.any());
                } else if e.failed {
                    fails = true;
                } else {
                    lists = !e.over
                        | more
                        | ((c.count == 1) & !c.atomics.any() & !e.atomic & c.ack_due);
                    next.offset = e.offset;
                    if e.over {
                        next.offset = bits::<24>(0);
                        next.head = c.head + 1;
                        next.count = c.count - 1;
                        next.released = c.released - 1;
                        if e.duplicate {
                            next.duplicates = c.duplicates - 1;
                        }
                        if e.atomic {
                            next.atomics = c.atomics + 1;
                            if !e.duplicate {
                                next.save = c.save + 1;
                                if !c.saved.bit(4) {
                                    next.saved = c.saved + 1;
                                }
                            }
                        }
                        replies = !e.duplicate & !e.atomic;
                    }
                    if !e.duplicate {
                        puts = bits::<4>(2);
                        next.due_psn = e.psn;
                    } else if order.in_run {
                        puts = bits::<4>(4);
                        next.low = e.psn;
                    }
                }
            }
            OpKind::Atomic => {
                if current {
                    next.atomics = c.atomics - 1;
                    if e.failed {
                        fails = true;
                    } else {
                        replies = !e.duplicate;
                        lists =
                            !c.listed & (c.atomics == 1) & (c.released.any() | (empty & c.ack_due));
                    }
                }
            }
            OpKind::Lost => {
                fails = c.live & !c.dead;
                leaves = c.live & !c.dead;
            }
            _ => {}
        }
        if lists {
            next.listed = true;
        }
        if fails {
            next.dead = true;
        }
        table.write = true;
        table.result = next;
        order.puts = puts;

        qpn_q = e.qpn;
        leaves_q = table.x_valid & leaves;
        ack_q.qpn = e.qpn;
        ack_q.opcode = RC_ACK;
        ack_q.plen = bits::<13>(0);
        ack_q.path = bits::<2>(0);
        ack_q.value = bits::<64>(0);
        copy!(ack_q <= e; psn, msn, syndrome);
        if e.kind == OpKind::Turn {
            copy!(ack_q <= c; psn, msn, syndrome);
        }
        lists_q = table.x_valid & lists;
        starts_q = table.x_valid & starts;
        start_q.qpn = e.qpn;
        start_q.slot = c.head;
        start_q.offset = c.offset;
        start_q.generation = c.generation;
        start_q.blocked = c.atomics.any();
        start_q.save = c.save;
        start_q.saved = c.saved;
        enters_q = table.x_valid & enters;
        slot_q = c.head + c.count.low::<5>();
        entry_q.qpn = e.qpn;
        entry_q.generation = c.generation;
        entry_q.fence = e.fence;
        word_q = word_2;
        replies_q = table.x_valid & replies;
        fails_q = table.x_valid & fails;
        report_q.qpn = e.qpn;
        report_q.incarnation = c.incarnation;
        report_q.spared = false;
        report_q.syndrome = e.syndrome;
        report_q.status = GENERAL_ERR;

        ack_valid = leaves_q;
        ack = ack_q;
        list_valid = lists_q;
        list_qpn = qpn_q.low::<Q>();
        start_valid = starts_q;
        start = start_q;
        enter = enters_q;
        entry = entry_q;
        slot = slot_q;
        entered = word_q;
        replied = replies_q;
        failed = fails_q;
        report = report_q;
        ready = table.ready;
    }
}
