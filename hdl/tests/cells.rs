//! Every cell in Verilog: accepted by Verilator's lint without a waiver, and by Yosys.
mod common;

use ferroce_hdl::cell::equal::Equal;
use ferroce_hdl::emit;
use ferroce_hdl::prelude::*;

/// One of each register, between two ends of every stream.
#[derive(Block)]
struct Cells {
    clock: ClkRst,
    s: StreamIn<Bits<9>>,
    m: StreamOut<Bits<9>>,
    s_axis: AxisIn<64, 8>,
    m_axis: AxisOut<64, 8>,
    held: Reg<Bits<9>>,
    full: Reg<Bit>,
    payload: Dff<Bits<64>>,
    take: Signal<Local, Bit>,
}

impl Logic for Cells {
    describe!(
        "cells",
        "One of each register, between two ends of every stream."
    );
    #[kernel]
    fn update(&mut self) {
        take = !full || m.ready;
        if take {
            held = s.payload;
            full = s.valid;
            payload = s_axis.tdata;
        }
        s.ready = take;
        m.payload = held;
        m.valid = full;
        s_axis.tready = m_axis.tready;
        m_axis.tdata = payload;
        m_axis.tkeep = s_axis.tkeep;
        m_axis.tlast = s_axis.tlast;
        m_axis.tuser = s_axis.tuser;
        m_axis.tvalid = s_axis.tvalid;
    }
}

#[test]
fn cells_are_accepted() {
    let design = emit::verilog(&Cells::default()).expect("emits");
    common::accepted("cells", &design);
}

#[test]
fn axi_names() {
    let design = emit::verilog(&Cells::default()).expect("emits");
    let names: Vec<&str> = design.ports.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names[..4], ["clk", "rst", "s_payload", "s_valid"]);
    assert_eq!(names[8..10], ["s_axis_tdata", "s_axis_tkeep"]);
    assert_eq!(names.last(), Some(&"m_axis_tready"));
}

#[test]
fn library_is_accepted() {
    for block in [
        &Fifo::<Bits<24>, 4>::default() as &dyn Block,
        &Fifo::<Bits<24>, 9>::default(),
        &Deep::<Bits<24>, 9>::default(),
        &Bypass::<Bits<24>, 4>::default(),
        &Hold::<Bits<24>>::default(),
        &Ram::<Bits<24>, 6>::default(),
        &Ram::<Bits<9>, 10>::default(),
        &Skid::<Bits<24>>::default(),
        &SkidRam::<Bits<24>>::default(),
        &Slice::<Bits<24>>::default(),
        &RingRam::<Bits<24>, 1, 6>::default(),
        &ResetCopies::<3>::default(),
        &ByteReg::<64, 8>::default(),
        &Merge::<Bits<24>, 4>::default(),
        &Arbiter::<4>::default(),
        &Carry::<13>::default(),
        &Equal::<128>::default(),
    ] {
        let design = emit::verilog(block).unwrap_or_else(|errors| panic!("{errors:?}"));
        common::accepted(&design.top, &design);
    }
}
