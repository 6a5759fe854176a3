//! Two tables of words in one RAM, of which one word a cycle is read: a bit more of address, no multiplexer.
//!
//! As [`Ram`](crate::cell::ram::Ram) otherwise: the word read is there one cycle after `re`, and holds while `re` is 0.
use crate::prelude::*;

/// Two tables of 2^A words of type `T`.
#[derive(Clone, Debug, LogicBlock)]
pub struct RamBanks<T: Synth, const A: usize> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// Write enable.
    pub we: Signal<In, Bit>,
    /// The second table is written.
    pub wsecond: Signal<In, Bit>,
    /// Write address.
    pub waddr: Signal<In, Bits<A>>,
    /// Word to write.
    pub wdata: Signal<In, T>,
    /// Read enable.
    pub re: Signal<In, Bit>,
    /// The second table is read.
    pub rsecond: Signal<In, Bit>,
    /// Read address.
    pub raddr: Signal<In, Bits<A>>,
    /// Word read.
    pub rdata: Signal<Out, T>,
    _style: Style,
    _mem: [Vec<T>; 2],
}

impl<T: Synth, const A: usize> Default for RamBanks<T, A> {
    fn default() -> Self {
        assert!(
            (1..=23).contains(&A),
            "two tables of 2^{A} words: 2^1 to 2^23 can be built"
        );
        Self {
            clock: ClkRst::default(),
            we: Signal::default(),
            wsecond: Signal::default(),
            waddr: Signal::default(),
            wdata: Signal::default(),
            re: Signal::default(),
            rsecond: Signal::default(),
            raddr: Signal::default(),
            rdata: Signal::default(),
            _style: Style::for_depth(A + 1),
            _mem: std::array::from_fn(|_| vec![T::default(); 1 << A]),
        }
    }
}

impl<T: Synth, const A: usize> Logic for RamBanks<T, A> {
    describe!(
        "ram_banks",
        |this| format!("2x{}x{}_{}", 1usize << A, T::BITS, this._style.name()),
        "Two tables in one simple dual-port RAM, read-first, read data held while `re` is 0."
    );

    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            if self.re.val() {
                let bank = &self._mem[usize::from(self.rsecond.val())];
                self.rdata.next = bank[self.raddr.val().index()];
            }
            if self.we.val() {
                let bank = &mut self._mem[usize::from(self.wsecond.val())];
                bank[self.waddr.val().index()] = self.wdata.val();
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
                 if (re) rdata <= mem[{{rsecond, raddr}}];\n    \
                 if (we) mem[{{wsecond, waddr}}] <= wdata;\n\
             end\n",
            style = self._style.name(),
            high = T::BITS - 1,
            last = (2usize << A) - 1,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_apart() {
        let mut u = RamBanks::<Bits<8>, 3>::default();
        u.connect_all();
        let mut cycle = |write: Option<(bool, u64, u64)>, (second, at): (bool, u64)| {
            let (bank, waddr, word) = write.unwrap_or_default();
            u.we.next = write.is_some();
            u.wsecond.next = bank;
            u.waddr.next = waddr.to_bits();
            u.wdata.next = word.to_bits();
            u.re.next = true;
            u.rsecond.next = second;
            u.raddr.next = at.to_bits();
            for clk in [false, true] {
                u.clock.drive(clk, false);
                assert!(simulate(&mut u, 50));
            }
            u.rdata.val().to_u64()
        };
        cycle(Some((false, 5, 0x11)), (false, 0));
        assert_eq!(cycle(Some((true, 5, 0x22)), (true, 5)), 0, "read first");
        assert_eq!(cycle(None, (false, 5)), 0x11);
        assert_eq!(cycle(None, (true, 5)), 0x22);
    }
}
