//! CQ write: completions into the rings of the host (docs/blocks/completion.md).
//!
//! ```text
//!  recv, send ─► entrance ─┐            ┌─► place ──► write, beats (dma_write)
//!  command ────────────────┼─► queues ──┼─► lost
//!  beat ─► looks, record ──┤  (rules)   ├─► read (dma_read)
//!  arm ────────────────────┘            └─► reports ─► events
//! ```
//!
//! An operation enters every second cycle: what a consumer record said, a command, or a token. Two cycles later it
//! reads the state of its queue ([`Rmw`]), with the sums over it that were formed a cycle before. A token becomes a
//! CQE, or is lost because its queue is not open or has overflowed: [`rules`] decides.
//!
//! The consumer record is read again when a ring is half full or more, one read at a time. A token that meets a full ring
//! waits, with all behind it, for a read begun after it; only if the ring is full then too is it an overflow: the token is
//! lost, and so is every further one until a command opens the queue afresh. That read counts for all that were in line by
//! then: [`looks`].
//!
//! A command that resizes a queue switches to the ring and the record of its image at the next entry: everything else of
//! the queue stays. It is refused if the queue is not open, has overflowed, or has more entries that the host has not
//! taken than the new ring holds. `refused` and `switched` tell of it from the cycle behind its transfer to the next.
//!
//! A *marker* among the tokens says that a send queue drained, or that a queue pair took its last receive WQE of a shared
//! receive queue. It becomes no CQE: `marks` tells of it when all CQEs in front of it, and all payload written before it came,
//! are in host memory.
//!
//! An acknowledgement waits for a token with `judged`: `outcome` tells in the order of the tokens, no later than their CQEs
//! leave, whether it became a CQE or was lost.
//!
//! A completion of payload that host memory refused becomes a CQE with GENERAL_ERR; its outcome is that of a lost one.
//!
//! An armed queue reports the next entry (or the next that is solicited or failed) to its event queue, once, when the
//! CQE is in host memory; if entries beyond the consumer index of the doorbell are there already, at once. A second report
//! of a queue while the first waits to be taken is the same: that event may come before its CQE is in host memory, and an
//! arm that follows finds the CQE. An overflow is reported too. Reports hold up nothing.
//!
//! Rate: a CQE in 2 cycles, in 4 at W = 64. Latency from `valid` of a token whose fence is passed, or
//! that has none, to `write.valid`: 9 cycles. Assumes: `lost` is taken whatever the inputs do.
pub mod entrance;
pub mod fence;
pub mod fence_queue;
pub mod line;
pub mod looks;
pub mod place;
pub mod queues;
pub mod record;
pub mod refusal;
pub mod reports;
pub mod rules;
pub mod sender;
pub mod types;

use ferroce_proto::abi::cq::status::WR_FLUSH_ERR;

use crate::bus::types::{
    AccessCounts, Activity, AtomicsOver, CqOutcome, CqToken, ReadReq, WriteCmd, WriteMarks,
    if_there,
};
use crate::bus::valid::Valid;
use crate::prelude::*;
use crate::queue::eq_write::EqEvent;

use entrance::CqEntrance;
use looks::CqLooks;
use place::CqPlace;
use queues::CqQueues;
use refusal::CqRefusal;
use reports::CqReports;
pub use types::*;

