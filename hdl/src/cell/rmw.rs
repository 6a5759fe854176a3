//! Table with a read-modify-write pipeline: the one owner of per-queue state.
//!
//! An operation enters with `valid` and `addr`; two cycles later, in stage X, `current` shows the word as all earlier
//! operations left it and `x_addr` its address. The owner answers with `result` and `write` in the same cycle (Y = 1)
//! or, when its rules need two cycles of logic, in the next one (Y = 2). Results still on their way
//! to the RAM are forwarded, so nothing stalls:
//!
//! * answer in the same cycle: an operation a cycle, also of one address;
//! * answer in the next: an operation a cycle, but one address not in two cycles running. `same_addr` says that `addr` is
//!   the address of the cycle before; the owner must hold the operation for a cycle then.
//!
//! ```text
//!  cycle      n            n+1             n+2 (X)                    (n+3)   n+3 (n+4)
//!  addr ─► RAM read ─► register ─► owner's rules ─► ... ─► result register ─► RAM write
//!          compare      compare     on the latest of the word and three results
//! ```
//!
//! The word comes straight from the RAM into its register, and one multiplexer of four behind it shows the latest: of a bit
//! that is one LUT.
//!
//! `next_word` shows the word a cycle ahead of stage X, for sums over it that are to stand in registers there. What the
//! operation in stage X does then is not in it: it is for an owner whose operations do not follow one another at once.
//!
//! After reset every word is set to the initial value, one a cycle; `ready` is 0 until that is done and operations
//! that come earlier are lost.
use crate::cell::ram::Style;
use crate::prelude::*;

/// Table of 2^A words of type `T` whose owner answers in `Y` cycles, 1 or 2.
#[derive(Clone, Debug, Block)]
#[block(no_default, A = "LOG_DEPTH")]
pub struct Rmw<T: Synth, const A: usize, const Y: usize = 1> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An operation enters.
    pub valid: Signal<In, Bit>,
    /// Its address.
    pub addr: Signal<In, Bits<A>>,
    /// An operation is in stage X.
    pub x_valid: Signal<Out, Bit>,
    /// Its address.
    pub x_addr: Signal<Out, Bits<A>>,
    /// The word at that address.
    pub current: Signal<Out, T>,
    /// The word that `current` shows in the next cycle, if no operation is in stage X.
    pub next_word: Signal<Out, T>,
    /// `addr` is the address of the cycle before.
    pub same_addr: Signal<Out, Bit>,
    /// `result` replaces the word.
    pub write: Signal<In, Bit>,
    /// The new word.
    pub result: Signal<In, T>,
    /// The sweep after reset is done.
    pub ready: Signal<Out, Bit>,
    _style: Style,
    _initial: T,
    _mem: Vec<T>,
    _pipe: [(bool, usize); 3],
    _swept: usize,
}

impl<T: Synth, const A: usize, const Y: usize> Rmw<T, A, Y> {
    /// A table made of `style` whose words start as `initial`.
    pub fn new(style: Style, initial: T) -> Self {
        assert!(
            (1..=20).contains(&A),
            "table of 2^{A} words: 2^1 to 2^20 can be built"
        );
        Self {
            clock: ClkRst::default(),
            valid: Signal::default(),
            addr: Signal::default(),
            x_valid: Signal::default(),
            x_addr: Signal::default(),
            current: Signal::default(),
            next_word: Signal::default(),
            same_addr: Signal::default(),
            write: Signal::default(),
            result: Signal::default(),
            ready: Signal::default(),
            _style: style,
            _initial: initial,
            _mem: vec![initial; 1 << A],
            _pipe: [(false, 0); 3],
            _swept: 0,
        }
    }
}

impl<T: Synth, const A: usize, const Y: usize> Default for Rmw<T, A, Y> {
    fn default() -> Self {
        Self::new(Style::for_depth(A), T::default())
    }
}

impl<T: Synth, const A: usize, const Y: usize> Logic for Rmw<T, A, Y> {
    describe!(
        "rmw",
        |this| format!("{}x{}_{}_{Y}", 1usize << A, T::BITS, this._style.name()),
        "Table with a forwarding read-modify-write pipeline, one operation a cycle."
    );

