//! Writes to host memory for six clients (docs/blocks/memory.md).
//!
//! ```text
//!  command[6] ─► round robin ─┬─► register ─► AW (ID = client)
//!                             └─► owner of the W channel, in AW order
//!  beats[6] ─────────────────► mux ─► register ─► W
//!  issued[6], done[6] ◄── counters ◄── B
//! ```
//!
//! Clients: [`dma_client`](crate::bus::dma_client). A command is one burst; a client offers it when nothing but
//! its turn can delay its beats: they hold the W channel from its turn on. Beats are taken up to the one marked `last`.
//!
//! Latency: `command.valid` to `awvalid` 1 cycle, to the first `wvalid` 2 cycles. Throughput: a burst and a beat a
//! cycle, no idle cycle between bursts. `bready` is constant 1.
//!
//! Counts are modulo 2^16: writes of one client are done in order, so that a write issued before count `n` is done when
//! `done - n`, taken as a signed number, is not negative. Fewer than 2^15 bursts a client may be under way.
use super::types::Burst;
use crate::bus::axi;
use crate::bus::dma_client::{WRITE_COMMAND, WRITE_CQE, WRITE_EQE};
use crate::bus::types::WriteCmd;
use crate::cell::count::one_less;
use crate::prelude::*;

const CQES: u64 = WRITE_CQE as u64;
const COMPLETIONS: u64 = WRITE_COMMAND as u64;
const EQES: u64 = WRITE_EQE as u64;

pub use crate::bus::dma_client::WRITERS as CLIENTS;

/// Write side of the DMA.
#[derive(Block)]
#[block(check)]
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
    pub stall: Signal<In, Bit>,
    /// The last one done of each client was refused (BRESP SLVERR or DECERR).
    pub refused: [Signal<Out, Bit>; CLIENTS],
    /// Every burst that was taken has its response.
    pub idle: Signal<Out, Bit>,
    /// A write failed in this cycle (BRESP SLVERR or DECERR).
    pub error: Signal<Out, Bit>,
    /// It was of an entry of a ring: a CQE, an event, the completion of a command.
    pub ring_error: Signal<Out, Bit>,
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
    ring_failed: Reg<Bit>,
    refusal: [Reg<Bit>; CLIENTS],
    /// Bursts under way.
    open: Reg<Bits<16>>,
    next_address: Signal<Local, Burst>,
    inner_data: Signal<Local, Bits<W>>,
    inner_strb: Signal<Local, Bits<K>>,
    #[init(std::array::from_fn(|i| Constant::new((i as u64).to_bits())))]
    client: [Constant<Bits<4>>; CLIENTS],
    #[init(Constant::new(u64::from(axi::burst_size(K)).to_bits()))]
    size: Constant<Bits<3>>,
}

impl<const W: usize, const K: usize> DmaWrite<W, K> {
    fn check() {
        assert!(
            W == 8 * K,
            "DMA of {W} bits has {} bytes a beat, not {K}",
            W / 8
        );
    }
}

impl<const W: usize, const K: usize> Logic for DmaWrite<W, K> {
    describe!("dma_write", format!("{W}"), "AXI4 writes for six clients.");

