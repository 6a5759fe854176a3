//! EQ write: events into the rings of the host, and interrupts (docs/architecture.md 3.7).
//!
//! ```text
//!  events ─────────────┐              ┌─► place ──► write, beats (dma_write)
//!  command ────────────┤              │
//!  beat ─► record ─────┼─► pick ─► state, image ─┬─► irq
//!  parked ─► (a pass) ─┘       ▲             │   └─► read (dma_read)
//!                              └── parked ◄──┘
//! ```
//!
//! An operation takes 4 cycles; between two of others one visits the next queue in turn, which is where interrupts are
//! asked for and reads of consumer records begin. So an event is taken in every 8th cycle.
//!
//! An event whose ring is full is *parked*; no event is lost. The consumer record of a ring that is half full at an event,
//! or full, is read again, one read in 256 cycles. When the host has taken entries, a *pass* looks at all that is parked,
//! before any new event: the events of a queue keep their order, and a queue that nobody empties holds up no other, until
//! 2^PARK events are parked; then events wait. Events for a queue that is not open are forgotten, and so is what is parked
//! when a command closes it or opens it afresh. The answer to a read begun before that command is ignored.
//!
//! An interrupt is asked for when an EQE is in host memory (its burst has its response), at least `moderation` * 256
//! cycles after the last one of the queue. Until it is taken it stands for all EQEs that come.
//!
//! Latency: from `events.valid` to `write.valid` 5 to 11 cycles on an idle queue, from the response to `irq_valid` up to
//! 4 * 2^E + 4.
//!
//! `activity` counts what a command that closes a queue has to wait for: EQEs on their way and reads that are to be
//! ignored, not what is parked.
pub mod notice;
pub mod place;
pub mod qp_events;
pub mod sender;
pub mod types;

use crate::bus::types::image::EqCtx;
use crate::bus::types::{Activity, ReadReq, WriteCmd};
use crate::prelude::*;
use crate::queue::cq_write::record::CqRecord;

use place::EqPlace;
pub use types::*;

/// log2 of the events that may wait for room in their rings.
pub const PARK: usize = 9;

/// Writer of 2^E event queues.
#[derive(LogicBlock, Default)]
pub struct EqWrite<const W: usize, const K: usize, const E: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Commands; the queue number is in range.
    pub command: StreamIn<EqCommand>,
    /// Events.
    pub events: StreamIn<EqEvent>,
    /// EQE bursts that have their response, modulo 2^16.
    pub done: Signal<In, Bits<16>>,
    /// EQE bursts.
    pub write: StreamOut<WriteCmd>,
    /// Their beats.
    pub beats: WriteBeatOut<W, K>,
    /// Reads of consumer records.
    pub read: StreamOut<ReadReq>,
    /// Their answers.
    pub beat: ReadBeatIn<W>,
    /// MSI-X vector to send.
    pub irq_vector: Signal<Out, Bits<11>>,
    /// `irq_vector` is valid.
    pub irq_valid: Signal<Out, Bit>,
    /// It is taken in this cycle.
    pub irq_ready: Signal<In, Bit>,
    /// Commands, EQEs and reads that are not done.
    pub activity: Signal<Out, Activity>,
    /// The table is swept after reset.
    pub ready: Signal<Out, Bit>,

    table: Ram<EqState, E>,
    images: Ram<EqCtx, E>,
    parked: Fifo<EqParked, PARK>,
    place: EqPlace<W, K>,
    record: CqRecord<W>,
    no_state: Zero<EqState>,

    step: Reg<EqStep>,
    op: Reg<EqOp>,
    swept: Reg<Bit>,
    /// Queue of the operation.
    eqn: Reg<Bits<E>>,
    /// Queue to visit next.
    visit: Reg<Bits<E>>,
    /// The operation before was a visit.
    visited: Reg<Bit>,
    /// A pass over the parked events is due; is under way, with so many to go.
    pass_due: Reg<Bit>,
    passing: Reg<Bit>,
    left: Reg<Bits<16>>,
    /// Parked: `turn` of the queue at that time.
    item_turn: Dff<Bit>,
    item: Dff<EqEvent>,
    /// The queue.
    s: Dff<EqState>,
    image: Dff<EqCtx>,
    mask: Dff<Bits<24>>,
    level: Dff<Bits<24>>,
    /// The EQE `mark` is in host memory; `last` is; the deadline is over.
    arrived: Dff<Bit>,
    all_arrived: Dff<Bit>,
    over: Dff<Bit>,
    store: Dff<EqState>,
    writes: Reg<Bit>,
    /// EQEs written, modulo 2^16.
    sent: Reg<Bits<16>>,
    now: Reg<Bits<26>>,
    /// A read may begin.
    may_ask: Reg<Bit>,
    read_eqn: Dff<Bits<E>>,
    /// Its queue was opened or closed since.
    stale: Reg<Bit>,
    irq: Reg<Bit>,
    vector: Dff<Bits<11>>,
    parks: Reg<Bit>,

    chosen: Signal<Local, Bits<E>>,
    picked: Signal<Local, Bit>,
    age: Signal<Local, Bits<16>>,
    last_age: Signal<Local, Bits<16>>,
    late: Signal<Local, Bits<26>>,
    n: Signal<Local, EqState>,
    usable: Signal<Local, Bit>,
    full: Signal<Local, Bit>,
    half: Signal<Local, Bit>,
    moved: Signal<Local, Bit>,
    has_place: Signal<Local, Bit>,
    pops: Signal<Local, Bit>,
    landed: Signal<Local, Bit>,
    waiting: Signal<Local, Bit>,
    fires: Signal<Local, Bit>,
    asks: Signal<Local, Bit>,
}

