//! `Valid<T>`: a payload and whether it is there, as one record of any payload type.
use ferroce_hdl::bus::valid::Valid;
use ferroce_hdl::prelude::*;

use crate::harness::{Bench, Case, Random, UNDER_RESET};
use crate::language::{Inner, Outer, Right};

#[derive(Block)]
struct Stage {
    clock: ClkRst,
    from: Signal<In, Valid<Outer>>,
    to: Signal<Out, Valid<Inner>>,
    held: Reg<Valid<Inner>>,
}

impl Logic for Stage {
    describe!("stage", "One register of a valid record.");

    #[kernel]
    fn update(&mut self) {
        held.valid = from.valid;
        if from.valid {
            held.payload = from.payload.inner;
        }
        to = held;
    }
}

impl Case for Stage {
    fn drive(&mut self, step: usize, random: &mut Random) {
        self.clock.drive(step % 2 == 1, step < UNDER_RESET);
        if step.is_multiple_of(2) {
            let inner = Inner {
                low: random.bits(),
                high: random.bits(),
            };
            let payload = Outer {
                tag: random.bits(),
                inner,
                right: Right::Read,
            };
            let valid = random.bit();
            self.from.next = Valid { payload, valid };
        }
    }
}

pub(crate) fn add(bench: &mut Bench) {
    bench.add(Stage::default());
}
