//! The port to host memory: both sides of the DMA on one AXI4 master. Wiring only.
use super::dma_read::{self, DmaRead};
use super::dma_write::{self, DmaWrite};
use crate::bus::types::{ReadReq, WriteCmd};
use crate::prelude::*;

/// log2 of the bursts that a read client can have under way: 2 us of 64-byte reads, a read each 2 cycles.
const BURSTS: usize = 8;

/// DMA of W bits = K bytes a beat.
#[derive(Block)]
pub struct HostPort<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Reads, by client, see [`dma_read`].
    pub read: [StreamIn<ReadReq>; dma_read::CLIENTS],
    /// Their answers.
    pub beat: [ReadBeatOut<W>; dma_read::CLIENTS],
    /// Writes, by client, see [`dma_write`].
    pub write: [StreamIn<WriteCmd>; dma_write::CLIENTS],
    /// Their beats.
    pub beats: [WriteBeatIn<W, K>; dma_write::CLIENTS],
    /// Writes issued, by client, modulo 2^16.
    pub issued: [Signal<Out, Bits<16>>; dma_write::CLIENTS],
    /// Of those, writes done.
    pub done: [Signal<Out, Bits<16>>; dma_write::CLIENTS],
    /// AXI4 master.
    pub m_axi: AxiOut<W, K>,
    /// Nothing new is begun while it is 1.
    pub halt: Signal<In, Bit>,
    /// Nothing is under way.
    pub idle: Signal<Out, Bit>,
    /// An access failed in this cycle.
    pub error: Signal<Out, Bit>,
    reader: DmaRead<W, K, BURSTS>,
    writer: DmaWrite<W, K>,
}

impl<const W: usize, const K: usize> Logic for HostPort<W, K> {
    describe!(
        "host_port",
        format!("{W}"),
        "Port to host memory: both sides of the DMA on one AXI4 master."
    );

    #[kernel]
    fn update(&mut self) {
        for i in 0..9 {
            forward!(read[i] <= reader.request[i]);
            forward!(beat[i] <= reader.beats[i]);
        }
        for i in 0..6 {
            forward!(write[i] <= writer.command[i]);
            forward!(beats[i] <= writer.beats[i]);
            issued[i] = writer.issued[i];
            done[i] = writer.done[i];
        }
        reader.halt = halt;
        writer.halt = halt;
        idle = reader.idle & writer.idle;
        error = reader.error | writer.error;
        m_axi.awid = writer.m_axi.awid;
        m_axi.awaddr = writer.m_axi.awaddr;
        m_axi.awlen = writer.m_axi.awlen;
        m_axi.awsize = writer.m_axi.awsize;
        m_axi.awburst = writer.m_axi.awburst;
        m_axi.awvalid = writer.m_axi.awvalid;
        m_axi.wdata = writer.m_axi.wdata;
        m_axi.wstrb = writer.m_axi.wstrb;
        m_axi.wlast = writer.m_axi.wlast;
        m_axi.wvalid = writer.m_axi.wvalid;
        m_axi.bready = writer.m_axi.bready;
        writer.m_axi.awready = m_axi.awready;
        writer.m_axi.wready = m_axi.wready;
        writer.m_axi.bid = m_axi.bid;
        writer.m_axi.bresp = m_axi.bresp;
        writer.m_axi.bvalid = m_axi.bvalid;
        m_axi.arid = reader.m_axi.arid;
        m_axi.araddr = reader.m_axi.araddr;
        m_axi.arlen = reader.m_axi.arlen;
        m_axi.arsize = reader.m_axi.arsize;
        m_axi.arburst = reader.m_axi.arburst;
        m_axi.arvalid = reader.m_axi.arvalid;
        m_axi.rready = reader.m_axi.rready;
        reader.m_axi.arready = m_axi.arready;
        reader.m_axi.rid = m_axi.rid;
        reader.m_axi.rdata = m_axi.rdata;
        reader.m_axi.rresp = m_axi.rresp;
        reader.m_axi.rlast = m_axi.rlast;
        reader.m_axi.rvalid = m_axi.rvalid;
    }
}
