//! Storage of a queue: a simple dual-port RAM that can show a word as it is written.
//!
//! `rdata` shows one cycle after `re` the word at `raddr`, and holds it while `re` is 0. With `pass` it is the word that
//! is written in the cycle of `re`; without, a read that meets a write of the same address returns the old word. Contents
//! are undefined until written.
//! Block RAM and UltraRAM have a register beside theirs for the word that passes. Of LUT RAM the address is registered, not
//! the word: it shows what stands there, so the word shown is to stay until the next one is. Of words of a few bits the word
//! is registered: what is decided by such a bit begins a level earlier.
use crate::cell::ram::Style;
use crate::prelude::*;

/// Bits of the widest word of LUT RAM that has a register.
const NARROW: usize = 2;

/// RAM of 2^A words of type `T`, or more.
#[derive(Clone, Debug, Block)]
#[block(no_default, A = "LOG_DEPTH")]
pub struct FifoRam<T: Synth, const A: usize> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// Write enable.
    pub we: Signal<In, Bit>,
    /// Write address.
    pub waddr: Signal<In, Bits<16>>,
    /// Word to write.
    pub wdata: Signal<In, T>,
    /// Read enable.
    pub re: Signal<In, Bit>,
    /// The word to write is the one to show: `raddr` is `waddr`.
    pub pass: Signal<In, Bit>,
    /// Read address.
    pub raddr: Signal<In, Bits<16>>,
    /// Word read.
    pub rdata: Signal<Out, T>,
    _style: Style,
    _mem: Vec<T>,
    /// Address of the word that LUT RAM shows.
    _shown: usize,
}

/// Words of the smallest LUT RAM, as a power of two: fewer cost as much.
const LEAST: usize = 5;

impl<T: Synth, const A: usize> FifoRam<T, A> {
    /// A RAM made of `style`.
    pub fn new(style: Style) -> Self {
        assert!(
            (1..16).contains(&A),
            "RAM of 2^{A} words: 2^1 to 2^15 can be built"
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
            _mem: vec![T::default(); 1 << Self::log_words(style)],
            _shown: 0,
        }
    }

    /// What it is made of.
    pub fn style(&self) -> Style {
        self._style
    }

    /// Words there are.
    pub fn words(&self) -> u64 {
        1 << Self::log_words(self._style)
    }

    fn log_words(style: Style) -> usize {
        match style {
            Style::Distributed => A.max(LEAST),
            Style::Block | Style::Ultra => A,
        }
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
        let (raddr, waddr) = (self.raddr.val().index(), self.waddr.val().index());
        let edge = self.clock.clk.pos_edge();
        let passed = self.pass.val().then(|| self.wdata.val());
        if edge && self.re.val() {
            self._shown = raddr;
            self.rdata.next = passed.unwrap_or(self._mem[raddr]);
        }
        if edge && self.we.val() {
            self._mem[waddr] = self.wdata.val();
        }
        if self._style == Style::Distributed {
            self.rdata.next = self._mem[self._shown];
        }
    }

    fn connect(&mut self) {
        self.rdata.connect();
    }

    fn hdl(&self) -> Verilog {
        let (high, last) = (T::BITS - 1, self.words() - 1);
        let top = Self::log_words(self._style) - 1;
        let mem = format!(
            "(* ram_style = \"{}\" *) reg [{high}:0] mem [0:{last}];\n",
            self._style.name()
        );
        Verilog::Custom(match self._style {
            Style::Distributed if T::BITS <= NARROW => format!(
                "{mem}reg [{high}:0] word;\n\
                 always @(posedge clk) begin\n    \
                     if (re) word <= pass ? wdata : mem[raddr[{top}:0]];\n    \
                     if (we) mem[waddr[{top}:0]] <= wdata;\n\
                 end\n\
                 assign rdata = word;\n"
            ),
            Style::Distributed => format!(
                "{mem}reg [{top}:0] shown;\n\
                 always @(posedge clk) begin\n    \
                     if (re) shown <= raddr[{top}:0];\n    \
                     if (we) mem[waddr[{top}:0]] <= wdata;\n\
                 end\n\
                 assign rdata = mem[shown];\n"
            ),
            Style::Block | Style::Ultra => format!(
                "{mem}reg [{high}:0] word, past;\n\
                 reg passed;\n\
                 always @(posedge clk) begin\n    \
                     if (re) begin\n        \
                         word <= mem[raddr[{top}:0]];\n        \
                         past <= wdata;\n        \
                         passed <= pass;\n    \
                     end\n    \
                     if (we) mem[waddr[{top}:0]] <= wdata;\n\
                 end\n\
                 assign rdata = passed ? past : word;\n"
            ),
        })
    }
}
