//! Acknowledgements: the latest that is due of each queue pair, and a FIFO of queue pairs with one due.
//!
//! A token that finds one of its queue pair still waiting takes its place (acknowledgements are cumulative, IBA vol. 1,
//! 9.7.5.1.2), so they coalesce exactly when the wire is busy. Only a NAK stays when the token is an acknowledgement of
//! PSNs before it. A queue pair stands in the FIFO at most once, so tokens never wait.
//!
//! Two owners meet: tokens write the table, departures mark what they have taken. A queue pair has an acknowledgement
//! due while the `turn` in its entry differs from the `turn` last sent; tokens flip the one, departures copy it to the
//! other, and both see what the other has under way.
//!
//! Rate: a token and a departure in every cycle. Latency: 8 cycles. Up to 9 departures wait behind the table.
use ferroce_proto::wire::Opcode;

use super::event::AckState;
use crate::bus::types::{AckToken, TxDesc};
use crate::prelude::*;

/// Acknowledgements of 2^Q queue pairs.
#[derive(LogicBlock)]
pub struct AckQueue<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Acknowledgements that are due, in order. Ready from the end of the sweep after reset on.
    pub s: StreamIn<AckToken>,
    /// Acknowledgement packets.
    pub m: StreamOut<TxDesc>,
    /// Counter pulse: tx_acks.
    pub count_sent: Signal<Out, Bit>,

    table: Rmw<AckState, Q>,
    /// The table once more, for departures.
    copy: Ram<AckState, Q>,
    /// Turns sent.
    sent: Ram<Bit, Q>,
    list: Fifo<Bits<Q>, Q>,
    out: Fifo<AckToken, 3>,
    sweep: Reg<Bits<Q>>,

    // tokens
    t1: Dff<AckToken>,
    t2: Dff<AckToken>,
    sent2: Dff<Bit>,
    t: Signal<Local, AckToken>,
    c: Signal<Local, AckState>,
    n: Signal<Local, AckState>,
    turn_sent: Signal<Local, Bit>,
    due: Signal<Local, Bit>,
    age: Signal<Local, Bits<24>>,
    write: Signal<Local, Bit>,
    push: Reg<Bit>,
    push_qpn: Dff<Bits<Q>>,

    // departures: taken from the list in cycle 0, marked as sent in cycle 1
    take: Signal<Local, Bit>,
    d1: Reg<Bit>,
    d1_qpn: Dff<Bits<Q>>,
    d1_changed: Dff<Bit>,
    d1_change: Dff<AckState>,
    going: Signal<Local, AckState>,
    d2: Reg<Bit>,
    d2_qpn: Dff<Bits<Q>>,
    d2_turn: Dff<Bit>,
    d3: Reg<Bit>,
    d3_qpn: Dff<Bits<Q>>,
    d3_turn: Dff<Bit>,
    blank: Constant<TxDesc>,
}

impl<const Q: usize> Default for AckQueue<Q> {
    fn default() -> Self {
        assert!(
            (4..=14).contains(&Q),
            "2^{Q} queue pairs: 2^4 to 2^14 can be built"
        );
        Self {
            clock: ClkRst::default(),
            s: StreamIn::default(),
            m: StreamOut::default(),
            count_sent: Signal::default(),
            table: Rmw::default(),
            copy: Ram::default(),
            sent: Ram::default(),
            list: Fifo::default(),
            out: Fifo::default(),
            sweep: Reg::default(),
            t1: Dff::default(),
            t2: Dff::default(),
            sent2: Dff::default(),
            t: Signal::default(),
            c: Signal::default(),
            n: Signal::default(),
            turn_sent: Signal::default(),
            due: Signal::default(),
            age: Signal::default(),
            write: Signal::default(),
            push: Reg::default(),
            push_qpn: Dff::default(),
            take: Signal::default(),
            d1: Reg::default(),
            d1_qpn: Dff::default(),
            d1_changed: Dff::default(),
            d1_change: Dff::default(),
            going: Signal::default(),
            d2: Reg::default(),
            d2_qpn: Dff::default(),
            d2_turn: Dff::default(),
            d3: Reg::default(),
            d3_qpn: Dff::default(),
            d3_turn: Dff::default(),
            blank: Constant::new(TxDesc {
                opcode: u64::from(Opcode::RcAck.code()).to_bits(),
                ..TxDesc::default()
            }),
        }
    }
}

impl<const Q: usize> Logic for AckQueue<Q> {
    describe!(
        "ack_queue",
        format!("q{Q}"),
        "Latest acknowledgement due of each queue pair."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, table, copy, sent, list, out);
        dff_setup!(self, clock, sweep, t1, t2, sent2, push, push_qpn);
        dff_setup!(
            self, clock, d1, d1_qpn, d1_changed, d1_change, d2, d2_qpn, d2_turn, d3, d3_qpn,
            d3_turn
        );

