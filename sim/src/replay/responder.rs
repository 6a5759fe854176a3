//! The device under test as the responder.

use std::rc::Rc;

use ferroce_proto::abi::cq::{Cqe, status};
use ferroce_proto::abi::qpc::MAX_RD_ATOMIC;
use ferroce_proto::abi::wqe::Sge;
use ferroce_proto::wire::{Class, Operation, Psn};

use super::compare::{self, Comparison, Rules};
use super::flow::{Connection, Sender};
use super::input::{Frame, Refusal};
use super::rig::{Rig, Setup, log2};
use super::script::{Completion, Receive, Script};
use super::sent::Sent;
use super::{Counts, Difference, Error, FILL, Options, Outcome};
use crate::memory::HostMemory;
use crate::nic::Nic;
use crate::testhost::QpOptions;

/// Log2 of the entries of the longest receive queue.
const MAX_RQ_LOG: u8 = 15;

/// Distance of receive buffers in bytes beyond their length, filled and compared as they are.
const GUARD: usize = 64;

/// Replays a connection.
pub(super) fn run<E>(
    connection: &Connection<'_>,
    options: &Options,
    build: impl FnOnce(Rc<dyn HostMemory>) -> Result<Box<dyn Nic>, E>,
) -> Result<Outcome, Error<E>> {
    let script = Script::derive(connection)?;
    let nic = build(script.memory.clone()).map_err(Error::Device)?;
    let mut run = Run::new(connection, &script, options, nic)?;
    run.play();
    run.check_answers();
    run.check_completions();
    run.check_memory();
    run.differences.extend(run.rig.finish());
    run.counts.malformed = run.rig.malformed();
    run.counts.cycles = run.rig.host.nic.now();
    Ok(Outcome {
        requester: connection.requester,
        responder: connection.responder,
        local_qpn: run.rig.qpn,
        mapped_from: (run.rig.qpn != connection.responder.qpn).then_some(connection.responder.qpn),
        mtu: script.mtu.bytes(),
        comparisons: run.comparisons,
        differences: run.differences,
        counts: run.counts,
        passed: run.rig.passed,
    })
}

/// A run under way.
struct Run<'a> {
    connection: &'a Connection<'a>,
    script: &'a Script,
    rig: Rig,
    /// Address of each receive buffer.
    buffers: Vec<u64>,
    /// First address and lkey of all of them.
    arena: (u64, u32),
    posted: usize,
    sent: Vec<Sent>,
    /// What the device has acknowledged so far.
    done: Option<Psn>,
    completions: Vec<Cqe>,
    comparisons: Vec<Comparison>,
    differences: Vec<Difference>,
    counts: Counts,
}

impl<'a> Run<'a> {
    fn new(
        connection: &'a Connection<'a>,
        script: &'a Script,
        options: &Options,
        nic: Box<dyn Nic>,
    ) -> Result<Self, Refusal> {
        let rq_log = log2(script.receives.len() + 1);
        if rq_log > MAX_RQ_LOG {
            let what = format!("receive queue of {} entries", script.receives.len());
            return Err(Refusal::Lacking(what));
        }
        // An unreliable responder sends nothing, so that its path does not matter.
        let like = connection.answers_recorded().next();
        let setup = Setup {
            local: connection.responder,
            remote: connection.requester,
            like: like.unwrap_or(connection.steps[0].1),
            needs: connection.needs(),
            options: QpOptions {
                qp_type: connection.qp_type(),
                qkey: connection.qkey(),
                max_rd_atomic: MAX_RD_ATOMIC,
                mtu: script.mtu,
                rq_log,
                min_rnr_timer: script.rnr_timer,
                vlan: connection.steps[0].1.packet.headers.eth.vlan,
                ..QpOptions::default()
            },
            remote_psn: script.start,
            memory: script.memory.clone(),
            regions: &script.regions,
            malformed: options.malformed,
            completions: script.receives.len(),
        };
        let mut rig = Rig::new(nic, &setup)?;
        let mut offset = 0;
        let offsets = script.receives.iter().map(|receive| {
            let at = offset;
            offset += receive.len + GUARD;
            at as u64
        });
        let offsets: Vec<u64> = offsets.collect();
        let arena = rig.buffer(&vec![FILL; offset])?;
        Ok(Self {
            connection,
            script,
            rig,
            buffers: offsets.iter().map(|offset| arena.0 + offset).collect(),
            arena,
            posted: 0,
            sent: Vec::new(),
            done: None,
            completions: Vec::new(),
            comparisons: Vec::new(),
            differences: Vec::new(),
            counts: Counts::default(),
        })
    }

