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
#[derive(LogicBlock)]
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
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, now, count, seen);
        match self.now.q.val() {
            State::Idle => {
                if self.start.val() {
                    self.count.d.next = self.length.val();
                    self.now.d.next = State::Count;
                }
            }
            State::Count => {
                self.count.d.next = self.count.q.val() - 1;
                if self.count.q.val() - 1 == 0 {
                    self.now.d.next = State::Done;
                }
            }
            _ => {
                self.seen.d.next = self.length.val();
                self.now.d.next = State::Idle;
            }
        }
        self.busy.next = self.now.q.val() != State::Idle;
        self.state.next = self.now.q.val();
        self.left.next = self.count.q.val();
        self.kept.next = self.seen.q.val();
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
#[derive(LogicBlock, Default)]
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
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, payload, full);
        self.take.next = !self.full.q.val() || self.m.ready.val();
        if self.take.val() {
            self.payload.d.next = self.s.payload.val();
            self.full.d.next = self.s.valid.val();
        }
        self.s.ready.next = self.take.val();
        self.m.payload.next = self.payload.q.val();
        self.m.valid.next = self.full.q.val();
    }
}

/// Three slices joined, the ends linked.
#[derive(LogicBlock, Default)]
struct Pipe {
    clock: ClkRst,
    s: StreamIn<Bits<70>>,
    m: StreamOut<Bits<70>>,
    stage: [Slice<Bits<70>>; 3],
}

impl Logic for Pipe {
    describe!("pipe", "Three slices of a stream.");
    #[hdl_gen]
    fn update(&mut self) {
        for i in 0..3 {
            ClkRst::link(&mut self.clock, &mut self.stage[i].clock);
        }
        StreamIn::<Bits<70>>::link(&mut self.s, &mut self.stage[0].s);
        for i in 1..3 {
            StreamOut::<Bits<70>>::join(&mut self.stage[i - 1].m, &mut self.stage[i].s);
        }
        StreamOut::<Bits<70>>::link(&mut self.m, &mut self.stage[2].m);
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
