//! Retire: takes finished messages off the outstanding table and completes them.
//!
//! A FIFO of queue pairs with something to retire (each stands in it at most once). For the one at its head a Retire
//! event fetches the state; then the ring is walked from the oldest message, one a cycle, and read one message ahead:
//! acknowledged messages complete with success (if a CQE was asked for), a WQE that could not run completes with its
//! status, and in error everything completes. The Retired event reports how far the walk came and where the oldest
//! message now starts.
//! In error a last entry behind them says that the failure is complete: then the responder of the queue pair may fail.
//! The completion of a READ or atomic waits for the payload writes issued when the latest data was placed.
use super::event::{Outstanding, RetireGrant, RetireReport, SendCompletion, SqEvent, SqEventKind};
use crate::prelude::*;

/// What the walk is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum RetireState {
    /// Waits for a queue pair.
    Idle,
    /// Waits for its state.
    Ask,
    /// The oldest message is being read.
    Seek,
    /// The one behind it.
    Read,
    /// An entry a cycle.
    Walk,
    /// The failure is complete.
    Tell,
    /// Reports.
    Report,
}

/// Retirement for 2^Q queue pairs over a pool of 2^O entries.
#[derive(LogicBlock, Default)]
pub struct Retire<const Q: usize, const O: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A queue pair has something to retire.
    pub push: Signal<In, Bit>,
    /// Which.
    pub push_qpn: Signal<In, Bits<16>>,
    /// Retire and Retired events.
    pub event: StreamOut<SqEvent>,
    /// The state arrives.
    pub grant_valid: Signal<In, Bit>,
    /// The state.
    pub grant: Signal<In, RetireGrant>,
    /// A new entry of the outstanding table.
    pub entry_valid: Signal<In, Bit>,
    /// Its place in the pool.
    pub entry_addr: Signal<In, Bits<24>>,
    /// The entry.
    pub entry: Signal<In, Outstanding>,
    /// Completions, and failures that are complete.
    pub done: StreamOut<SendCompletion>,

    list: Fifo<Bits<16>, Q>,
    pool: Ram<Outstanding, O>,
    out: SkidRam<RetireReport>,
    no_event: Zero<SqEvent>,
    no_completion: Zero<SendCompletion>,
    state: Reg<RetireState>,
    g: Dff<RetireGrant>,
    place: Dff<Bits<16>>,
    count: Dff<Bits<16>>,
    index: Dff<Bits<16>>,
    flush: Dff<Bit>,
    first_error: Dff<Bit>,
    local_status: Dff<Bits<8>>,
    head_psn: Dff<Bits<24>>,
    reads: Dff<Bits<5>>,

    /// The entry under the walk, and whether its message is acknowledged.
    o: Dff<Outstanding>,
    acked: Dff<Bit>,
    /// The entry behind it.
    following: Signal<Local, Outstanding>,
    behind: Signal<Local, Bits<24>>,
    /// PSNs from the first to the last packet of a READ, and their bytes.
    span: Signal<Local, Bits<24>>,
    whole: Signal<Local, Bits<32>>,
    takes: Signal<Local, Bit>,
    completes: Signal<Local, Bit>,
    /// Fails whatever its own status is.
    flushed: Signal<Local, Bit>,
    /// `status` is not success.
    fails: Signal<Local, Bit>,
    status: Signal<Local, Bits<8>>,
    /// `status` is that with which the queue pair failed.
    same: Signal<Local, Bit>,
    at_end: Signal<Local, Bit>,
    advance: Signal<Local, Bit>,
    /// An entry is read, and the one read before comes under the walk.
    moves: Signal<Local, Bit>,
    read_place: Signal<Local, Bits<16>>,
    ring: Signal<Local, Bits<16>>,
}

