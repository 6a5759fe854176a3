//! RAM of rings: 2^Q rings of 2^E words, one write port, one read port, one clock.
//!
//! As [`Ram`], with the address in two parts, ring and slot.
use crate::cell::ram::Style;
use crate::prelude::*;

/// RAM of 2^Q rings of 2^E words of type `T`.
#[derive(Clone, Debug, Block)]
#[block(check)]
pub struct RingRam<T: Synth, const Q: usize, const E: usize> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// Write enable.
    pub we: Signal<In, Bit>,
    /// Ring to write.
    pub wring: Signal<In, Bits<Q>>,
    /// Slot to write.
    pub wslot: Signal<In, Bits<E>>,
    /// Word to write.
    pub wdata: Signal<In, T>,
    /// Read enable.
    pub re: Signal<In, Bit>,
    /// Ring to read.
    pub rring: Signal<In, Bits<Q>>,
    /// Slot to read.
    pub rslot: Signal<In, Bits<E>>,
    /// Word read.
    pub rdata: Signal<Out, T>,
    #[init(vec![T::default(); 1 << (Q + E)])]
    _mem: Vec<T>,
}

impl<T: Synth, const Q: usize, const E: usize> RingRam<T, Q, E> {
    fn check() {
        assert!(
            (2..=24).contains(&(Q + E)) && Q > 0 && E > 0,
            "2^{Q} rings of 2^{E} words: 2^2 to 2^24 words can be built"
        );
    }
}

impl<T: Synth, const Q: usize, const E: usize> Logic for RingRam<T, Q, E> {
    describe!(
        "ring_ram",
        |_this| format!("{}x{}x{}", 1usize << Q, 1usize << E, T::BITS),
        "Simple dual-port RAM of rings, read-first, read data held while `re` is 0."
    );

    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            if self.re.val() {
                self.rdata.next =
                    self._mem[self.rring.val().index() << E | self.rslot.val().index()];
            }
            if self.we.val() {
                self._mem[self.wring.val().index() << E | self.wslot.val().index()] =
                    self.wdata.val();
            }
        }
    }

    fn connect(&mut self) {
        self.rdata.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "(* ram_style = \"{style}\" *) reg [{high}:0] mem [0:{last}];\n\
             always @(posedge clk) begin\n    \
                 if (re) rdata <= mem[{{rring, rslot}}];\n    \
                 if (we) mem[{{wring, wslot}}] <= wdata;\n\
             end\n",
            style = Style::for_depth(Q + E).name(),
            high = T::BITS - 1,
            last = (1usize << (Q + E)) - 1,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rings_are_apart() {
        let mut u = RingRam::<Bits<8>, 1, 3>::default();
        u.connect_all();
        let mut cycle = |write: Option<(u64, u64, u64)>, (ring, at): (u64, u64)| {
            let (wring, waddr, word) = write.unwrap_or_default();
            u.we.next = write.is_some();
            u.wring.next = wring.to_bits();
            u.wslot.next = waddr.to_bits();
            u.wdata.next = word.to_bits();
            u.re.next = true;
            u.rring.next = ring.to_bits();
            u.rslot.next = at.to_bits();
            for clk in [false, true] {
                u.clock.drive(clk, false);
                assert!(simulate(&mut u, 50));
            }
            u.rdata.val().to_u64()
        };
        cycle(Some((0, 5, 0x11)), (0, 0));
        assert_eq!(cycle(Some((1, 5, 0x22)), (1, 5)), 0, "read first");
        assert_eq!(cycle(None, (0, 5)), 0x11);
        assert_eq!(cycle(None, (1, 5)), 0x22);
    }
}
