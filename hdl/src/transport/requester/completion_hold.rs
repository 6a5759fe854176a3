//! Completions of send queues wait here, in order, for the last read of their payload.
//!
//! A packet that is sent again may be acknowledged before its payload is read again: the acknowledgement is that of the
//! first time. Its message completes when no grant that is of it has payload to be read, as host memory belongs to the
//! host again then. The same holds for a message that is flushed. Grants are numbered in the order in which they are cut
//! and read; a completion names the last one that counts ([`SendCompletion::unread`], not looked at once it is through).
//!
//! Which grants are read is found in rounds: the pieces cut so far are read, so are the grants cut by then. A round is a
//! cycle if no read is under way.
//!
//! A failure that is complete ([`SendCompletion::failed`]) leaves by `failed` once the completions in front of it were taken,
//! so the responder of the queue pair flushes its receive queue behind the request that failed.
//!
//! Flushed WQEs hold the segmenter up if they find no room, and with it the very grants that are waited for: no flush is
//! granted without `room`, and there is always room for those that are.
//!
//! A completion is compared on its way into the register that it leaves from, and again while it stands there.
//!
//! Latency: 2 cycles for what need not wait. Throughput: a completion a cycle.
use super::event::SendCompletion;
use crate::bus::types::{Activity, CqToken};
use crate::prelude::*;

/// Log2 of the completions held: `room` for 16, and as many again on their way, of which the segmenter has 13 at most.
const HELD: usize = 5;

/// The completions held.
#[derive(LogicBlock, Default)]
pub struct CompletionHold {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Completions of what was started.
    pub retired: StreamIn<SendCompletion>,
    /// Completions of WQEs that were not.
    pub flushed: StreamIn<SendCompletion>,
    /// Grants so far, modulo 2^16.
    pub granted: Signal<In, Bits<16>>,
    /// A grant is cut to its end, or dropped.
    pub part_cut: Signal<In, Bit>,
    /// A piece of payload is to be read.
    pub piece_cut: Signal<In, Bit>,
    /// A piece of payload was read; in their order.
    pub piece_read: Signal<In, Bit>,
    /// Completions.
    pub cq: StreamOut<CqToken>,
    /// Queue pairs whose failure is complete.
    pub failed: StreamOut<Bits<16>>,
    /// A WQE may be flushed.
    pub room: Signal<Out, Bit>,
    /// Completions that wait.
    pub activity: Signal<Out, Activity>,

    list: Fifo<SendCompletion, HELD>,
    has_room: Reg<Bit>,
    /// The turn of `retired`; else that of `flushed`, every second cycle if both have something.
    turn: Reg<Bit>,
    few: Signal<Local, Bit>,
    no_token: Zero<CqToken>,
    /// The first one, its grants are through, and it does not leave.
    first: Dff<SendCompletion>,
    there: Reg<Bit>,
    is_read: Reg<Bit>,
    stays: Signal<Local, Bit>,
    head: Signal<Local, SendCompletion>,
    /// Of the one that is compared.
    unread: Signal<Local, Bits<16>>,
    /// `latest` - `unread` is not negative, and less `open`, modulo 2^17.
    ahead: Signal<Local, Bit>,
    spare: Signal<Local, Bits<17>>,

    parts: Reg<Bits<16>>,
    cut: Reg<Bits<16>>,
    read: Reg<Bits<16>>,
    // the round: `through` becomes `parts_due` when `cut_due` pieces are read
    parts_due: Reg<Bits<16>>,
    cut_due: Reg<Bits<16>>,
    through: Reg<Bits<16>>,
    // grants, and how many of these are not through, of one cycle
    latest: Reg<Bits<16>>,
    open: Reg<Bits<16>>,
}

impl Logic for CompletionHold {
    describe!(
        "completion_hold",
        "Holds completions until the payload of what was granted is read."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, list);
        dff_setup!(
            self, clock, has_room, turn, parts, cut, read, parts_due, cut_due, through, latest,
            open, first, there, is_read
        );

