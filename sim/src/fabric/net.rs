//! Nodes and wires: windows of time, threads.

use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use fastrand::Rng;

use super::meeting::Meeting;
use super::topology::Place;
use super::{Frame, Line, NEVER, Time, flow, pause, switch};
use crate::random::Chance;

/// A switch or a host.
pub trait Node {
    /// When it does something by itself next; [`NEVER`] if it waits for a frame.
    fn next(&self) -> Time;

    /// The last bit of a frame arrived.
    fn arrive(&mut self, now: Time, port: usize, frame: Frame, out: &mut Outbox);

    /// What it planned for `now`, see [`next`](Self::next), is due.
    fn wake(&mut self, now: Time, out: &mut Outbox);

    /// It waits for nothing that is to come: a run ends when all do.
    fn is_done(&self) -> bool {
        true
    }

    /// The run is over: what came of it.
    fn finish(self: Box<Self>, now: Time) -> Outcome;
}

/// What came of a node.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It was a switch.
    Switch(switch::Report),
    /// It was a host.
    Host(flow::HostReport),
}

/// What a node sends.
#[derive(Debug, Default)]
pub struct Outbox {
    sent: Vec<(usize, Time, Frame)>,
}

impl Outbox {
    /// A frame whose last bit leaves `port` at `left`; frames of a port come in the order of that.
    pub fn send(&mut self, port: usize, left: Time, frame: Frame) {
        self.sent.push((port, left, frame));
    }
}

/// Makes a node on the thread that it stays on.
pub type Build = Box<dyn FnOnce() -> Box<dyn Node> + Send>;

/// A fabric that can be run.
pub struct Plan {
    nodes: Vec<Build>,
    wires: Vec<Vec<Option<Wire>>>,
    lookahead: Time,
}

/// One direction of a wire, at its sender.
struct Wire {
    to: Place,
    delay: Time,
    loss: Chance,
    rng: Rng,
    /// Frames that entered it.
    frames: u64,
    /// Frames that it lost.
    lost: u64,
}

/// A frame on its way.
struct Arrival {
    at: Time,
    port: usize,
    /// Place among the frames of its wire.
    number: u64,
    frame: Frame,
}

impl Arrival {
    const fn key(&self) -> (Time, usize, u64) {
        (self.at, self.port, self.number)
    }
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Arrival {}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Arrival {
    /// The earliest is the greatest, as the heap wants it.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.key().cmp(&self.key())
    }
}

impl Plan {
    /// Nodes and no wire.
    #[must_use]
    pub fn new(nodes: Vec<Build>) -> Self {
        let wires = nodes.iter().map(|_| Vec::new()).collect();
        Self {
            nodes,
            wires,
            lookahead: NEVER,
        }
    }

    /// Wires two ports; each direction loses frames by chance but those of MAC control.
    ///
    /// # Panics
    /// If a port has a wire already, or the wire has no delay.
    pub fn link(&mut self, ends: [Place; 2], line: &Line, loss: Chance, seed: u64) {
        assert!(line.delay > 0, "a wire has a delay");
        self.lookahead = self.lookahead.min(line.delay);
        let [a, b] = ends;
        for (from, to, side) in [(a, b, 0), (b, a, 1)] {
            let ports = &mut self.wires[from.node];
            if ports.len() <= from.port {
                ports.resize_with(from.port + 1, || None);
            }
            assert!(ports[from.port].is_none(), "{from:?} has a wire already");
            ports[from.port] = Some(Wire {
                to,
                delay: line.delay,
                loss,
                rng: Rng::with_seed(seed.rotate_left(1) ^ side),
                frames: 0,
                lost: 0,
            });
        }
    }

    /// Runs on `threads` threads until all nodes are done, but no longer than `until`.
    ///
    /// # Panics
    /// If a node does.
    #[must_use]
    pub fn run(self, threads: usize, until: Time) -> Ran {
        let nodes = self.nodes.len();
        let threads = threads.clamp(1, nodes.max(1));
        let shared = Shared {
            threads,
            lookahead: self.lookahead,
            until,
            meeting: Meeting::new(threads),
            mail: (0..threads).map(|_| Mutex::default()).collect(),
            next: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            done: (0..threads).map(|_| AtomicBool::new(false)).collect(),
        };
        let mut parts: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
        for (index, part) in self.nodes.into_iter().zip(self.wires).enumerate() {
            parts[index % threads].push(part);
        }
        let shared = &shared;
        let ended: Vec<_> = thread::scope(|scope| {
            let parts = parts.into_iter().enumerate();
            let running: Vec<_> = parts
                .map(|(me, part)| scope.spawn(move || shared.run(me, part)))
                .collect();
            let joined = running.into_iter().map(thread::ScopedJoinHandle::join);
            joined.map(|end| end.expect("no thread fails")).collect()
        });
        let mut ran = Ran {
            now: ended[0].now,
            lost: ended.iter().map(|part| part.lost).sum(),
            flying: ended.iter().map(|part| part.flying).sum(),
            outcomes: Vec::with_capacity(nodes),
        };
        let parts = ended.into_iter().map(|part| part.outcomes.into_iter());
        let mut parts: Vec<_> = parts.collect();
        let outcomes = (0..nodes).map(|index| parts[index % threads].next().expect("one each"));
        ran.outcomes.extend(outcomes);
        ran
    }
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// When it ended.
    pub now: Time,
    /// Frames that wires lost.
    pub lost: u64,
    /// Frames on their way at the end, but for those of MAC control.
    pub flying: u64,
    /// Of each node in turn.
    pub outcomes: Vec<Outcome>,
}