impl<const W: usize, const K: usize, const E: usize> Logic for EqWrite<W, K, E> {
    describe!(
        "eq_write",
        format!("w{W}_e{E}"),
        "Writes events into the rings of the host and asks for interrupts.";
        PARK
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, table, images, parked, place, record);
        dff_setup!(self, clock, step, op, swept, eqn, visit, visited);
        dff_setup!(self, clock, pass_due, passing, left, item_turn, item);
        dff_setup!(
            self,
            clock,
            s,
            image,
            mask,
            level,
            arrived,
            all_arrived,
            over,
            store
        );
        dff_setup!(self, clock, writes, sent, now, may_ask, read_eqn, stale);
        dff_setup!(self, clock, irq, vector, parks);

        self.now.d.next = self.now.q.val() + 1;
        if !self.now.q.val().get_bits::<8>(0).any() {
            self.may_ask.d.next = true;
        }
        if self.irq_ready.val() {
            self.irq.d.next = false;
        }

        // what an operation finds: 2 cycles after it was chosen
        self.s.d.next = self.table.rdata.val();
        self.image.d.next = self.images.rdata.val();
        self.mask.d.next = (bits::<24>(1) << self.images.rdata.val().log_size) - 1;
        self.level.d.next = self.table.rdata.val().written - self.table.rdata.val().taken;
        self.age.next = self.done.val() - self.table.rdata.val().mark;
        self.arrived.d.next = !self.age.val().get_bit(15);
        self.last_age.next = self.done.val() - self.table.rdata.val().last;
        self.all_arrived.d.next = !self.last_age.val().get_bit(15);
        self.late.next = self.now.q.val() - self.table.rdata.val().deadline;
        self.over.d.next = !self.late.val().get_bit(25);
        if !(self.step.q.val() == EqStep::Load) {
            self.s.d.next = self.s.q.val();
            self.image.d.next = self.image.q.val();
            self.mask.d.next = self.mask.q.val();
            self.level.d.next = self.level.q.val();
            self.arrived.d.next = self.arrived.q.val();
            self.all_arrived.d.next = self.all_arrived.q.val();
            self.over.d.next = self.over.q.val();
        }
        self.usable.next = self.s.q.val().open;
        if (self.op.q.val() == EqOp::Parked) & (self.item_turn.q.val() != self.s.q.val().turn) {
            self.usable.next = false;
        }
        self.full.next = (self.level.q.val() & !self.mask.q.val()).any();
        self.half.next = (self.level.q.val() & !(self.mask.q.val() >> 1)).any();
        self.moved.next = self.record.taken.val() != self.s.q.val().taken;
        self.has_place.next = !self.parked.level.val().get_bit(PARK);
        self.landed.next = self.s.q.val().landed | (self.s.q.val().fresh & self.arrived.q.val());
        self.waiting.next = self.s.q.val().waiting & !self.over.q.val();
        self.fires.next = self.s.q.val().open
            & self.landed.val()
            & !self.waiting.val()
            & (!self.irq.q.val() | self.irq_ready.val());
        self.asks.next = self.s.q.val().open
            & self.s.q.val().want
            & self.may_ask.q.val()
            & !self.pass_due.q.val()
            & !self.passing.q.val()
            & !self.record.reading.val();

