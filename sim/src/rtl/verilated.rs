//! The ports of a Verilated engine.

use super::{Inputs, Outputs, Pins};
use crate::axi::stream::Beat;
use crate::axi::{Address, MAX_LANES};
use crate::verilator::{Dut, Error, Input, Model, Output, Port, Signal};

/// One line a port, as the engine sees it; `lanes` is the data path in bytes.
macro_rules! ports {
    (|$lanes:ident| $($name:ident: $direction:ident $width:expr;)*) => {
        /// Handles to all ports but the clock.
        struct Handles {
            $($name: $direction,)*
        }

        impl Handles {
            fn resolve(model: &Model) -> Result<Self, Error> {
                Ok(Self {
                    $($name: ports!(@find $direction, model)(stringify!($name))?,)*
                })
            }
        }

        /// All ports of an engine with a data path of `lanes` bytes, the clock first.
        #[must_use]
        pub fn ports($lanes: usize) -> Vec<Port> {
            vec![
                Port::input("clk", 1),
                $(ports!(@port $direction)(stringify!($name), $width),)*
            ]
        }
    };
    (@find Input, $model:ident) => { |name| $model.input(name) };
    (@find Output, $model:ident) => { |name| $model.output(name) };
    (@port Input) => { Port::input };
    (@port Output) => { Port::output };
}

ports! { |lanes|
    rst: Input 1;
    s_axis_rx_tdata: Input 8 * lanes;
    s_axis_rx_tkeep: Input lanes;
    s_axis_rx_tlast: Input 1;
    s_axis_rx_tuser: Input 1;
    s_axis_rx_tvalid: Input 1;
    s_axis_rx_tready: Output 1;
    m_axis_tx_tdata: Output 8 * lanes;
    m_axis_tx_tkeep: Output lanes;
    m_axis_tx_tlast: Output 1;
    m_axis_tx_tuser: Output 1;
    m_axis_tx_tvalid: Output 1;
    m_axis_tx_tready: Input 1;
    pause_req: Input 8;
    rx_backlog: Input 1;
    pause_ack: Output 8;
    pause_send: Output 8;
    s_axil_awaddr: Input 22;
    s_axil_awvalid: Input 1;
    s_axil_awready: Output 1;
    s_axil_wdata: Input 32;
    s_axil_wstrb: Input 4;
    s_axil_wvalid: Input 1;
    s_axil_wready: Output 1;
    s_axil_bresp: Output 2;
    s_axil_bvalid: Output 1;
    s_axil_bready: Input 1;
    s_axil_araddr: Input 22;
    s_axil_arvalid: Input 1;
    s_axil_arready: Output 1;
    s_axil_rdata: Output 32;
    s_axil_rresp: Output 2;
    s_axil_rvalid: Output 1;
    s_axil_rready: Input 1;
    m_axi_awid: Output 4;
    m_axi_awaddr: Output 64;
    m_axi_awlen: Output 8;
    m_axi_awsize: Output 3;
    m_axi_awburst: Output 2;
    m_axi_awvalid: Output 1;
    m_axi_awready: Input 1;
    m_axi_wdata: Output 8 * lanes;
    m_axi_wstrb: Output lanes;
    m_axi_wlast: Output 1;
    m_axi_wvalid: Output 1;
    m_axi_wready: Input 1;
    m_axi_bid: Input 4;
    m_axi_bresp: Input 2;
    m_axi_bvalid: Input 1;
    m_axi_bready: Output 1;
    m_axi_arid: Output 4;
    m_axi_araddr: Output 64;
    m_axi_arlen: Output 8;
    m_axi_arsize: Output 3;
    m_axi_arburst: Output 2;
    m_axi_arvalid: Output 1;
    m_axi_arready: Input 1;
    m_axi_rid: Input 4;
    m_axi_rdata: Input 8 * lanes;
    m_axi_rresp: Input 2;
    m_axi_rlast: Input 1;
    m_axi_rvalid: Input 1;
    m_axi_rready: Output 1;
    irq_vector: Output 11;
    irq_valid: Output 1;
    irq_ready: Input 1;
}

/// A Verilated engine as [`Pins`].
pub struct VerilatedPins {
    dut: Dut,
    handles: Handles,
    lanes: usize,
}

impl VerilatedPins {
    /// Takes hold of an instance whose ports are [`ports`] and whose clock is `clk`.
    ///
    /// # Errors
    /// A port is missing or has the other direction.
    ///
    /// # Panics
    /// If the data path is wider than [`MAX_LANES`].
    pub fn new(dut: Dut) -> Result<Self, Error> {
        let handles = Handles::resolve(dut.model())?;
        let lanes = handles.m_axi_wdata.width() / 8;
        assert!(
            lanes <= MAX_LANES,
            "a data path of {lanes} bytes; at most {MAX_LANES} are expected"
        );
        Ok(Self {
            dut,
            handles,
            lanes,
        })
    }

    /// The instance, for traces and coverage.
    pub fn dut(&mut self) -> &mut Dut {
        &mut self.dut
    }

