//! CQ write: completions into the rings of the host (docs/architecture.md 3.7).
//!
//! ```text
//!  recv ─► fence, 256 deep ─┐                            ┌─► place ──► write, beats (dma_write)
//!  send ─► fence ───────────┴► tokens ─┐                 │
//!  command ────────────────────────────┼─► state, image ─┼─► lost
//!  beat ─► consumer record ────────────┤                 ├─► read (dma_read)
//!  arm ────────────────────────────────┘                 └─► reports ─► events
//! ```
//!
//! An operation enters every second cycle: what a consumer record said, a command, or a token. Two cycles later it meets
//! the state of its queue ([`Rmw`]), with the sums over it that were formed a cycle before, and a token becomes a CQE, or is lost because its queue is not open or has
//! overflowed. Tokens of one input keep their order. Of receives 256 wait for their payload, 2 of sends.
//!
//! The consumer record is read again when a ring is half full or more, one read at a time. A token that meets a full ring
//! waits, with all behind it, for a read begun after it; only if the ring is full then too is it an overflow: the token is
//! lost, and so is every further one until a command opens the queue afresh. A read that fails tells nothing. The
//! answer to a read begun before its queue was opened, closed or resized is ignored.
//!
//! A command that resizes a queue switches to the ring and the record of its image at the next entry: everything else of
//! the queue stays. It is refused if the queue is not open, has overflowed, or has more entries that the host has not
//! taken than the new ring holds. `refused` and `switched` tell of it from the cycle behind its transfer to the next.
//!
//! An armed queue reports the next entry (or the next that is solicited or failed) to its event queue, once, when the
//! CQE is in host memory; if entries beyond the consumer index of the doorbell are there already, at once. A second report
//! of a queue while the first waits to be taken is the same. An overflow is reported too. Reports hold up nothing.
//!
//! Rate: a CQE in 2 cycles, in 4 at W = 64. Latency from `valid` of a token whose fence is passed, or
//! that has none, to `write.valid`: 9 cycles. Assumes: `lost` is taken whatever the inputs do.
pub mod fence;
pub mod fence_queue;
pub mod place;
pub mod record;
pub mod reports;
pub mod sender;
pub mod types;

use crate::bus::types::image::CqCtx;
use crate::bus::types::{Activity, CqToken, ReadReq, WriteCmd};
use crate::prelude::*;
use crate::queue::eq_write::EqEvent;

use fence::CqFence;
use fence_queue::CqFenceQueue;
use place::CqPlace;
use record::CqRecord;
use reports::CqReports;
pub use types::*;

