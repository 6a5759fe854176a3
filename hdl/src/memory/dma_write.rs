//! Writes to host memory for six clients (docs/architecture.md 3.5).
//!
//! ```text
//!  command[6] ─► round robin ─┬─► register ─► AW (ID = client)
//!                             └─► owner of the W channel, in AW order
//!  beats[4] ─────────────────► mux ─► register ─► W
//!  issued[4], done[4] ◄── counters ◄── B
//! ```
//!
//! Clients: 0 payload, 1 CQE, 2 command completion, 3 EQE, 4 atomic, 5 exception queue. A command is one burst; a client offers it when nothing but
//! its turn can delay its beats: they hold the W channel from its turn on. Beats are taken up to the one marked `last`.
//!
//! Latency: `command.valid` to `awvalid` 1 cycle, to the first `wvalid` 2 cycles. Throughput: a burst and a beat a
//! cycle, no idle cycle between bursts. `bready` is constant 1.
//!
//! Counts are modulo 2^16: writes of one client are done in order, so that a write issued before count `n` is done when
//! `done - n`, taken as a signed number, is not negative. Fewer than 2^15 bursts a client may be under way.
use super::types::Burst;
use crate::bus::axi;
use crate::bus::types::WriteCmd;
use crate::prelude::*;

/// Number of clients.
pub const CLIENTS: usize = 6;

/// Write side of the DMA.
#[derive(LogicBlock)]
pub struct DmaWrite<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Bursts to write, by client.
    pub command: [StreamIn<WriteCmd>; CLIENTS],
    /// Their beats, by client.
    pub beats: [WriteBeatIn<W, K>; CLIENTS],
    /// AXI4 master, write channels.
    pub m_axi: AxiWriteOut<W, K>,
    /// Bursts taken from each client.
    pub issued: [Signal<Out, Bits<16>>; CLIENTS],
    /// Bursts of each client that have their response.
    pub done: [Signal<Out, Bits<16>>; CLIENTS],
    /// No command is taken while it is 1.
    pub halt: Signal<In, Bit>,
    /// Every burst that was taken has its response.
    pub idle: Signal<Out, Bit>,
    /// A write failed in this cycle (BRESP SLVERR or DECERR).
    pub error: Signal<Out, Bit>,
    arbiter: Arbiter<CLIENTS>,
    pick: Pick<WriteCmd, CLIENTS>,
    address: Skid<Burst>,
    /// Whose beats are next on W, one bit a client.
    owner: Skid<Bits<CLIENTS>>,
    /// The same for the multiplexers, in step with `owner`: which of clients 1 to 4; and client 0, one of these, or 5.
    route: Skid<Bits<4>>,
    data: Skid<Bits<W>>,
    strb: Skid<Bits<K>>,
    last: Skid<Bit>,
    issued_count: [Reg<Bits<16>>; CLIENTS],
    done_count: [Reg<Bits<16>>; CLIENTS],
    failed: Reg<Bit>,
    /// Bursts under way.
    open: Reg<Bits<16>>,
    opened: Signal<Local, Bit>,
    asking: Signal<Local, Bits<CLIENTS>>,
    take: Signal<Local, Bit>,
    next_address: Signal<Local, Burst>,
    turn: Signal<Local, Bits<CLIENTS>>,
    inner_data: Signal<Local, Bits<W>>,
    inner_strb: Signal<Local, Bits<K>>,
    beat_data: Signal<Local, Bits<W>>,
    beat_strb: Signal<Local, Bits<K>>,
    lasts: Signal<Local, Bits<CLIENTS>>,
    valids: Signal<Local, Bits<CLIENTS>>,
    beat_last: Signal<Local, Bit>,
    beat_valid: Signal<Local, Bit>,
    client: [Constant<Bits<4>>; CLIENTS],
    size: Constant<Bits<3>>,
}

