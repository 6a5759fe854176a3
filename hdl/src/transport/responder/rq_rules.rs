//! The rules of a receive queue: what a packet meets. No state of its own.
//!
//! Sources: docs/architecture.md 3.2; IBA vol. 1, 9.7.4 and 9.7.5 (responder of RC), 9.8.2 (UC), 9.8.3 (UD). A packet is
//! looked at in this order: state, static checks, PSN, opcode order, lengths, READs and atomics under way (NAK invalid
//! request), rkey (NAK remote access), receive WQE (RNR NAK).
//!
//! UC and UD answer nothing. A gap, a new message before the end of the last, and everything that RC refuses ends the
//! message under way: the rest of it is dropped, and its receive WQE is that of the next message. A datagram is the packet with
//! its GRH and the one with its payload, whatever their PSN.
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
    pub behind: Bits<24>,
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
    /// It is the queue pair's end.
    pub fails: Bit,
    /// The PSN expected next is the one behind the packet.
    pub moves: Bit,
    /// No message is under way any more, if it is not accepted.
    pub drops: Bit,
    /// It takes the next receive WQE, if it is accepted.
    pub takes: Bit,
}

/// The rules, combinational.
#[derive(LogicBlock, Default)]
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
    pub fate: Signal<Out, RqFate>,

    p: Signal<Local, RqRequest>,
    k: Signal<Local, RqNotes>,
    c: Signal<Local, RqState>,
    usable: Signal<Local, Bit>,
    live: Signal<Local, Bit>,
    expected: Signal<Local, Bit>,
    ahead: Signal<Local, Bits<24>>,
    due: Signal<Local, Bit>,
    full: Signal<Local, Bit>,
    beyond: Signal<Local, Bits<24>>,
    out_of_order: Signal<Local, Bit>,
    wrong_length: Signal<Local, Bit>,
    refused: Signal<Local, Bit>,
    starved: Signal<Local, Bit>,
    hit: Signal<Local, Bit>,
    valid_hit: Signal<Local, Bit>,
    served: Signal<Local, Bit>,
    accepted: Signal<Local, Bit>,
    invalid: Signal<Local, Bit>,
    denied: Signal<Local, Bit>,
    duplicate: Signal<Local, Bit>,
    again: Signal<Local, Bit>,
}

impl Logic for RqRules {
    describe!("rq_rules", "What a packet meets in its receive queue.");

    #[hdl_gen]
    fn update(&mut self) {
        self.p.next = self.request.val();
        self.k.next = self.notes.val();
        self.c.next = self.state.val();

        // RTR, RTS, SQD, SQE
        self.usable.next = self.c.val().state.get_bit(1) ^ self.c.val().state.get_bit(2);
        self.live.next = self.packet.val() & self.usable.val() & self.k.val().good;
        self.expected.next = self.p.val().psn == self.c.val().psn;
        self.ahead.next = self.p.val().psn - self.c.val().psn;
        self.due.next = self.expected.val();
        self.out_of_order.next = self.p.val().first == self.c.val().open;
        if self.p.val().unreliable {
            self.due.next = self.p.val().first
                | (self.c.val().open & (self.p.val().datagram | self.expected.val()));
            self.out_of_order.next = false;
        }
        if !self.p.val().first & (self.p.val().write != self.c.val().write) {
            self.out_of_order.next = true;
        }
        self.full.next =
            self.k.val().asks & (self.c.val().replies >= self.p.val().max_dest_rd_atomic);
        // a WRITE that ends too early or too late, a SEND that goes on behind 2^31 bytes
        self.wrong_length.next = (self.p.val().last != self.c.val().ends)
            | (self.p.val().last & (self.p.val().tail != self.c.val().tail));
        if self.p.val().send {
            self.wrong_length.next = self.c.val().done.get_bit(31);
        }
        self.refused.next = self.p.val().invalid
            | self.out_of_order.val()
            | self.full.val()
            | (!self.p.val().first & self.wrong_length.val());
        self.starved.next = self.k.val().needs & !self.posted.val();

        self.hit.next = self.live.val() & self.due.val();
        self.valid_hit.next = self.hit.val() & !self.refused.val();
        self.served.next = self.valid_hit.val() & !self.k.val().denied;
        self.accepted.next = self.served.val() & !self.starved.val();
        self.invalid.next = self.hit.val() & self.refused.val();
        self.denied.next = self.valid_hit.val() & self.k.val().denied;
        self.duplicate.next =
            self.live.val() & !self.p.val().unreliable & self.ahead.val().get_bit(23);
        // a READ is answered again if all of it was executed; of atomics `reply` knows
        self.beyond.next = self.c.val().psn - self.k.val().behind;
        self.again.next = self.p.val().atomic
            | (self.p.val().read & !self.p.val().invalid & !self.beyond.val().get_bit(23));

        self.fate.next.usable = self.usable.val();
        self.fate.next.accepted = self.accepted.val();
        self.fate.next.duplicate = self.duplicate.val();
        self.fate.next.gap = self.live.val()
            & !self.p.val().unreliable
            & !self.expected.val()
            & !self.ahead.val().get_bit(23);
        self.fate.next.skipped = self.live.val()
            & self.p.val().unreliable
            & !self.p.val().datagram
            & !self.expected.val();
        self.fate.next.rnr = self.served.val() & self.starved.val() & !self.p.val().unreliable;
        self.fate.next.invalid = self.invalid.val();
        self.fate.next.denied = self.denied.val();
        self.fate.next.reply =
            (self.accepted.val() & self.k.val().asks) | (self.duplicate.val() & self.again.val());
        self.fate.next.fails = (self.invalid.val() | self.denied.val()) & !self.p.val().unreliable;
        self.fate.next.moves = self.accepted.val() & !self.p.val().datagram;
        if self.p.val().unreliable & !self.p.val().datagram {
            self.fate.next.moves = self.live.val();
        }
        self.fate.next.drops = self.live.val() & self.p.val().unreliable;
        self.fate.next.takes = self.k.val().needs & !self.c.val().held;
    }
}