/// Writer of 2^C completion queues.
#[derive(LogicBlock, Default)]
pub struct CqWrite<const W: usize, const K: usize, const C: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Commands; the queue number is in range.
    pub command: StreamIn<CqCommand>,
    /// Completions of receives.
    pub recv: StreamIn<CqToken>,
    /// Completions of sends; what only receives have counts as 0.
    pub send: StreamIn<CqToken>,
    /// Payload bursts that have their response, modulo 2^16.
    pub done: Signal<In, Bits<16>>,
    /// Arm doorbells.
    pub arm: StreamIn<CqArm>,
    /// CQE bursts that have their response, modulo 2^16.
    pub cqe_done: Signal<In, Bits<16>>,
    /// Completions and overflows of queues, for their event queues.
    pub events: StreamOut<EqEvent>,
    /// CQE bursts.
    pub write: StreamOut<WriteCmd>,
    /// Their beats.
    pub beats: WriteBeatOut<W, K>,
    /// Reads of consumer records.
    pub read: StreamOut<ReadReq>,
    /// Their answers.
    pub beat: ReadBeatIn<W>,
    /// The last command resized its queue and was refused.
    pub refused: Signal<Out, Bit>,
    /// Entries of its queue written before the last command, modulo 2^24: the first of the new ring.
    pub switched: Signal<Out, Bits<24>>,
    /// Completions that were lost: their queue pairs go into error.
    pub lost: StreamOut<CqLost>,
    /// A queue overflowed, in this cycle.
    pub overflow: Signal<Out, Bit>,
    /// Tokens, commands, CQEs and reads that are not done.
    pub activity: Signal<Out, Activity>,
    /// The table is swept after reset.
    pub ready: Signal<Out, Bit>,

    /// Payload takes as long to be written as host memory takes.
    recv_fence: CqFenceQueue,
    send_fence: CqFence,
    tokens: Merge<CqToken, 2>,
    table: Rmw<CqState, C>,
    images: Ram<CqCtx, C>,
    losses: Fifo<CqLost, 4>,
    place: CqPlace<W, K>,
    reports: CqReports<C>,
    record: CqRecord<W>,
    no_state: Zero<CqState>,

    // entry
    op: Reg<CqOp>,
    /// Token: it met a full ring before.
    again: Reg<Bit>,
    /// Command: it stands at its port until it is done.
    commanded: Reg<Bit>,
    /// The outputs have room for all that is under way.
    room: Reg<Bit>,
    /// Arm: the doorbell. One does not follow another at once.
    doorbell: Dff<CqArm>,
    free: Signal<Local, Bit>,
    enters: Signal<Local, Bit>,
    address: Signal<Local, Bits<C>>,

    // stage 1
    entered: Reg<Bit>,
    token: Dff<CqToken>,
    takes: Signal<Local, Bit>,
    log_size: Signal<Local, Bits<5>>,
    /// Image of a command.
    order: Signal<Local, CqCtx>,

    // stage X: the state is there
    live: Reg<Bit>,
    image: Dff<CqCtx>,
    mask: Dff<Bits<24>>,
    c: Signal<Local, CqState>,
    n: Signal<Local, CqState>,
    commanding: Signal<Local, Bit>,
    /// The state, a cycle before.
    coming: Signal<Local, CqState>,
    /// Entries that wait when the host resizes, less one.
    waiting: Dff<Bits<24>>,
    fits: Signal<Local, Bit>,
    changes: Signal<Local, Bit>,
    /// Entries in the ring.
    level: Dff<Bits<24>>,
    full: Signal<Local, Bit>,
    half: Signal<Local, Bit>,
    completing: Signal<Local, Bit>,
    usable: Signal<Local, Bit>,
    accepts: Signal<Local, Bit>,
    overflows: Signal<Local, Bit>,
    waits: Signal<Local, Bit>,
    asks: Signal<Local, Bit>,

    // the token at a full ring, and the one read of a consumer record
    held: Reg<Bit>,
    /// The read that `token` waited for was begun after it.
    looked: Reg<Bit>,
    read_cqn: Dff<Bits<C>>,
    /// The read was begun for a token that waits.
    read_last: Reg<Bit>,
    /// Its queue was opened or closed since.
    stale: Reg<Bit>,
    update_ok: Dff<Bit>,
    update: Dff<Bits<24>>,

    solicited: Signal<Local, Bit>,
    /// Entries that a doorbell asks for and that are there.
    ahead: Dff<Bits<24>>,
    is_ahead: Signal<Local, Bit>,
    fires: Signal<Local, Bit>,
    w_wrote: Reg<Bit>,
    w_news: Reg<Bit>,
    w_death: Reg<Bit>,
    w_cqn: Dff<Bits<16>>,
    w_lost: Reg<Bit>,
    w_loss: Dff<CqLost>,
    w_overflow: Reg<Bit>,
    w_refused: Reg<Bit>,
    w_switched: Dff<Bits<24>>,
}

impl<const W: usize, const K: usize, const C: usize> Logic for CqWrite<W, K, C> {
    describe!(
        "cq_write",
        format!("w{W}_c{C}"),
        "Writes completions into the rings of the host."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self, clock, recv_fence, send_fence, tokens, table, images, losses, place, reports,
            record
        );
        dff_setup!(self, clock, op, again, commanded, room, entered, token);
        dff_setup!(
            self, clock, live, image, mask, held, looked, w_refused, w_switched
        );
        dff_setup!(
            self, clock, read_cqn, read_last, stale, update_ok, update, level, waiting, ahead
        );
        dff_setup!(
            self, clock, doorbell, w_wrote, w_news, w_death, w_cqn, w_lost, w_loss, w_overflow
        );

