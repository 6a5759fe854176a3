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
//! An event whose ring is full is *parked*; of one queue [`WAITING`] may be, and a further one is lost. The consumer
//! record of a ring that is half full at an event, or full, is read again, one read in 256 cycles. When the host has
//! taken entries, a *pass* looks at all that is parked, before any new event: the events of a queue keep their order,
//! and a full queue holds up no other. Events for a queue that is not open are dropped, and so is what is parked when a
//! command closes or reopens it. The answer to a read begun before that command is ignored.
//!
//! An interrupt is asked for when an EQE is in host memory (its burst has its response), at least `moderation` * 256
//! cycles after the last one of the queue. Until it is taken it stands for all EQEs that come.
//!
//! Latency: from `events.valid` to `write.valid` 5 to 11 cycles on an idle queue, from the response to `irq_valid` up to
//! 4 * 2^E + 4.
//!
//! `activity` counts what a command that takes an object away has to wait for: events, EQEs on their way and reads that are
//! to be ignored, not what is parked.
pub mod notice;
pub mod place;
pub mod qp_events;
pub mod sender;
pub mod types;

use crate::bus::types::image::EqCtx;
use crate::bus::types::{Activity, ReadReq, WriteCmd};
use crate::prelude::*;
use crate::queue::cq_write::record::CqRecord;

use ferroce_proto::abi::eq::WAITING;
use place::EqPlace;
pub use types::*;

/// log2 of the events that may wait for room in their rings: [`WAITING`] of each of 8 queues.
pub const PARK: usize = 9;
const MOST: u64 = WAITING as u64;
const _: () = assert!(WAITING << 3 == 1 << PARK, "room for what all queues park");

/// Writer of 2^E event queues.
#[derive(Block)]
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
    /// Commands, events, EQEs and reads that are not done.
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
}

impl<const W: usize, const K: usize, const E: usize> Logic for EqWrite<W, K, E> {
    describe!(
        "eq_write",
        format!("w{W}_e{E}"),
        "Writes events into the rings of the host and asks for interrupts."
    );