    fn drive(&mut self, i: &Inputs) {
        let (d, h) = (&mut self.dut, &self.handles);
        d.set(h.rst, i.rst.into());
        d.set(h.s_axis_rx_tvalid, i.rx.valid.into());
        if i.rx.valid {
            store(d, h.s_axis_rx_tdata, &i.rx.data[..self.lanes]);
            d.set(h.s_axis_rx_tkeep, i.rx.keep);
            d.set(h.s_axis_rx_tlast, i.rx.last.into());
            d.set(h.s_axis_rx_tuser, i.rx.user.into());
        }
        d.set(h.m_axis_tx_tready, i.tx_ready.into());
        d.set(h.pause_req, i.pause_req.into());
        d.set(h.rx_backlog, i.rx_backlog.into());
        d.set(h.s_axil_awvalid, i.lite.awvalid.into());
        d.set(h.s_axil_awaddr, i.lite.awaddr.into());
        d.set(h.s_axil_wvalid, i.lite.wvalid.into());
        d.set(h.s_axil_wdata, i.lite.wdata.into());
        d.set(h.s_axil_wstrb, 0xf);
        d.set(h.s_axil_bready, i.lite.bready.into());
        d.set(h.s_axil_arvalid, i.lite.arvalid.into());
        d.set(h.s_axil_araddr, i.lite.araddr.into());
        d.set(h.s_axil_rready, i.lite.rready.into());
        d.set(h.m_axi_awready, i.axi.awready.into());
        d.set(h.m_axi_wready, i.axi.wready.into());
        d.set(h.m_axi_arready, i.axi.arready.into());
        d.set(h.m_axi_bvalid, i.axi.b.valid.into());
        d.set(h.m_axi_bid, i.axi.b.id.into());
        d.set(h.m_axi_bresp, i.axi.b.resp.into());
        d.set(h.m_axi_rvalid, i.axi.r.valid.into());
        if i.axi.r.valid {
            store(d, h.m_axi_rdata, &i.axi.r.data[..self.lanes]);
            d.set(h.m_axi_rid, i.axi.r.id.into());
            d.set(h.m_axi_rresp, i.axi.r.resp.into());
            d.set(h.m_axi_rlast, i.axi.r.last.into());
        }
        d.set(h.irq_ready, i.irq_ready.into());
    }

    fn sample(&self, o: &mut Outputs) {
        let (d, h) = (&self.dut, &self.handles);
        o.rx_ready = d.is_set(h.s_axis_rx_tready);
        o.tx.valid = d.is_set(h.m_axis_tx_tvalid);
        if o.tx.valid {
            o.tx = Beat {
                valid: true,
                last: d.is_set(h.m_axis_tx_tlast),
                user: d.is_set(h.m_axis_tx_tuser),
                keep: d.get(h.m_axis_tx_tkeep),
                data: o.tx.data,
            };
            load(d, h.m_axis_tx_tdata, &mut o.tx.data[..self.lanes]);
        }
        o.pause_ack = d.get(h.pause_ack) as u8;
        o.pause_send = d.get(h.pause_send) as u8;
        o.lite.awready = d.is_set(h.s_axil_awready);
        o.lite.wready = d.is_set(h.s_axil_wready);
        o.lite.bvalid = d.is_set(h.s_axil_bvalid);
        o.lite.bresp = d.get(h.s_axil_bresp) as u8;
        o.lite.arready = d.is_set(h.s_axil_arready);
        o.lite.rvalid = d.is_set(h.s_axil_rvalid);
        o.lite.rresp = d.get(h.s_axil_rresp) as u8;
        o.lite.rdata = d.get(h.s_axil_rdata) as u32;
        o.axi.aw.valid = d.is_set(h.m_axi_awvalid);
        if o.axi.aw.valid {
            o.axi.aw = Address {
                valid: true,
                id: d.get(h.m_axi_awid) as u8,
                addr: d.get(h.m_axi_awaddr),
                len: d.get(h.m_axi_awlen) as u8,
                size: d.get(h.m_axi_awsize) as u8,
                burst: d.get(h.m_axi_awburst) as u8,
            };
        }
        o.axi.w.valid = d.is_set(h.m_axi_wvalid);
        if o.axi.w.valid {
            o.axi.w.last = d.is_set(h.m_axi_wlast);
            o.axi.w.strb = d.get(h.m_axi_wstrb);
            load(d, h.m_axi_wdata, &mut o.axi.w.data[..self.lanes]);
        }
        o.axi.bready = d.is_set(h.m_axi_bready);
        o.axi.ar.valid = d.is_set(h.m_axi_arvalid);
        if o.axi.ar.valid {
            o.axi.ar = Address {
                valid: true,
                id: d.get(h.m_axi_arid) as u8,
                addr: d.get(h.m_axi_araddr),
                len: d.get(h.m_axi_arlen) as u8,
                size: d.get(h.m_axi_arsize) as u8,
                burst: d.get(h.m_axi_arburst) as u8,
            };
        }
        o.axi.rready = d.is_set(h.m_axi_rready);
        o.irq_valid = d.is_set(h.irq_valid);
        o.irq_vector = d.get(h.irq_vector) as u16;
    }
}

impl Pins for VerilatedPins {
    fn lanes(&self) -> usize {
        self.lanes
    }

    fn settle(&mut self, inputs: &Inputs, outputs: &mut Outputs) {
        self.drive(inputs);
        self.dut.settle();
        self.sample(outputs);
    }

    fn clock(&mut self) {
        self.dut.rise();
    }
}

/// Drives all bytes of a port.
fn store(dut: &mut Dut, input: Input, data: &[u8]) {
    if data.len() <= 8 {
        let mut bytes = [0; 8];
        bytes[..data.len()].copy_from_slice(data);
        dut.set(input, u64::from_le_bytes(bytes));
        return;
    }
    dut.edit(input, |words| {
        for (word, bytes) in words.iter_mut().zip(data.chunks_exact(4)) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
    });
}

/// Reads all bytes of a port.
fn load(dut: &Dut, output: impl Into<Signal>, data: &mut [u8]) {
    if data.len() <= 8 {
        let bytes = dut.get(output).to_le_bytes();
        data.copy_from_slice(&bytes[..data.len()]);
        return;
    }
    for (bytes, word) in data.chunks_exact_mut(4).zip(dut.view(output)) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}