        StreamIn::<CqToken>::link(&mut self.recv, &mut self.recv_fence.s);
        self.recv_fence.done.next = self.done.val();
        StreamOut::<CqToken>::join(&mut self.recv_fence.m, &mut self.tokens.s[0]);
        StreamIn::<CqToken>::link(&mut self.send, &mut self.send_fence.s);
        self.send_fence.done.next = self.done.val();
        self.tokens.s[1].valid.next = self.send_fence.m.valid.val();
        self.send_fence.m.ready.next = self.tokens.s[1].ready.val();
        // a send has none of the fields that are 0, which then need no register
        self.tokens.s[1].payload.next = self.send_fence.m.payload.val();
        self.tokens.s[1].payload.next.imm = bits::<32>(0);
        self.tokens.s[1].payload.next.with_imm = false;
        self.tokens.s[1].payload.next.with_inv = false;
        self.tokens.s[1].payload.next.solicited = false;
        self.tokens.s[1].payload.next.recv = false;
        self.tokens.s[1].payload.next.src_qpn = bits::<24>(0);
        self.tokens.s[1].payload.next.pkey = bits::<16>(0);
        self.tokens.s[1].payload.next.grh = false;

        // entry: an operation in every second cycle, answers and commands first; behind a command, in the third
        self.commanding.next = self.live.q.val() & (self.op.q.val() == CqOp::Command);
        self.room.d.next = self.place.room.val() & !self.losses.level.val().get_bits::<2>(3).any();
        self.free.next = self.table.ready.val() & !self.entered.q.val() & !self.commanding.val();
        self.enters.next = false;
        self.commanded.d.next = false;
        self.record.take.next = false;
        self.reports.take.next = false;
        self.arm.ready.next = false;
        self.address.next = self.read_cqn.q.val();
        if self.free.val() {
            if self.record.answered.val() {
                self.enters.next = true;
                self.op.d.next = CqOp::Update;
                self.record.take.next = true;
                self.update_ok.d.next = self.record.ok.val();
                self.update.d.next = self.record.taken.val();
                self.looked.d.next = self.read_last.q.val() & !self.stale.q.val();
            } else if self.command.valid.val() {
                self.enters.next = true;
                self.op.d.next = CqOp::Command;
                self.address.next = self.command.payload.val().cqn.get_bits::<C>(0);
                self.commanded.d.next = true;
            } else if self.reports.due.val() {
                self.enters.next = true;
                self.op.d.next = CqOp::Report;
                self.address.next = self.reports.due_cqn.val().get_bits::<C>(0);
                self.reports.take.next = true;
            } else if self.arm.valid.val() & !(self.op.q.val() == CqOp::Arm) {
                self.enters.next = true;
                self.op.d.next = CqOp::Arm;
                self.address.next = self.arm.payload.val().cqn.get_bits::<C>(0);
                self.doorbell.d.next = self.arm.payload.val();
                self.arm.ready.next = true;
            } else if self.held.q.val() {
                self.op.d.next = CqOp::Token;
                self.address.next = self.token.q.val().cqn.get_bits::<C>(0);
                if !self.record.reading.val() {
                    self.enters.next = true;
                    self.again.d.next = true;
                    self.held.d.next = false;
                }
            } else {
                self.op.d.next = CqOp::Token;
                self.enters.next = self.tokens.m.valid.val() & self.room.q.val();
                self.again.d.next = false;
                self.address.next = self.tokens.m.payload.val().cqn.get_bits::<C>(0);
            }
        }
        self.entered.d.next = self.enters.val();
        self.table.valid.next = self.enters.val();
        self.table.addr.next = self.address.val();
        self.images.re.next = true;
        self.images.raddr.next = self.address.val();

