//! Every cell in Verilog: accepted by Verilator's lint without a waiver but UNUSEDSIGNAL, and by Yosys.
mod common;

use ferroce_hdl::cell::equal::Equal;
use ferroce_hdl::emit;
use ferroce_hdl::prelude::*;

/// One of each register, between two ends of every stream.
#[derive(LogicBlock, Default)]
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
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, held, full, payload);
        self.take.next = !self.full.q.val() || self.m.ready.val();
        if self.take.val() {
            self.held.d.next = self.s.payload.val();
            self.full.d.next = self.s.valid.val();
            self.payload.d.next = self.s_axis.tdata.val();
        }
        self.s.ready.next = self.take.val();
        self.m.payload.next = self.held.q.val();
        self.m.valid.next = self.full.q.val();
        self.s_axis.tready.next = self.m_axis.tready.val();
        self.m_axis.tdata.next = self.payload.q.val();
        self.m_axis.tkeep.next = self.s_axis.tkeep.val();
        self.m_axis.tlast.next = self.s_axis.tlast.val();
        self.m_axis.tuser.next = self.s_axis.tuser.val();
        self.m_axis.tvalid.next = self.s_axis.tvalid.val();
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
        &Bypass::<Bits<24>, 4>::default(),
        &Hold::<Bits<24>>::default(),
        &Ram::<Bits<24>, 6>::default(),
        &Ram::<Bits<9>, 10>::default(),
        &Skid::<Bits<24>>::default(),
        &SkidRam::<Bits<24>>::default(),
        &Slice::<Bits<24>>::default(),
        &RingRam::<Bits<24>, 1, 6>::default(),
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
