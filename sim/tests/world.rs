//! Cards and links together, with a card written for it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use ferroce_sim::link::{Config, Impairment};
use ferroce_sim::nic::Nic;
use ferroce_sim::rate::Rate;
use ferroce_sim::world::{Direction, Event, Observer, World};

/// Sends a frame of `len` bytes every `period` cycles, `left` times, and keeps what it receives.
/// Register 0 answers the frames received; every 16th frame received interrupts.
#[derive(Default)]
struct Beacon {
    now: u64,
    period: u64,
    left: u32,
    len: usize,
    out: VecDeque<Vec<u8>>,
    received: Rc<RefCell<Vec<Vec<u8>>>>,
    asked: Option<u64>,
    failures: Vec<String>,
    opaque: bool,
}

impl Nic for Beacon {
    fn write32(&mut self, offset: u64, value: u32) {
        assert_eq!(offset, 4);
        self.left = value;
    }
    fn start_read32(&mut self, _: u64) {
        self.asked = Some(self.now + 5);
    }
    fn take_read32(&mut self) -> Option<u32> {
        self.asked.take_if(|at| *at <= self.now)?;
        Some(self.received.borrow().len() as u32)
    }
    fn step(&mut self) {
        if self.left > 0 && self.now.is_multiple_of(self.period) {
            self.left -= 1;
            self.out.push_back(vec![self.left as u8; self.len]);
        }
        self.now += 1;
    }
    fn now(&self) -> u64 {
        self.now
    }
    fn receive(&mut self, frame: &[u8]) {
        self.received.borrow_mut().push(frame.to_vec());
    }
    fn transmit(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }
    fn interrupt(&mut self) -> Option<u16> {
        None
    }
    fn failures(&self) -> Vec<String> {
        self.failures.clone()
    }
    fn reset(&mut self) {
        self.now = 0;
    }
    fn idle_until(&self) -> Option<u64> {
        (!self.opaque && self.asked.is_none()).then(|| match self.left {
            0 => u64::MAX,
            _ => self.now.next_multiple_of(self.period),
        })
    }
    fn run_until(&mut self, cycle: u64) {
        assert!(
            self.idle_until().is_some_and(|idle| idle >= cycle),
            "skipped over work"
        );
        self.now = cycle;
    }
}

fn beacon(period: u64, left: u32, len: usize) -> (Beacon, Rc<RefCell<Vec<Vec<u8>>>>) {
    let beacon = Beacon {
        period,
        left,
        len,
        ..Beacon::default()
    };
    let received = beacon.received.clone();
    (beacon, received)
}

#[derive(Default)]
struct Log(Vec<(u64, String, Direction, Vec<u8>)>);

impl Observer for Log {
    fn frame(&mut self, e: &Event<'_>) {
        self.0
            .push((e.cycle, e.name.to_owned(), e.direction, e.frame.to_vec()));
    }
}

fn wire(latency: u64) -> Config {
    Config {
        latency,
        ..Config::default()
    }
}

#[test]
fn frames_cross_a_link_both_ways_independently() {
    let mut world = World::new();
    let (a, got_a) = beacon(100, 5, 80);
    let (b, got_b) = beacon(70, 7, 90);
    let (a, b) = (world.add("a", a), world.add("b", b));
    world.connect(a, b, wire(30), wire(50));
    world.wire(a).script(2, Impairment::Drop);
    let log = Rc::new(RefCell::new(Log::default()));
    world.observe(log.clone());
    world.run(1000);
    assert_eq!(
        got_b.borrow().iter().map(|f| f[0]).collect::<Vec<_>>(),
        [4, 3, 1, 0]
    );
    assert_eq!(got_a.borrow().len(), 7);
    assert_eq!(world.wire(a).stats().lost, 1);
    assert_eq!(world.wire(b).stats().delivered, 7);
    let log = &log.borrow().0;
    assert_eq!(log.len(), 5 + 7 + 4 + 7);
    let first = |direction, name: &str| {
        log.iter()
            .find(|e| e.2 == direction && e.1 == name)
            .map(|e| (e.0, e.3.len()))
    };
    // Sent in the step of cycle 0, seen at its end, 30 cycles on the wire.
    assert_eq!(first(Direction::Transmit, "a"), Some((1, 80)));
    assert_eq!(first(Direction::Receive, "b"), Some((31, 80)));
    assert_eq!(first(Direction::Receive, "a"), Some((51, 90)));
    assert!(
        log.windows(2).all(|w| w[0].0 <= w[1].0),
        "events are in order of time"
    );
}

#[test]
fn a_world_that_skips_and_one_that_steps_agree() {
    let run = |opaque| {
        let mut world = World::new();
        let (mut a, _) = beacon(997, 20, 1500);
        a.opaque = opaque;
        let (b, got) = beacon(1, 0, 0);
        let (a, b) = (world.add("a", a), world.add("b", b));
        let slow = Config {
            rate: Some(Rate::new(1, 2)),
            ..Config::hostile(0.1, 5)
        };
        world.connect(a, b, slow, wire(1));
        let log = Rc::new(RefCell::new(Log::default()));
        world.observe(log.clone());
        let took = world
            .run_until(200_000, |_| got.borrow().len() >= 10)
            .unwrap();
        world.run(100_000);
        let events = std::mem::take(&mut log.borrow_mut().0);
        (took, world.now(), events)
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn quiet_time_costs_nothing() {
    let mut world = World::new();
    let (a, _) = beacon(1_000_000_000, 3, 100);
    let a = world.add("a", a);
    world.run(10_000_000_000);
    assert_eq!(world.now(), 10_000_000_000);
    assert_eq!(world.nic(a).now(), world.now());
    assert_eq!(std::iter::from_fn(|| world.take(a)).count(), 3);
}

#[test]
fn a_slow_wire_holds_frames_back_in_the_card() {
    let mut world = World::new();
    let (a, _) = beacon(1, 50, 76);
    let (b, got) = beacon(1, 0, 0);
    let (a, b) = (world.add("a", a), world.add("b", b));
    let slow = Config {
        rate: Some(Rate::ONE),
        ..Config::default()
    };
    world.connect(a, b, slow, wire(1));
    world.run(1000);
    assert!((9..=10).contains(&got.borrow().len()), "100 cycles a frame");
    world.run(4010);
    assert_eq!(got.borrow().len(), 50);
}

#[test]
fn waiting_is_bounded() {
    let mut world = World::new();
    let (a, _) = beacon(1, 0, 0);
    let node = world.add("a", a);
    let timeout = world.run_until(500, |_| false).unwrap_err();
    assert_eq!((timeout.cycles, timeout.now), (500, 500));
    assert!(world.read32(node, 0, 3).is_err());
}

#[test]
fn registers_and_injection_work_without_a_link() {
    let mut world = World::new();
    let (mut a, got) = beacon(10, 0, 64);
    a.failures = vec!["DMA fault".into()];
    let a = world.add("alice", a);
    world.inject(a, &[1, 2, 3]);
    assert_eq!(*got.borrow(), [vec![1, 2, 3]]);
    assert_eq!(world.read32(a, 0, 100), Ok(1));
    assert_eq!(world.now(), 5);
    world.write32(a, 4, 2);
    world.run(50);
    assert_eq!(world.take(a).unwrap().len(), 64);
    assert_eq!(world.failures(), ["alice: DMA fault"]);
}