        // in
        self.few.next = !self.list.level.val().get_bits::<2>(4).any();
        self.has_room.d.next = self.few.val();
        self.turn.d.next = self.few.val() & !(self.flushed.valid.val() & self.turn.q.val());
        self.list.s.valid.next = self.retired.valid.val();
        self.list.s.payload.next = self.retired.payload.val();
        if !self.turn.q.val() {
            self.list.s.valid.next = self.flushed.valid.val();
            self.list.s.payload.next = self.flushed.payload.val();
            // no READ or atomic: not looked at
            self.list.s.payload.next.byte_len = self.retired.payload.val().byte_len;
            self.list.s.payload.next.fence = self.retired.payload.val().fence;
        }
        self.retired.ready.next = self.turn.q.val();
        self.flushed.ready.next = !self.turn.q.val() & self.list.s.ready.val();
        self.room.next = self.has_room.q.val();

        // which grants are through
        if self.part_cut.val() {
            self.parts.d.next = self.parts.q.val() + 1;
        }
        if self.piece_cut.val() {
            self.cut.d.next = self.cut.q.val() + 1;
        }
        if self.piece_read.val() {
            self.read.d.next = self.read.q.val() + 1;
        }
        if self.read.q.val() == self.cut_due.q.val() {
            self.through.d.next = self.parts_due.q.val();
            self.parts_due.d.next = self.parts.q.val();
            self.cut_due.d.next = self.cut.q.val();
        }
        self.latest.d.next = self.granted.val();
        self.open.d.next = self.granted.val() - self.through.q.val();

        // out
        self.head.next = self.first.q.val();
        self.stays.next = self.there.q.val() & !(self.is_read.q.val() & self.cq.ready.val());
        if self.head.val().failed {
            self.stays.next =
                self.there.q.val() & !(self.is_read.q.val() & self.failed.ready.val());
        }
        self.unread.next = self.head.val().unread;
        if !self.stays.val() {
            self.unread.next = self.list.m.payload.val().unread;
            self.there.d.next = self.list.m.valid.val();
            self.first.d.next = self.list.m.payload.val();
        }
        self.list.m.ready.next = !self.stays.val();
        // (latest - unread) modulo 2^16 >= open: two sums side by side, as one behind the other would be too deep
        self.ahead.next = self.latest.q.val() >= self.unread.val();
        self.spare.next = bit_cast::<17, 16>(self.latest.q.val())
            - bit_cast::<17, 16>(self.unread.val())
            - bit_cast::<17, 16>(self.open.q.val());
        self.is_read.d.next = (self.ahead.val() ^ self.spare.val().get_bit(16))
            | (self.stays.val() & self.is_read.q.val());
        self.cq.valid.next = self.there.q.val() & self.is_read.q.val() & !self.head.val().failed;
        self.failed.valid.next = self.there.q.val() & self.is_read.q.val() & self.head.val().failed;
        self.failed.payload.next = self.head.val().qpn;
        self.cq.payload.next = self.no_token.val();
        self.cq.payload.next.cqn = self.head.val().cqn;
        self.cq.payload.next.qpn = self.head.val().qpn;
        self.cq.payload.next.opcode = bit_cast::<8, 3>(self.head.val().opcode);
        self.cq.payload.next.wqe_index = self.head.val().wqe_index;
        self.cq.payload.next.status = self.head.val().status;
        if self.head.val().answered & !self.head.val().status.any() {
            self.cq.payload.next.byte_len = self.head.val().byte_len;
        }
        self.cq.payload.next.vendor_err = self.head.val().vendor_err;
        self.cq.payload.next.fenced = self.head.val().answered;
        self.cq.payload.next.fence = self.head.val().fence;

        self.activity.next.busy = self.list.m.valid.val() | self.there.q.val();
        self.activity.next.moved = (self.cq.valid.val() & self.cq.ready.val())
            | (self.failed.valid.val() & self.failed.ready.val());
    }
}
