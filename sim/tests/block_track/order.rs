//! `place_order`: the beats' order between the sides, the order of each side within it, a placement a cycle.

use std::collections::VecDeque;

use ferroce_hdl::transport::place_order::PlaceOrder;
use ferroce_sim::bench::{Agent, Bench, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;

use super::uneven;

/// A placement, known by its number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Placement {
    side: usize,
    number: u32,
    kind: u8,
    beats: u16,
}

impl Placement {
    /// The responder's name a receive WQE of a shared receive queue.
    fn numbered(&self) -> bool {
        self.side == 0 && self.number.is_multiple_of(3)
    }

    fn is_read(&self) -> bool {
        self.kind > 1 || self.numbered()
    }
}

struct Setup {
    bench: Bench,
    places: [StreamSource; 2],
    reads: [StreamSource; 2],
    order: StreamSource,
    m: StreamSink,
    read: StreamSink,
    /// Those that have not left, by side.
    waiting: [VecDeque<Placement>; 2],
    /// Sides of those with beats.
    bits: VecDeque<usize>,
    left: Vec<(u64, Placement)>,
    read_numbers: VecDeque<u64>,
}

impl Setup {
    fn new(idle: Pauses, back: Pauses) -> Self {
        let bench = Bench::of(PlaceOrder::default).unwrap();
        let dut = bench.dut();
        let source = |name: &str| StreamSource::new(dut, name, idle).unwrap();
        let mut setup = Self {
            places: [source("s_0"), source("s_1")],
            reads: [source("reads_0"), source("reads_1")],
            order: source("order"),
            m: StreamSink::new(dut, "m", back).unwrap(),
            read: StreamSink::new(dut, "read", back).unwrap(),
            waiting: Default::default(),
            bits: VecDeque::new(),
            left: vec![],
            read_numbers: VecDeque::new(),
            bench,
        };
        setup.with(|bench, agents| bench.reset(agents));
        setup
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Bench, &mut [&mut dyn Agent]) -> R) -> R {
        let [a, b] = &mut self.places;
        let [c, d] = &mut self.reads;
        act(
            &mut self.bench,
            &mut [a, b, c, d, &mut self.order, &mut self.m, &mut self.read],
        )
    }

    /// Queues a placement, without its order bit.
    fn place(&mut self, p: Placement) {
        let source = &mut self.places[p.side];
        let item = source.item().with("psn", p.number.into());
        let item = item
            .with("kind", p.kind.into())
            .with("beats", p.beats.into())
            .with("needs.wqe", p.is_read().into())
            .with("needs.beats", (p.beats > 0).into());
        source.push(item);
        if p.is_read() {
            let source = &mut self.reads[p.side];
            source.push(source.item().with("addr", p.number.into()));
        }
        self.waiting[p.side].push_back(p);
    }

    fn bit(&mut self, side: usize) {
        self.order
            .push(self.order.item().with("payload", side as u64));
        self.bits.push_back(side);
    }

    /// A cycle; what leaves is looked at.
    fn step(&mut self) {
        self.with(|bench, agents| bench.step(agents))
            .unwrap_or_else(|failure| panic!("{failure}"));
        while let Some((_, item)) = self.read.pop() {
            self.read_numbers.push_back(item.get("addr"));
        }
        while let Some((cycle, item)) = self.m.pop() {
            let number = item.get("psn") as u32;
            let side = self
                .waiting
                .iter()
                .position(|side| side.front().is_some_and(|p| p.number == number))
                .unwrap_or_else(|| panic!("placement {number} out of turn"));
            let p = self.waiting[side].pop_front().unwrap();
            assert_eq!(item.get("beats"), u64::from(p.beats));
            if p.beats > 0 {
                assert_eq!(self.bits.pop_front(), Some(side), "{p:?} takes its turn");
            }
            self.left.push((cycle, p));
        }
    }

    fn finish(&mut self, limit: u64) {
        for _ in 0..limit {
            if self.waiting.iter().all(VecDeque::is_empty) {
                break;
            }
            self.step();
        }
        (0..10).for_each(|_| self.step());
        assert!(
            self.waiting.iter().all(VecDeque::is_empty),
            "lost: {:?}, turn of {:?}",
            self.waiting.each_ref().map(|side| side.front()),
            self.bits.front()
        );
        assert!(self.bits.is_empty());
        let read: Vec<_> = self.read_numbers.iter().copied().collect();
        let listed = self.left.iter().filter(|(_, p)| p.is_read());
        let due: Vec<_> = listed.map(|(_, p)| u64::from(p.number)).collect();
        assert_eq!(read, due, "WQEs are read in the order of the placements");
    }
}

