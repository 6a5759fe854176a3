//! State of the queue pairs: which replies wait, which acknowledgement is due, whose turn it is to be.
//!
//! One table behind one pipeline takes one operation a cycle ([`OpKind`]); all that follows from it leaves in the cycle
//! behind the decision, 4 cycles after the operation came. Nothing waits here: whoever admits operations looks that the
//! queues behind have room.
//!
//! | operation | what it does |
//! |---|---|
//! | Ack | with nothing else of its queue pair waiting and room on the way out it leaves at once; else it waits, in the place of an older one (a NAK stays if the other is of PSNs before it) |
//! | Reply | enters the ring, held back for its fence; a new one makes a waiting acknowledgement superfluous; a duplicate is dropped that is due already or finds 16 of its kind |
//! | Release | the oldest reply held back may run |
//! | Turn | the oldest reply runs; without replies the acknowledgement leaves |
//! | Served | the reply has sent some packets, or all, or none, or failed; the queue pair is listed again if more waits |
//! | Atomic | an atomic is done: with the last of them, READs and acknowledgements behind it may go |
//! | Lost | the queue pair fails, and its NAK leaves |
//! | Halt | nothing of what waits is answered; the turn under way goes to its end |
//! | Reset | all that waits is forgotten; what is under way belongs to an earlier generation |
//!
//! A queue pair that has failed, or was told to halt, answers nothing until it starts afresh.
use super::order::ReplyOrder;
use super::types::*;
use crate::bus::types::PlaceError;
use crate::prelude::*;
use ferroce_proto::abi::cq::status;
use ferroce_proto::wire::Opcode;

const GENERAL_ERR: u64 = status::GENERAL_ERR as u64;
const RC_ACK: u64 = Opcode::RcAck.code() as u64;