        self.chosen.next = self.visit.q.val();
        self.picked.next = false;
        self.pops.next = false;
        self.n.next = self.s.q.val();
        self.table.re.next = self.step.q.val() == EqStep::Pick;
        self.table.we.next = false;
        self.table.waddr.next = self.eqn.q.val();
        self.table.wdata.next = self.store.q.val();
        self.images.re.next = self.step.q.val() == EqStep::Pick;
        self.images.we.next = false;
        self.images.waddr.next = self.eqn.q.val();
        self.images.wdata.next = self.command.payload.val().image;
        self.command.ready.next = false;
        self.record.take.next = false;
        self.record.ask.next = false;
        self.record.addr.next = self.image.q.val().consumer;
        match self.step.q.val() {
            EqStep::Sweep => {
                self.table.we.next = true;
                self.table.waddr.next = self.visit.q.val();
                self.table.wdata.next = self.no_state.val();
                self.visit.d.next = self.visit.q.val() + 1;
                if self.visit.q.val().all() {
                    self.swept.d.next = true;
                    self.step.d.next = EqStep::Pick;
                }
            }
            EqStep::Pick => {
                self.op.d.next = EqOp::Scan;
                if self.visited.q.val() {
                    if self.passing.q.val() {
                        if self.parked.m.valid.val() & self.place.room.val() {
                            self.picked.next = true;
                            self.op.d.next = EqOp::Parked;
                            self.chosen.next = self.parked.m.payload.val().eqn.get_bits::<E>(0);
                            self.item.d.next.eqn = self.parked.m.payload.val().eqn;
                            self.item.d.next.event = self.parked.m.payload.val().event;
                            self.item.d.next.detail = self.parked.m.payload.val().detail;
                            self.item.d.next.object = self.parked.m.payload.val().object;
                            self.item_turn.d.next = self.parked.m.payload.val().turn;
                        }
                    } else if self.pass_due.q.val() {
                        self.pass_due.d.next = false;
                        self.passing.d.next = self.parked.level.val().any();
                        self.left.d.next = self.parked.level.val();
                    } else if self.record.answered.val() {
                        self.picked.next = true;
                        self.op.d.next = EqOp::Update;
                        self.chosen.next = self.read_eqn.q.val();
                    } else if self.command.valid.val() {
                        self.picked.next = true;
                        self.op.d.next = EqOp::Command;
                        self.chosen.next = self.command.payload.val().eqn.get_bits::<E>(0);
                    } else if self.events.valid.val() & self.place.room.val() {
                        self.picked.next = true;
                        self.op.d.next = EqOp::Event;
                        self.chosen.next = self.events.payload.val().eqn.get_bits::<E>(0);
                        self.item.d.next = self.events.payload.val();
                    }
                }
                self.visited.d.next = !self.picked.val();
                self.eqn.d.next = self.chosen.val();
                self.step.d.next = EqStep::Load;
            }
            EqStep::Load => {
                self.step.d.next = EqStep::Act;
            }
            EqStep::Act => {
                self.step.d.next = EqStep::Store;
                match self.op.q.val() {
                    EqOp::Scan => {
                        self.visit.d.next = self.visit.q.val() + 1;
                        if self.s.q.val().fresh & self.arrived.q.val() {
                            self.n.next.fresh = !self.all_arrived.q.val();
                            self.n.next.mark = self.s.q.val().last;
                        }
                        self.n.next.landed = self.landed.val() & !self.fires.val();
                        self.n.next.waiting = self.waiting.val();
                        if self.fires.val() {
                            self.irq.d.next = true;
                            self.vector.d.next = self.image.q.val().vector;
                            self.n.next.waiting = self.image.q.val().moderation.any();
                            self.n.next.deadline = self.now.q.val()
                                + (bit_cast::<26, 16>(self.image.q.val().moderation) << 8);
                        }
                        if self.asks.val() {
                            self.n.next.want = false;
                            self.record.ask.next = true;
                            self.read_eqn.d.next = self.eqn.q.val();
                            self.may_ask.d.next = false;
                        }
                    }
                    EqOp::Command => {
                        self.command.ready.next = true;
                        self.images.we.next = true;
                        self.n.next = self.no_state.val();
                        self.n.next.open = self.command.payload.val().open;
                        self.n.next.turn = !self.s.q.val().turn;
                        self.pass_due.d.next = true;
                        if self.record.reading.val() & (self.read_eqn.q.val() == self.eqn.q.val()) {
                            self.stale.d.next = true;
                        }
                    }
                    EqOp::Update => {
                        self.record.take.next = true;
                        self.stale.d.next = false;
                        if self.record.ok.val() & !self.stale.q.val() & self.moved.val() {
                            self.n.next.taken = self.record.taken.val();
                            self.pass_due.d.next = true;
                        } else if self.full.val() {
                            self.n.next.want = true;
                        }
                    }
                    _ => {
                        self.pops.next = !self.usable.val()
                            | !self.full.val()
                            | self.has_place.val()
                            | (self.op.q.val() == EqOp::Parked);
                        self.writes.d.next = self.usable.val() & !self.full.val();
                        self.parks.d.next = self.usable.val() & self.full.val() & self.pops.val();
                        if self.usable.val() {
                            if self.half.val() {
                                self.n.next.want = true;
                            }
                            if !self.full.val() {
                                self.n.next.written = self.s.q.val().written + 1;
                                self.n.next.fresh = true;
                                self.n.next.last = self.sent.q.val() + 1;
                                if !self.s.q.val().fresh {
                                    self.n.next.mark = self.sent.q.val() + 1;
                                }
                                self.sent.d.next = self.sent.q.val() + 1;
                            }
                        }
                        if self.op.q.val() == EqOp::Parked {
                            self.left.d.next = self.left.q.val() - 1;
                            self.passing.d.next = !(self.left.q.val() == 1);
                        }
                    }
                }
            }
            EqStep::Store => {
                self.table.we.next = true;
                self.writes.d.next = false;
                self.parks.d.next = false;
                self.step.d.next = EqStep::Pick;
            }
            _ => {
                self.step.d.next = EqStep::Pick;
            }
        }
        self.store.d.next = self.n.val();
        self.table.raddr.next = self.chosen.val();
        self.images.raddr.next = self.chosen.val();
        self.events.ready.next = self.pops.val() & (self.op.q.val() == EqOp::Event);
        self.parked.m.ready.next = self.pops.val() & (self.op.q.val() == EqOp::Parked);
        self.parked.s.valid.next = self.parks.q.val();
        self.parked.s.payload.next.eqn = self.item.q.val().eqn;
        self.parked.s.payload.next.event = self.item.q.val().event;
        self.parked.s.payload.next.detail = self.item.q.val().detail;
        self.parked.s.payload.next.object = self.item.q.val().object;
        self.parked.s.payload.next.turn = self.s.q.val().turn;

        self.place.valid.next = self.writes.q.val();
        self.place.item.next = self.item.q.val();
        self.place.image.next = self.image.q.val();
        self.place.mask.next = self.mask.q.val();
        self.place.written.next = self.s.q.val().written;
        StreamOut::<WriteCmd>::link(&mut self.write, &mut self.place.write);
        WriteBeatOut::<W, K>::link(&mut self.beats, &mut self.place.beats);
        StreamOut::<ReadReq>::link(&mut self.read, &mut self.record.read);
        ReadBeatIn::<W>::link(&mut self.beat, &mut self.record.beat);

        self.irq_valid.next = self.irq.q.val();
        self.irq_vector.next = self.vector.q.val();
        self.activity.next.busy = self.command.valid.val()
            | (!(self.step.q.val() == EqStep::Pick) & (self.op.q.val() == EqOp::Command))
            | self.stale.q.val()
            | self.writes.q.val()
            | self.place.busy.val();
        // while the record of a queue no longer there is being read nothing counts as done
        self.activity.next.moved =
            self.place.write.valid.val() & self.write.ready.val() & !self.stale.q.val();
        self.ready.next = self.swept.q.val();
    }
}
