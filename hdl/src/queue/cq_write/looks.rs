//! Looks: reads of consumer records, and for which tokens their answers are final.
//!
//! A look for a token that waits at a full ring begins a *round*, of this token and of those that stand in line behind it
//! then. In a round there is one look a queue: it is final for all of them. They came before it, so the host had posted
//! them all, and no more than its ring holds: one that finds no room has overflowed it. So a queue at its brim holds up
//! others for a look a round, and what stands in line waits for the end of this round and for the next one at most.
//!
//! Which queues were looked at is kept as the number of the round, modulo 2^C. Each round forgets one queue, so a number
//! that is there is of this round or of one of the 2^C - 1 before it.
//!
//! A look that fails is final too. The answer to one that was begun before its queue was opened, closed or resized is
//! ignored.
use super::record::CqRecord;
use super::rules::CqDecision;
use crate::bus::types::ReadReq;
use crate::bus::valid::Valid;
use crate::cell::count::one_less;
use crate::prelude::*;

/// Looks at the records of 2^C queues, one at a time, on a data path of `W` bits.
#[derive(Block)]
pub struct CqLooks<const W: usize, const C: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Queue of the operation that enters, if one does.
    pub addr: Signal<In, Bits<C>>,
    /// Two cycles later, stage X: the queue.
    pub cqn: Signal<In, Bits<C>>,
    /// Host address of its record.
    pub record: Signal<In, Bits<64>>,
    /// What follows from the operation.
    pub decision: Signal<In, CqDecision>,
    /// Reads for `dma_read`.
    pub read: StreamOut<ReadReq>,
    /// Their answers.
    pub beat: ReadBeatIn<W>,
    /// The answer to a look is there.
    pub answered: Signal<Out, Bit>,
    /// It enters.
    pub take: Signal<In, Bit>,
    /// Its queue.
    pub look_cqn: Signal<Out, Bits<C>>,
    /// Entries taken by the host that it tells of, modulo 2^24.
    pub taken: Signal<Out, Bits<24>>,
    /// Stage X: the operation is that answer; none enters in this cycle.
    pub updating: Signal<In, Bit>,
    /// It succeeded, and the queue is as it was.
    pub updates: Signal<Out, Bit>,
    /// A look is under way, or its answer has not entered.
    pub reading: Signal<Out, Bit>,
    /// Its answer is ignored.
    pub stale: Signal<Out, Bit>,
    /// A token leaves the line: it is in stage X in the next cycle.
    pub takes: Signal<In, Bit>,
    /// Tokens in line.
    pub in_line: Signal<In, Bits<9>>,
    /// Stage X: a look is final for the token.
    pub settled: Signal<Out, Bit>,
    /// Stage X: a look may begin.
    pub may_ask: Signal<Out, Bit>,

    reader: CqRecord<W>,
    look: Dff<Bits<C>>,
    /// It was begun for a token that waits.
    awaited: Reg<Bit>,
    changed: Reg<Bit>,
    /// Number of the round.
    round: Reg<Bits<C>>,
    /// Tokens in line that are of it.
    left: Reg<Bits<9>>,
    /// The token in stage X is.
    of_round: Reg<Bit>,
    rounds: Ram<Valid<Bits<C>>, C>,
    /// Its queue was looked at in the round.
    known: Reg<Bit>,
}

impl<const W: usize, const C: usize> Logic for CqLooks<W, C> {
    describe!(
        "cq_looks",
        format!("w{W}_c{C}"),
        "Looks at consumer records, and for which tokens they are final."
    );

    #[kernel]
    fn update(&mut self) {
        // stage 1
        if takes {
            of_round = left.any();
            if left.any() {
                left = one_less(left);
            }
        }
        rounds.re = true;
        rounds.raddr = addr;
        known = rounds.rdata.valid & (rounds.rdata.payload == round);
        let is_known = known & of_round;
        settled = is_known;
        may_ask = !reader.reading & !is_known;

        // stage X
        let next_round = round + 1;
        let begins = decision.asks & decision.full & !of_round;
        let ends = updating & awaited & !changed;
        rounds.we = begins | ends | decision.changes;
        rounds.waddr = cqn;
        if begins {
            round = next_round;
            left = in_line;
            of_round = true;
            rounds.waddr = next_round;
        }
        rounds.wdata.valid = ends;
        rounds.wdata.payload = round;
        let changes = decision.changes & reader.reading & (cqn == look);
        changed = changes | (changed & !updating);
        if decision.asks {
            look = cqn;
            awaited = decision.full;
        }
        look_cqn = look;
        stale = changed;
        updates = reader.ok & !changed;
        reader.ask = decision.asks;
        reader.addr = record;
        reader.take = take;
        forward!(read <= reader.read);
        forward!(beat <= reader.beat);
        copy!(self <= reader; answered, taken, reading);
    }
}
