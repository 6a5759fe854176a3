//! The table with a read-modify-write pipeline: what each operation sees, and what is in it after a reset.

use fastrand::Rng;
use ferroce_hdl::prelude::{Bits, Rmw, Style, ToBits};
use ferroce_sim::bench::{Agent, Bench};
use ferroce_sim::verilator::{Dut, Input, Output};

/// Few words, so that operations meet.
const LOG_WORDS: usize = 3;
const WORDS: usize = 1 << LOG_WORDS;
const INITIAL: u64 = 0x5a;

/// The owner of the table, and what is in it.
struct Owner {
    rst: Input,
    valid: Input,
    addr: Input,
    write: Input,
    result: Input,
    x_valid: Output,
    x_addr: Output,
    current: Output,
    next_word: Output,
    same_addr: Output,
    ready: Output,
    /// Its rules take a second cycle.
    is_late: bool,
    /// It only reads, each word in turn.
    reads: bool,
    turn: u64,
    words: [u64; WORDS],
    /// Addresses of the operations that came one, two and three cycles ago.
    under_way: [Option<u64>; 3],
    /// Words that are still to be swept.
    unswept: usize,
}

impl Owner {
    fn new(dut: &Dut, is_late: bool) -> Self {
        let input = |name: &str| dut.input(name).expect("a port");
        let output = |name: &str| dut.output(name).expect("a port");
        Self {
            rst: input("rst"),
            valid: input("valid"),
            addr: input("addr"),
            write: input("write"),
            result: input("result"),
            x_valid: output("x_valid"),
            x_addr: output("x_addr"),
            current: output("current"),
            next_word: output("next_word"),
            same_addr: output("same_addr"),
            ready: output("ready"),
            is_late,
            reads: false,
            turn: 0,
            words: [INITIAL; WORDS],
            under_way: [None; 3],
            unswept: WORDS,
        }
    }

    fn starts_afresh(&mut self) {
        self.words = [INITIAL; WORDS];
        self.under_way = [None; 3];
        self.unswept = WORDS;
    }
}

impl Agent for Owner {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        self.turn = (self.turn + 1) % WORDS as u64;
        let addr = if self.reads {
            self.turn
        } else {
            rng.u64(..WORDS as u64)
        };
        // one that meets the one before it waits for a cycle
        let waits = self.is_late && self.under_way[0] == Some(addr);
        let comes = self.unswept == 0 && (self.reads || rng.u8(..4) > 0);
        dut.set(self.addr, addr);
        dut.set(self.valid, (comes && !waits).into());
        dut.set(self.write, (!self.reads && rng.bool()).into());
        dut.set(self.result, rng.u64(..) >> (64 - self.result.width()));
    }

    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        let [first, x, y] = self.under_way;
        let is_same = first == Some(dut.get(self.addr));
        let expected = [
            ("ready", self.ready, self.unswept == 0),
            ("same_addr", self.same_addr, is_same),
            ("x_valid", self.x_valid, x.is_some()),
        ];
        for (name, output, is_set) in expected {
            if dut.is_set(output) != is_set {
                return Err(format!("`{name}` is not {is_set}"));
            }
        }
        if let Some(addr) = x {
            let seen = (dut.get(self.x_addr), dut.get(self.current));
            let expected = (addr, self.words[addr as usize]);
            if seen != expected {
                return Err(format!("stage X has {seen:x?}, expected {expected:x?}"));
            }
        }
        // what is answered in this cycle is not in it
        if let Some(addr) = first {
            let (seen, expected) = (dut.get(self.next_word), self.words[addr as usize]);
            if seen != expected {
                return Err(format!("`next_word` is {seen:x}, expected {expected:x}"));
            }
        }
        if dut.is_set(self.rst) {
            self.starts_afresh();
            return Ok(());
        }
        let answered = if self.is_late { y } else { x };
        if let Some(addr) = answered
            && dut.is_set(self.write)
        {
            self.words[addr as usize] = dut.get(self.result);
        }
        let enters = dut.is_set(self.valid).then(|| dut.get(self.addr));
        self.under_way = [enters, first, x];
        self.unswept = self.unswept.saturating_sub(1);
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.starts_afresh();
        dut.set(self.valid, 0);
    }
}

struct Run {
    bench: Bench,
    owner: Owner,
}

impl Run {
    fn new<const Y: usize>(style: Style) -> Self {
        let table = move || Rmw::<Bits<8>, LOG_WORDS, Y>::new(style, INITIAL.to_bits());
        let mut bench = Bench::of(table).expect("the block builds");
        let mut owner = Owner::new(bench.dut(), Y == 2);
        bench.reset(&mut [&mut owner]);
        Self { bench, owner }
    }

    fn steps(&mut self, cycles: u64) {
        let result = self.bench.run(&mut [&mut self.owner], cycles);
        result.unwrap_or_else(|failure| panic!("{failure}"));
    }

    /// A reset that lasts so many cycles, amid operations.
    fn reset(&mut self, cycles: u64) {
        let rst = self.owner.rst;
        self.bench.dut_mut().set(rst, 1);
        self.steps(cycles);
        self.bench.dut_mut().set(rst, 0);
    }
}

/// Of both kinds of RAM, with an owner that answers at once and with one that takes two cycles.
fn each(check: impl Fn(Run)) {
    for style in [Style::Distributed, Style::Block] {
        check(Run::new::<1>(style));
        check(Run::new::<2>(style));
    }
}

#[test]
fn an_operation_sees_all_before_it() {
    each(|mut run| run.steps(2000));
}

/// It is not ready from the reset on, until each word has been swept, and then nothing from before is left.
#[test]
fn a_reset_makes_every_word_new() {
    each(|mut run| {
        for round in 0..12 {
            run.steps(60 + round);
            run.reset(1 + round % 3);
            run.owner.reads = true;
            run.steps(3 * WORDS as u64 + 4);
            run.owner.reads = false;
        }
    });
}
