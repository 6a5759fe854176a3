//! Executes a scenario on two cards.

use std::collections::BTreeMap;

use ferroce_proto::abi::cq::{Cqe, status};
use ferroce_proto::abi::regs::{Params, STATS};
use ferroce_sim::testhost::{Host, Side};

use super::bench::{Bench, SIDES, other};
use super::outcome::{Completion, Outcome};
use super::owner::Owners;
use super::port::{Buffer, Port};
use super::scenario::{Connection, Message, Scenario, Step, region};
use super::{Card, hostile, wqe};
use crate::quiet::caught;
use crate::world::{Draw, draw};

/// Cycles between two looks of the hosts at their completion queues; a seed has one of them.
const POLL: [u64; 3] = [1, 5, 16];

/// Cycles without anything at a port or on a wire after which everything is at rest: longer than a card takes for
/// anything that it does without timers and memory, such as the 512 of a path of 64 bits to drop a payload.
const QUIET: u64 = 1000;

/// Cycles without a frame or a completion after which a card hangs; longer than the timers of a scenario.
const HANG: u64 = 40_000;

/// Cycles of one [`Step::Rest`] at most; of some 500 scenarios of both cards none had one of 60,000.
const LONGEST: u64 = 400_000;

/// A scenario under way.
struct Run<'a> {
    scenario: &'a Scenario,
    bench: Bench,
    ports: Vec<[Port; 2]>,
    owners: Owners,
    /// See [`POLL`].
    poll: u64,
    noise: Vec<(u64, Side, Vec<u8>)>,
    /// Something was posted since the last rest.
    restless: bool,
    outcome: Outcome,
}

/// Executes a scenario. What goes wrong is in [`Outcome::failures`].
#[must_use]
pub fn run(scenario: &Scenario, params: &Params, cards: [&Card; 2]) -> Outcome {
    let result = caught(|| {
        let bench = Bench::new(scenario, params, cards);
        let mut run = Run {
            scenario,
            ports: scenario
                .connections
                .iter()
                .map(|_| Default::default())
                .collect(),
            owners: Owners::new(&bench),
            poll: draw(scenario.seed, Draw::Poll, POLL),
            bench,
            noise: Vec::new(),
            restless: false,
            outcome: Outcome::default(),
        };
        for (connection, c) in scenario.connections.iter().enumerate() {
            run.bench.tap.borrow_mut().cut(connection, c.psn, c.mtu);
        }
        if let Err(what) = run.execute(params) {
            run.outcome.failures.push(what);
        }
        run.conclude();
        run.outcome
    });
    result.unwrap_or_else(|what| Outcome {
        failures: vec![what],
        ..Outcome::default()
    })
}

