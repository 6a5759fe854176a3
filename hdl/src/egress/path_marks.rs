//! What of the address vectors says the class of their packets.
//!
//! A read takes a cycle; `mark` stands until the next.
use super::types::PathMark;
use crate::bus::types::image::AvCtx;
use crate::prelude::*;

/// Marks of 2^Q address vectors.
#[derive(Block)]
pub struct PathMarks<const Q: usize> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// A command writes the address vector `number`.
    pub we: Signal<In, Bit>,
    /// Its number.
    pub number: Signal<In, Bits<Q>>,
    /// The address vector.
    pub av: Signal<In, AvCtx>,
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// Read.
    pub re: Signal<In, Bit>,
    /// Which.
    pub raddr: Signal<In, Bits<Q>>,
    /// What was read.
    pub mark: Signal<Out, PathMark>,
    marks: Ram<PathMark, Q>,
}

impl<const Q: usize> Logic for PathMarks<Q> {
    describe!(
        "path_marks",
        format!("q{Q}"),
        "What of the address vectors says the class of their packets."
    );

    #[kernel]
    fn update(&mut self) {
        marks.we = we;
        marks.waddr = number;
        marks.wdata = PathMark {
            dscp: av.tclass.slice::<6>(2),
            tagged: av.vlan_valid,
            pcp: av.vlan.slice::<3>(13),
            own: av.dmac == mac,
        };
        marks.re = re;
        marks.raddr = raddr;
        mark = marks.rdata;
    }
}