    fn differ(
        &mut self,
        packet: Option<usize>,
        what: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        self.differences.push(Difference {
            packet,
            what: what.into(),
            expected: expected.into(),
            found: found.into(),
        });
    }

    /// Feeds the requests as they came: those between two recorded answers without a pause, but for what
    /// the host writes in between and for READs beyond those that the device takes at a time.
    fn play(&mut self) {
        let connection = self.connection;
        let steps = &connection.steps;
        let mut index = 0;
        while index < steps.len() {
            let first = index;
            let mut answered = 0;
            while let Some((Sender::Requester, frame)) = steps.get(index) {
                let is_answered = matches!(
                    frame.opcode().operation(),
                    Operation::ReadRequest | Operation::CmpSwap | Operation::FetchAdd
                );
                let pause = self.script.host_writes.contains_key(&index)
                    || (is_answered && answered == MAX_RD_ATOMIC);
                if pause && index > first {
                    break;
                }
                answered += u8::from(is_answered);
                index += 1;
            }
            for (addr, data) in self.script.host_writes.get(&first).into_iter().flatten() {
                self.rig.host.write(*addr, data);
            }
            if index > first {
                self.burst(&steps[first..index], first);
            } else {
                index += 1;
            }
        }
    }

    fn burst(&mut self, burst: &[(Sender, &Frame)], first: usize) {
        let last = first + burst.len() - 1;
        let after = self.script.after[last].expect("a request");
        self.post(after.receives);
        let arrived = burst.iter().zip(&self.script.after[first..=last]);
        for ((_, frame), after) in arrived {
            if after.is_some_and(|after| !after.lost) {
                self.rig.feed(&frame.bytes);
                self.counts.fed += 1;
            }
        }
        let answers = self.rig.settle();
        let steps = self.script.after[first..=last].iter().flatten();
        if answers.is_empty() && steps.into_iter().any(|after| after.repeated) {
            let number = burst[burst.len() - 1].1.number;
            let what = "answer to a repeated request up to this packet";
            self.differ(Some(number), what, "an ACK", "nothing");
        }
        let before = self.sent.len();
        for bytes in answers {
            self.counts.sent += 1;
            match Sent::check(bytes) {
                Ok(sent) => self.sent.push(sent),
                Err(difference) => self.differences.push(difference),
            }
        }
        if self.connection.class != Class::Rc {
            self.completions.extend(self.rig.completions());
            return;
        }
        let acknowledged = self.sent[before..]
            .iter()
            .map(|s| compare::acknowledged(&s.packet));
        self.done = acknowledged.fold(self.done, |done, psn| match done {
            Some(done) if psn.since(done) <= 0 => Some(done),
            _ => Some(psn),
        });
        let done = self.done;
        let too_little = after
            .due
            .is_some_and(|due| done.is_none_or(|done| done.since(due) < 0));
        if too_little || done.is_some_and(|done| done.since(after.executed) > 0) {
            let text = |psn: Option<Psn>| psn.map_or("nothing".to_owned(), |psn| psn.to_string());
            let number = burst[burst.len() - 1].1.number;
            self.differ(
                Some(number),
                "PSN acknowledged when the device is quiet behind this packet",
                text(after.due),
                text(done),
            );
        }
        self.completions.extend(self.rig.completions());
    }

    /// Posts receive WQEs until there were `count`.
    fn post(&mut self, count: usize) {
        if self.posted == count {
            return;
        }
        for index in self.posted..count {
            let entry = Sge {
                addr: self.buffers[index],
                length: self.script.receives[index].len as u32,
                lkey: self.arena.1,
            };
            let list = if entry.length == 0 { &[][..] } else { &[entry] };
            self.rig.host.post_recv(self.rig.qpn, list);
        }
        self.posted = count;
        self.rig.flush();
    }