/// A frame of the MACs at both ends of a wire.
fn is_control(frame: &Frame) -> bool {
    frame.starts_with(&pause::DESTINATION.0)
}

/// What the threads share.
struct Shared {
    threads: usize,
    lookahead: Time,
    until: Time,
    meeting: Meeting,
    /// Frames to the nodes of each thread.
    mail: Vec<Mutex<Vec<(usize, Arrival)>>>,
    /// When each thread has something to do next.
    next: Vec<AtomicU64>,
    /// Whether all nodes of a thread are done.
    done: Vec<AtomicBool>,
}

impl Shared {
    /// The life of thread `me`.
    fn run(&self, me: usize, part: Vec<(Build, Vec<Option<Wire>>)>) -> Ran {
        let _guard = self.meeting.guard();
        let mut slots: Vec<_> = part
            .into_iter()
            .map(|(build, wires)| Slot::new(build(), wires))
            .collect();
        let mut posts: Vec<_> = (0..self.threads).map(|_| Vec::new()).collect();
        let mut now = 0;
        self.publish(me, &slots);
        self.meeting.wait();
        loop {
            let start = self
                .next
                .iter()
                .map(|next| next.load(Ordering::Relaxed))
                .min();
            let start = start.unwrap_or(NEVER);
            let done = self.done.iter().all(|done| done.load(Ordering::Relaxed));
            if done || start >= self.until {
                if !done {
                    now = self.until;
                }
                break;
            }
            let end = start.saturating_add(self.lookahead).min(self.until);
            for slot in &mut slots {
                slot.run(end, |to, arrival| {
                    posts[to % self.threads].push((to / self.threads, arrival));
                });
            }
            now = end;
            for (mail, post) in self.mail.iter().zip(&mut posts) {
                if !post.is_empty() {
                    let mut mail = mail.lock().unwrap_or_else(PoisonError::into_inner);
                    mail.append(post);
                }
            }
            self.meeting.wait();
            let mut mail = self.mail[me].lock().unwrap_or_else(PoisonError::into_inner);
            for (slot, arrival) in mail.drain(..) {
                slots[slot].inbox.push(arrival);
            }
            drop(mail);
            self.publish(me, &slots);
            self.meeting.wait();
        }
        let wires = slots.iter().flat_map(|slot| slot.wires.iter().flatten());
        let flying = slots.iter().flat_map(|slot| slot.inbox.iter());
        Ran {
            now,
            lost: wires.map(|wire| wire.lost).sum(),
            flying: flying.filter(|arrival| !is_control(&arrival.frame)).count() as u64,
            outcomes: slots
                .into_iter()
                .map(|slot| slot.node.finish(now))
                .collect(),
        }
    }

    fn publish(&self, me: usize, slots: &[Slot]) {
        let next = slots.iter().map(Slot::next).min().unwrap_or(NEVER);
        self.next[me].store(next, Ordering::Relaxed);
        let done = slots.iter().all(|slot| slot.node.is_done());
        self.done[me].store(done, Ordering::Relaxed);
    }
}

/// A node with what is on its way to it.
struct Slot {
    node: Box<dyn Node>,
    wires: Vec<Option<Wire>>,
    inbox: BinaryHeap<Arrival>,
    out: Outbox,
}

impl Slot {
    fn new(node: Box<dyn Node>, wires: Vec<Option<Wire>>) -> Self {
        Self {
            node,
            wires,
            inbox: BinaryHeap::new(),
            out: Outbox::default(),
        }
    }

    fn next(&self) -> Time {
        let arrival = self.inbox.peek().map_or(NEVER, |arrival| arrival.at);
        arrival.min(self.node.next())
    }

    /// Everything before `end`; a frame goes before what the node planned for the same time.
    fn run(&mut self, end: Time, mut post: impl FnMut(usize, Arrival)) {
        loop {
            let own = self.node.next();
            let arrival = self.inbox.peek().map_or(NEVER, |arrival| arrival.at);
            if own.min(arrival) >= end {
                return;
            }
            if arrival <= own {
                let Arrival {
                    at, port, frame, ..
                } = self.inbox.pop().expect("it was looked at");
                self.node.arrive(at, port, frame, &mut self.out);
            } else {
                self.node.wake(own, &mut self.out);
            }
            for (port, left, frame) in self.out.sent.drain(..) {
                let wire = self.wires.get_mut(port).and_then(Option::as_mut);
                let wire = wire.expect("a node sends where a wire is");
                let number = wire.frames;
                wire.frames += 1;
                if !is_control(&frame) && wire.loss.hit(&mut wire.rng) {
                    wire.lost += 1;
                    continue;
                }
                let arrival = Arrival {
                    at: left + wire.delay,
                    port: wire.to.port,
                    number,
                    frame,
                };
                post(wire.to.node, arrival);
            }
        }
    }
}
