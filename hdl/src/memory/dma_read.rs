//! Reads of host memory for nine clients (docs/blocks/memory.md).
//!
//! ```text
//!  request[9] ─► round robin ─► split ─► register ─► AR (ID = client)
//!                                  └ last burst of the request? ─► FIFO a client ─┐
//!  beats[9] ◄───────────────────────────── register ◄─────────────────────── R ◄─┘
//! ```
//!
//! Clients: [`dma_client`](crate::bus::dma_client). A request of any address and 1 to 8191 bytes is cut into bursts ([`split`](super::split)); its answer is the aligned
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

pub use crate::bus::dma_client::READERS as CLIENTS;

/// Read side of the DMA, 2^A bursts a client under way.
#[derive(Block)]
#[block(check)]
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
    pub stall: Signal<In, Bit>,
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
    #[init(std::array::from_fn(|_| Fifo::new(Style::Distributed)))]
    ends: [Fifo<Bit, A>; CLIENTS],
    room: Reg<Bits<CLIENTS>>,
    data: Dff<Bits<W>>,
    valid: Reg<Bits<CLIENTS>>,
    last: Dff<Bit>,
    failed: Reg<Bit>,
    /// Bursts under way.
    open: Reg<Bits<16>>,
    range: Signal<Local, Range>,
    #[init(std::array::from_fn(|i| Constant::new((i as u64).to_bits())))]
    client: [Constant<Bits<4>>; CLIENTS],
    // Two requests of five bursts may be on their way behind a client's last look at its level.
    #[init(Constant::new(((1u64 << A) - 16).to_bits()))]
    limit: Constant<Bits<16>>,
    #[init(Constant::new(u64::from(axi::burst_size(K)).to_bits()))]
    size: Constant<Bits<3>>,
}

impl<const W: usize, const K: usize, const A: usize> DmaRead<W, K, A> {
    fn check() {
        assert!(
            W == 8 * K,
            "DMA of {W} bits has {} bytes a beat, not {K}",
            W / 8
        );
        assert!(
            (5..15).contains(&A),
            "2^{A} bursts a client: 2^5 to 2^14 can be built"
        );
    }
}

impl<const W: usize, const K: usize, const A: usize> Logic for DmaRead<W, K, A> {
    describe!(
        "dma_read",
        format!("{W}_{A}"),
        "AXI4 reads for nine clients."
    );

    #[kernel]
    fn update(&mut self) {
        // Requests: one a cycle into the splitter.
        let mut asking: Bits<CLIENTS> = bits::<CLIENTS>(0);
        let mut fit: Bits<CLIENTS> = bits::<CLIENTS>(0);
        range.tag = client[0];
        for i in 0..CLIENTS {
            asking = asking.replace_bit(i, request[i].valid & room.bit(i) & !stall);
        }
        arbiter.request = asking;
        arbiter.take = split.s.ready;
        for i in 0..CLIENTS {
            request[i].ready = split.s.ready & arbiter.grant.bit(i);
            // looked at and counted beside the arbiter, which is deep
            fits[i].range = request[i].payload;
            pick.item[i] = fits[i].counted;
            fit = fit.replace_bit(i, fits[i].fits);
            if arbiter.grant.bit(i) {
                range.tag = client[i];
            }
        }
        pick.choice = arbiter.grant;
        range.addr = pick.picked.addr;
        range.more = pick.picked.len;
        split.s_fits = (arbiter.grant & fit).any();
        split.s.valid = asking.any();
        split.s.payload = range;

        // Bursts: to AR, and a note for their end.
        forward!(address.s <= split.m);
        let issue = split.m.valid & address.s.ready;
        for i in 0..CLIENTS {
            ends[i].s.valid = issue & (split.m.payload.tag == client[i]);
            ends[i].s.payload = split.m.payload.last;
        }
        m_axi.arid = address.m.payload.tag;
        m_axi.araddr = address.m.payload.addr;
        m_axi.arlen = address.m.payload.len;
        m_axi.arsize = size;
        m_axi.arburst = bits::<2>(1);
        m_axi.arvalid = address.m.valid;
        address.m.ready = m_axi.arready;

        // Answers.
        m_axi.rready = true;
        data = m_axi.rdata;
        failed = m_axi.rvalid & m_axi.rresp.bit(1);
        last = false;
        let mut arrived: Bits<CLIENTS> = bits::<CLIENTS>(0);
        let mut free: Bits<CLIENTS> = bits::<CLIENTS>(0);
        for i in 0..CLIENTS {
            arrived = arrived.replace_bit(i, m_axi.rvalid & (m_axi.rid == client[i]));
            ends[i].m.ready = arrived.bit(i) & m_axi.rlast;
            if arrived.bit(i) {
                last = m_axi.rlast & ends[i].m.payload;
            }
            beats[i].data = data;
            beats[i].last = last;
            beats[i].error = failed;
            beats[i].valid = valid.bit(i);
        }
        valid = arrived;
        for i in 0..CLIENTS {
            free = free.replace_bit(i, ends[i].level < limit);
        }
        room = free;
        let closed = m_axi.rvalid & m_axi.rlast;
        if issue & !closed {
            open = open + 1;
        } else if closed & !issue {
            open = open - 1;
        }
        idle = open == 0;
        error = failed;
    }
}
