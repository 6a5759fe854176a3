//! Whether the part of a message that is being cut is of an earlier round: its send queue went back since it was granted.
//!
//! The round is looked up for the run that waits, then recalls are listened for; each is kept for two cycles, until every
//! part that looked its round up before is the one being cut. A READ or atomic is never stale: its issue is reported.
use super::send_types::GrantedWqe;
use crate::bus::types::Recall;
use crate::prelude::*;

/// Rounds of 2^Q queue pairs.
#[derive(Block)]
pub struct RoundWatch<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A send queue goes back.
    pub recall_valid: Signal<In, Bit>,
    /// Which, and its round.
    pub recall: Signal<In, Recall>,
    /// Queue pair of the part that may begin in the next cycle.
    pub next_qpn: Signal<In, Bits<16>>,
    /// A part begins.
    pub begins: Signal<In, Bit>,
    /// The part.
    pub begins_part: Signal<In, GrantedWqe>,
    /// Queue pair of the part being cut.
    pub qpn: Signal<In, Bits<16>>,
    /// Its round.
    pub round: Signal<In, Bits<2>>,
    /// It is a READ or atomic.
    pub answered: Signal<In, Bit>,
    /// It is of an earlier round.
    pub stale: Signal<Out, Bit>,

    rounds: Ram<Bits<2>, Q>,
    stale_q: Reg<Bit>,
    valid_1: Reg<Bit>,
    recall_1: Dff<Recall>,
    valid_2: Reg<Bit>,
    recall_2: Dff<Recall>,
}

impl<const Q: usize> Logic for RoundWatch<Q> {
    describe!(
        "round_watch",
        format!("q{Q}"),
        "Whether the part being cut is of an earlier round."
    );

    #[kernel]
    fn update(&mut self) {
        rounds.we = recall_valid;
        rounds.waddr = recall.qpn.low::<Q>();
        rounds.wdata = recall.round;
        rounds.re = true;
        rounds.raddr = next_qpn.low::<Q>();
        valid_1 = recall_valid;
        recall_1 = recall;
        valid_2 = valid_1;
        recall_2 = recall_1;
        if valid_2 & (recall_2.qpn == qpn) & (recall_2.round != round) {
            stale_q = !answered;
        }
        if begins {
            stale_q = (rounds.rdata != begins_part.grant.round) & !begins_part.wqe.answered;
        }
        stale = stale_q;
    }
}
