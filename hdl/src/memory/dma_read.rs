//! Reads of host memory for nine clients (docs/architecture.md 3.5).
//!
//! ```text
//!  request[9] ─► round robin ─► split ─► register ─► AR (ID = client)
//!                                  └ last burst of the request? ─► FIFO a client ─┐
//!  beats[9] ◄───────────────────────────── register ◄─────────────────────── R ◄─┘
//! ```
//!
//! Clients: 0 command, 1 send WQE, 2 request payload, 3 response payload, 4 receive WQE, 5 CQ consumer record,
//! 6 atomic, 7 exception queue, 8 EQ consumer record.
//! A request of any address and 1 to 8191 bytes is cut into bursts ([`split`](super::split)); its answer is the aligned
//! beats that hold a byte of the range, in order; bytes of these beats outside of the range are read too (they share
//! their page with one inside). Requests of one client are answered in order, those of different clients in any order
//! and with their beats mixed.
//!
//! Latency: `request.valid` to `arvalid` 2 cycles, R beat to `beats` 1 cycle. Throughput: a burst and a beat a cycle.
//! 2^A bursts a client can be under way; a client that comes within 16 of it waits and does not hold up the others.
//!
//! Assumes: the client has room for the whole answer (`rready` is constant 1); the slave answers an address no sooner
//! than the cycle after it took it, and keeps the order within an ID (AXI4 A5.3).
use super::split::{Fits, Split};
use super::types::{Burst, Range};
use crate::bus::axi;
use crate::bus::types::ReadReq;
use crate::prelude::*;

/// Number of clients.
pub const CLIENTS: usize = 9;

/// Read side of the DMA, 2^A bursts a client under way.
#[derive(LogicBlock)]
pub struct DmaRead<const W: usize, const K: usize, const A: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Requests, by client.
    pub request: [StreamIn<ReadReq>; CLIENTS],
    /// Answers, by client.
    pub beats: [ReadBeatOut<W>; CLIENTS],
    /// AXI4 master, read channels.
    pub m_axi: AxiReadOut<W>,
    /// No request is taken while it is 1.
    pub halt: Signal<In, Bit>,
    /// Every burst that was issued is answered.
    pub idle: Signal<Out, Bit>,
    /// A read failed in this cycle (RRESP SLVERR or DECERR).
    pub error: Signal<Out, Bit>,
    arbiter: Arbiter<CLIENTS>,
    /// Of each client: its request is one burst.
    fits: [Fits<K>; CLIENTS],
    /// Of requests whose length is less by one.
    pick: Pick<ReadReq, CLIENTS>,
    split: Split<K>,
    address: Skid<Burst>,
    /// For each burst under way: it is the last of its request.
    ends: [Fifo<Bit, A>; CLIENTS],
    room: Reg<Bits<CLIENTS>>,
    data: Dff<Bits<W>>,
    valid: Reg<Bits<CLIENTS>>,
    last: Dff<Bit>,
    failed: Reg<Bit>,
    /// Bursts under way.
    open: Reg<Bits<16>>,
    closed: Signal<Local, Bit>,
    asking: Signal<Local, Bits<CLIENTS>>,
    range: Signal<Local, Range>,
    fit: Signal<Local, Bits<CLIENTS>>,
    issue: Signal<Local, Bit>,
    arrived: Signal<Local, Bits<CLIENTS>>,
    free: Signal<Local, Bits<CLIENTS>>,
    client: [Constant<Bits<4>>; CLIENTS],
    limit: Constant<Bits<16>>,
    size: Constant<Bits<3>>,
}

impl<const W: usize, const K: usize, const A: usize> Default for DmaRead<W, K, A> {
    fn default() -> Self {
        assert!(
            W == 8 * K,
            "DMA of {W} bits has {} bytes a beat, not {K}",
            W / 8
        );
        assert!(
            (5..15).contains(&A),
            "2^{A} bursts a client: 2^5 to 2^14 can be built"
        );
        Self {
            clock: ClkRst::default(),
            request: Default::default(),
            beats: Default::default(),
            m_axi: AxiReadOut::default(),
            halt: Signal::default(),
            idle: Signal::default(),
            error: Signal::default(),
            arbiter: Arbiter::default(),
            fits: Default::default(),
            pick: Pick::default(),
            split: Split::default(),
            address: Skid::default(),
            ends: std::array::from_fn(|_| Fifo::new(Style::Distributed)),
            room: Reg::default(),
            data: Dff::default(),
            valid: Reg::default(),
            last: Dff::default(),
            failed: Reg::default(),
            open: Reg::default(),
            closed: Signal::default(),
            asking: Signal::default(),
            range: Signal::default(),
            fit: Signal::default(),
            issue: Signal::default(),
            arrived: Signal::default(),
            free: Signal::default(),
            client: std::array::from_fn(|i| Constant::new((i as u64).to_bits())),
            // Two requests of five bursts may be on their way behind a client's last look at its level.
            limit: Constant::new(((1u64 << A) - 16).to_bits()),
            size: Constant::new(u64::from(axi::burst_size(K)).to_bits()),
        }
    }
}