/// Writer of 2^C completion queues.
#[derive(Block)]
pub struct CqWrite<const W: usize, const K: usize, const C: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Commands; the queue number is in range.
    pub command: StreamIn<CqCommand>,
    /// Completions of receives.
    pub recv: StreamIn<CqToken>,
    /// Completions of sends; what only receives have counts as 0.
    pub send: StreamIn<CqToken>,
    /// Payload bursts issued, modulo 2^16.
    pub issued: Signal<In, Bits<16>>,
    /// Of these, those that have their response.
    pub done: Signal<In, Bits<16>>,
    /// Accesses to memory for peers: a completion that invalidated a key waits for those begun before it.
    pub accesses: Signal<In, AccessCounts>,
    /// The queue pair whose atomics a completion waits for.
    pub awaited: Signal<Out, Bits<16>>,
    /// Atomics of a queue pair that are over, of that one again and again: a completion waits for those before it.
    pub over: Signal<In, Valid<AtomicsOver>>,
    /// Queue pair of a completion.
    pub look: Signal<Out, Bits<16>>,
    /// A cycle later: since when its payload was refused (`write_faults`).
    pub refused_since: Signal<In, WriteMarks>,
    /// Arm doorbells.
    pub arm: StreamIn<CqArm>,
    /// CQE bursts that have their response, modulo 2^16.
    pub cqe_done: Signal<In, Bits<16>>,
    /// Completions and overflows of queues, for their event queues.
    pub events: StreamOut<EqEvent>,
    /// Markers.
    pub marks: StreamOut<CqMarked>,
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
    /// A command changed a queue; one cycle.
    pub changed: Signal<Out, Valid<CqChange>>,
    /// Completions that were lost, but those with `judged`, and of sends those whose payload was refused: their queue pairs
    /// go into error.
    pub lost: StreamOut<CqLost>,
    /// What became of one with `judged`; those of receives in their order.
    pub outcome: Signal<Out, Valid<CqOutcome>>,
    /// A queue overflowed, in this cycle.
    pub overflow: Signal<Out, Bit>,
    /// Tokens, commands, CQEs and reads that are not done.
    pub activity: Signal<Out, Activity>,
    /// Markers are not handed over.
    pub marking: Signal<Out, Bit>,
    /// Reports that came, modulo 2^16.
    pub reported: Signal<Out, Bits<16>>,
    /// Of these, those that are handed over or void.
    pub handed: Signal<Out, Bits<16>>,
    /// The table is swept after reset.
    pub ready: Signal<Out, Bit>,

    entrance: CqEntrance,
    queues: CqQueues<C>,
    losses: Fifo<CqLost, 4>,
    place: CqPlace<W, K>,
    reports: CqReports<C>,
    looks: CqLooks<W, C>,

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

    // stage 1
    entered: Reg<Bit>,
    token: Dff<CqToken>,
    refusal: CqRefusal,
    /// Payload of it was refused.
    spoiled: Dff<Bit>,

    // stage X: the state is there
    live: Reg<Bit>,

    // the token at a full ring
    held: Reg<Bit>,

    w_wrote: Reg<Bit>,
    w_report: Reg<Bit>,
    w_cqn: Dff<Bits<16>>,
    w_mark: Reg<Bit>,
    w_marked: Dff<CqMarked>,
    w_lost: Reg<Bit>,
    w_loss: Dff<CqLost>,
    w_fails: Reg<Bit>,
    w_judged: Reg<Bit>,
    w_bad: Dff<Bit>,
    w_overflow: Reg<Bit>,
}

impl<const W: usize, const K: usize, const C: usize> Logic for CqWrite<W, K, C> {
    describe!(
        "cq_write",
        format!("w{W}_c{C}"),
        "Writes completions into the rings of the host."
    );