        // stage 1: a new token is taken, unless the one before it was found to wait
        self.takes.next = self.entered.q.val()
            & (self.op.q.val() == CqOp::Token)
            & !self.again.q.val()
            & !self.held.q.val();
        self.tokens.m.ready.next = self.takes.val();
        if self.takes.val() {
            self.token.d.next = self.tokens.m.payload.val();
        }
        self.live.d.next = self.entered.q.val()
            & (self.takes.val() | self.again.q.val() | !(self.op.q.val() == CqOp::Token));
        self.image.d.next = self.images.rdata.val();
        self.order.next = self.command.payload.val().image;
        self.log_size.next = self.images.rdata.val().log_size;
        if self.commanded.q.val() {
            self.log_size.next = self.order.val().log_size;
        }
        self.mask.d.next = !(bits::<24>(0xffffff) << self.log_size.val());
        // sums over the state: no operation is in stage X then
        self.coming.next = self.table.coming.val();
        self.level.d.next = self.coming.val().written - self.coming.val().taken;
        self.waiting.d.next = self.coming.val().written + !self.command.payload.val().taken;
        self.ahead.d.next = self.coming.val().solicited_end - self.doorbell.q.val().index;
        if self.doorbell.q.val().any {
            self.ahead.d.next = self.coming.val().written - self.doorbell.q.val().index;
        }

        // stage X
        self.c.next = self.table.current.val();
        self.n.next = self.table.current.val();
        self.full.next = (self.level.q.val() & !self.mask.q.val()).any();
        self.half.next = (self.level.q.val() & !(self.mask.q.val() >> 1)).any();
        self.completing.next = self.live.q.val() & (self.op.q.val() == CqOp::Token);
        self.usable.next = self.c.val().open & !self.c.val().dead;
        self.fits.next =
            self.waiting.q.val().get_bit(23) | !(self.waiting.q.val() & !self.mask.q.val()).any();
        self.changes.next = self.commanding.val()
            & (!self.command.payload.val().resize | (self.usable.val() & self.fits.val()));
        self.command.ready.next = self.commanding.val();
        self.images.we.next = self.changes.val();
        self.images.waddr.next = self.table.x_addr.val();
        self.images.wdata.next = self.order.val();
        self.accepts.next = self.usable.val() & !self.full.val();
        self.overflows.next = self.usable.val() & self.full.val() & self.looked.q.val();
        self.waits.next = self.usable.val() & self.full.val() & !self.looked.q.val();
        self.asks.next = self.completing.val()
            & self.usable.val()
            & self.half.val()
            & !self.record.reading.val();
        if self.overflows.val() {
            self.asks.next = false;
        }
        self.solicited.next = self.token.q.val().solicited | self.token.q.val().status.any();
        self.is_ahead.next = self.ahead.q.val().any() & !self.ahead.q.val().get_bit(23);
        self.fires.next = false;
        match self.op.q.val() {
            CqOp::Token => {
                if self.accepts.val() {
                    self.n.next.written = self.c.val().written + 1;
                    if self.solicited.val() {
                        self.n.next.solicited_end = self.c.val().written + 1;
                    }
                    self.fires.next =
                        self.c.val().armed | (self.c.val().armed_solicited & self.solicited.val());
                }
                if self.overflows.val() {
                    self.n.next.dead = true;
                    self.n.next.dying = true;
                }
            }
            CqOp::Command => {
                if !self.command.payload.val().resize {
                    self.n.next = self.no_state.val();
                    self.n.next.open = self.command.payload.val().open;
                    self.n.next.reporting = self.c.val().reporting;
                    self.n.next.dying = self.c.val().dying;
                } else if self.usable.val() & self.fits.val() {
                    self.n.next.taken = self.command.payload.val().taken;
                }
            }
            CqOp::Arm => {
                if self.doorbell.q.val().any | self.doorbell.q.val().solicited {
                    self.n.next.armed = self.c.val().open & self.doorbell.q.val().any;
                    self.n.next.armed_solicited = self.c.val().open & !self.doorbell.q.val().any;
                    self.fires.next = self.c.val().open & self.is_ahead.val();
                }
            }
            CqOp::Report => {
                if self.reports.of_death.val() {
                    self.n.next.dying = false;
                } else {
                    self.n.next.reporting = false;
                }
            }
            CqOp::Update => {
                if self.update_ok.q.val() & !self.stale.q.val() {
                    self.n.next.taken = self.update.q.val();
                }
            }
            _ => {}
        }
        if self.fires.val() {
            self.n.next.armed = false;
            self.n.next.armed_solicited = false;
            self.n.next.reporting = true;
        }
        self.table.write.next = self.live.q.val();
        self.table.result.next = self.n.val();
        if self.completing.val() {
            self.held.d.next = self.waits.val();
            self.looked.d.next = false;
        }
        if self.live.q.val() & (self.op.q.val() == CqOp::Update) {
            self.stale.d.next = false;
        }
        if self.changes.val()
            & self.record.reading.val()
            & (self.table.x_addr.val() == self.read_cqn.q.val())
        {
            self.stale.d.next = true;
        }
        self.record.ask.next = self.asks.val();
        self.record.addr.next = self.image.q.val().consumer;
        if self.asks.val() {
            self.read_cqn.d.next = self.table.x_addr.val();
            self.read_last.d.next = self.full.val();
        }
        StreamOut::<ReadReq>::link(&mut self.read, &mut self.record.read);
        ReadBeatIn::<W>::link(&mut self.beat, &mut self.record.beat);

