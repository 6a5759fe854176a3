//! AXI4, master's end: the host memory side of the engine; AXI4-Lite, slave's end: its registers.
//!
//! Data of W bits, K = W / 8 strobes, 64-bit addresses, 4-bit IDs. Bursts are of type INCR and full width, hold at most
//! 256 beats and stay within 4 KiB ([`burst_bytes`]). A field named `m_axi` gives the port names `m_axi_awid` and so on.

// The methods that the derive generates have no documentation.
#![allow(missing_docs)]

use rust_hdl_core::prelude::*;

/// Longest burst in bytes for beats of `k` bytes: 256 beats (AXI4 A3.4.1), and not across 4 KiB.
///
/// Bursts are cut at multiples of this number, a power of two.
pub const fn burst_bytes(k: usize) -> usize {
    if k < 16 { 256 * k } else { 4096 }
}

/// `AxSIZE` of beats of `k` bytes: the base-2 logarithm.
pub const fn burst_size(k: usize) -> u32 {
    assert!(
        k.is_power_of_two() && k <= 128,
        "AXI beats have 1, 2, 4 ... 128 bytes"
    );
    k.ilog2()
}

/// Read channels AR and R.
#[derive(Clone, Debug, Default, LogicInterface)]
pub struct AxiReadOut<const W: usize> {
    /// ID of the burst: the client.
    pub arid: Signal<Out, Bits<4>>,
    /// Address of the first byte; need not be aligned.
    pub araddr: Signal<Out, Bits<64>>,
    /// Beats less one.
    pub arlen: Signal<Out, Bits<8>>,
    /// Log2 of the bytes of a beat.
    pub arsize: Signal<Out, Bits<3>>,
    /// 1: INCR.
    pub arburst: Signal<Out, Bits<2>>,
    /// The address is valid.
    pub arvalid: Signal<Out, Bit>,
    /// The slave takes the address.
    pub arready: Signal<In, Bit>,
    /// ID of the beat's burst.
    pub rid: Signal<In, Bits<4>>,
    /// Data, byte 0 in bits 7:0.
    pub rdata: Signal<In, Bits<W>>,
    /// Bit 1 set: the read failed.
    pub rresp: Signal<In, Bits<2>>,
    /// Last beat of the burst.
    pub rlast: Signal<In, Bit>,
    /// The beat is valid.
    pub rvalid: Signal<In, Bit>,
    /// The engine takes the beat: constant 1.
    pub rready: Signal<Out, Bit>,
}

/// Write channels AW, W and B.
#[derive(Clone, Debug, Default, LogicInterface)]
pub struct AxiWriteOut<const W: usize, const K: usize> {
    /// ID of the burst: the client.
    pub awid: Signal<Out, Bits<4>>,
    /// Address of the first byte; need not be aligned.
    pub awaddr: Signal<Out, Bits<64>>,
    /// Beats less one.
    pub awlen: Signal<Out, Bits<8>>,
    /// Log2 of the bytes of a beat.
    pub awsize: Signal<Out, Bits<3>>,
    /// 1: INCR.
    pub awburst: Signal<Out, Bits<2>>,
    /// The address is valid.
    pub awvalid: Signal<Out, Bit>,
    /// The slave takes the address.
    pub awready: Signal<In, Bit>,
    /// Data, byte 0 in bits 7:0.
    pub wdata: Signal<Out, Bits<W>>,
    /// Bytes to write.
    pub wstrb: Signal<Out, Bits<K>>,
    /// Last beat of the burst.
    pub wlast: Signal<Out, Bit>,
    /// The beat is valid.
    pub wvalid: Signal<Out, Bit>,
    /// The slave takes the beat.
    pub wready: Signal<In, Bit>,
    /// ID of the burst that is done.
    pub bid: Signal<In, Bits<4>>,
    /// Bit 1 set: the write failed.
    pub bresp: Signal<In, Bits<2>>,
    /// A burst is done.
    pub bvalid: Signal<In, Bit>,
    /// The engine takes the response: constant 1.
    pub bready: Signal<Out, Bit>,
}

