//! Drain: work goes from section to section as in the engine; when `done` comes, all that was there at `start` is through.

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_hdl::control::drain::Drain;
use ferroce_sim::bench::{self, Bench};

use super::Block;

/// Sections in the order in which work passes them.
#[derive(Clone, Copy)]
enum Section {
    /// Number of its `activity` port.
    Watched(usize),
    /// Prefix of its counts.
    Writes(&'static str),
}

/// How many.
const COUNT: usize = 32;

const SECTIONS: [Section; COUNT] = [
    Section::Watched(0),
    Section::Watched(1),
    Section::Watched(2),
    Section::Watched(3),
    Section::Watched(4),
    Section::Watched(5),
    Section::Watched(6),
    Section::Watched(7),
    Section::Watched(8),
    Section::Writes("payload"),
    Section::Watched(9),
    Section::Watched(10),
    Section::Watched(11),
    Section::Writes("cqe"),
    Section::Watched(12),
    Section::Watched(13),
    Section::Watched(14),
    Section::Watched(15),
    Section::Watched(16),
    Section::Watched(17),
    Section::Watched(18),
    Section::Watched(19),
    Section::Watched(20),
    Section::Watched(CLASSES),
    Section::Watched(22),
    Section::Watched(23),
    Section::Watched(24),
    Section::Watched(25),
    Section::Watched(EVENTS),
    Section::Writes("report"),
    Section::Watched(27),
    Section::Writes("eqe"),
];

/// Port of the events of queue pairs.
const EVENTS: usize = 26;
/// Port of the frames in the queues of the classes, which do not leave in their order.
const CLASSES: usize = 21;

/// Activity of a section in which so many are; one has left.
fn activity(things: usize, moved: bool) -> u64 {
    u64::from(things > 0) | u64::from(moved) << 1 | ((things + usize::from(moved)) as u64) << 2
}

fn is_events(section: Section) -> bool {
    matches!(section, Section::Watched(EVENTS))
}

/// A drain over an empty engine.
fn block() -> Block {
    let mut block = Block::new(Bench::of(Drain::default).unwrap());
    block.set("start", 0);
    for section in SECTIONS {
        match section {
            Section::Watched(port) => block.set(&format!("activity_{port}"), 0),
            Section::Writes(name) => {
                block.set(&format!("{name}_issued"), 0);
                block.set(&format!("{name}_done"), 0);
            }
        }
    }
    block
}

/// Events of more queue pairs than any other section holds things, and reports of as many completion queues.
#[test]
fn events_are_waited_for_to_the_last() {
    let mut block = block();
    let busy = format!("activity_{EVENTS}");
    block.set(&busy, activity(1, false));
    block.set("report_issued", 0x7000);
    block.set("start", 1);
    block.step();
    block.set("start", 0);
    let run = |block: &mut Block, cycles| {
        for _ in 0..cycles {
            assert_eq!(block.get("done"), 0);
            block.step();
        }
    };
    run(&mut block, 2000);
    block.set(&busy, 0);
    run(&mut block, 100);
    // those of before, while others come
    block.set("report_issued", 0x7800);
    block.set("report_done", 0x6fff);
    run(&mut block, 2000);
    block.set("report_done", 0x7000);
    let done = (0..100).any(|_| {
        block.step();
        block.get("done") == 1
    });
    assert!(done, "it ends");
}

/// A key request of each queue pair of the largest build waits.
#[test]
fn a_section_holds_one_of_each_queue_pair() {
    let mut block = block();
    let all = 1 << 14;
    block.set("activity_2", activity(all, false));
    block.set("start", 1);
    block.step();
    block.set("start", 0);
    // the turn of section 2, behind two that are empty
    for _ in 0..100 {
        block.step();
    }
    for left in (0..all).rev() {
        assert_eq!(block.get("done"), 0, "{left} have not left");
        block.set("activity_2", activity(left + 1, true) | 1);
        block.step();
    }
    block.set("activity_2", activity(all, false));
    let done = (0..600).any(|_| {
        block.step();
        block.get("done") == 1
    });
    assert!(done, "later ones are not waited for");
}

/// Things in each section; a thing is the cycle in which it entered the first one.
struct Pipeline {
    queues: [VecDeque<u64>; COUNT],
    issued: [u16; COUNT],
    done: [u16; COUNT],
    load: f64,
    /// Chance that the first of a section leaves it in a cycle.
    pace: f64,
    /// The drain began in this cycle: no event of a later thing is waited for, as without commands there is an end of them.
    start: u64,
    /// A section holds at most this many.
    depth: usize,
    /// The latest thing that the queues of the classes count.
    noted: u64,
    rng: Rng,
}

impl Pipeline {
    fn new(load: f64, pace: f64, depth: usize, seed: u64) -> Self {
        Self {
            queues: Default::default(),
            // counts near their end, so that they wrap
            issued: [0xfff0; COUNT],
            done: [0xfff0; COUNT],
            load,
            pace,
            start: u64::MAX,
            depth,
            noted: 0,
            rng: Rng::with_seed(seed),
        }
    }

