//! EQ write: events into the rings of the host, and interrupts (docs/blocks/completion.md).
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
pub mod queues;
pub mod rules;
pub mod sender;
pub mod types;

use crate::bus::types::{Activity, ReadReq, WriteCmd, if_there};
use crate::prelude::*;
use crate::queue::cq_write::record::CqRecord;

use ferroce_proto::abi::eq::WAITING;
use place::EqPlace;
use queues::EqQueues;
use rules::EqRules;
pub use types::*;

/// log2 of the events that may wait for room in their rings: [`WAITING`] of each of 8 queues.
pub const PARK: usize = 9;
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

    queues: EqQueues<E>,
    parked: Fifo<EqParked, PARK>,
    place: EqPlace<W, K>,
    record: CqRecord<W>,
    rules: EqRules,

    step: Reg<EqStep>,
    op: Reg<EqOp>,
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
    writes: Reg<Bit>,
    /// EQEs written, modulo 2^16.
    sent: Reg<Bits<16>>,
    now: Reg<Bits<26>>,
    /// A read may begin.
    may_ask: Reg<Bit>,
    /// A command waited in the cycle before: at the port it is late.
    commanded: Reg<Bit>,
    read_eqn: Dff<Bits<E>>,
    /// Its queue was opened or closed since.
    stale: Reg<Bit>,
    irq: Reg<Bit>,
    vector: Dff<Bits<11>>,
    parks: Reg<Bit>,
}

/// The next operation. Behind a visit: while a pass is under way what is parked, else reads, commands and events in this
/// order. Scan is a visit.
#[kernel_fn]
fn next_op(
    visited: Bit,
    passing: Bit,
    pass_due: Bit,
    parked: Bit,
    answered: Bit,
    command: Bit,
    event: Bit,
) -> EqOp {
    if !visited {
        EqOp::Scan
    } else if passing & parked {
        EqOp::Parked
    } else if passing | pass_due {
        EqOp::Scan
    } else if answered {
        EqOp::Update
    } else if command {
        EqOp::Command
    } else if event {
        EqOp::Event
    } else {
        EqOp::Scan
    }
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

        let found = queues.found;
        rules.op = op;
        rules.found = found;
        rules.terms.open = command.payload.open;
        rules.terms.valid = record.ok & !stale;
        rules.terms.taken = record.taken;
        rules.terms.turn = item_turn;
        rules.terms.free = !irq | irq_ready;
        rules.terms.may_ask = may_ask & !pass_due & !passing & !record.reading;
        rules.terms.sent = sent;
        rules.terms.now = now;
        let decision = rules.decision;
        let acts = step == EqStep::Act;
        let takes = acts & decision.takes;
        writes = acts & decision.writes;
        parks = acts & decision.parks;

        let picked = next_op(
            visited,
            passing,
            pass_due,
            parked.m.valid & place.room,
            record.answered,
            commanded,
            events.valid & place.room,
        );
        let mut chosen = visit;
        command.ready = false;
        record.take = false;
        record.ask = false;
        record.addr = found.image.consumer;
        match step {
            EqStep::Sweep => {
                if queues.ready {
                    step = EqStep::Pick;
                }
            }
            EqStep::Pick => {
                op = picked;
                visited = picked == EqOp::Scan;
                if visited & !passing & pass_due {
                    pass_due = false;
                    passing = parked.level.any();
                    left = parked.level;
                }
                match picked {
                    EqOp::Parked => {
                        chosen = parked.m.payload.eqn.low::<E>();
                        copy!(item <= parked.m.payload; eqn, event, detail, object);
                        item_turn = parked.m.payload.turn;
                    }
                    EqOp::Update => chosen = read_eqn,
                    EqOp::Command => chosen = command.payload.eqn.low::<E>(),
                    EqOp::Event => {
                        chosen = events.payload.eqn.low::<E>();
                        item = events.payload;
                    }
                    _ => {}
                }
                eqn = chosen;
                step = EqStep::Load;
            }
            EqStep::Load => step = EqStep::Act,
            EqStep::Act => {
                step = EqStep::Store;
                if decision.writes {
                    sent = sent + 1;
                }
                if decision.passes {
                    pass_due = true;
                }
                if decision.fires {
                    irq = true;
                    vector = found.image.vector;
                }
                if decision.asks {
                    record.ask = true;
                    read_eqn = eqn;
                    may_ask = false;
                }
                match op {
                    EqOp::Scan => visit = visit + 1,
                    EqOp::Command => {
                        command.ready = true;
                        if record.reading & (read_eqn == eqn) {
                            stale = true;
                        }
                    }
                    EqOp::Update => {
                        record.take = true;
                        stale = false;
                    }
                    EqOp::Parked => {
                        left = left - 1;
                        passing = !(left == 1);
                    }
                    _ => {}
                }
            }
            EqStep::Store => step = EqStep::Pick,
            _ => step = EqStep::Pick,
        }
        commanded = command.valid & !command.ready;
        queues.read = step == EqStep::Pick;
        queues.read_eqn = chosen;
        queues.load = step == EqStep::Load;
        queues.done = done;
        queues.now = now;
        queues.keep = acts;
        queues.eqn = eqn;
        queues.state = rules.next_state;
        queues.image_we = acts & (op == EqOp::Command);
        queues.image = command.payload.image;
        events.ready = takes & (op == EqOp::Event);
        parked.m.ready = takes & (op == EqOp::Parked);
        parked.s.valid = parks;
        copy!(parked.s.payload <= item; eqn, event, detail, object);
        parked.s.payload.turn = found.state.turn;

        place.valid = writes;
        place.item = item;
        place.queue = found;
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
        let without = events.ready & !place.busy & !decision.writes;
        activity.moved = ((place.write.valid & write.ready) | without) & !stale;
        // one at the port and 2 in front of it, and one that is taken
        let few = if_there(events.valid | working | writes, bits::<16>(4));
        activity.level = few + place.level + if_there(stale, bits::<16>(1));
        ready = queues.ready;
    }
}