    #[kernel]
    fn update(&mut self) {
        for i in 0..CLIENTS {
            issued_count[i] = issued_count[i];
            done_count[i] = done_count[i];
        }

        // Commands: one a cycle to AW, in the same order to the owner queue.
        let mut asking: Bits<CLIENTS> = bits::<CLIENTS>(0);
        for i in 0..CLIENTS {
            asking = asking.replace_bit(i, command[i].valid & !stall);
        }
        let take = address.s.ready & owner.s.ready;
        arbiter.request = asking;
        arbiter.take = take;
        next_address.tag = client[0];
        for i in 0..CLIENTS {
            command[i].ready = take & arbiter.grant.bit(i);
            pick.item[i] = command[i].payload;
            if arbiter.grant.bit(i) {
                next_address.tag = client[i];
            }
            if arbiter.grant.bit(i) & take {
                issued_count[i] = issued_count[i] + 1;
            }
            issued[i] = issued_count[i];
        }
        pick.choice = arbiter.grant;
        next_address.last = true;
        next_address.addr = pick.picked.addr;
        next_address.len = pick.picked.len;
        address.s.valid = asking.any() & owner.s.ready;
        address.s.payload = next_address;
        owner.s.valid = asking.any() & address.s.ready;
        owner.s.payload = arbiter.grant;
        route.s.valid = asking.any() & address.s.ready;
        route.s.payload = bits::<4>(0)
            .replace_bit(0, (arbiter.grant & 0b01_0100).any())
            .replace_bit(1, (arbiter.grant & 0b01_1000).any())
            .replace_bit(2, (arbiter.grant & 0b01_1110).any())
            .replace_bit(3, arbiter.grant.bit(5));
        m_axi.awid = address.m.payload.tag;
        m_axi.awaddr = address.m.payload.addr;
        m_axi.awlen = address.m.payload.len;
        m_axi.awsize = size;
        m_axi.awburst = bits::<2>(1);
        m_axi.awvalid = address.m.valid;
        address.m.ready = m_axi.awready;

        // Beats of the owner; data, strobes and last move in lockstep.
        let mut turn: Bits<CLIENTS> = bits::<CLIENTS>(0);
        if owner.m.valid {
            turn = owner.m.payload;
        }
        let mut lasts: Bits<CLIENTS> = bits::<CLIENTS>(0);
        let mut valids: Bits<CLIENTS> = bits::<CLIENTS>(0);
        for i in 0..CLIENTS {
            beats[i].ready = turn.bit(i) & last.s.ready;
            lasts = lasts.replace_bit(i, beats[i].last);
            valids = valids.replace_bit(i, beats[i].valid);
        }
        // two LUTs a bit: one of four, then one of three
        match route.m.payload.low::<2>() {
            1 => {
                inner_data = beats[2].data;
                inner_strb = beats[2].strb;
            }
            2 => {
                inner_data = beats[3].data;
                inner_strb = beats[3].strb;
            }
            3 => {
                inner_data = beats[4].data;
                inner_strb = beats[4].strb;
            }
            _ => {
                inner_data = beats[1].data;
                inner_strb = beats[1].strb;
            }
        }
        let mut beat_data = beats[0].data;
        let mut beat_strb = beats[0].strb;
        if route.m.payload.bit(2) {
            beat_data = inner_data;
            beat_strb = inner_strb;
        } else if route.m.payload.bit(3) {
            beat_data = beats[5].data;
            beat_strb = beats[5].strb;
        }
        let beat_last = (turn & lasts).any();
        let beat_valid = (turn & valids).any();
        owner.m.ready = beat_valid & beat_last & last.s.ready;
        route.m.ready = beat_valid & beat_last & last.s.ready;
        data.s.payload = beat_data;
        data.s.valid = beat_valid;
        strb.s.payload = beat_strb;
        strb.s.valid = beat_valid;
        last.s.payload = beat_last;
        last.s.valid = beat_valid;
        m_axi.wdata = data.m.payload;
        m_axi.wstrb = strb.m.payload;
        m_axi.wlast = last.m.payload;
        m_axi.wvalid = last.m.valid;
        data.m.ready = m_axi.wready;
        strb.m.ready = m_axi.wready;
        last.m.ready = m_axi.wready;

        // Responses.
        m_axi.bready = true;
        failed = m_axi.bvalid & m_axi.bresp.bit(1);
        let of_ring = (m_axi.bid == CQES) | (m_axi.bid == COMPLETIONS) | (m_axi.bid == EQES);
        ring_failed = m_axi.bvalid & m_axi.bresp.bit(1) & of_ring;
        for i in 0..CLIENTS {
            if m_axi.bvalid & (m_axi.bid == client[i]) {
                done_count[i] = done_count[i] + 1;
            }
            done[i] = done_count[i];
        }
        let opened = take & asking.any();
        if opened & !m_axi.bvalid {
            open = open + 1;
        } else if m_axi.bvalid & !opened {
            open = one_less(open);
        }
        idle = open == 0;
        error = failed;
        ring_error = ring_failed;
        for i in 0..CLIENTS {
            if m_axi.bvalid & (m_axi.bid == client[i]) {
                refusal[i] = m_axi.bresp.bit(1);
            }
            refused[i] = refusal[i];
        }
    }
}