        StreamOut::<EqEvent>::link(&mut self.events, &mut self.reports.events);

        self.place.valid.next = self.completing.val() & self.accepts.val();
        self.place.token.next = self.token.q.val();
        self.place.image.next = self.image.q.val();
        self.place.mask.next = self.mask.q.val();
        self.place.written.next = self.c.val().written;
        StreamOut::<WriteCmd>::link(&mut self.write, &mut self.place.write);
        WriteBeatOut::<W, K>::link(&mut self.beats, &mut self.place.beats);

        // stage W
        if self.commanding.val() {
            self.w_refused.d.next = !self.changes.val();
            self.w_switched.d.next = self.c.val().written;
        }
        self.refused.next = self.w_refused.q.val();
        self.switched.next = self.w_switched.q.val();
        self.w_wrote.d.next = self.completing.val() & self.accepts.val();
        self.w_news.d.next = self.live.q.val() & self.fires.val() & !self.c.val().reporting;
        self.w_death.d.next = self.completing.val() & self.overflows.val() & !self.c.val().dying;
        self.w_cqn.d.next = bit_cast::<16, C>(self.table.x_addr.val());
        self.reports.wrote.next = self.w_wrote.q.val();
        self.reports.news.next = self.w_news.q.val();
        self.reports.death.next = self.w_death.q.val();
        self.reports.cqn.next = self.w_cqn.q.val();
        self.reports.done.next = self.cqe_done.val();
        self.reports.found.next = self.live.q.val() & (self.op.q.val() == CqOp::Report);
        self.reports.open.next = self.c.val().open;
        self.reports.eqn.next = self.image.q.val().eqn;
        self.w_lost.d.next = self.completing.val() & !self.accepts.val() & !self.waits.val();
        self.w_loss.d.next.qpn = self.token.q.val().qpn;
        self.w_loss.d.next.cqn = self.token.q.val().cqn;
        self.w_overflow.d.next = self.completing.val() & self.overflows.val();
        self.losses.s.valid.next = self.w_lost.q.val();
        self.losses.s.payload.next = self.w_loss.q.val();
        StreamOut::<CqLost>::link(&mut self.lost, &mut self.losses.m);
        self.overflow.next = self.w_overflow.q.val();

        self.activity.next.busy = self.command.valid.val()
            | self.recv.valid.val()
            | self.send.valid.val()
            | self.recv_fence.busy.val()
            | self.send_fence.busy.val()
            | self.tokens.m.valid.val()
            | ((self.entered.q.val() | self.live.q.val())
                & !(self.op.q.val() == CqOp::Arm)
                & !(self.op.q.val() == CqOp::Report))
            | self.held.q.val()
            | self.record.reading.val()
            | self.place.busy.val()
            | self.w_lost.q.val()
            | self.losses.level.val().any();
        // while the record of a queue no longer there is being read nothing counts as done
        self.activity.next.moved = ((self.place.write.valid.val() & self.write.ready.val())
            | self.w_lost.q.val())
            & !self.stale.q.val();
        self.ready.next = self.table.ready.val();
    }
}
