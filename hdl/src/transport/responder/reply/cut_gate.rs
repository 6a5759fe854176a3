//! Says when a packet may be cut: there is room for its descriptor and its payload.
//!
//! `roomy` knows of payload 5 cycles after its packet was cut. It keeps room for four packets below 512 bytes; behind a
//! larger one none is cut until then.
//!
//! Latency: a cycle.
use crate::prelude::*;

/// Gate of the cutter.
#[derive(Block)]
pub struct CutGate {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A packet is cut.
    pub step: Signal<In, Bit>,
    /// It has 512 bytes or more.
    pub big: Signal<In, Bit>,
    /// The descriptor of one has left.
    pub passed: Signal<In, Bit>,
    /// There is room for payload.
    pub roomy: Signal<In, Bit>,
    /// A packet may be cut.
    pub may: Signal<Out, Bit>,

    /// Packets whose descriptor is here.
    here: Reg<Bits<4>>,
    /// The exit decides late in its cycle.
    passed_q: Reg<Bit>,
    roomy_q: Reg<Bit>,
    /// Cycles until the next packet may be cut.
    pause: Reg<Bits<3>>,
}

impl Logic for CutGate {
    describe!(
        "reply_cut_gate",
        "Says when a packet of a reply may be cut."
    );

    #[kernel]
    fn update(&mut self) {
        passed_q = passed;
        roomy_q = roomy;
        may = roomy_q & !here.all() & !pause.any();
        if step & !passed_q {
            here += 1;
        } else if !step & passed_q {
            here -= 1;
        }
        if pause.any() {
            pause -= 1;
        }
        if step & big {
            pause = 4;
        }
    }
}
