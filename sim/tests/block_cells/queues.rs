//! Queues and register stages of which an item comes out the cycle after it went in: what they hold in each cycle.

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_hdl::prelude::{Bits, Block, Fifo, SkidRam, Style};
use ferroce_sim::bench::{Agent, Bench};
use ferroce_sim::random::Chance;
use ferroce_sim::verilator::{Dut, Input, Output};

/// Both ends of a queue, and what is in it.
struct Queue {
    s_payload: Input,
    s_valid: Input,
    s_ready: Output,
    m_payload: Output,
    m_valid: Output,
    m_ready: Input,
    level: Option<Output>,
    /// Items that it holds at most.
    most: usize,
    comes: Chance,
    leaves: Chance,
    items: VecDeque<u64>,
    /// Waits to be taken.
    offered: Option<u64>,
    ready_now: bool,
}

impl Queue {
    fn new(dut: &Dut, most: usize) -> Self {
        let input = |name: &str| dut.input(name).expect("a port");
        let output = |name: &str| dut.output(name).expect("a port");
        Self {
            s_payload: input("s_payload"),
            s_valid: input("s_valid"),
            s_ready: output("s_ready"),
            m_payload: output("m_payload"),
            m_valid: output("m_valid"),
            m_ready: input("m_ready"),
            level: dut.output("level").ok(),
            most,
            comes: Chance::NEVER,
            leaves: Chance::NEVER,
            items: VecDeque::new(),
            offered: None,
            ready_now: false,
        }
    }
}

impl Agent for Queue {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        let payload = rng.u64(..) >> (64 - self.s_payload.width());
        if self.offered.is_none() {
            self.offered = self.comes.hit(rng).then_some(payload);
        }
        dut.set(self.s_valid, self.offered.is_some().into());
        dut.set(self.s_payload, self.offered.unwrap_or(payload));
        self.ready_now = self.leaves.hit(rng);
        dut.set(self.m_ready, self.ready_now.into());
    }

    fn observe(&mut self, dut: &Dut, _: u64) -> Result<(), String> {
        let held = self.items.len();
        let (has_room, has_item) = (held < self.most, held > 0);
        if dut.is_set(self.s_ready) != has_room {
            return Err(format!("`s_ready` with {held} of {} items", self.most));
        }
        if dut.is_set(self.m_valid) != has_item {
            return Err(format!("`m_valid` with {held} items"));
        }
        if let Some(level) = self.level
            && dut.get(level) != held as u64
        {
            return Err(format!("`level` is {} with {held} items", dut.get(level)));
        }
        if let Some(&first) = self.items.front()
            && dut.get(self.m_payload) != first
        {
            let seen = dut.get(self.m_payload);
            return Err(format!("offers {seen:#x}, expected {first:#x}"));
        }
        if self.ready_now {
            self.items.pop_front();
        }
        if has_room {
            self.items.extend(self.offered.take());
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, dut: &mut Dut) {
        self.items.clear();
        self.offered = None;
        self.ready_now = false;
        dut.set(self.s_valid, 0);
        dut.set(self.m_ready, 0);
    }
}

/// How likely an item comes and leaves: it fills, stays full, drains, stays nearly empty.
const CHANCES: [(f64, f64); 7] = [
    (0.5, 0.5),
    (1.0, 0.0),
    (1.0, 1.0),
    (0.0, 1.0),
    (1.0, 1.0),
    (0.3, 0.9),
    (0.9, 0.3),
];

/// The block that `make` makes holds `most` items, and none after a reset.
fn holds<B: Block>(most: usize, make: impl FnOnce() -> B + Send + 'static) {
    let mut bench = Bench::of(make).expect("the block builds");
    let mut queue = Queue::new(bench.dut(), most);
    for _ in 0..3 {
        bench.reset(&mut [&mut queue]);
        for (comes, leaves) in CHANCES {
            queue.comes = Chance::new(comes);
            queue.leaves = Chance::new(leaves);
            let result = bench.run(&mut [&mut queue], 2 * most as u64 + 50);
            result.unwrap_or_else(|failure| panic!("{failure}"));
        }
    }
}

/// 2^A + 1 items, but 2^A from 2^5 words on.
#[test]
fn queues_of_lut_ram() {
    holds(9, Fifo::<Bits<24>, 3>::default);
    holds(32, Fifo::<Bits<24>, 5>::default);
    holds(64, Fifo::<Bits<64>, 6>::default);
}

/// Items of a bit or two come from a register.
#[test]
fn queues_of_narrow_lut_ram() {
    holds(3, Fifo::<Bits<2>, 1>::default);
    holds(17, Fifo::<Bits<1>, 4>::default);
    holds(64, Fifo::<Bits<2>, 6>::default);
}

#[test]
fn queues_of_block_ram() {
    holds(5, || Fifo::<Bits<24>, 2>::new(Style::Block));
    holds(129, Fifo::<Bits<64>, 7>::default);
}

#[test]
fn queues_of_ultra_ram() {
    holds(9, || Fifo::<Bits<24>, 3>::new(Style::Ultra));
}

#[test]
fn register_stages_of_lut_ram() {
    holds(2, SkidRam::<Bits<24>>::default);
    holds(2, SkidRam::<Bits<2>>::default);
}