    #[kernel]
    fn update(&mut self) {
        now = now + 1;
        if !now.low::<8>().any() {
            may_ask = true;
        }
        if irq_ready {
            irq = false;
        }

        // what an operation finds: 2 cycles after it was chosen
        s = table.rdata;
        image = images.rdata;
        mask = (bits::<24>(1) << images.rdata.log_size) - 1;
        level = table.rdata.written - table.rdata.taken;
        let age = done - table.rdata.mark;
        arrived = !age.bit(15);
        let last_age = done - table.rdata.last;
        all_arrived = !last_age.bit(15);
        let late = now - table.rdata.deadline;
        over = !late.bit(25);
        if !(step == EqStep::Load) {
            s = s;
            image = image;
            mask = mask;
            level = level;
            arrived = arrived;
            all_arrived = all_arrived;
            over = over;
        }
        let mut usable = s.open;
        if (op == EqOp::Parked) & (item_turn != s.turn) {
            usable = false;
        }
        let full = (level & !mask).any();
        let half = (level & !(mask >> 1)).any();
        let moved = record.taken != s.taken;
        let has_place = s.parked != MOST;
        let landed = s.landed | (s.fresh & arrived);
        let waiting = s.waiting & !over;
        let fires = s.open & landed & !waiting & (!irq | irq_ready);
        let asks = s.open & s.want & may_ask & !pass_due & !passing & !record.reading;

        let mut chosen = visit;
        let mut picked = false;
        let mut pops = false;
        let mut next = s;
        table.re = step == EqStep::Pick;
        table.we = false;
        table.waddr = eqn;
        table.wdata = store;
        images.re = step == EqStep::Pick;
        images.we = false;
        images.waddr = eqn;
        images.wdata = command.payload.image;
        command.ready = false;
        record.take = false;
        record.ask = false;
        record.addr = image.consumer;
        match step {
            EqStep::Sweep => {
                table.we = true;
                table.waddr = visit;
                table.wdata = no_state;
                visit = visit + 1;
                if visit.all() {
                    swept = true;
                    step = EqStep::Pick;
                }
            }
            EqStep::Pick => {
                op = EqOp::Scan;
                if visited {
                    if passing {
                        if parked.m.valid & place.room {
                            picked = true;
                            op = EqOp::Parked;
                            chosen = parked.m.payload.eqn.low::<E>();
                            copy!(item <= parked.m.payload; eqn, event, detail, object);
                            item_turn = parked.m.payload.turn;
                        }
                    } else if pass_due {
                        pass_due = false;
                        passing = parked.level.any();
                        left = parked.level;
                    } else if record.answered {
                        picked = true;
                        op = EqOp::Update;
                        chosen = read_eqn;
                    } else if command.valid {
                        picked = true;
                        op = EqOp::Command;
                        chosen = command.payload.eqn.low::<E>();
                    } else if events.valid & place.room {
                        picked = true;
                        op = EqOp::Event;
                        chosen = events.payload.eqn.low::<E>();
                        item = events.payload;
                    }
                }
                visited = !picked;
                eqn = chosen;
                step = EqStep::Load;
            }
            EqStep::Load => {
                step = EqStep::Act;
            }
            EqStep::Act => {
                step = EqStep::Store;
                match op {
                    EqOp::Scan => {
                        visit = visit + 1;
                        if s.fresh & arrived {
                            next.fresh = !all_arrived;
                            next.mark = s.last;
                        }
                        next.landed = landed & !fires;
                        next.waiting = waiting;
                        if fires {
                            irq = true;
                            vector = image.vector;
                            next.waiting = image.moderation.any();
                            next.deadline = now + (image.moderation.resize::<26>() << 8);
                        }
                        if asks {
                            next.want = false;
                            record.ask = true;
                            read_eqn = eqn;
                            may_ask = false;
                        }
                    }
                    EqOp::Command => {
                        command.ready = true;
                        images.we = true;
                        next = no_state;
                        next.open = command.payload.open;
                        next.turn = !s.turn;
                        pass_due = true;
                        if record.reading & (read_eqn == eqn) {
                            stale = true;
                        }
                    }
                    EqOp::Update => {
                        record.take = true;
                        stale = false;
                        if record.ok & !stale & moved {
                            next.taken = record.taken;
                            pass_due = true;
                        } else if full {
                            next.want = true;
                        }
                    }
                    _ => {
                        pops = true;
                        writes = usable & !full;
                        parks = usable & full & (has_place | (op == EqOp::Parked));
                        if usable {
                            if (op == EqOp::Event) & full & has_place {
                                next.parked = s.parked + 1;
                            }
                            if (op == EqOp::Parked) & !full {
                                next.parked = s.parked - 1;
                            }
                            if half {
                                next.want = true;
                            }
                            if !full {
                                next.written = s.written + 1;
                                next.fresh = true;
                                next.last = sent + 1;
                                if !s.fresh {
                                    next.mark = sent + 1;
                                }
                                sent = sent + 1;
                            }
                        }
                        if op == EqOp::Parked {
                            left = left - 1;
                            passing = !(left == 1);
                        }
                    }
                }
            }
            EqStep::Store => {
                table.we = true;
                writes = false;
                parks = false;
                step = EqStep::Pick;
            }
            _ => {
                step = EqStep::Pick;
            }
        }
        store = next;
        table.raddr = chosen;
        images.raddr = chosen;
        events.ready = pops & (op == EqOp::Event);
        parked.m.ready = pops & (op == EqOp::Parked);
        parked.s.valid = parks;
        copy!(parked.s.payload <= item; eqn, event, detail, object);
        parked.s.payload.turn = s.turn;

        place.valid = writes;
        place.item = item;
        place.image = image;
        place.mask = mask;
        place.written = s.written;
        forward!(write <= place.write);
        forward!(beats <= place.beats);
        forward!(read <= record.read);
        forward!(beat <= record.beat);

        irq_valid = irq;
        irq_vector = vector;
        let working = !(step == EqStep::Pick) & ((op == EqOp::Command) | (op == EqOp::Event));
        activity.busy = command.valid | events.valid | working | stale | writes | place.busy;
        // an event without an EQE leaves behind those that have one; while the record of a queue no longer there is being
        // read nothing counts as done
        let without = events.ready & !place.busy & !(usable & !full);
        activity.moved = ((place.write.valid & write.ready) | without) & !stale;
        ready = swept;
    }
}
