//! Registers, streams and the hierarchy around them.
use ferroce_hdl::prelude::*;

use crate::harness::{Bench, Case, Random, UNDER_RESET};

/// What the sequencer is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    Count,
    Done,
}

/// A state machine with registers of every kind.
#[derive(Block)]
#[block(no_default)]
struct Sequencer {
    clock: ClkRst,
    start: Signal<In, Bit>,
    length: Signal<In, Bits<4>>,
    busy: Signal<Out, Bit>,
    state: Signal<Out, State>,
    left: Signal<Out, Bits<4>>,
    kept: Signal<Out, Bits<4>>,
    now: Reg<State>,
    count: Reg<Bits<4>>,
    seen: Dff<Bits<4>>,
}

impl Default for Sequencer {
    fn default() -> Self {
        Self {
            clock: Default::default(),
            start: Default::default(),
            length: Default::default(),
            busy: Default::default(),
            state: Default::default(),
            left: Default::default(),
            kept: Default::default(),
            now: Reg::new(State::Done),
            count: Reg::new(9.into()),
            seen: Default::default(),
        }
    }
}

impl Logic for Sequencer {
    describe!("sequencer", "Counts down.");
    #[kernel]
    fn update(&mut self) {
        match now {
            State::Idle => {
                if start {
                    count = length;
                    now = State::Count;
                }
            }
            State::Count => {
                count = count - 1;
                if count - 1 == 0 {
                    now = State::Done;
                }
            }
            _ => {
                seen = length;
                now = State::Idle;
            }
        }
        busy = now != State::Idle;
        state = now;
        left = count;
        kept = seen;
    }
}

impl Case for Sequencer {
    fn drive(&mut self, step: usize, random: &mut Random) {
        let clk = self.clock.clk.val() == false.into();
        let rst = if clk {
            self.clock.rst.val()
        } else {
            step < UNDER_RESET || random.below::<4>(12) == 0
        };
        self.clock.drive(clk, rst);
        if !clk {
            self.start.next = random.bit();
            self.length.next = random.bits();
        }
    }
}

/// A register slice of a stream.
#[derive(Block)]
struct Slice<T: Synth> {
    clock: ClkRst,
    s: StreamIn<T>,
    m: StreamOut<T>,
    payload: Dff<T>,
    full: Reg<Bit>,
    take: Signal<Local, Bit>,
}

impl<T: Synth> Logic for Slice<T> {
    describe!("slice", format!("w{}", T::BITS), "A register in a stream.");
    #[kernel]
    fn update(&mut self) {
        take = !full || m.ready;
        if take {
            payload = s.payload;
            full = s.valid;
        }
        s.ready = take;
        m.payload = payload;
        m.valid = full;
    }
}

/// Three slices joined, the ends linked.
#[derive(Block)]
struct Pipe {
    clock: ClkRst,
    s: StreamIn<Bits<70>>,
    m: StreamOut<Bits<70>>,
    stage: [Slice<Bits<70>>; 3],
}

impl Logic for Pipe {
    describe!("pipe", "Three slices of a stream.");
    #[kernel]
    fn update(&mut self) {
        forward!(s <= stage[0].s);
        for i in 1..3 {
            forward!(stage[i].s <= stage[i - 1].m);
        }
        forward!(m <= stage[2].m);
    }
}

impl Case for Pipe {
    fn drive(&mut self, step: usize, random: &mut Random) {
        let clk = self.clock.clk.val() == false.into();
        let rst = if clk {
            self.clock.rst.val()
        } else {
            step < UNDER_RESET || random.below::<5>(24) == 0
        };
        self.clock.drive(clk, rst);
        if !clk {
            self.s.payload.next = random.bits();
            self.s.valid.next = random.bit();
            self.m.ready.next = random.bit();
        }
    }
}

pub(crate) fn add(bench: &mut Bench) {
    bench.add(Sequencer::default());
    bench.add(Pipe::default());
}
