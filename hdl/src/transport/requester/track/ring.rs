//! Rings of READs under way: sixteen entries a queue pair in one RAM.
use super::types::ReadEntry;
use crate::cell::ram::Style;
use crate::prelude::*;

/// Entries a queue pair.
pub const ENTRIES: usize = 16;

/// The rings of 2^Q queue pairs: one write port, one read port, read-first, a cycle to `rdata`.
#[derive(Clone, Debug, Block)]
pub struct ReadRing<const Q: usize> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// Write `wdata`.
    pub we: Signal<In, Bit>,
    /// To this queue pair.
    pub wqpn: Signal<In, Bits<Q>>,
    /// At this place of its ring.
    pub wslot: Signal<In, Bits<4>>,
    /// The entry.
    pub wdata: Signal<In, ReadEntry>,
    /// Queue pair to read.
    pub rqpn: Signal<In, Bits<Q>>,
    /// Place in its ring.
    pub rslot: Signal<In, Bits<4>>,
    /// The entry, a cycle later.
    pub rdata: Signal<Out, ReadEntry>,
    #[init(vec![ReadEntry::default(); ENTRIES << Q])]
    _mem: Vec<ReadEntry>,
}

impl<const Q: usize> Logic for ReadRing<Q> {
    describe!(
        "read_ring",
        format!("q{Q}"),
        "Rings of sixteen READs under way a queue pair."
    );

    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            self.rdata.next =
                self._mem[self.rqpn.val().index() * ENTRIES + self.rslot.val().index()];
            if self.we.val() {
                self._mem[self.wqpn.val().index() * ENTRIES + self.wslot.val().index()] =
                    self.wdata.val();
            }
        }
    }

    fn connect(&mut self) {
        self.rdata.connect();
    }

    fn hdl(&self) -> Verilog {
        let style = Style::for_depth(Q + 4);
        Verilog::Custom(format!(
            "(* ram_style = \"{style}\" *) reg [{high}:0] mem [0:{last}];\n\
             always @(posedge clk) begin\n    \
                 rdata <= mem[{{rqpn, rslot}}];\n    \
                 if (we) mem[{{wqpn, wslot}}] <= wdata;\n\
             end\n",
            style = style.name(),
            high = ReadEntry::BITS - 1,
            last = (ENTRIES << Q) - 1,
        ))
    }
}