impl<const W: usize, const K: usize> Default for DmaWrite<W, K> {
    fn default() -> Self {
        assert!(
            W == 8 * K,
            "DMA of {W} bits has {} bytes a beat, not {K}",
            W / 8
        );
        Self {
            clock: ClkRst::default(),
            command: Default::default(),
            beats: Default::default(),
            m_axi: AxiWriteOut::default(),
            issued: Default::default(),
            done: Default::default(),
            halt: Signal::default(),
            idle: Signal::default(),
            error: Signal::default(),
            arbiter: Arbiter::default(),
            pick: Pick::default(),
            address: Skid::default(),
            owner: Skid::default(),
            route: Skid::default(),
            data: Skid::default(),
            strb: Skid::default(),
            last: Skid::default(),
            issued_count: Default::default(),
            done_count: Default::default(),
            failed: Reg::default(),
            open: Reg::default(),
            opened: Signal::default(),
            asking: Signal::default(),
            take: Signal::default(),
            next_address: Signal::default(),
            turn: Signal::default(),
            inner_data: Signal::default(),
            inner_strb: Signal::default(),
            beat_data: Signal::default(),
            beat_strb: Signal::default(),
            lasts: Signal::default(),
            valids: Signal::default(),
            beat_last: Signal::default(),
            beat_valid: Signal::default(),
            client: std::array::from_fn(|i| Constant::new((i as u64).to_bits())),
            size: Constant::new(u64::from(axi::burst_size(K)).to_bits()),
        }
    }
}

