//! The port to host memory: both sides of the DMA on one AXI4 master. Wiring only.
use super::dma_read::{self, DmaRead};
use super::dma_write::{self, DmaWrite};
use crate::bus::types::{ReadReq, WriteCmd};
use crate::prelude::*;

/// log2 of the bursts that a read client can have under way: 2 us of 64-byte reads, a read each 2 cycles.
const BURSTS: usize = 8;

/// DMA of W bits = K bytes a beat.
#[derive(LogicBlock, Default)]
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

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, reader, writer);
        for i in 0..9 {
            StreamIn::<ReadReq>::link(&mut self.read[i], &mut self.reader.request[i]);
            ReadBeatOut::<W>::link(&mut self.beat[i], &mut self.reader.beats[i]);
        }
        for i in 0..6 {
            StreamIn::<WriteCmd>::link(&mut self.write[i], &mut self.writer.command[i]);
            WriteBeatIn::<W, K>::link(&mut self.beats[i], &mut self.writer.beats[i]);
            self.issued[i].next = self.writer.issued[i].val();
            self.done[i].next = self.writer.done[i].val();
        }
        self.reader.halt.next = self.halt.val();
        self.writer.halt.next = self.halt.val();
        self.idle.next = self.reader.idle.val() & self.writer.idle.val();
        self.error.next = self.reader.error.val() | self.writer.error.val();
        self.m_axi.awid.next = self.writer.m_axi.awid.val();
        self.m_axi.awaddr.next = self.writer.m_axi.awaddr.val();
        self.m_axi.awlen.next = self.writer.m_axi.awlen.val();
        self.m_axi.awsize.next = self.writer.m_axi.awsize.val();
        self.m_axi.awburst.next = self.writer.m_axi.awburst.val();
        self.m_axi.awvalid.next = self.writer.m_axi.awvalid.val();
        self.m_axi.wdata.next = self.writer.m_axi.wdata.val();
        self.m_axi.wstrb.next = self.writer.m_axi.wstrb.val();
        self.m_axi.wlast.next = self.writer.m_axi.wlast.val();
        self.m_axi.wvalid.next = self.writer.m_axi.wvalid.val();
        self.m_axi.bready.next = self.writer.m_axi.bready.val();
        self.writer.m_axi.awready.next = self.m_axi.awready.val();
        self.writer.m_axi.wready.next = self.m_axi.wready.val();
        self.writer.m_axi.bid.next = self.m_axi.bid.val();
        self.writer.m_axi.bresp.next = self.m_axi.bresp.val();
        self.writer.m_axi.bvalid.next = self.m_axi.bvalid.val();
        self.m_axi.arid.next = self.reader.m_axi.arid.val();
        self.m_axi.araddr.next = self.reader.m_axi.araddr.val();
        self.m_axi.arlen.next = self.reader.m_axi.arlen.val();
        self.m_axi.arsize.next = self.reader.m_axi.arsize.val();
        self.m_axi.arburst.next = self.reader.m_axi.arburst.val();
        self.m_axi.arvalid.next = self.reader.m_axi.arvalid.val();
        self.m_axi.rready.next = self.reader.m_axi.rready.val();
        self.reader.m_axi.arready.next = self.m_axi.arready.val();
        self.reader.m_axi.rid.next = self.m_axi.rid.val();
        self.reader.m_axi.rdata.next = self.m_axi.rdata.val();
        self.reader.m_axi.rresp.next = self.m_axi.rresp.val();
        self.reader.m_axi.rlast.next = self.m_axi.rlast.val();
        self.reader.m_axi.rvalid.next = self.m_axi.rvalid.val();
    }
}
