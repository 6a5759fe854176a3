//! The device under test as the requester.

use std::rc::Rc;

use ferroce_proto::abi::cq::{Cqe, status};
use ferroce_proto::abi::wqe::{Sge, opcode};
use ferroce_proto::wire::{NakCode, Operation, Psn, RethRepr, Syndrome};

use super::compare::{self, Sent};
use super::flow::{Connection, Sender};
use super::input::{Frame, Refusal};
use super::rig::{Rig, Setup, log2};
use super::{Counts, Difference, Error, Options, Outcome};
use crate::memory::{HostMemory, Ranges};
use crate::nic::Nic;
use crate::testhost::{QpOptions, Work};

/// Log2 of the slots of the longest send queue.
const MAX_SQ_LOG: u8 = 15;

/// A message of the capture.
struct Message {
    work: Work,
    /// Its payload.
    data: Vec<u8>,
    /// Place of its first packet among the steps of the connection.
    step: usize,
    last: Psn,
}

/// Replays a connection.
pub(super) fn run<E>(
    connection: &Connection<'_>,
    options: &Options,
    build: impl FnOnce(Rc<dyn HostMemory>) -> Result<Box<dyn Nic>, E>,
) -> Result<Outcome, Error<E>> {
    let messages = messages(connection)?;
    let like = connection
        .requests()
        .next()
        .expect("a connection has requests");
    let mtu = connection.path_mtu();
    let sq_log = log2(messages.len() + 1);
    if sq_log > MAX_SQ_LOG {
        let what = format!("send queue of {} entries", messages.len());
        return Err(Refusal::Lacking(what).into());
    }
    let memory = Rc::new(Ranges::new());
    let nic = build(memory.clone()).map_err(Error::Device)?;
    let setup = Setup {
        local: connection.requester,
        remote: connection.responder,
        like,
        options: QpOptions {
            mtu,
            sq_log,
            ot_log: sq_log,
            // Answers come when the device is quiet, however long that takes.
            timeout: 0,
            psn: like.psn().value(),
            vlan: like.packet.headers.eth.vlan,
            ..QpOptions::default()
        },
        remote_psn: connection.from_responder.map_or(Psn::new(0), |a| a.psn),
        memory,
        regions: &[],
        malformed: options.malformed,
        completions: messages.len(),
    };
    let mut rig = Rig::new(nic, &setup)?;
    let data: Vec<u8> = messages.iter().flat_map(|m| m.data.clone()).collect();
    let (base, lkey) = rig.buffer(&data)?;
    let mut counts = Counts {
        bytes: data.len() as u64,
        ..Counts::default()
    };
    let (mut sent, mut differences) = (Vec::new(), Vec::new());
    let mut left = messages.iter().peekable();
    let mut at = base;
    let mut index = 0;
    while index < connection.steps.len() {
        let (sender, _) = connection.steps[index];
        let alike = connection.steps[index..]
            .iter()
            .take_while(|s| s.0 == sender);
        let end = index + alike.count();
        match sender {
            Sender::Requester => {
                while let Some(message) = left.next_if(|message| message.step < end) {
                    let entry = Sge {
                        addr: at,
                        length: message.data.len() as u32,
                        lkey,
                    };
                    at += u64::from(entry.length);
                    let mut work = message.work.clone();
                    work.list.extend((entry.length > 0).then_some(entry));
                    rig.host.post_send(rig.qpn, &work);
                }
            }
            Sender::Responder => {
                for (_, frame) in &connection.steps[index..end] {
                    rig.feed(&frame.bytes);
                    counts.fed += 1;
                }
            }
        }
        for bytes in rig.settle() {
            counts.sent += 1;
            match Sent::check(bytes) {
                Ok(packet) => sent.push(packet),
                Err(difference) => differences.push(difference),
            }
        }
        index = end;
    }
    let recorded: Vec<_> = connection.requests().collect();
    counts.recorded = recorded.len() as u64;
    let comparisons = compare::requests(&recorded, &sent);
    differences.extend(compare::judge(&comparisons, &mut counts));
    let completions = rig.completions();
    counts.completions = completions.len() as u64;
    differences.extend(check_completions(
        &expected(connection, &messages),
        &completions,
    ));
    differences.extend(rig.finish());
    counts.malformed = rig.malformed();
    counts.cycles = rig.host.nic.now();
    let recorded_qpn = connection.requester.qpn;
    Ok(Outcome {
        requester: connection.requester,
        responder: connection.responder,
        local_qpn: rig.qpn,
        mapped_from: (rig.qpn != recorded_qpn).then_some(recorded_qpn),
        mtu: mtu.bytes(),
        comparisons,
        differences,
        counts,
        passed: rig.passed,
    })
}

