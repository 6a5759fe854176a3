//! The small blocks around the engine's core. `$FERROCE_SEED` seeds them.

mod drain;
mod failures;
mod restart;

use ferroce_sim::bench::Bench;
use ferroce_sim::verilator::{Input, Output};

/// A block whose ports are driven by name.
struct Block {
    bench: Bench,
}

impl Block {
    fn new(bench: Bench) -> Self {
        let mut block = Self { bench };
        block.bench.reset(&mut []);
        block
    }

    fn set(&mut self, name: &str, value: u64) {
        let input: Input = self.bench.dut().input(name).expect("an input");
        self.bench.dut_mut().set(input, value);
    }

    /// Value of an output in this cycle, with the inputs as they are.
    fn get(&mut self, name: &str) -> u64 {
        let output: Output = self.bench.dut().output(name).expect("an output");
        self.bench.dut_mut().settle();
        self.bench.dut().get(output)
    }

    fn step(&mut self) {
        self.bench.step(&mut []).expect("no agent breaks a rule");
    }

    fn steps(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.step();
        }
    }
}
