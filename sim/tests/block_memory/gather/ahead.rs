//! Commands of a lane, and the room that is taken ahead of those of lane 1.

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_sim::bench::{Agent, Item, StreamSource};
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Dut, Input, Output};

pub(super) struct Commands {
    pub(super) source: StreamSource,
    /// Of lane 1.
    pub(super) ahead: Option<Ahead>,
}

/// Takes room for a command, then gives the command or the room.
pub(super) struct Ahead {
    room: Output,
    reserve: [Input; 3],
    give_back: [Input; 3],
    waiting: VecDeque<Item>,
    /// Room of so many packets is taken and given back, at random.
    pub(super) spare: usize,
    /// `room` of the latest cycle, as the cutter sees it.
    roomy: bool,
    /// Cycles until room may be taken again.
    pause: u8,
    /// What to do with room that was taken, 8 cycles later.
    taken: VecDeque<(u64, Option<Item>, [u64; 2])>,
    now: u64,
}

impl Commands {
    pub(super) fn new(dut: &Dut, number: usize, pauses: Pauses) -> Self {
        let ports = |name: &str| {
            ["valid", "payload.lane", "payload.plen"]
                .map(|field| dut.input(&format!("{name}.{field}")).unwrap())
        };
        Self {
            source: StreamSource::new(dut, &format!("command_{number}"), pauses).unwrap(),
            ahead: (number == 1).then(|| Ahead {
                room: dut.output("room").unwrap(),
                reserve: ports("reserve"),
                give_back: ports("give_back"),
                waiting: VecDeque::new(),
                spare: 0,
                roomy: false,
                pause: 0,
                taken: VecDeque::new(),
                now: 0,
            }),
        }
    }

    pub(super) fn push(&mut self, item: Item) {
        match &mut self.ahead {
            Some(ahead) => ahead.waiting.push_back(item),
            None => self.source.push(item),
        }
    }
}

impl Agent for Commands {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        if let Some(ahead) = &mut self.ahead {
            let set = |dut: &mut Dut, ports: &[Input; 3], size: Option<[u64; 2]>| {
                dut.set(ports[0], size.is_some().into());
                let [lane, plen] = size.unwrap_or_else(|| [rng.u64(..64), rng.u64(..4097)]);
                dut.set(ports[1], lane);
                dut.set(ports[2], plen);
            };
            let mut back = None;
            if ahead
                .taken
                .front()
                .is_some_and(|taken| taken.0 <= ahead.now)
            {
                match ahead.taken.pop_front().expect("just seen") {
                    (_, Some(item), _) => self.source.push(item),
                    (_, None, size) => back = Some(size),
                }
            }
            let mut set = set;
            set(dut, &ahead.give_back, back);
            ahead.pause = ahead.pause.saturating_sub(1);
            let mut size = None;
            if ahead.roomy && ahead.pause == 0 {
                let (item, of) = if ahead.spare > 0 {
                    ahead.spare -= 1;
                    (None, [ahead.now % 64, 1 + ahead.now * 7 % 4096])
                } else if let Some(item) = ahead.waiting.pop_front() {
                    let of = [item.get("lane"), item.get("len")];
                    (Some(item), of)
                } else {
                    (None, [0, 0])
                };
                if of[1] > 0 {
                    ahead.pause = if of[1] < 512 { 1 } else { 5 };
                    ahead.taken.push_back((ahead.now + 8, item, of));
                    size = Some(of);
                }
            }
            set(dut, &ahead.reserve, size);
        }
        self.source.drive(dut, rng);
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        if let Some(ahead) = &mut self.ahead {
            ahead.roomy = dut.is_set(ahead.room);
            ahead.now = cycle + 1;
        }
        self.source.observe(dut, cycle)
    }

    fn pending(&self) -> Option<String> {
        let waits = self
            .ahead
            .as_ref()
            .is_some_and(|ahead| !ahead.waiting.is_empty() || !ahead.taken.is_empty());
        waits
            .then(|| "commands wait for room".into())
            .or_else(|| self.source.pending())
    }

    fn reset(&mut self, dut: &mut Dut) {
        if let Some(ahead) = &mut self.ahead {
            dut.set(ahead.reserve[0], 0);
            dut.set(ahead.give_back[0], 0);
        }
        self.source.reset(dut);
    }
}
