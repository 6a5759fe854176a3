//! Storage of a queue: a simple dual-port RAM with a way past it.
//!
//! `rdata` shows one cycle after `re` the word at `raddr`, or with `pass` what stood at `wdata`, and holds it while `re`
//! is 0. A read that meets a write of the same address returns the old word. Contents are undefined until written.
//! The way past block RAM and UltraRAM is a register beside theirs; that past LUT RAM leads into the same register.
use crate::cell::ram::Style;
use crate::prelude::*;

/// RAM of 2^A words of type `T`.
#[derive(Clone, Debug, LogicBlock)]
pub struct FifoRam<T: Synth, const A: usize> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// Write enable.
    pub we: Signal<In, Bit>,
    /// Write address.
    pub waddr: Signal<In, Bits<A>>,
    /// Word to write.
    pub wdata: Signal<In, T>,
    /// Read enable.
    pub re: Signal<In, Bit>,
    /// The word to write is the one to show.
    pub pass: Signal<In, Bit>,
    /// Read address.
    pub raddr: Signal<In, Bits<A>>,
    /// Word read.
    pub rdata: Signal<Out, T>,
    _style: Style,
    _mem: Vec<T>,
}

impl<T: Synth, const A: usize> FifoRam<T, A> {
    /// A RAM made of `style`.
    pub fn new(style: Style) -> Self {
        assert!(
            (1..=24).contains(&A),
            "RAM of 2^{A} words: 2^1 to 2^24 can be built"
        );
        Self {
            clock: ClkRst::default(),
            we: Signal::default(),
            waddr: Signal::default(),
            wdata: Signal::default(),
            re: Signal::default(),
            pass: Signal::default(),
            raddr: Signal::default(),
            rdata: Signal::default(),
            _style: style,
            _mem: vec![T::default(); 1 << A],
        }
    }

    /// What it is made of.
    pub fn style(&self) -> Style {
        self._style
    }
}

impl<T: Synth, const A: usize> Default for FifoRam<T, A> {
    fn default() -> Self {
        Self::new(Style::for_depth(A))
    }
}

impl<T: Synth, const A: usize> Logic for FifoRam<T, A> {
    describe!(
        "fifo_ram",
        |this| format!("{}x{}_{}", 1usize << A, T::BITS, this._style.name()),
        "Storage of a queue: simple dual-port RAM with a way past it."
    );

    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            if self.re.val() {
                self.rdata.next = match self.pass.val() {
                    true => self.wdata.val(),
                    false => self._mem[self.raddr.val().index()],
                };
            }
            if self.we.val() {
                self._mem[self.waddr.val().index()] = self.wdata.val();
            }
        }
    }

    fn connect(&mut self) {
        self.rdata.connect();
    }

    fn hdl(&self) -> Verilog {
        let (high, last) = (T::BITS - 1, (1usize << A) - 1);
        let mem = format!(
            "(* ram_style = \"{}\" *) reg [{high}:0] mem [0:{last}];\n",
            self._style.name()
        );
        Verilog::Custom(match self._style {
            Style::Distributed => format!(
                "{mem}always @(posedge clk) begin\n    \
                     if (re) rdata <= pass ? wdata : mem[raddr];\n    \
                     if (we) mem[waddr] <= wdata;\n\
                 end\n"
            ),
            Style::Block | Style::Ultra => format!(
                "{mem}reg [{high}:0] word, past;\n\
                 reg passed;\n\
                 always @(posedge clk) begin\n    \
                     if (re) begin\n        \
                         word <= mem[raddr];\n        \
                         past <= wdata;\n        \
                         passed <= pass;\n    \
                     end\n    \
                     if (we) mem[waddr] <= wdata;\n\
                 end\n\
                 assign rdata = passed ? past : word;\n"
            ),
        })
    }
}