/// All five channels: the port of the engine.
#[derive(Clone, Debug, Default, LogicInterface)]
pub struct AxiOut<const W: usize, const K: usize> {
    /// See [`AxiWriteOut`].
    pub awid: Signal<Out, Bits<4>>,
    /// See [`AxiWriteOut`].
    pub awaddr: Signal<Out, Bits<64>>,
    /// See [`AxiWriteOut`].
    pub awlen: Signal<Out, Bits<8>>,
    /// See [`AxiWriteOut`].
    pub awsize: Signal<Out, Bits<3>>,
    /// See [`AxiWriteOut`].
    pub awburst: Signal<Out, Bits<2>>,
    /// See [`AxiWriteOut`].
    pub awvalid: Signal<Out, Bit>,
    /// See [`AxiWriteOut`].
    pub awready: Signal<In, Bit>,
    /// See [`AxiWriteOut`].
    pub wdata: Signal<Out, Bits<W>>,
    /// See [`AxiWriteOut`].
    pub wstrb: Signal<Out, Bits<K>>,
    /// See [`AxiWriteOut`].
    pub wlast: Signal<Out, Bit>,
    /// See [`AxiWriteOut`].
    pub wvalid: Signal<Out, Bit>,
    /// See [`AxiWriteOut`].
    pub wready: Signal<In, Bit>,
    /// See [`AxiWriteOut`].
    pub bid: Signal<In, Bits<4>>,
    /// See [`AxiWriteOut`].
    pub bresp: Signal<In, Bits<2>>,
    /// See [`AxiWriteOut`].
    pub bvalid: Signal<In, Bit>,
    /// See [`AxiWriteOut`].
    pub bready: Signal<Out, Bit>,
    /// See [`AxiReadOut`].
    pub arid: Signal<Out, Bits<4>>,
    /// See [`AxiReadOut`].
    pub araddr: Signal<Out, Bits<64>>,
    /// See [`AxiReadOut`].
    pub arlen: Signal<Out, Bits<8>>,
    /// See [`AxiReadOut`].
    pub arsize: Signal<Out, Bits<3>>,
    /// See [`AxiReadOut`].
    pub arburst: Signal<Out, Bits<2>>,
    /// See [`AxiReadOut`].
    pub arvalid: Signal<Out, Bit>,
    /// See [`AxiReadOut`].
    pub arready: Signal<In, Bit>,
    /// See [`AxiReadOut`].
    pub rid: Signal<In, Bits<4>>,
    /// See [`AxiReadOut`].
    pub rdata: Signal<In, Bits<W>>,
    /// See [`AxiReadOut`].
    pub rresp: Signal<In, Bits<2>>,
    /// See [`AxiReadOut`].
    pub rlast: Signal<In, Bit>,
    /// See [`AxiReadOut`].
    pub rvalid: Signal<In, Bit>,
    /// See [`AxiReadOut`].
    pub rready: Signal<Out, Bit>,
}

/// AXI4-Lite, the slave's end: the registers of BAR0. 32-bit data, 22-bit addresses.
///
/// A field named `s_axil` gives the port names `s_axil_awaddr` and so on.
#[derive(Clone, Debug, Default, LogicInterface)]
pub struct AxiLiteIn {
    /// Byte address of a write.
    pub awaddr: Signal<In, Bits<22>>,
    /// The address is valid.
    pub awvalid: Signal<In, Bit>,
    /// The slave takes the address.
    pub awready: Signal<Out, Bit>,
    /// Word to write.
    pub wdata: Signal<In, Bits<32>>,
    /// Bytes to write.
    pub wstrb: Signal<In, Bits<4>>,
    /// The word is valid.
    pub wvalid: Signal<In, Bit>,
    /// The slave takes the word.
    pub wready: Signal<Out, Bit>,
    /// 0 OKAY, 2 SLVERR.
    pub bresp: Signal<Out, Bits<2>>,
    /// A write is done.
    pub bvalid: Signal<Out, Bit>,
    /// The master takes the response.
    pub bready: Signal<In, Bit>,
    /// Byte address of a read.
    pub araddr: Signal<In, Bits<22>>,
    /// The address is valid.
    pub arvalid: Signal<In, Bit>,
    /// The slave takes the address.
    pub arready: Signal<Out, Bit>,
    /// Word read.
    pub rdata: Signal<Out, Bits<32>>,
    /// 0 OKAY.
    pub rresp: Signal<Out, Bits<2>>,
    /// The word is valid.
    pub rvalid: Signal<Out, Bit>,
    /// The master takes the word.
    pub rready: Signal<In, Bit>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_hold_what_axi_allows() {
        for k in [1, 2, 4, 8, 16, 32, 64, 128] {
            assert!(burst_bytes(k) <= 4096 && burst_bytes(k) / k <= 256);
            assert_eq!(1 << burst_size(k), k);
        }
        assert_eq!((burst_bytes(8), burst_bytes(64)), (2048, 4096));
    }
}
