//! Simple dual-port RAM: one write port, one read port, one clock.
//!
//! A read that meets a write of the same address in the same cycle returns the old word. Latency: `rdata` shows the
//! word one cycle after `re` with `raddr`, and holds it while `re` is 0. Contents are undefined until written and are not
//! touched by `rst`: an owner that needs a defined start sweeps.
use crate::prelude::*;

/// What a RAM is to be made of (attribute `ram_style`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Style {
    /// Block RAM.
    #[default]
    Block,
    /// LUT RAM: small and shallow.
    Distributed,
    /// UltraRAM: large.
    Ultra,
}

impl Style {
    /// Value of the attribute.
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Distributed => "distributed",
            Self::Ultra => "ultra",
        }
    }

    /// LUT RAM up to 64 words, block RAM up to 16384, else UltraRAM: tables of that depth take all block RAM of a part.
    pub fn for_depth(log2: usize) -> Self {
        match log2 {
            0..=6 => Self::Distributed,
            7..=14 => Self::Block,
            _ => Self::Ultra,
        }
    }
}

/// RAM of 2^A words of type `T`.
#[derive(Clone, Debug, Block)]
#[block(no_default, A = "LOG_DEPTH")]
pub struct Ram<T: Synth, const A: usize> {
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
    /// Read address.
    pub raddr: Signal<In, Bits<A>>,
    /// Word read.
    pub rdata: Signal<Out, T>,
    _style: Style,
    _mem: Vec<T>,
}

impl<T: Synth, const A: usize> Ram<T, A> {
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

impl<T: Synth, const A: usize> Default for Ram<T, A> {
    fn default() -> Self {
        Self::new(Style::for_depth(A))
    }
}

impl<T: Synth, const A: usize> Logic for Ram<T, A> {
    describe!(
        "ram",
        |this| format!("{}x{}_{}", 1usize << A, T::BITS, this._style.name()),
        "Simple dual-port RAM, read-first, read data held while `re` is 0."
    );

    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            if self.re.val() {
                self.rdata.next = self._mem[self.raddr.val().index()];
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
        let (high, words) = (T::BITS - 1, 1usize << A);
        Verilog::Custom(format!(
            "(* ram_style = \"{style}\" *) reg [{high}:0] mem [0:{last}];\n\
             always @(posedge clk) begin\n    \
                 if (re) rdata <= mem[raddr];\n    \
                 if (we) mem[waddr] <= wdata;\n\
             end\n",
            style = self._style.name(),
            last = words - 1,
        ))
    }
}