/// The messages, whole and each sent once.
fn messages(connection: &Connection<'_>) -> Result<Vec<Message>, Refusal> {
    let mut messages: Vec<Message> = Vec::new();
    let mut open = false;
    let mut next: Option<Psn> = None;
    for (step, &(sender, frame)) in connection.steps.iter().enumerate() {
        if sender == Sender::Responder {
            continue;
        }
        let (opcode, psn) = (frame.opcode(), frame.psn());
        let unsupported = Refusal::Unsupported {
            number: frame.number,
            opcode,
            psn,
            role: "the requester",
            known: "SEND and WRITE, with and without immediate, sent once,",
        };
        if !matches!(opcode.operation(), Operation::Send | Operation::Write)
            || opcode.has_ieth()
            || next.is_some_and(|next| psn.since(next) < 0)
        {
            return Err(unsupported);
        }
        if open == opcode.is_start() || next.is_some_and(|next| next != psn) {
            return Err(Refusal::Underivable {
                number: frame.number,
                what: format!(
                    "{opcode:?} PSN {psn} does not follow the packet before; the requester replays \
                     messages that were captured whole"
                ),
            });
        }
        if opcode.is_start() {
            messages.push(Message {
                work: work(frame),
                data: Vec::new(),
                step,
                last: psn,
            });
        }
        let message = messages.last_mut().expect("a message is open");
        message.data.extend(frame.payload());
        message.last = psn;
        if let Some(imm) = frame.packet.headers.ext.imm {
            message.work = message.work.clone().imm(imm);
        }
        message.work.head.solicited = frame.packet.headers.bth.solicited;
        open = !opcode.is_end();
        next = Some(psn.next());
    }
    Ok(messages)
}

/// The work request of a message that starts with `frame`, without its payload.
fn work(frame: &Frame) -> Work {
    match frame.packet.headers.ext.reth {
        None => Work::new(opcode::SEND, &[]),
        Some(RethRepr { va, rkey, .. }) => {
            let mut work = Work::new(opcode::WRITE, &[]);
            (work.head.remote_addr, work.head.rkey) = (va, rkey);
            work
        }
    }
}

/// Index and status of the completions that the recorded answers bring about.
fn expected(connection: &Connection<'_>, messages: &[Message]) -> Vec<(u16, u8)> {
    let mut found: Vec<(u16, u8)> = Vec::new();
    let indices = 0..messages.len() as u16;
    for frame in connection.answers_recorded() {
        let syndrome = frame.packet.headers.ext.aeth.map(|aeth| aeth.syndrome);
        let failed = match syndrome {
            Some(Syndrome::Nak(NakCode::InvalidRequest)) => Some(status::REM_INV_REQ_ERR),
            Some(Syndrome::Nak(NakCode::RemoteAccess)) => Some(status::REM_ACCESS_ERR),
            Some(Syndrome::Nak(NakCode::RemoteOperational)) => Some(status::REM_OP_ERR),
            _ => None,
        };
        let through = compare::acknowledged(&frame.packet);
        let done = messages[found.len()..].iter();
        let done = done.take_while(|m| through.since(m.last) >= 0).count();
        let ok = indices.clone().skip(found.len()).take(done);
        found.extend(ok.map(|index| (index, status::SUCCESS)));
        if let Some(failed) = failed {
            let rest = indices.clone().skip(found.len());
            let statuses = std::iter::once(failed).chain(std::iter::repeat(status::WR_FLUSH_ERR));
            found.extend(rest.zip(statuses));
            break;
        }
    }
    found
}

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
