//! The device under test as the requester.

use std::rc::Rc;

use ferroce_proto::abi::cq::Cqe;
use ferroce_proto::abi::qpc::MAX_RD_ATOMIC;
use ferroce_proto::abi::wqe::Sge;
use ferroce_proto::wire::aeth::RNR_TIMER_NS;
use ferroce_proto::wire::{Class, Psn, Syndrome};

use super::compare;
use super::expect::Expect;
use super::flow::{Connection, Sender};
use super::input::{Frame, Refusal};
use super::messages::{Line, Plan};
use super::rig::{Rig, Setup, log2};
use super::sent::Sent;
use super::{Counts, Difference, Error, FILL, Options, Outcome, resent};
use crate::memory::{HostMemory, Ranges};
use crate::nic::{NS_PER_CYCLE, Nic};
use crate::testhost::QpOptions;

/// Log2 of the slots of the longest send queue.
const MAX_SQ_LOG: u8 = 15;

/// Distance of buffers in bytes beyond their length.
const GUARD: usize = 64;

/// Cycles that the waits which RNR NAKs ask for may take altogether; later ones are cut short by the
/// answer that comes next.
const RNR_WAIT_CYCLES: u64 = 500_000;

/// Replays a connection.
pub(super) fn run<E>(
    connection: &Connection<'_>,
    options: &Options,
    build: impl FnOnce(Rc<dyn HostMemory>) -> Result<Box<dyn Nic>, E>,
) -> Result<Outcome, Error<E>> {
    let plan = Plan::derive(connection)?;
    let like = connection
        .requests()
        .next()
        .expect("a connection has requests");
    let sq_log = log2(plan.messages.len() + 1);
    if sq_log > MAX_SQ_LOG {
        let what = format!("send queue of {} entries", plan.messages.len());
        return Err(Refusal::Lacking(what).into());
    }
    let memory = Rc::new(Ranges::new());
    let nic = build(memory.clone()).map_err(Error::Device)?;
    let setup = Setup {
        local: connection.requester,
        remote: connection.responder,
        like,
        needs: connection.needs(),
        options: QpOptions {
            qp_type: connection.qp_type(),
            qkey: connection.qkey(),
            mtu: plan.mtu,
            sq_log,
            ot_log: sq_log,
            // Answers come when the device is quiet, however long that takes.
            timeout: 0,
            max_rd_atomic: MAX_RD_ATOMIC,
            psn: plan.first().value(),
            vlan: like.packet.headers.eth.vlan,
            ..QpOptions::default()
        },
        remote_psn: connection.from_responder.map_or(Psn::new(0), |a| a.psn),
        memory,
        regions: &[],
        malformed: options.malformed,
        completions: plan.messages.len(),
    };
    let mut rig = Rig::new(nic, &setup)?;
    if connection.class == Class::Ud {
        rig.address_handle(&connection.responder, &like.packet.headers);
    }
    let mut run = Run::new(connection, &plan, rig)?;
    run.play();
    run.finish()
}

/// A run under way.
struct Run<'a, 'p> {
    connection: &'p Connection<'a>,
    plan: &'p Plan<'a>,
    rig: Rig,
    expect: Expect<'a, 'p>,
    /// Address of the buffer of each message.
    buffers: Vec<u64>,
    lkey: u32,
    posted: usize,
    sent: Vec<Sent>,
    /// Number behind the last packet that the device sent.
    reached: i64,
    own: Line,
    /// Cycles to wait before the device sends again, and those left for waits.
    waiting: u64,
    patience: u64,
    counts: Counts,
    differences: Vec<Difference>,
}

impl<'a, 'p> Run<'a, 'p> {
    fn new(
        connection: &'p Connection<'a>,
        plan: &'p Plan<'a>,
        mut rig: Rig,
    ) -> Result<Self, Refusal> {
        let (mut arena, mut offsets) = (Vec::new(), Vec::new());
        for message in &plan.messages {
            offsets.push(arena.len() as u64);
            arena.extend(&message.data);
            arena.resize(arena.len() + message.brings + GUARD, FILL);
        }
        let (base, lkey) = rig.buffer(&arena)?;
        Ok(Self {
            connection,
            plan,
            rig,
            expect: Expect::new(plan),
            buffers: offsets.iter().map(|offset| base + offset).collect(),
            lkey,
            posted: 0,
            sent: Vec::new(),
            reached: plan.messages.first().map_or(0, |m| m.first),
            own: Line::new(plan.origin),
            waiting: 0,
            patience: RNR_WAIT_CYCLES,
            counts: Counts::default(),
            differences: Vec::new(),
        })
    }

    /// Posts messages where their first packet was recorded, feeds the answers where they were.
    fn play(&mut self) {
        let steps = &self.connection.steps;
        let mut line = Line::new(self.plan.origin);
        let mut index = 0;
        while index < steps.len() {
            let sender = steps[index].0;
            let alike = steps[index..].iter().take_while(|s| s.0 == sender).count();
            let end = index + alike;
            match sender {
                Sender::Requester => {
                    for (_, frame) in &steps[index..end] {
                        line.place(frame.psn());
                    }
                    self.post(end);
                }
                Sender::Responder => {
                    for (_, frame) in &steps[index..end] {
                        let place = line.place(frame.psn());
                        self.answer(frame, place);
                    }
                }
            }
            self.settle();
            index = end;
        }
        if self.connection.class != Class::Rc {
            self.expect.sent();
        }
    }

