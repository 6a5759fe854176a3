//! The rules of a receive queue: what a packet meets. No state of its own.
//!
//! Of the rows below the first that holds decides ([`RqFate`] has the names in the third column).
//!
//! | packet | if | then | rule |
//! |---|---|---|---|
//! | any | the queue pair is not in RTR, RTS, SQD or SQE | dropped, counted | IB1 10.3.1 |
//! | any | a static check failed (`reason`) | dropped, counted by its reason | IB1 9.6.1 |
//! | RC | PSN beyond the one expected | `gap`: **NAK** sequence error, once | IB1 9.7.4.1 |
//! | RC | PSN before it, SEND or WRITE | `duplicate`: acknowledged again, not executed | IB1 9.7.5.1.5 |
//! | RC | PSN before it, READ | `duplicate`: answered again if all of it was executed and it is valid | IB1 9.7.5.1.5 |
//! | RC | PSN before it, atomic | `duplicate`: [`reply`](super::reply) has its result, or drops it | IB1 9.7.5.1.5 |
//! | UC | Middle or Last of another PSN than expected, or of no message | **ends** the message under way | IB1 9.8.2 |
//! | RC | First or Only in a message, Middle or Last in none | `invalid`: **NAK** invalid request | IB1 9.7.4.1 |
//! | any | Middle or Last of the other operation than its message | `invalid` | IB1 9.7.4.1 |
//! | any | opcode, right or length are invalid whatever the state | `invalid` | IB1 9.7.4.1 |
//! | RC | READ or atomic beyond `max_dest_rd_atomic` | `invalid` | IB1 9.7.4.1 |
//! | any | WRITE that ends elsewhere than its RETH says, SEND that goes on behind 2^31 bytes | `invalid` | IB1 9.7.4.1 |
//! | any | its rkey does not give it what it asks for | `denied`: **NAK** remote access error | IB1 9.7.4.1.5 |
//! | any | it needs a receive WQE and there is none | `rnr`: **RNR NAK**; the PSN expected stays | IB1 9.7.5.2.8 |
//! | any | else | `accepted`: executed; the PSN behind it and its responses is expected | IB1 9.7.4 |
//!
//! **UC and UD** draw no NAK and stay in their state (IB1 9.8.2, 9.8.3): a packet that RC answers with one **ends** the
//! message under way. The rest of that is dropped, and its receive WQE is that of the next message. A First or Only of UC is
//! taken whatever its PSN (`skipped` counts that), also in a message, which it ends; the next PSN is expected behind it. A
//! datagram is the packet with its GRH and the one with its payload, whatever their PSN.
//!
//! **RC** that draws `invalid` or `denied` goes to ERR ([`rq_next`](super::rq_next)).
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use super::event::*;
use crate::prelude::*;

/// What is known of a packet before its queue pair's state is.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct RqNotes {
    /// It passed the static checks.
    pub good: Bit,
    /// Its rkey is not good.
    pub denied: Bit,
    /// It takes a receive WQE.
    pub needs: Bit,
    /// A READ or atomic.
    pub asks: Bit,
    /// PSN behind it and its responses.
    pub psn_after: Bits<24>,
}

/// What it meets. Of the fates of [`RqDecision`] at most one is set.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
pub struct RqFate {
    /// The queue pair receives.
    pub usable: Bit,
    /// See [`RqDecision`].
    pub accepted: Bit,
    /// See [`RqDecision`].
    pub duplicate: Bit,
    /// See [`RqDecision`].
    pub gap: Bit,
    /// See [`RqDecision`].
    pub skipped: Bit,
    /// See [`RqDecision`].
    pub rnr: Bit,
    /// See [`RqDecision`].
    pub invalid: Bit,
    /// See [`RqDecision`].
    pub denied: Bit,
    /// See [`RqDecision`].
    pub reply: Bit,
    /// The queue pair enters ERR.
    pub fails: Bit,
    /// The PSN expected next is the one behind the packet.
    pub moves: Bit,
    /// No message is under way any more, if it is not accepted.
    pub drops: Bit,
    /// It takes the next receive WQE, if it is accepted.
    pub takes: Bit,
}

/// The rules, combinational.
#[derive(Block)]
pub struct RqRules {
    /// A packet is there.
    pub packet: Signal<In, Bit>,
    /// The packet.
    pub request: Signal<In, RqRequest>,
    /// What is known of it.
    pub notes: Signal<In, RqNotes>,
    /// State of its queue pair.
    pub state: Signal<In, RqState>,
    /// A receive WQE is there, taken before or not.
    pub posted: Signal<In, Bit>,
    /// What it meets.
    pub outcome: Signal<Out, RqFate>,
}

impl Logic for RqRules {
    describe!("rq_rules", "Decides how the responder treats a packet.");

    #[kernel]
    fn update(&mut self) {
        // RTR, RTS, SQD, SQE
        let usable = state.state.bit(1) ^ state.state.bit(2);
        let live = packet & usable & notes.good;
        let expected = request.psn == state.psn;
        let ahead = request.psn - state.psn;
        let mut due = expected;
        let mut out_of_order = request.first == state.open;
        if request.unreliable {
            due = request.first | (state.open & (request.datagram | expected));
            out_of_order = false;
        }
        if !request.first & (request.write != state.write) {
            out_of_order = true;
        }
        let full = notes.asks & (state.replies >= request.max_dest_rd_atomic);
        // a WRITE that ends too early or too late, a SEND that goes on behind 2^31 bytes
        let mut wrong_length =
            (request.last != state.ends) | (request.last & (request.tail != state.tail));
        if request.send {
            wrong_length = state.done.bit(31);
        }
        let refused = request.invalid | out_of_order | full | (!request.first & wrong_length);
        let starved = notes.needs & !posted;

        let hit = live & due;
        let valid_hit = hit & !refused;
        let served = valid_hit & !notes.denied;
        let accepted = served & !starved;
        let invalid = hit & refused;
        let denied = valid_hit & notes.denied;
        let duplicate = live & !request.unreliable & ahead.bit(23);
        // a READ is answered again if all of it was executed; of atomics `reply` knows
        let psn_excess = state.psn - notes.psn_after;
        let again = request.atomic | (request.read & !request.invalid & !psn_excess.bit(23));

        outcome.usable = usable;
        outcome.accepted = accepted;
        outcome.duplicate = duplicate;
        outcome.gap = live & !request.unreliable & !expected & !ahead.bit(23);
        outcome.skipped = live & request.unreliable & !request.datagram & !expected;
        outcome.rnr = served & starved & !request.unreliable;
        outcome.invalid = invalid;
        outcome.denied = denied;
        outcome.reply = (accepted & notes.asks) | (duplicate & again);
        outcome.fails = (invalid | denied) & !request.unreliable;
        outcome.moves = accepted & !request.datagram;
        if request.unreliable & !request.datagram {
            outcome.moves = live;
        }
        outcome.drops = live & request.unreliable;
        outcome.takes = notes.needs & !state.held;
    }
}