    fn check_answers(&mut self) {
        let recorded: Vec<_> = self.connection.answers_recorded().collect();
        let msn = |psn| self.script.msn(psn);
        let rules = Rules {
            msn: &msn,
            too_long: self.script.too_long,
            repeated: &self.script.repeated,
            resumed: &self.script.resumed,
            lossy: self.script.lossy,
        };
        self.comparisons = compare::answers(&recorded, &self.sent, &rules);
        self.counts.recorded = recorded.len() as u64;
        let found = compare::reduce(&self.comparisons, &mut self.counts);
        self.differences.extend(found);
    }

    fn check_completions(&mut self) {
        let flushed = |receive: &&Receive| receive.completion.status != status::WR_FLUSH_ERR;
        let expected: Vec<_> = self.script.receives.iter().filter(flushed).collect();
        self.counts.completions = self.completions.len() as u64;
        let found: Vec<_> = std::mem::take(&mut self.completions);
        for index in 0..expected.len().max(found.len()) {
            let due = expected.get(index).map(|receive| receive.completion);
            let came = found.get(index).map(completion_of);
            if due != came {
                let text = |c: Option<Completion>| {
                    c.map_or("nothing".to_owned(), |completion| format!("{completion:?}"))
                };
                let what = format!("receive completion {index}");
                self.differ(None, what, text(due), text(came));
            }
        }
        for (index, cqe) in found.iter().enumerate() {
            let is_own = (cqe.qpn, cqe.wqe_index) == (self.rig.qpn, index as u16);
            if !is_own || !cqe.recv {
                let expected = format!("WQE {index} of queue pair {:#x}", self.rig.qpn);
                let actual = format!("WQE {} of queue pair {:#x}", cqe.wqe_index, cqe.qpn);
                let what = format!("owner of receive completion {index}");
                self.differ(None, what, expected, actual);
            }
        }
    }

    /// Every byte that the device could reach: what was sent is there, the rest is as it was.
    fn check_memory(&mut self) {
        let mut ranges = Vec::new();
        for &(addr, len) in &self.script.pieces {
            let mut expected = vec![0; len];
            self.script
                .expected
                .read(addr, &mut expected)
                .expect("mapped by the script");
            ranges.push((format!("region at {addr:#x}"), addr, expected));
        }
        for (index, receive) in self.script.receives.iter().enumerate() {
            // What a message that failed or was dropped left behind is not defined; its neighbours are.
            let at = self.buffers[index];
            if receive.completion.status == status::SUCCESS {
                ranges.push((format!("receive buffer {index}"), at, receive.data.clone()));
                self.counts.bytes += receive.data.len() as u64;
            }
            let name = format!("what lies behind receive buffer {index}");
            ranges.push((name, at + receive.len as u64, vec![FILL; GUARD]));
        }
        self.counts.bytes += self.script.written as u64;
        for (name, addr, expected) in ranges {
            let found = self.rig.host.read(addr, expected.len());
            let differs = |(_, (a, b)): &(usize, (&u8, &u8))| a != b;
            let mut places = expected.iter().zip(&found).enumerate().filter(differs);
            if let Some((at, _)) = places.next() {
                let count = 1 + places.count();
                let sample =
                    |bytes: &[u8]| format!("{:02x?}", &bytes[at..bytes.len().min(at + 16)]);
                let what = format!("{count} bytes of {name}, the first at {at:#x}");
                self.differ(None, what, sample(&expected), sample(&found));
            }
        }
    }
}

/// What a completion says: of a failed one nothing but its status counts, as verbs have it.
fn completion_of(cqe: &Cqe) -> Completion {
    match cqe.status {
        status::SUCCESS => Completion {
            status: status::SUCCESS,
            opcode: cqe.opcode,
            byte_len: cqe.byte_len,
            imm: cqe.with_imm.then_some(cqe.imm),
            inv: cqe.with_inv.then_some(cqe.imm),
            solicited: cqe.solicited,
            datagram: cqe.grh.then_some(cqe.src_qpn),
        },
        status => Completion {
            status,
            ..Completion::default()
        },
    }
}