    /// Posts the messages of the steps before `end`.
    fn post(&mut self, end: usize) {
        let room = MAX_UNRELIABLE.min(self.plan.messages.len());
        while let Some(message) = self.plan.messages.get(self.posted)
            && message.step < end
        {
            let entry = Sge {
                addr: self.buffers[self.posted],
                length: (message.data.len() + message.brings) as u32,
                lkey: self.lkey,
            };
            let mut work = message.work.clone();
            work.list.extend((entry.length > 0).then_some(entry));
            self.rig.host.post_send(self.rig.qpn, &work);
            self.posted += 1;
            if self.connection.class != Class::Rc && self.posted.is_multiple_of(room) {
                self.settle();
            }
        }
    }

    /// Feeds an answer when the device has sent what it answers.
    fn answer(&mut self, frame: &Frame, place: i64) {
        if place >= self.plan.end() {
            // To a message that was not captured whole.
            return;
        }
        if place >= self.reached {
            self.settle();
        }
        self.rig.feed(&frame.bytes);
        self.counts.fed += 1;
        self.expect.answer(frame, place, self.posted);
        if let Some(Syndrome::RnrNak { timer }) = frame.syndrome() {
            let ns = u64::from(RNR_TIMER_NS[usize::from(timer & 31)]);
            self.waiting = ns.div_ceil(NS_PER_CYCLE);
        }
    }

    /// Runs until the device is quiet, through the wait that an RNR NAK asked for.
    fn settle(&mut self) {
        let wait = if self.waiting <= self.patience {
            self.waiting
        } else {
            0
        };
        self.patience -= wait;
        self.waiting = 0;
        for bytes in self.rig.settle_after(wait) {
            self.counts.sent += 1;
            match Sent::check(bytes) {
                Ok(packet) => {
                    let place = self.own.place(packet.packet.headers.bth.psn);
                    let message = self.plan.messages.iter().find(|m| m.first == place);
                    let read = message.filter(|m| m.is_answered());
                    self.reached = self.reached.max(read.map_or(place + 1, |m| m.end()));
                    self.sent.push(packet);
                }
                Err(difference) => self.differences.push(difference),
            }
        }
    }

    fn finish<E>(mut self) -> Result<Outcome, Error<E>> {
        let recorded: Vec<_> = self.connection.requests().collect();
        self.counts.recorded = recorded.len() as u64;
        let recorded_qpn = self.connection.requester.qpn;
        let mapped = self.rig.qpn != recorded_qpn;
        if self.connection.class == Class::Ud && mapped {
            // Its own number stands in its datagrams.
            self.sent
                .iter_mut()
                .for_each(|own| own.come_from(recorded_qpn));
        }
        let comparisons = if self.plan.in_order && !self.expect.lossy {
            let whole: Vec<_> = recorded.into_iter().take(self.plan.captured()).collect();
            compare::requests(&whole, &self.sent)
        } else {
            resent::requests(self.plan, self.posted, &self.sent)
        };
        let found = compare::reduce(&comparisons, &mut self.counts);
        self.differences.extend(found);
        let completions = self.rig.completions();
        self.counts.completions = completions.len() as u64;
        let due = self.expect.completions();
        self.differences
            .extend(check_completions(&due, &completions));
        self.check_memory();
        self.differences.extend(self.rig.finish());
        self.counts.malformed = self.rig.malformed();
        self.counts.cycles = self.rig.host.nic.now();
        Ok(Outcome {
            requester: self.connection.requester,
            responder: self.connection.responder,
            local_qpn: self.rig.qpn,
            mapped_from: mapped.then_some(recorded_qpn),
            mtu: self.plan.mtu.bytes(),
            comparisons,
            differences: self.differences,
            counts: self.counts,
            passed: self.rig.passed,
        })
    }

    /// What complete messages brought is there, what they sent is as it was, and so is what lies between.
    fn check_memory(&mut self) {
        let done = self.expect.done();
        for (index, message) in self.plan.messages.iter().enumerate() {
            let at = self.buffers[index];
            let mut parts = vec![(
                at + (message.data.len() + message.brings) as u64,
                vec![FILL; GUARD],
            )];
            if index < done || !message.is_answered() {
                let mut bytes = message.data.clone();
                bytes.extend(&self.expect.brought[index]);
                self.counts.bytes += bytes.len() as u64;
                parts.push((at, bytes));
            }
            for (addr, expected) in parts {
                let found = self.rig.host.read(addr, expected.len());
                let mut places = expected
                    .iter()
                    .zip(&found)
                    .enumerate()
                    .filter(|(_, (a, b))| a != b);
                if let Some((at, _)) = places.next() {
                    let count = 1 + places.count();
                    let sample =
                        |bytes: &[u8]| format!("{:02x?}", &bytes[at..bytes.len().min(at + 16)]);
                    self.differences.push(Difference {
                        packet: message.frame.map(|frame| frame.number),
                        what: format!(
                            "{count} bytes of the buffer of message {index}, the first at {at:#x}"
                        ),
                        expected: sample(&expected),
                        found: sample(&found),
                    });
                }
            }
        }
    }
}

/// Unreliable messages posted at a time.
const MAX_UNRELIABLE: usize = 64;

fn check_completions(expected: &[(u16, u8)], found: &[Cqe]) -> Vec<Difference> {
    let text = |entry: Option<(u16, u8)>| {
        entry.map_or("nothing".to_owned(), |(index, status)| {
            format!("WQE {index} with status {status}")
        })
    };
    let places = 0..expected.len().max(found.len());
    let pairs = places.map(|place| {
        let came = found.get(place).map(|cqe| (cqe.wqe_index, cqe.status));
        (place, expected.get(place).copied(), came)
    });
    pairs
        .filter(|(_, due, came)| due != came)
        .map(|(place, due, came)| Difference {
            packet: None,
            what: format!("send completion {place}"),
            expected: text(due),
            found: text(came),
        })
        .collect()
}