impl<const Q: usize, const O: usize> Logic for Retire<Q, O> {
    describe!(
        "retire",
        format!("q{Q}_o{O}"),
        "Retires acknowledged and failed messages in order."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, list, pool, out);
        dff_setup!(
            self,
            clock,
            state,
            g,
            place,
            count,
            index,
            flush,
            first_error,
            local_status,
            head_psn,
            reads,
            o,
            acked
        );
        self.list.s.valid.next = self.push.val();
        self.list.s.payload.next = self.push_qpn.val();
        self.list.m.ready.next = false;
        self.pool.we.next = self.entry_valid.val();
        self.pool.waddr.next = self.entry_addr.val().get_bits::<O>(0);
        self.pool.wdata.next = self.entry.val();

        // the entry under the walk
        self.at_end.next = self.count.q.val() == self.g.q.val().used;
        self.takes.next = !self.at_end.val() & (self.acked.q.val() | self.flush.q.val());
        self.flushed.next =
            self.flush.q.val() & (!self.acked.q.val() | self.local_status.q.val().any());
        self.fails.next =
            self.flushed.val() | (self.o.q.val().bad & self.o.q.val().rest.get_bits::<8>(0).any());
        self.status.next = bits::<8>(0);
        self.same.next = !self.g.q.val().status.any();
        if self.flushed.val() {
            self.same.next = self.g.q.val().status.any();
            self.status.next = bits::<8>(5);
            if self.first_error.q.val() & self.g.q.val().status.any() {
                self.status.next = self.g.q.val().status;
            }
        } else if self.o.q.val().bad {
            self.status.next = self.o.q.val().rest.get_bits::<8>(0);
            self.same.next = self.o.q.val().rest.get_bits::<8>(0) == self.g.q.val().status;
        }
        self.completes.next = self.takes.val() & (self.o.q.val().signaled | self.fails.val());
        self.advance.next = (self.state.q.val() == RetireState::Walk)
            & self.takes.val()
            & (self.done.ready.val() | !self.completes.val());
        self.done.valid.next = (self.state.q.val() == RetireState::Walk) & self.completes.val();
        self.done.payload.next = self.no_completion.val();
        self.done.payload.next.cqn = self.g.q.val().cqn;
        self.done.payload.next.qpn = self.g.q.val().qpn;
        self.done.payload.next.opcode = self.o.q.val().cqe_opcode;
        self.done.payload.next.wqe_index = self.index.q.val();
        self.done.payload.next.status = self.status.val();
        self.span.next = self.o.q.val().last_psn - self.o.q.val().first_psn;
        self.whole.next = (bit_cast::<32, 24>(self.span.val()) << 7) << self.g.q.val().mtu;
        self.done.payload.next.byte_len =
            self.whole.val() + bit_cast::<32, 13>(self.o.q.val().rest);
        self.done.payload.next.answered = self.o.q.val().answered;
        self.done.payload.next.fence = self.g.q.val().writes;
        self.done.payload.next.unread = self.g.q.val().unread;
        if self.first_error.q.val() & self.same.val() {
            self.done.payload.next.vendor_err = self.g.q.val().syndrome;
        }

        if self.advance.val() {
            self.count.d.next = self.count.q.val() + 1;
            self.index.d.next = self.index.q.val() + bit_cast::<16, 3>(self.o.q.val().slots);
            if self.fails.val() {
                self.first_error.d.next = false;
            }
            if !self.flush.q.val() & self.o.q.val().bad {
                self.flush.d.next = true;
                self.local_status.d.next = self.o.q.val().rest.get_bits::<8>(0);
            }
            if self.o.q.val().answered {
                self.reads.d.next = self.reads.q.val() + 1;
            }
        }
        // the next entry that is read
        self.moves.next = self.advance.val() | (self.state.q.val() == RetireState::Read);
        self.read_place.next = self.place.q.val();
        if self.state.q.val() == RetireState::Seek {
            self.read_place.next = self.g.q.val().head;
        }
        self.pool.re.next = self.moves.val() | (self.state.q.val() == RetireState::Seek);
        self.ring.next = !(bits::<16>(0xffff) << self.g.q.val().ot_log);
        self.pool.raddr.next = self.g.q.val().ot_base.get_bits::<O>(0)
            | bit_cast::<O, 16>(self.read_place.val() & self.ring.val());
        self.following.next = self.pool.rdata.val();
        self.behind.next = self.following.val().last_psn - self.g.q.val().una_psn;
        if self.moves.val() {
            self.place.d.next = self.place.q.val() + 1;
            self.o.d.next = self.following.val();
            self.acked.d.next = self.behind.val().get_bit(23);
        }