impl<const W: usize, const K: usize, const A: usize> Logic for DmaRead<W, K, A> {
    describe!(
        "dma_read",
        format!("{W}_{A}"),
        "AXI4 reads for nine clients."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, arbiter, split, address);
        dff_setup!(self, clock, room, data, valid, last, failed, open);

        // Requests: one a cycle into the splitter.
        self.asking.next = bits::<CLIENTS>(0);
        self.fit.next = bits::<CLIENTS>(0);
        self.range.next.tag = self.client[0].val();
        for i in 0..CLIENTS {
            self.asking.next = self.asking.val().replace_bit(
                i,
                self.request[i].valid.val() & self.room.q.val().get_bit(i) & !self.halt.val(),
            );
        }
        self.arbiter.request.next = self.asking.val();
        self.arbiter.take.next = self.split.s.ready.val();
        for i in 0..CLIENTS {
            self.request[i].ready.next =
                self.split.s.ready.val() & self.arbiter.grant.val().get_bit(i);
            // looked at and counted beside the arbiter, which is deep
            self.fits[i].range.next = self.request[i].payload.val();
            self.pick.item[i].next = self.fits[i].counted.val();
            self.fit.next = self.fit.val().replace_bit(i, self.fits[i].fits.val());
            if self.arbiter.grant.val().get_bit(i) {
                self.range.next.tag = self.client[i].val();
            }
        }
        self.pick.choice.next = self.arbiter.grant.val();
        self.range.next.addr = self.pick.picked.val().addr;
        self.range.next.more = self.pick.picked.val().len;
        self.split.s_fits.next = (self.arbiter.grant.val() & self.fit.val()).any();
        self.split.s.valid.next = self.asking.val().any();
        self.split.s.payload.next = self.range.val();

        // Bursts: to AR, and a note for their end.
        StreamOut::<Burst>::join(&mut self.split.m, &mut self.address.s);
        self.issue.next = self.split.m.valid.val() & self.address.s.ready.val();
        for i in 0..CLIENTS {
            ClkRst::link(&mut self.clock, &mut self.ends[i].clock);
            self.ends[i].s.valid.next =
                self.issue.val() & (self.split.m.payload.val().tag == self.client[i].val());
            self.ends[i].s.payload.next = self.split.m.payload.val().last;
        }
        self.m_axi.arid.next = self.address.m.payload.val().tag;
        self.m_axi.araddr.next = self.address.m.payload.val().addr;
        self.m_axi.arlen.next = self.address.m.payload.val().len;
        self.m_axi.arsize.next = self.size.val();
        self.m_axi.arburst.next = bits::<2>(1);
        self.m_axi.arvalid.next = self.address.m.valid.val();
        self.address.m.ready.next = self.m_axi.arready.val();

        // Answers.
        self.m_axi.rready.next = true;
        self.data.d.next = self.m_axi.rdata.val();
        self.failed.d.next = self.m_axi.rvalid.val() & self.m_axi.rresp.val().get_bit(1);
        self.last.d.next = false;
        self.arrived.next = bits::<CLIENTS>(0);
        self.free.next = bits::<CLIENTS>(0);
        for i in 0..CLIENTS {
            self.arrived.next = self.arrived.val().replace_bit(
                i,
                self.m_axi.rvalid.val() & (self.m_axi.rid.val() == self.client[i].val()),
            );
            self.ends[i].m.ready.next = self.arrived.val().get_bit(i) & self.m_axi.rlast.val();
            if self.arrived.val().get_bit(i) {
                self.last.d.next = self.m_axi.rlast.val() & self.ends[i].m.payload.val();
            }
            self.beats[i].data.next = self.data.q.val();
            self.beats[i].last.next = self.last.q.val();
            self.beats[i].error.next = self.failed.q.val();
            self.beats[i].valid.next = self.valid.q.val().get_bit(i);
        }
        self.valid.d.next = self.arrived.val();
        for i in 0..CLIENTS {
            self.free.next = self
                .free
                .val()
                .replace_bit(i, self.ends[i].level.val() < self.limit.val());
        }
        self.room.d.next = self.free.val();
        self.closed.next = self.m_axi.rvalid.val() & self.m_axi.rlast.val();
        if self.issue.val() & !self.closed.val() {
            self.open.d.next = self.open.q.val() + 1;
        } else if self.closed.val() & !self.issue.val() {
            self.open.d.next = self.open.q.val() - 1;
        }
        self.idle.next = self.open.q.val() == 0;
        self.error.next = self.failed.q.val();
    }
}