    /// Oldest thing under way.
    fn oldest(&self) -> Option<u64> {
        self.queues.iter().flatten().min().copied()
    }

    fn step(&mut self, block: &mut Block, now: u64) {
        let mut moved = [false; COUNT];
        for i in (0..COUNT).rev() {
            let is_late = self.queues[i].front().is_some_and(|t| *t > self.start);
            let passes = is_late && i + 1 < COUNT && is_events(SECTIONS[i + 1]);
            let next = if passes { i + 2 } else { i + 1 };
            let room = next == COUNT || self.queues[next].len() < self.depth;
            if room
                && self.rng.f64() < self.pace
                && let Some(thing) = self.queues[i].pop_front()
            {
                moved[i] = true;
                self.done[i] = self.done[i].wrapping_add(1);
                if next < COUNT {
                    self.queues[next].push_back(thing);
                    self.issued[next] = self.issued[next].wrapping_add(1);
                }
            }
        }
        if self.queues[0].len() < self.depth && self.rng.f64() < self.load {
            self.queues[0].push_back(now);
            self.issued[0] = self.issued[0].wrapping_add(1);
        }
        for (i, section) in SECTIONS.into_iter().enumerate() {
            match section {
                Section::Watched(CLASSES) => {
                    if block.get("note") == 0 {
                        self.noted = now;
                    }
                    let stands = self.queues[i].front().is_some_and(|t| *t <= self.noted);
                    block.set(
                        &format!("activity_{CLASSES}"),
                        activity(stands.into(), false),
                    );
                }
                Section::Watched(port) => {
                    let moved = moved[i] && !is_events(section);
                    let activity = activity(self.queues[i].len(), moved);
                    block.set(&format!("activity_{port}"), activity);
                }
                Section::Writes(name) => {
                    block.set(&format!("{name}_issued"), self.issued[i].into());
                    block.set(&format!("{name}_done"), self.done[i].into());
                }
            }
        }
    }
}

/// Cycles from `start` to `done` over a pipeline that is loaded like this; checks what must be through.
fn drain(load: f64, pace: f64, depth: usize, seed: u64) -> u64 {
    let mut block = block();
    let mut pipeline = Pipeline::new(load, pace, depth, seed);
    let mut now = 0;
    for _ in 0..500 {
        pipeline.step(&mut block, now);
        block.step();
        now += 1;
    }
    let start = now;
    pipeline.start = start;
    block.set("start", 1);
    for cycle in 0..24_000 {
        pipeline.step(&mut block, now);
        if block.get("done") == 1 {
            // a thing of this cycle's beginning may have entered beside `start`
            let oldest = pipeline.oldest().unwrap_or(u64::MAX);
            assert!(
                oldest >= start,
                "seed {seed}: of cycle {oldest}, started in {start}"
            );
            return cycle;
        }
        block.step();
        block.set("start", 0);
        now += 1;
    }
    panic!("seed {seed}: no end after 24000 cycles at load {load}");
}

#[test]
fn an_idle_engine_is_through_in_the_cycles_promised() {
    assert_eq!(drain(0.0, 0.6, 1, bench::seed()), 609, "cycles");
}

#[test]
fn everything_before_the_start_is_through_whatever_follows() {
    let seed = bench::seed();
    for round in 0..6 {
        for load in [0.02, 0.3, 1.0] {
            drain(load, 0.6, 40, seed + round);
        }
    }
}

/// Slow sections, none of which is ever empty: what stood in front is waited for, 4 things that take 50 cycles each.
#[test]
fn others_hold_a_drain_up_no_longer_than_what_they_began() {
    let seed = bench::seed();
    for round in 0..6 {
        let cycles = drain(1.0, 0.02, 4, seed + round);
        assert!(cycles < 7500, "seed {}: {cycles} cycles", seed + round);
    }
}

#[test]
fn a_stalled_section_holds_the_drain() {
    for (port, payload_open) in [
        (0, false),
        (7, false),
        (8, false),
        (9, false),
        (11, false),
        (12, false),
        (17, false),
        (18, false),
        (EVENTS, false),
        (0, true),
    ] {
        let mut block = block();
        let busy = format!("activity_{port}");
        if payload_open {
            block.set("payload_issued", 1);
        } else {
            block.set(&busy, activity(1, false));
        }
        block.set("start", 1);
        block.step();
        block.set("start", 0);
        for _ in 0..2000 {
            assert_eq!(block.get("done"), 0, "{busy}");
            block.step();
        }
        block.set(&busy, 0);
        block.set("payload_done", u64::from(payload_open));
        let mut waited = 0;
        while block.get("done") == 0 {
            block.step();
            waited += 1;
            assert!(waited < 608, "{busy}");
        }
    }
}