impl<const W: usize, const K: usize> Logic for DmaWrite<W, K> {
    describe!("dma_write", format!("{W}"), "AXI4 writes for six clients.");

    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self, clock, arbiter, address, owner, route, data, strb, last
        );
        dff_setup!(self, clock, failed, open);
        for i in 0..CLIENTS {
            ClkRst::link(&mut self.clock, &mut self.issued_count[i].clock);
            ClkRst::link(&mut self.clock, &mut self.done_count[i].clock);
            self.issued_count[i].d.next = self.issued_count[i].q.val();
            self.done_count[i].d.next = self.done_count[i].q.val();
        }

        // Commands: one a cycle to AW, in the same order to the owner queue.
        self.asking.next = bits::<CLIENTS>(0);
        for i in 0..CLIENTS {
            self.asking.next = self
                .asking
                .val()
                .replace_bit(i, self.command[i].valid.val() & !self.halt.val());
        }
        self.take.next = self.address.s.ready.val() & self.owner.s.ready.val();
        self.arbiter.request.next = self.asking.val();
        self.arbiter.take.next = self.take.val();
        self.next_address.next.tag = self.client[0].val();
        for i in 0..CLIENTS {
            self.command[i].ready.next = self.take.val() & self.arbiter.grant.val().get_bit(i);
            self.pick.item[i].next = self.command[i].payload.val();
            if self.arbiter.grant.val().get_bit(i) {
                self.next_address.next.tag = self.client[i].val();
            }
            if self.arbiter.grant.val().get_bit(i) & self.take.val() {
                self.issued_count[i].d.next = self.issued_count[i].q.val() + 1;
            }
            self.issued[i].next = self.issued_count[i].q.val();
        }
        self.pick.choice.next = self.arbiter.grant.val();
        self.next_address.next.last = true;
        self.next_address.next.addr = self.pick.picked.val().addr;
        self.next_address.next.len = self.pick.picked.val().len;
        self.address.s.valid.next = self.asking.val().any() & self.owner.s.ready.val();
        self.address.s.payload.next = self.next_address.val();
        self.owner.s.valid.next = self.asking.val().any() & self.address.s.ready.val();
        self.owner.s.payload.next = self.arbiter.grant.val();
        self.route.s.valid.next = self.asking.val().any() & self.address.s.ready.val();
        self.route.s.payload.next = bits::<4>(0)
            .replace_bit(0, (self.arbiter.grant.val() & 0b01_0100).any())
            .replace_bit(1, (self.arbiter.grant.val() & 0b01_1000).any())
            .replace_bit(2, (self.arbiter.grant.val() & 0b01_1110).any())
            .replace_bit(3, self.arbiter.grant.val().get_bit(5));
        self.m_axi.awid.next = self.address.m.payload.val().tag;
        self.m_axi.awaddr.next = self.address.m.payload.val().addr;
        self.m_axi.awlen.next = self.address.m.payload.val().len;
        self.m_axi.awsize.next = self.size.val();
        self.m_axi.awburst.next = bits::<2>(1);
        self.m_axi.awvalid.next = self.address.m.valid.val();
        self.address.m.ready.next = self.m_axi.awready.val();

        // Beats of the owner; data, strobes and last move in lockstep.
        self.turn.next = bits::<CLIENTS>(0);
        if self.owner.m.valid.val() {
            self.turn.next = self.owner.m.payload.val();
        }
        self.lasts.next = bits::<CLIENTS>(0);
        self.valids.next = bits::<CLIENTS>(0);
        for i in 0..CLIENTS {
            self.beats[i].ready.next = self.turn.val().get_bit(i) & self.last.s.ready.val();
            self.lasts.next = self.lasts.val().replace_bit(i, self.beats[i].last.val());
            self.valids.next = self.valids.val().replace_bit(i, self.beats[i].valid.val());
        }
        // two LUTs a bit: one of four, then one of three
        match self.route.m.payload.val().get_bits::<2>(0).index() {
            1 => {
                self.inner_data.next = self.beats[2].data.val();
                self.inner_strb.next = self.beats[2].strb.val();
            }
            2 => {
                self.inner_data.next = self.beats[3].data.val();
                self.inner_strb.next = self.beats[3].strb.val();
            }
            3 => {
                self.inner_data.next = self.beats[4].data.val();
                self.inner_strb.next = self.beats[4].strb.val();
            }
            _ => {
                self.inner_data.next = self.beats[1].data.val();
                self.inner_strb.next = self.beats[1].strb.val();
            }
        }
        self.beat_data.next = self.beats[0].data.val();
        self.beat_strb.next = self.beats[0].strb.val();
        if self.route.m.payload.val().get_bit(2) {
            self.beat_data.next = self.inner_data.val();
            self.beat_strb.next = self.inner_strb.val();
        } else if self.route.m.payload.val().get_bit(3) {
            self.beat_data.next = self.beats[5].data.val();
            self.beat_strb.next = self.beats[5].strb.val();
        }
        self.beat_last.next = (self.turn.val() & self.lasts.val()).any();
        self.beat_valid.next = (self.turn.val() & self.valids.val()).any();
        self.owner.m.ready.next =
            self.beat_valid.val() & self.beat_last.val() & self.last.s.ready.val();
        self.route.m.ready.next =
            self.beat_valid.val() & self.beat_last.val() & self.last.s.ready.val();
        self.data.s.payload.next = self.beat_data.val();
        self.data.s.valid.next = self.beat_valid.val();
        self.strb.s.payload.next = self.beat_strb.val();
        self.strb.s.valid.next = self.beat_valid.val();
        self.last.s.payload.next = self.beat_last.val();
        self.last.s.valid.next = self.beat_valid.val();
        self.m_axi.wdata.next = self.data.m.payload.val();
        self.m_axi.wstrb.next = self.strb.m.payload.val();
        self.m_axi.wlast.next = self.last.m.payload.val();
        self.m_axi.wvalid.next = self.last.m.valid.val();
        self.data.m.ready.next = self.m_axi.wready.val();
        self.strb.m.ready.next = self.m_axi.wready.val();
        self.last.m.ready.next = self.m_axi.wready.val();

        // Responses.
        self.m_axi.bready.next = true;
        self.failed.d.next = self.m_axi.bvalid.val() & self.m_axi.bresp.val().get_bit(1);
        for i in 0..CLIENTS {
            if self.m_axi.bvalid.val() & (self.m_axi.bid.val() == self.client[i].val()) {
                self.done_count[i].d.next = self.done_count[i].q.val() + 1;
            }
            self.done[i].next = self.done_count[i].q.val();
        }
        self.opened.next = self.take.val() & self.asking.val().any();
        if self.opened.val() & !self.m_axi.bvalid.val() {
            self.open.d.next = self.open.q.val() + 1;
        } else if self.m_axi.bvalid.val() & !self.opened.val() {
            self.open.d.next = self.open.q.val() - 1;
        }
        self.idle.next = self.open.q.val() == 0;
        self.error.next = self.failed.q.val();
    }
}
