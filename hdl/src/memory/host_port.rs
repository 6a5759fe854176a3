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
    /// The last one done of each client was refused.
    pub refused: [Signal<Out, Bit>; dma_write::CLIENTS],
    /// AXI4 master.
    pub m_axi: AxiOut<W, K>,
    /// Nothing new is begun while it is 1.
    pub stall: Signal<In, Bit>,
    /// Nothing is under way.
    pub idle: Signal<Out, Bit>,
    /// An access failed in this cycle.
    pub dma_error: Signal<Out, Bit>,
    /// A write of an entry of a ring was refused; one cycle.
    pub ring_error: Signal<Out, Bit>,
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
        for i in 0..dma_read::CLIENTS {
            forward!(read[i] <= reader.request[i]);
            forward!(beat[i] <= reader.beats[i]);
        }
        for i in 0..dma_write::CLIENTS {
            forward!(write[i] <= writer.command[i]);
            forward!(beats[i] <= writer.beats[i]);
            issued[i] = writer.issued[i];
            done[i] = writer.done[i];
            refused[i] = writer.refused[i];
        }
        reader.stall = stall;
        writer.stall = stall;
        idle = reader.idle & writer.idle;
        dma_error = reader.error | writer.error;
        ring_error = writer.ring_error;
        copy!(m_axi <= writer.m_axi;
            awid, awaddr, awlen, awsize, awburst, awvalid, wdata, wstrb, wlast, wvalid, bready);
        copy!(writer.m_axi <= m_axi; awready, wready, bid, bresp, bvalid);
        copy!(m_axi <= reader.m_axi; arid, araddr, arlen, arsize, arburst, arvalid, rready);
        copy!(reader.m_axi <= m_axi; arready, rid, rdata, rresp, rlast, rvalid);
    }
}