impl Run<'_> {
    fn execute(&mut self, params: &Params) -> Result<(), String> {
        for step in &self.scenario.steps {
            if step.needs_rest() && self.restless {
                self.rest()?;
            }
            match step {
                Step::Message(message) => self.message(message),
                Step::Spare {
                    connection,
                    side,
                    scatter,
                } => {
                    let (head, list) = wqe::recv(&self.bench, *connection, *side, scatter, None);
                    let buffer = Buffer {
                        head,
                        list,
                        late: 0,
                        message: None,
                    };
                    self.port(*connection, *side).recv(buffer);
                }
                Step::Noise { side, at, noise } => {
                    let frame = hostile::noise(&self.bench, *side, noise);
                    self.noise.push(((*at).into(), *side, frame));
                    self.restless = true;
                }
                Step::Forgery {
                    connection,
                    side,
                    forgery,
                } => {
                    let at = (*connection, *side);
                    let qpn = self.bench.links[at.0].qpn[*side as usize];
                    let state = self.bench.hosts[*side as usize].query(qpn);
                    let c = &self.scenario.connections[at.0];
                    let psns = (state.rq_psn, state.una_psn);
                    let frame = hostile::forgery(&self.bench, at, c, *forgery, psns);
                    let node = self.bench.nodes[*side as usize];
                    self.bench.world.inject(node, &frame);
                    self.settle()?;
                }
                Step::Command { side, command } => {
                    let host = &mut self.bench.hosts[*side as usize];
                    let status = hostile::command(host, params, *command);
                    self.outcome.commands.push((*command, status));
                }
                Step::Reconnect { connection, psn } => {
                    let c = &self.scenario.connections[*connection];
                    self.ports[*connection] = Default::default();
                    self.bench.tap.borrow_mut().cut(*connection, *psn, c.mtu);
                    self.bench.connect(*connection, c, *psn);
                }
                Step::Rest => {}
            }
        }
        self.rest()
    }

    fn port(&mut self, connection: usize, side: Side) -> &mut Port {
        &mut self.ports[connection][side as usize]
    }

    fn message(&mut self, message: &Message) {
        let (connection, from) = (message.connection, message.from);
        let slots = wqe::send(&self.bench, message);
        let number = self.owners.post(message);
        self.port(connection, from).send(number, slots);
        if let Some(recv) = &message.recv {
            let to = other(from);
            let (head, list) = wqe::recv(&self.bench, connection, to, &recv.scatter, message.fault);
            let buffer = Buffer {
                head,
                list,
                late: recv.late.into(),
                message: Some(number),
            };
            self.port(connection, to).recv(buffer);
        }
        self.restless = true;
    }

    /// Posts everything and waits until it is done.
    fn rest(&mut self) -> Result<(), String> {
        let start = self.bench.world.now();
        // Buffers that are not late are there before anything is sent.
        self.post_recvs(0);
        for side in SIDES {
            self.bench.barrier(side);
        }
        self.noise.sort_by_key(|(at, ..)| *at);
        let (mut seen, mut since) = (0, start);
        loop {
            let now = self.bench.world.now();
            let moved = self.poll() + self.bench.tap.borrow().frames();
            if moved != seen {
                (seen, since) = (moved, now);
            }
            self.inject(now - start);
            self.post_recvs(now - start);
            self.post_sends();
            if self.noise.is_empty() && self.is_done() {
                break;
            }
            if now - since > HANG || now - start > LONGEST {
                return Err(self.hang());
            }
            self.bench.world.run(self.poll);
        }
        self.restless = false;
        loop {
            let posted = self.post_recvs(u64::MAX);
            self.settle()?;
            if !posted {
                self.owners.rest(&self.bench);
                return Ok(());
            }
        }
    }

    /// Waits until nothing moves any more.
    fn settle(&mut self) -> Result<(), String> {
        let start = self.bench.world.now();
        let (mut seen, mut since) = (u64::MAX, start);
        loop {
            let now = self.bench.world.now();
            let moved = self.poll() + self.bench.tap.borrow().frames();
            if moved != seen || !self.bench.world.is_idle() {
                (seen, since) = (moved, now);
            }
            if now - since >= QUIET {
                return Ok(());
            }
            if now - start > LONGEST {
                return Err("the wire does not come to rest".into());
            }
            self.bench.world.run(self.poll);
        }
    }

    fn is_done(&self) -> bool {
        self.ports.iter().flatten().all(Port::is_done)
    }

    fn hang(&self) -> String {
        let mut what = String::from("a card hangs");
        for (connection, ports) in self.ports.iter().enumerate() {
            for (side, port) in SIDES.iter().zip(ports) {
                if !port.is_done() {
                    what += &format!("; #{connection} {side:?}: {}", port.state());
                }
            }
        }
        what
    }

    /// Posts the receive WQEs that are due and have room. Whether there were any.
    fn post_recvs(&mut self, elapsed: u64) -> bool {
        let mut any = false;
        self.for_each_port(|port, host, qpn, c, side| {
            any |= port.post_recvs(host, qpn, c.rq_log[side], elapsed);
        });
        any
    }

    /// Posts the send WQEs that have room.
    fn post_sends(&mut self) {
        self.for_each_port(|port, host, qpn, c, side| port.post_sends(host, qpn, c.sq_log[side]));
    }

    fn for_each_port(&mut self, mut f: impl FnMut(&mut Port, &mut Host, u32, &Connection, usize)) {
        for (connection, ports) in self.ports.iter_mut().enumerate() {
            let c = &self.scenario.connections[connection];
            for (side, port) in ports.iter_mut().enumerate() {
                let qpn = self.bench.links[connection].qpn[side];
                f(port, &mut self.bench.hosts[side], qpn, c, side);
            }
        }
    }

    fn inject(&mut self, elapsed: u64) {
        while self.noise.first().is_some_and(|(at, ..)| *at <= elapsed) {
            let (_, side, frame) = self.noise.remove(0);
            self.bench
                .world
                .inject(self.bench.nodes[side as usize], &frame);
        }
    }

    /// Takes all completions there are; how many there were so far.
    fn poll(&mut self) -> u64 {
        for side in SIDES {
            for cq in 0..self.scenario.cqs {
                let cqn = self.bench.numbers.cqn[side as usize][usize::from(cq)];
                while let Some(cqe) = self.bench.hosts[side as usize].poll(cqn) {
                    self.complete(side, cq.into(), cqe);
                }
            }
        }
        self.outcome
            .completions
            .values()
            .map(|queue| queue.len() as u64)
            .sum()
    }

    fn complete(&mut self, side: Side, cqn: u16, cqe: Cqe) {
        let links = &self.bench.links;
        let Some(connection) = links
            .iter()
            .position(|link| link.qpn[side as usize] == cqe.qpn)
        else {
            let what = format!("{side:?}: completion of a queue pair that is not there: {cqe:?}");
            return self.outcome.failures.push(what);
        };
        let done = self.ports[connection][side as usize].complete(&cqe);
        let done = done.and_then(|messages| self.give_back(&cqe, &messages));
        if let Err(what) = done {
            let what = format!("#{connection} {side:?}: {what}");
            self.outcome.failures.push(what);
        }
        let queue = (connection, side as usize, cqe.recv);
        let completion = Completion::new(cqn, &cqe);
        self.outcome
            .completions
            .entry(queue)
            .or_default()
            .push(completion);
    }

    /// The host has the memory of messages again, of which the last has a completion.
    fn give_back(&mut self, cqe: &Cqe, messages: &[usize]) -> Result<(), String> {
        let Some((last, before)) = messages.split_last() else {
            return Ok(());
        };
        if cqe.recv {
            return match cqe.status {
                status::SUCCESS => self.owners.received(&self.bench, *last),
                _ => Ok(()),
            };
        }
        for number in before {
            self.owners.sent(&self.bench, *number, status::SUCCESS)?;
        }
        self.owners.sent(&self.bench, *last, cqe.status)
    }

    /// Notes what the run left behind.
    fn conclude(&mut self) {
        let bench = &mut self.bench;
        let names: [&str; region::COUNT] = [
            "source",
            "other source",
            "target",
            "read-only",
            "foreign",
            "result",
            "atomic",
        ];
        for (connection, link) in bench.links.iter().enumerate() {
            for side in SIDES {
                for (name, place) in names.iter().zip(&link.regions[side as usize]) {
                    let name = format!("#{connection} {side:?} {name}");
                    let contents = bench.contents(side, place);
                    self.outcome.memory.insert(name, contents);
                }
            }
        }
        let (flows, broken) = bench.tap.borrow().flows(&bench.links);
        self.outcome.flows = flows;
        self.outcome.failures.extend(broken);
        self.outcome.failures.extend(bench.world.failures());
        self.outcome
            .failures
            .extend(bench.scoreboard.borrow().failures());
        if !self.outcome.failures.is_empty() {
            // A card that hangs or fails is not asked for more.
            return;
        }
        for side in SIDES {
            let host = &mut bench.hosts[side as usize];
            host.nic.hurry(true);
            for (connection, link) in bench.links.iter().enumerate() {
                let state = host.query(link.qpn[side as usize]);
                self.outcome
                    .states
                    .insert((connection, side as usize), state);
            }
            let counters: BTreeMap<_, _> =
                STATS.iter().map(|name| (*name, host.stat(name))).collect();
            let [received, transmitted] = bench.tap.borrow().passed[side as usize];
            for (name, expected) in [
                ("rx_frames", received.frames),
                ("rx_bytes", received.bytes),
                ("tx_frames", transmitted.frames),
                ("tx_bytes", transmitted.bytes),
            ] {
                if counters[name] != expected {
                    self.outcome.failures.push(format!(
                        "{side:?} counts {} as {name}; {expected} passed the port",
                        counters[name]
                    ));
                }
            }
            self.outcome.counters[side as usize] = counters;
        }
    }
}