fn random(idle: Pauses, back: Pauses, count: u32) {
    let mut setup = Setup::new(idle, back);
    for number in 0..count {
        let rng = setup.bench.rng();
        let p = Placement {
            side: rng.usize(..2),
            number,
            kind: [0, 1, 2, 3][rng.usize(..4)],
            beats: [0, 1, 2, 64][rng.usize(..4)],
        };
        setup.place(p);
        if p.beats > 0 {
            setup.bit(p.side);
        }
    }
    setup.finish(100_000);
}

#[test]
fn placements_in_the_order_of_the_packets() {
    random(Pauses::NONE, Pauses::NONE, 4000);
    random(uneven(), uneven(), 4000);
    random(Pauses::NONE, Pauses::new(0.5, 20), 1000);
}

#[test]
fn a_placement_with_beats_waits_for_its_turn_and_one_without_does_not() {
    let mut setup = Setup::new(Pauses::NONE, Pauses::NONE);
    let place = |side, number, beats| Placement {
        side,
        number,
        kind: 0,
        beats,
    };
    setup.place(place(1, 1, 2));
    setup.place(place(0, 2, 0));
    (0..20).for_each(|_| setup.step());
    assert_eq!(setup.left.len(), 1, "no bit, no turn");
    assert_eq!(setup.left[0].1.number, 2);
    setup.bit(0);
    setup.bit(1);
    (0..20).for_each(|_| setup.step());
    assert_eq!(setup.left.len(), 1, "the first packet is the other side's");
    setup.place(place(0, 3, 1));
    setup.place(place(0, 4, 0));
    (0..20).for_each(|_| setup.step());
    let numbers: Vec<_> = setup.left.iter().map(|(_, p)| p.number).collect();
    assert_eq!(numbers.len(), 4);
    assert!(numbers.iter().position(|&n| n == 3) < numbers.iter().position(|&n| n == 1));
    setup.finish(10);
}

#[test]
fn a_placement_waits_for_its_wqe() {
    let mut setup = Setup::new(Pauses::NONE, Pauses::NONE);
    let source = &mut setup.places[1];
    let item = source.item().with("psn", 7).with("kind", 3);
    source.push(item.with("needs.wqe", 1));
    setup.waiting[1].push_back(Placement {
        side: 1,
        number: 7,
        kind: 3,
        beats: 0,
    });
    (0..20).for_each(|_| setup.step());
    assert!(setup.left.is_empty());
    let source = &mut setup.reads[1];
    source.push(source.item().with("addr", 7));
    setup.finish(20);
}

#[test]
fn a_placement_a_cycle() {
    for sides in [&[0][..], &[1], &[0, 1]] {
        let mut setup = Setup::new(Pauses::NONE, Pauses::NONE);
        for number in 0..500 {
            let side = sides[number as usize % sides.len()];
            let p = Placement {
                side,
                number,
                kind: 2,
                beats: 1,
            };
            setup.place(p);
            setup.bit(side);
        }
        setup.finish(2_000);
        let took = setup.left[499].0 - setup.left[0].0;
        assert!(took <= 502, "{took} cycles for 500 placements of {sides:?}");
    }
}
