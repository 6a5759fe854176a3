//! Arm doorbells, CQEs landing in host memory, and the events that tell of them.

use std::collections::VecDeque;

use ferroce_proto::abi::eq::event;

use super::Rig;

/// What a queue was last asked to report.
#[derive(Clone, Copy, Debug)]
struct Arm {
    any: bool,
    index: u32,
    /// Cycle in which the doorbell was taken.
    taken: Option<u64>,
}

/// The count is beyond the index, modulo 2^24.
fn reaches(count: u32, index: u32) -> bool {
    (1..1 << 23).contains(&(count.wrapping_sub(index) & 0xff_ffff))
}

/// A queue as its event queue knows it.
#[derive(Clone, Debug, Default)]
struct Queue {
    eqn: Option<u8>,
    /// Doorbells with an order since the queue was opened, and the last of them.
    arms: u32,
    /// Those since the last event.
    since: u32,
    last: Option<Arm>,
    /// Entries landed, and the count up to the last solicited one.
    landed: u32,
    solicited: u32,
    /// Cycle of the last event, events so far: of completions, of the overflow.
    reported: Option<u64>,
    events: [u32; 2],
    /// Of the doorbells since the last event: the lowest index, whether one asks for any entry.
    low: u32,
    any: bool,
    /// Reports that may be left from before: of completions (one taken and one that waits), of the overflow.
    carried: [u32; 2],
}

/// All queues' reports.
pub(crate) struct Reports {
    queues: Vec<Queue>,
    /// CQEs that are written and not in host memory: queue, count, solicited, cycle.
    flying: VecDeque<(u16, u32, bool, u64)>,
    done: u64,
    /// CQEs do not land.
    pub(crate) hold: bool,
    /// Queues of doorbells not taken.
    waiting: VecDeque<u16>,
    /// Events in order: event queue, kind, completion queue, cycle.
    pub(crate) seen: Vec<(u8, u8, u16, u64)>,
}

impl Reports {
    pub(super) fn new(queues: usize) -> Self {
        Self {
            queues: vec![Queue::default(); queues],
            flying: VecDeque::new(),
            done: 0,
            hold: false,
            waiting: VecDeque::new(),
            seen: vec![],
        }
    }

    /// A command opens or closes a queue.
    pub(super) fn begin(&mut self, cqn: u16, eqn: Option<u8>, was_dead: bool) {
        for flying in self.flying.iter_mut().filter(|f| f.0 == cqn) {
            flying.1 = 0;
        }
        let queue = &mut self.queues[usize::from(cqn)];
        *queue = Queue {
            eqn,
            carried: [
                (queue.carried[0] + queue.since).min(2),
                (queue.carried[1] + u32::from(was_dead)).min(1),
            ],
            ..Queue::default()
        };
    }

    pub(super) fn written(&mut self, cqn: u16, count: u32, solicited: bool) {
        self.flying.push_back((cqn, count, solicited, 0));
    }

    /// CQEs that are in host memory.
    pub(super) fn landed(&self) -> usize {
        self.done as usize
    }

    /// Events of completions and of overflows that reported a queue.
    pub(crate) fn events(&self, cqn: u16) -> [u32; 2] {
        self.queues[usize::from(cqn)].events
    }
}

impl Rig {
    /// Arms a queue, for any entry or for solicited ones.
    pub(crate) fn arm(&mut self, cqn: u16, any: bool, index: u32) {
        self.ring(cqn, any, !any, index);
    }

    /// An arm doorbell as it comes.
    pub(crate) fn ring(&mut self, cqn: u16, any: bool, solicited: bool, index: u32) {
        let item = self.arms.item();
        self.arms.push(
            item.with("cqn", cqn.into())
                .with("any", any.into())
                .with("solicited", solicited.into())
                .with("index", (index & 0xff_ffff).into()),
        );
        self.reports.waiting.push_back(cqn);
        let queue = &mut self.reports.queues[usize::from(cqn)];
        if queue.eqn.is_some() && (any || solicited) {
            queue.arms += 1;
            queue.since += 1;
            queue.low = if queue.last.is_none() {
                index
            } else {
                queue.low.min(index)
            };
            queue.any |= any;
            queue.last = Some(Arm {
                any,
                index,
                taken: None,
            });
        }
    }

