//! Simple dual-port RAM of beats with byte enables and an output register.
//!
//! Two enables make the read side a pipeline that can wait: `re` reads the word at `raddr` into the RAM's latch, `oe`
//! moves the latch to `rdata`; both may be 1 in one cycle. A word written in cycle n can be read from cycle n + 1 on.
//! Contents are undefined until written and are not touched by `rst`.
use crate::cell::ram::Style;
use crate::prelude::*;

/// RAM of 2^A beats of `W` bits = `K` bytes.
#[derive(Clone, Debug, Block)]
#[block(no_default)]
pub struct RamBytes<const W: usize, const K: usize, const A: usize> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// Bytes to write.
    pub we: Signal<In, Bits<K>>,
    /// Write address.
    pub waddr: Signal<In, Bits<A>>,
    /// Beat to write.
    pub wdata: Signal<In, Bits<W>>,
    /// Read enable.
    pub re: Signal<In, Bit>,
    /// Read address.
    pub raddr: Signal<In, Bits<A>>,
    /// Output register enable.
    pub oe: Signal<In, Bit>,
    /// Beat read.
    pub rdata: Signal<Out, Bits<W>>,
    _style: Style,
    _mem: Vec<Bits<W>>,
    _latch: Bits<W>,
}

impl<const W: usize, const K: usize, const A: usize> RamBytes<W, K, A> {
    /// A RAM made of `style`.
    pub fn new(style: Style) -> Self {
        assert!(
            W == 8 * K,
            "beats of {W} bits have {} bytes, not {K}",
            W / 8
        );
        assert!(
            (1..=20).contains(&A),
            "RAM of 2^{A} beats: 2^1 to 2^20 can be built"
        );
        Self {
            clock: ClkRst::default(),
            we: Signal::default(),
            waddr: Signal::default(),
            wdata: Signal::default(),
            re: Signal::default(),
            raddr: Signal::default(),
            oe: Signal::default(),
            rdata: Signal::default(),
            _style: style,
            _mem: vec![Bits::default(); 1 << A],
            _latch: Bits::default(),
        }
    }
}

impl<const W: usize, const K: usize, const A: usize> Default for RamBytes<W, K, A> {
    fn default() -> Self {
        Self::new(Style::Block)
    }
}

impl<const W: usize, const K: usize, const A: usize> Logic for RamBytes<W, K, A> {
    describe!(
        "ram_bytes",
        |this| format!("{}x{W}_{}", 1usize << A, this._style.name()),
        "Simple dual-port RAM with byte enables and an output register."
    );

    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            if self.oe.val() {
                self.rdata.next = self._latch;
            }
            if self.re.val() {
                self._latch = self._mem[self.raddr.val().index()];
            }
            let beat = &mut self._mem[self.waddr.val().index()];
            for i in (0..K).filter(|&i| self.we.val().get_bit(i)) {
                beat.set_bits::<8>(8 * i, self.wdata.val().get_bits::<8>(8 * i));
            }
        }
    }

    fn connect(&mut self) {
        self.rdata.connect();
    }

    fn hdl(&self) -> Verilog {
        let high = W - 1;
        Verilog::Custom(format!(
            "(* ram_style = \"{style}\" *) reg [{high}:0] mem [0:{last}];\n\
             reg [{high}:0] latch;\n\
             integer i;\n\
             always @(posedge clk) begin\n    \
                 if (oe) rdata <= latch;\n    \
                 if (re) latch <= mem[raddr];\n    \
                 for (i = 0; i < {K}; i = i + 1)\n        \
                     if (we[i]) mem[waddr][8*i +: 8] <= wdata[8*i +: 8];\n\
             end\n",
            style = self._style.name(),
            last = (1usize << A) - 1,
        ))
    }
}