    fn update(&mut self) {
        if !self.clock.clk.pos_edge() {
            let (valid, addr) = self._pipe[0];
            self.same_addr.next = valid && addr == self.addr.val().index();
            return;
        }
        let [entering, x, x2] = self._pipe;
        let (answered, at) = if Y == 2 { x2 } else { x };
        if self.clock.rst.val() {
            self._swept = 0;
            self._pipe = [(false, 0); 3];
        } else {
            if self._swept < 1 << A {
                self._mem[self._swept] = self._initial;
                self._swept += 1;
            } else if answered && self.write.val() {
                self._mem[at] = self.result.val();
            }
            self._pipe = [(self.valid.val(), self.addr.val().index()), entering, x];
        }
        let [entered, x, _] = self._pipe;
        self.same_addr.next = entered.0 && entered.1 == self.addr.val().index();
        self.ready.next = self._swept == 1 << A;
        self.x_valid.next = x.0;
        self.x_addr.next = (x.1 as u64).to_bits();
        self.current.next = self._mem[x.1];
        self.next_word.next = self._mem[entered.1];
    }

    fn connect(&mut self) {
        self.same_addr.connect();
        self.x_valid.connect();
        self.x_addr.connect();
        self.current.connect();
        self.next_word.connect();
        self.ready.connect();
    }

    fn hdl(&self) -> Verilog {
        let (t, a, words) = (T::BITS - 1, A - 1, 1usize << A);
        let (last, style, initial) = (words - 1, self._style.name(), self._initial.verilog());
        let ahead = if Y == 2 { "x_addr" } else { "addr_1" };
        let (answer_valid, answer_addr, stage, stage_reset) = if Y == 2 {
            (
                "valid_y",
                "addr_y",
                format!(
                    "// stage Y: the owner's second cycle\nreg valid_y;\nreg [{a}:0] addr_y;\nalways @(posedge clk) addr_y <= x_addr;\n"
                ),
                "valid_y <= rst ? 1'b0 : x_valid;",
            )
        } else {
            ("x_valid", "x_addr", String::new(), "")
        };
        Verilog::Custom(format!(
            "(* ram_style = \"{style}\" *) reg [{t}:0] mem [0:{last}];
// sweep after reset
reg [{a}:0] sweep_addr;
// stage 1: word read; which of the two operations ahead has the same address
reg valid_1, hit_x_1, hit_w_1, hit_1_1;
reg [{a}:0] addr_1;
reg [{t}:0] word_1;
// stage X: the latest of the same address: 3 the newest result, 2 and 1 the ones before it, 0 the word of the RAM
reg [1:0] latest;
reg [{t}:0] word_x;
{stage}// stage W: result on its way into the RAM, and the two before it
reg write_w, write_v;
reg [{a}:0] addr_w;
reg [{t}:0] data_w, data_v, data_u;
wire of_result = hit_1_1 & {answer_valid} & write;
wire of_w = hit_x_1 & write_w;
wire of_v = hit_w_1 & write_v;
always @(posedge clk) begin
    word_1 <= mem[addr];
    addr_1 <= addr;
    hit_1_1 <= addr == {ahead};
    hit_x_1 <= addr == {answer_addr};
    hit_w_1 <= addr == addr_w;
    x_addr <= addr_1;
    word_x <= word_1;
    addr_w <= ready ? {answer_addr} : sweep_addr;
    data_w <= ready ? result : {initial:x};
    data_v <= data_w;
    data_u <= data_v;
    {stage_reset}
    if (write_w) mem[addr_w] <= data_w;
    if (rst) begin
        ready <= 1'b0;
        sweep_addr <= {A}'d0;
        valid_1 <= 1'b0;
        x_valid <= 1'b0;
        write_w <= 1'b0;
        latest <= 2'd0;
        write_v <= 1'b0;
    end else begin
        if (!ready) begin
            sweep_addr <= sweep_addr + {A}'d1;
            ready <= &sweep_addr;
        end
        valid_1 <= valid;
        x_valid <= valid_1;
        write_w <= !ready | ({answer_valid} & write);
        latest <= {{of_result | of_w, of_result | (of_v & !of_w)}};
        write_v <= write_w;
    end
end
always @* same_addr = valid_1 & (addr == addr_1);
always @* next_word = of_w ? data_w : of_v ? data_v : word_1;
always @* current = latest[1] ? (latest[0] ? data_w : data_v) : (latest[0] ? data_u : word_x);
"
        ))
    }
}