        // tokens: two cycles to the entry
        self.s.ready.next = self.table.ready.val();
        self.table.valid.next = self.s.valid.val() & self.table.ready.val();
        self.table.addr.next = self.s.payload.val().qpn.get_bits::<Q>(0);
        self.sent.re.next = true;
        self.sent.raddr.next = self.s.payload.val().qpn.get_bits::<Q>(0);
        self.t1.d.next = self.s.payload.val();
        self.t2.d.next = self.t1.q.val();
        self.sent2.d.next = self.sent.rdata.val();

        // a departure marked in this cycle or the two before is not in what was read
        self.t.next = self.t2.q.val();
        self.c.next = self.table.current.val();
        self.turn_sent.next = self.sent2.q.val();
        if self.d3.q.val() & (self.d3_qpn.q.val() == self.table.x_addr.val()) {
            self.turn_sent.next = self.d3_turn.q.val();
        }
        if self.d2.q.val() & (self.d2_qpn.q.val() == self.table.x_addr.val()) {
            self.turn_sent.next = self.d2_turn.q.val();
        }
        if self.d1.q.val() & (self.d1_qpn.q.val() == self.table.x_addr.val()) {
            self.turn_sent.next = self.c.val().turn;
        }
        self.due.next = self.c.val().turn ^ self.turn_sent.val();
        self.age.next = self.t.val().psn - self.c.val().psn;
        self.write.next = !(self.due.val()
            & self.c.val().syndrome.get_bits::<2>(5).any()
            & !self.t.val().syndrome.get_bits::<2>(5).any()
            & self.age.val().get_bit(23));
        self.n.next.turn = !self.turn_sent.val();
        self.n.next.psn = self.t.val().psn;
        self.n.next.msn = self.t.val().msn;
        self.n.next.syndrome = self.t.val().syndrome;
        self.table.write.next = self.write.val();
        self.table.result.next = self.n.val();
        self.copy.we.next = self.table.x_valid.val() & self.write.val();
        self.copy.waddr.next = self.table.x_addr.val();
        self.copy.wdata.next = self.n.val();
        self.push.d.next = self.table.x_valid.val() & !self.due.val();
        self.push_qpn.d.next = self.table.x_addr.val();
        self.list.s.valid.next = self.push.q.val();
        self.list.s.payload.next = self.push_qpn.q.val();

        // departures, while fewer than 4 wait
        self.take.next = self.list.m.valid.val() & !self.out.level.val().get_bits::<2>(2).any();
        self.list.m.ready.next = self.take.val();
        self.copy.re.next = true;
        self.copy.raddr.next = self.list.m.payload.val();
        self.d1.d.next = self.take.val();
        self.d1_qpn.d.next = self.list.m.payload.val();
        self.d1_changed.d.next = self.table.x_valid.val()
            & self.write.val()
            & (self.table.x_addr.val() == self.list.m.payload.val());
        self.d1_change.d.next = self.n.val();
        self.going.next = self.copy.rdata.val();
        if self.d1_changed.q.val() {
            self.going.next = self.d1_change.q.val();
        }
        self.sent.we.next = self.d1.q.val();
        self.sent.waddr.next = self.d1_qpn.q.val();
        self.sent.wdata.next = self.going.val().turn;
        if !self.table.ready.val() {
            self.sweep.d.next = self.sweep.q.val() + 1;
            self.sent.we.next = true;
            self.sent.waddr.next = self.sweep.q.val();
            self.sent.wdata.next = false;
        }
        self.d2.d.next = self.d1.q.val();
        self.d2_qpn.d.next = self.d1_qpn.q.val();
        self.d2_turn.d.next = self.going.val().turn;
        self.d3.d.next = self.d2.q.val();
        self.d3_qpn.d.next = self.d2_qpn.q.val();
        self.d3_turn.d.next = self.d2_turn.q.val();

        self.out.s.valid.next = self.d1.q.val();
        self.out.s.payload.next.qpn = bit_cast::<16, Q>(self.d1_qpn.q.val());
        self.out.s.payload.next.psn = self.going.val().psn;
        self.out.s.payload.next.msn = self.going.val().msn;
        self.out.s.payload.next.syndrome = self.going.val().syndrome;
        self.out.s.payload.next.reply = false;
        self.out.s.payload.next.void = false;
        self.out.s.payload.next.reset = false;
        self.out.s.payload.next.fence = bits::<16>(0);
        self.m.valid.next = self.out.m.valid.val();
        self.out.m.ready.next = self.m.ready.val();
        self.m.payload.next = self.blank.val();
        self.m.payload.next.qpn = self.out.m.payload.val().qpn;
        self.m.payload.next.psn = self.out.m.payload.val().psn;
        self.m.payload.next.msn = self.out.m.payload.val().msn;
        self.m.payload.next.syndrome = self.out.m.payload.val().syndrome;
        self.count_sent.next = self.out.m.valid.val() & self.m.ready.val();
    }
}