    #[kernel]
    fn update(&mut self) {
        forward!(recv <= entrance.recv);
        forward!(send <= entrance.send);
        copy!(entrance <= self; issued, done, accesses, over);
        copy!(self <= entrance; awaited);

        // entry: an operation in every second cycle, answers and commands first; behind one of these, in the third
        let commanding = live & (op == CqOp::Command);
        let updating = live & (op == CqOp::Update);
        room = place.room & reports.room & !losses.level.slice::<2>(3).any();
        let free = queues.ready & !entered & !commanding & !updating;
        let mut enters = false;
        commanded = false;
        looks.take = false;
        reports.take = false;
        arm.ready = false;
        let mut address = looks.look_cqn;
        if free {
            if looks.answered {
                enters = true;
                op = CqOp::Update;
                looks.take = true;
            } else if command.valid {
                enters = true;
                op = CqOp::Command;
                address = command.payload.cqn.low::<C>();
                commanded = true;
            } else if reports.due {
                enters = true;
                op = CqOp::Report;
                address = reports.due_cqn.low::<C>();
                reports.take = true;
            } else if arm.valid & !(op == CqOp::Arm) {
                enters = true;
                op = CqOp::Arm;
                address = arm.payload.cqn.low::<C>();
                doorbell = arm.payload;
                arm.ready = true;
            } else if held {
                op = CqOp::Token;
                address = token.cqn.low::<C>();
                if !looks.reading {
                    enters = true;
                    again = true;
                    held = false;
                }
            } else {
                op = CqOp::Token;
                enters = entrance.m.valid & room;
                again = false;
                address = entrance.m.payload.cqn.low::<C>();
            }
        }
        entered = enters;
        queues.enter = enters;
        queues.addr = address;
        looks.addr = address;

        // stage 1: a new token is taken, unless the one before it was found to wait
        let takes = entered & (op == CqOp::Token) & !again & !held;
        entrance.m.ready = takes;
        look = entrance.m.payload.qpn;
        refusal.found = entrance.m.payload;
        refusal.since = refused_since;
        if takes {
            token = refusal.token;
            spoiled = refusal.refused;
        }
        live = entered & (takes | again | !(op == CqOp::Token));

        // stage X
        copy!(queues <= self; op, live, doorbell, token, commanded);
        copy!(queues <= looks; settled, may_ask, updates, taken);
        queues.command = command.payload;
        let decision = queues.decision;
        command.ready = commanding;
        if live & (op == CqOp::Token) & !token.marker {
            held = decision.waits;
        }
        looks.takes = takes;
        looks.updating = updating;
        looks.in_line = entrance.in_line;
        copy!(looks <= queues; cqn, decision);
        looks.record = queues.image.consumer;
        forward!(read <= looks.read);
        forward!(beat <= looks.beat);
        forward!(events <= reports.events);
        forward!(marks <= reports.marks);

        place.valid = decision.writes;
        place.token = token;
        copy!(place <= queues; image, mask);
        place.written = queues.state.written;
        forward!(write <= place.write);
        forward!(beats <= place.beats);

        // stage W
        copy!(self <= queues; refused, switched, changed, ready);
        w_wrote = decision.writes;
        w_report = decision.reports;
        w_cqn = queues.cqn.resize::<16>();
        reports.wrote = w_wrote;
        reports.report = w_report;
        reports.cqn = w_cqn;
        w_mark = live & (op == CqOp::Token) & token.marker;
        copy!(w_marked <= token; qpn, recv);
        reports.mark = w_mark;
        reports.marked = w_marked;
        reports.done = cqe_done;
        reports.found = live & (op == CqOp::Report);
        reports.open = queues.state.open;
        reports.error = decision.error;
        reports.eqn = queues.image.eqn;
        w_lost = decision.loses;
        w_fails = (decision.loses & !token.judged) | (decision.writes & spoiled & !token.recv);
        copy!(w_loss <= token; qpn, cqn);
        w_loss.recv = token.recv;
        w_loss.flushed = token.recv & (token.status == WR_FLUSH_ERR);
        w_overflow = decision.overflows;
        w_judged = (decision.writes | decision.loses) & token.judged;
        w_bad = decision.loses | spoiled;
        outcome.valid = w_judged;
        outcome.payload.lost = w_bad;
        losses.s.valid = w_fails;
        losses.s.payload = w_loss;
        forward!(lost <= losses.m);
        overflow = w_overflow;
        activity.busy = command.valid
            | entrance.busy
            | ((entered | live) & !(op == CqOp::Arm) & !(op == CqOp::Report))
            | held
            | looks.reading
            | place.busy
            | w_lost
            | losses.level.any();
        marking = w_mark | reports.marking;
        reported = reports.entered;
        handed = reports.left;
        // a lost token leaves behind the CQEs in front of it; while the record of a queue no longer there is being read
        // nothing counts as done
        activity.moved =
            ((place.write.valid & write.ready) | (w_lost & !place.busy)) & !looks.stale;
        activity.level = entrance.level
            + place.level
            + if_there(entered | live | held | w_lost | looks.stale, bits::<16>(4));
    }
}