/// State of 2^Q queue pairs.
#[derive(LogicBlock, Default)]
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
    /// See there.
    puts: Signal<Local, Bits<4>>,
    valid_0: Reg<Bit>,
    op_0: Dff<Op>,
    word_0: Dff<RingWord>,
    op_1: Dff<Op>,
    word_1: Dff<RingWord>,
    more_1: Dff<Bits<24>>,
    less: Signal<Local, Bits<32>>,
    e: Dff<Op>,
    word_2: Dff<RingWord>,
    last: Dff<Bits<24>>,

    c: Signal<Local, ReplyState>,
    n: Signal<Local, ReplyState>,
    nak_stays: Signal<Local, Bit>,
    fresh: Signal<Local, Bit>,
    empty: Signal<Local, Bit>,
    idle: Signal<Local, Bit>,
    current: Signal<Local, Bit>,
    due: Signal<Local, Bit>,
    refused: Signal<Local, Bit>,
    enters: Signal<Local, Bit>,
    leaves: Signal<Local, Bit>,
    lists: Signal<Local, Bit>,
    starts: Signal<Local, Bit>,
    replies: Signal<Local, Bit>,
    fails: Signal<Local, Bit>,
    more: Signal<Local, Bit>,

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
        "Replies and acknowledgement that wait of each queue pair.";
        GENERAL_ERR, RC_ACK
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, table, order);
        dff_setup!(
            self, clock, valid_0, op_0, word_0, op_1, word_1, more_1, e, word_2, last
        );
        dff_setup!(
            self, clock, leaves_q, ack_q, lists_q, qpn_q, starts_q, start_q, enters_q, entry_q,
            slot_q, word_q, replies_q, fails_q, report_q
        );

        // two cycles to the state; the last PSN of a READ on the way
        self.valid_0.d.next = self.valid.val();
        self.op_0.d.next = self.op.val();
        self.word_0.d.next = self.word.val();
        self.table.valid.next = self.valid_0.q.val();
        self.table.addr.next = self.op_0.q.val().qpn.get_bits::<Q>(0);
        self.op_1.d.next = self.op_0.q.val();
        self.word_1.d.next = self.word_0.q.val();
        self.less.next = self.word_0.q.val().len - 1;
        self.more_1.d.next = bit_cast::<24, 32>((self.less.val() >> 7) >> self.word_0.q.val().mtu);
        if self.word_0.q.val().atomic | !self.word_0.q.val().len.any() {
            self.more_1.d.next = bits::<24>(0);
        }
        self.e.d.next = self.op_1.q.val();
        self.word_2.d.next = self.word_1.q.val();
        self.last.d.next = self.op_1.q.val().psn + self.more_1.q.val();

        self.c.next = self.table.current.val();
        self.n.next = self.c.val();
        self.empty.next = !self.c.val().count.any();
        self.idle.next = self.empty.val() & !self.c.val().atomics.any();
        self.current.next =
            (self.e.q.val().generation == self.c.val().generation) & !self.c.val().dead;
        self.nak_stays.next = self.c.val().ack_due
            & self.c.val().syndrome.get_bits::<2>(5).any()
            & !self.e.q.val().syndrome.get_bits::<2>(5).any()
            & self.order.before_ack.val();

        // a duplicate whose answer is due: of a reply not executed before, or of the latest run of duplicates
        self.fresh.next = self.c.val().count != bit_cast::<6, 5>(self.c.val().duplicates);
        self.order.psn.next = self.op_1.q.val().psn;
        self.order.coming.next = self.table.coming.val();
        self.order.same.next = self.table.x_valid.val()
            & (self.op_1.q.val().qpn.get_bits::<Q>(0) == self.table.x_addr.val());
        self.order.put_psn.next = self.e.q.val().psn;
        self.order.put_last.next = self.last.q.val();
        self.due.next = (self.fresh.val() & !self.order.before_due.val())
            | (self.c.val().duplicates.any() & self.order.in_run.val());
        self.refused.next = self.c.val().count.get_bit(5)
            | (self.e.q.val().duplicate & (self.c.val().duplicates.get_bit(4) | self.due.val()));
        self.more.next = self.c.val().released.get_bits::<5>(1).any();

        self.puts.next = bits::<4>(0);
        self.enters.next = false;
        self.leaves.next = false;
        self.lists.next = false;
        self.starts.next = false;
        self.replies.next = false;
        self.fails.next = false;
        match self.e.q.val().kind {
            OpKind::Ack => {
                if !self.c.val().dead {
                    if self.idle.val() & !self.c.val().listed & self.room.val() {
                        self.leaves.next = true;
                    } else {
                        self.n.next.ack_due = true;
                        if !self.nak_stays.val() {
                            self.puts.next = bits::<4>(1);
                            self.n.next.psn = self.e.q.val().psn;
                            self.n.next.msn = self.e.q.val().msn;
                            self.n.next.syndrome = self.e.q.val().syndrome;
                        }
                        self.lists.next = self.idle.val() & !self.c.val().listed;
                    }
                }
            }
            OpKind::Reply => {
                if !self.c.val().dead & !self.refused.val() {
                    self.enters.next = true;
                    self.n.next.live = true;
                    self.n.next.incarnation = self.e.q.val().incarnation;
                    self.n.next.count = self.c.val().count + 1;
                    if self.e.q.val().duplicate {
                        self.n.next.duplicates = self.c.val().duplicates + 1;
                        self.n.next.high = self.last.q.val();
                        self.puts.next = bits::<4>(8);
                        if !self.c.val().duplicates.any() | !self.order.behind_high.val() {
                            self.n.next.low = self.e.q.val().psn;
                            self.puts.next = bits::<4>(12);
                        }
                    } else {
                        self.n.next.ack_due = false;
                        if !self.fresh.val() {
                            self.puts.next = bits::<4>(2);
                            self.n.next.due_psn = self.e.q.val().psn;
                        }
                    }
                }
            }
            OpKind::Reset => {
                self.n.next = self.blank.val();
                self.n.next.listed = self.c.val().listed;
                self.n.next.generation = self.c.val().generation + 1;
            }
            OpKind::Halt => {
                self.n.next.dead = true;
            }
            OpKind::Release => {
                if self.current.val() {
                    self.n.next.released = self.c.val().released + 1;
                    self.lists.next = !self.c.val().listed;
                }
            }
            OpKind::Turn => {
                if !self.c.val().dead & self.c.val().released.any() {
                    self.starts.next = true;
                } else {
                    self.n.next.listed = false;
                    if !self.c.val().dead & self.idle.val() & self.c.val().ack_due {
                        self.n.next.ack_due = false;
                        self.leaves.next = true;
                    }
                }
            }
            OpKind::Served => {
                self.n.next.listed = false;
                if !self.current.val() {
                    // it started afresh in its turn, or failed
                    self.lists.next = !self.c.val().dead
                        & (self.c.val().released.any() | (self.idle.val() & self.c.val().ack_due));
                } else if self.e.q.val().waits {
                    self.lists.next = !(self.e.q.val().blocked & self.c.val().atomics.any());
                } else if self.e.q.val().failed {
                    self.fails.next = true;
                } else {
                    self.lists.next = !self.e.q.val().over
                        | self.more.val()
                        | ((self.c.val().count == 1)
                            & !self.c.val().atomics.any()
                            & !self.e.q.val().atomic
                            & self.c.val().ack_due);
                    self.n.next.offset = self.e.q.val().offset;
                    if self.e.q.val().over {
                        self.n.next.offset = bits::<24>(0);
                        self.n.next.head = self.c.val().head + 1;
                        self.n.next.count = self.c.val().count - 1;
                        self.n.next.released = self.c.val().released - 1;
                        if self.e.q.val().duplicate {
                            self.n.next.duplicates = self.c.val().duplicates - 1;
                        }
                        if self.e.q.val().atomic {
                            self.n.next.atomics = self.c.val().atomics + 1;
                            if !self.e.q.val().duplicate {
                                self.n.next.save = self.c.val().save + 1;
                                if !self.c.val().saved.get_bit(4) {
                                    self.n.next.saved = self.c.val().saved + 1;
                                }
                            }
                        }
                        self.replies.next = !self.e.q.val().duplicate & !self.e.q.val().atomic;
                    }
                    if !self.e.q.val().duplicate {
                        self.puts.next = bits::<4>(2);
                        self.n.next.due_psn = self.e.q.val().psn;
                    } else if self.order.in_run.val() {
                        self.puts.next = bits::<4>(4);
                        self.n.next.low = self.e.q.val().psn;
                    }
                }
            }
            OpKind::Atomic => {
                if self.current.val() {
                    self.n.next.atomics = self.c.val().atomics - 1;
                    if self.e.q.val().failed {
                        self.fails.next = true;
                    } else {
                        self.replies.next = !self.e.q.val().duplicate;
                        self.lists.next = !self.c.val().listed
                            & (self.c.val().atomics == 1)
                            & (self.c.val().released.any()
                                | (self.empty.val() & self.c.val().ack_due));
                    }
                }
            }
            OpKind::Lost => {
                self.fails.next = self.c.val().live & !self.c.val().dead;
                self.leaves.next = self.c.val().live & !self.c.val().dead;
            }
            _ => {}
        }
        if self.lists.val() {
            self.n.next.listed = true;
        }
        if self.fails.val() {
            self.n.next.dead = true;
        }
        self.table.write.next = true;
        self.table.result.next = self.n.val();
        self.order.puts.next = self.puts.val();

        self.qpn_q.d.next = self.e.q.val().qpn;
        self.leaves_q.d.next = self.table.x_valid.val() & self.leaves.val();
        self.ack_q.d.next.qpn = self.e.q.val().qpn;
        self.ack_q.d.next.opcode = RC_ACK.into();
        self.ack_q.d.next.plen = bits::<13>(0);
        self.ack_q.d.next.value = bits::<64>(0);
        self.ack_q.d.next.psn = self.e.q.val().psn;
        self.ack_q.d.next.msn = self.e.q.val().msn;
        self.ack_q.d.next.syndrome = self.e.q.val().syndrome;
        if self.e.q.val().kind == OpKind::Turn {
            self.ack_q.d.next.psn = self.c.val().psn;
            self.ack_q.d.next.msn = self.c.val().msn;
            self.ack_q.d.next.syndrome = self.c.val().syndrome;
        }
        self.lists_q.d.next = self.table.x_valid.val() & self.lists.val();
        self.starts_q.d.next = self.table.x_valid.val() & self.starts.val();
        self.start_q.d.next.qpn = self.e.q.val().qpn;
        self.start_q.d.next.slot = self.c.val().head;
        self.start_q.d.next.offset = self.c.val().offset;
        self.start_q.d.next.generation = self.c.val().generation;
        self.start_q.d.next.blocked = self.c.val().atomics.any();
        self.start_q.d.next.save = self.c.val().save;
        self.start_q.d.next.saved = self.c.val().saved;
        self.enters_q.d.next = self.table.x_valid.val() & self.enters.val();
        self.slot_q.d.next = self.c.val().head + self.c.val().count.get_bits::<5>(0);
        self.entry_q.d.next.qpn = self.e.q.val().qpn;
        self.entry_q.d.next.generation = self.c.val().generation;
        self.entry_q.d.next.fence = self.e.q.val().fence;
        self.word_q.d.next = self.word_2.q.val();
        self.replies_q.d.next = self.table.x_valid.val() & self.replies.val();
        self.fails_q.d.next = self.table.x_valid.val() & self.fails.val();
        self.report_q.d.next.qpn = self.e.q.val().qpn;
        self.report_q.d.next.incarnation = self.c.val().incarnation;
        self.report_q.d.next.spared = false;
        self.report_q.d.next.syndrome = self.e.q.val().syndrome;
        self.report_q.d.next.status = GENERAL_ERR.into();

        self.ack_valid.next = self.leaves_q.q.val();
        self.ack.next = self.ack_q.q.val();
        self.list_valid.next = self.lists_q.q.val();
        self.list_qpn.next = self.qpn_q.q.val().get_bits::<Q>(0);
        self.start_valid.next = self.starts_q.q.val();
        self.start.next = self.start_q.q.val();
        self.enter.next = self.enters_q.q.val();
        self.entry.next = self.entry_q.q.val();
        self.slot.next = self.slot_q.q.val();
        self.entered.next = self.word_q.q.val();
        self.replied.next = self.replies_q.q.val();
        self.failed.next = self.fails_q.q.val();
        self.report.next = self.report_q.q.val();
        self.ready.next = self.table.ready.val();
    }
}