        self.out.s.valid.next = false;
        self.out.s.payload.next.done = false;
        self.out.s.payload.next.qpn = self.list.m.payload.val();
        self.out.s.payload.next.index = self.index.q.val();
        self.out.s.payload.next.psn = self.head_psn.q.val();
        self.out.s.payload.next.una_psn = self.g.q.val().una_psn;
        self.out.s.payload.next.reads = self.reads.q.val();
        self.out.s.payload.next.count = self.count.q.val();
        self.out.s.payload.next.status = self.local_status.q.val();
        self.out.s.payload.next.incarnation = self.g.q.val().incarnation;
        self.event.valid.next = self.out.m.valid.val();
        self.out.m.ready.next = self.event.ready.val();
        self.event.payload.next = self.no_event.val();
        self.event.payload.next.kind = SqEventKind::Retire;
        if self.out.m.payload.val().done {
            self.event.payload.next.kind = SqEventKind::Retired;
        }
        self.event.payload.next.qpn = self.out.m.payload.val().qpn;
        self.event.payload.next.index = self.out.m.payload.val().index;
        self.event.payload.next.psn = self.out.m.payload.val().psn;
        self.event.payload.next.una_psn = self.out.m.payload.val().una_psn;
        self.event.payload.next.reads = self.out.m.payload.val().reads;
        self.event.payload.next.count = self.out.m.payload.val().count;
        self.event.payload.next.status = self.out.m.payload.val().status;
        self.event.payload.next.generation = self.out.m.payload.val().incarnation;

        match self.state.q.val() {
            RetireState::Idle => {
                self.out.s.valid.next = self.list.m.valid.val();
                if self.list.m.valid.val() & self.out.s.ready.val() {
                    self.list.m.ready.next = true;
                    self.state.d.next = RetireState::Ask;
                }
            }
            RetireState::Ask => {
                if self.grant_valid.val() {
                    self.g.d.next = self.grant.val();
                    self.state.d.next = RetireState::Seek;
                }
            }
            RetireState::Seek => {
                self.place.d.next = self.g.q.val().head + 1;
                self.count.d.next = bits::<16>(0);
                self.index.d.next = self.g.q.val().head_index;
                self.flush.d.next = self.g.q.val().error;
                self.first_error.d.next = self.g.q.val().error;
                self.local_status.d.next = bits::<8>(0);
                self.reads.d.next = bits::<5>(0);
                self.state.d.next = RetireState::Read;
            }
            RetireState::Read => {
                self.state.d.next = RetireState::Walk;
            }
            RetireState::Walk => {
                if !self.takes.val() {
                    self.head_psn.d.next = self.o.q.val().first_psn;
                    if self.at_end.val() {
                        self.head_psn.d.next = self.g.q.val().una_psn;
                    }
                    self.state.d.next = RetireState::Report;
                    if self.g.q.val().fatal {
                        self.state.d.next = RetireState::Tell;
                    }
                }
            }
            RetireState::Tell => {
                self.done.valid.next = true;
                self.done.payload.next.failed = true;
                if self.done.ready.val() {
                    self.state.d.next = RetireState::Report;
                }
            }
            RetireState::Report => {
                self.out.s.valid.next = true;
                self.out.s.payload.next.done = true;
                self.out.s.payload.next.qpn = self.g.q.val().qpn;
                if self.out.s.ready.val() {
                    self.state.d.next = RetireState::Idle;
                }
            }
            _ => {
                self.state.d.next = RetireState::Idle;
            }
        }
    }
}