    /// Doorbells that were not taken.
    pub(crate) fn doorbells(&self) -> usize {
        self.reports.waiting.len()
    }

    /// CQEs land, one after the other, some time after they left.
    pub(super) fn land(&mut self) {
        let lands = !self.reports.hold && self.bench.rng().u8(..) < 100;
        let reports = &mut self.reports;
        if lands && let Some((cqn, count, solicited, _)) = reports.flying.pop_front() {
            reports.done += 1;
            let queue = &mut reports.queues[usize::from(cqn)];
            if count > 0 {
                queue.landed = count;
                if solicited {
                    queue.solicited = count;
                }
            }
        }
        let done = reports.done;
        let port = self.cqe_done_port;
        self.bench.dut_mut().set(port, done & 0xffff);
    }

    /// Takes note of events, and of a doorbell that was taken if `rung`.
    pub(super) fn hear(&mut self, cycle: u64, rung: bool) -> Result<(), String> {
        let reports = &mut self.reports;
        if rung {
            let cqn = reports.waiting.pop_front().expect("it was pushed");
            let queue = &mut reports.queues[usize::from(cqn)];
            if !reports.waiting.contains(&cqn)
                && let Some(last) = &mut queue.last
            {
                last.taken = Some(cycle);
            }
        }
        while let Some((_, item)) = self.events.pop() {
            let [eqn, kind, cqn] = ["eqn", "event", "object"].map(|name| item.get(name));
            let (eqn, kind, cqn) = (eqn as u8, kind as u8, cqn as u16);
            let reports = &mut self.reports;
            let queue = &mut reports.queues[usize::from(cqn)];
            reports.seen.push((eqn, kind, cqn, cycle));
            let which = usize::from(kind == event::CQ_ERROR);
            let justified = match kind {
                event::COMPLETION => {
                    let any = queue.any && reaches(queue.landed, queue.low);
                    any || queue.arms > 0 && reaches(queue.solicited, queue.low)
                }
                event::CQ_ERROR => queue.events[1] == 0,
                _ => false,
            };
            if !justified || Some(eqn) != queue.eqn || item.get("detail") != 0 {
                if queue.carried[which] == 0 {
                    return Err(format!("{item:?} without cause: {queue:?}"));
                }
                queue.carried[which] -= 1;
                continue;
            }
            queue.events[which] += 1;
            if kind == event::COMPLETION {
                queue.reported = Some(cycle);
                // another may wait behind this one, and answer doorbells between
                if queue.since > 1 {
                    queue.carried[0] = queue.carried[0].max(1);
                }
                queue.since = 0;
                queue.low = queue.last.map_or(0, |last| last.index);
                queue.any = queue.last.is_some_and(|last| last.any);
            }
        }
        Ok(())
    }

    /// Everything is done: what was to be reported was.
    pub(super) fn check_reports(&mut self) {
        for _ in 0..2_000 {
            if self.reports.hold || self.deaf {
                return;
            }
            self.step();
            if self.reports.flying.is_empty() && self.reports.waiting.is_empty() {
                break;
            }
        }
        (0..400).for_each(|_| self.step());
        for (cqn, queue) in self.reports.queues.iter().enumerate() {
            let Some(last) = queue.last.filter(|_| queue.eqn.is_some()) else {
                continue;
            };
            let reported = queue.reported >= last.taken;
            let due = last.any && reaches(queue.landed, last.index)
                || reaches(queue.solicited, last.index);
            assert!(reported || !due, "queue {cqn} is not reported: {queue:?}");
            let overflow = u32::from(self.rings[cqn].is_dead());
            let left = queue.carried[1];
            let [_, reported] = queue.events;
            assert!(
                reported == overflow || reported == overflow.max(left),
                "queue {cqn}: {queue:?}"
            );
        }
    }
}
