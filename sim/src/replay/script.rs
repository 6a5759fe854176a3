//! What a responder must be given and must do, told from the requests of a capture and their answers.
//!
//! This is a responder of its own, without anything of the golden model: it follows PSNs and messages,
//! and learns from the recorded answers which requests were refused and why.

use std::rc::Rc;

use ferroce_proto::abi::cq::{opcode as cqe_opcode, status};
use ferroce_proto::wire::{Mtu, NakCode, Operation, Psn, RethRepr, Syndrome, psn};

use super::flow::{Connection, Sender};
use super::input::{Frame, Refusal};
use super::regions::{Regions, Target};
use crate::memory::Ranges;

/// A receive WQE and what becomes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Receive {
    /// Length of the buffer in bytes: that of the message, or one less than what did not fit.
    pub(super) len: usize,
    /// What is in the buffer afterwards, from its start.
    pub(super) data: Vec<u8>,
    /// Its completion.
    pub(super) completion: Completion,
}

/// What a receive completion says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Completion {
    /// `cq::status`.
    pub(super) status: u8,
    /// `cq::opcode`.
    pub(super) opcode: u8,
    pub(super) byte_len: u32,
    pub(super) imm: Option<u32>,
    pub(super) solicited: bool,
}

/// Where the connection stands after a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct After {
    /// Receive WQEs that must be posted before the request.
    pub(super) receives: usize,
    /// Everything up to this PSN must be acknowledged when the responder is quiet.
    pub(super) due: Option<Psn>,
    /// Nothing behind this PSN was executed.
    pub(super) executed: Psn,
    /// It asked for an acknowledgement once more and must have an answer.
    pub(super) repeated: bool,
}

/// What the responder must be given and must do.
pub(super) struct Script {
    /// Path MTU: the size of packets that are not the last, or the least that the packets fit in.
    pub(super) mtu: Mtu,
    /// First PSN expected.
    pub(super) start: Psn,
    /// RNR NAK timer code.
    pub(super) rnr_timer: u8,
    /// A step of the connection each; `None` for answers.
    pub(super) after: Vec<Option<After>>,
    pub(super) receives: Vec<Receive>,
    /// Memory regions by rkey: first and last address.
    pub(super) regions: Vec<Target>,
    /// The memory under the regions before the first request.
    pub(super) memory: Rc<Ranges>,
    /// The same after the last one.
    pub(super) expected: Ranges,
    /// Pieces of that memory: address and length.
    pub(super) pieces: Vec<(u64, usize)>,
    /// Payload bytes that WRITEs place.
    pub(super) written: usize,
    /// The SEND that did not fit its receive buffer.
    pub(super) too_long: Option<Psn>,
    /// MSN in an answer to each executed request packet.
    msns: Vec<(Psn, u32)>,
}

/// A message that is not complete.
struct Inbound {
    operation: Operation,
    reth: Option<RethRepr>,
    received: u32,
}

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Executed,
    NotReady,
    Refused(NakCode),
}

impl Script {
    /// MSN of an answer up to `psn`; `None` if no executed request has it.
    pub(super) fn msn(&self, psn: Psn) -> Option<u32> {
        let place = self.msns.iter().rev().find(|(at, _)| *at == psn);
        place.map(|(_, msn)| *msn)
    }

    /// Derives it.
    pub(super) fn derive(connection: &Connection<'_>) -> Result<Self, Refusal> {
        let first = connection
            .requests()
            .next()
            .expect("a connection has requests");
        let announced = connection.from_requester.map(|a| a.psn);
        let start = announced.unwrap_or(first.psn());
        let mut writer = Writer {
            expected: start,
            msn: 0,
            failed: false,
            inbound: None,
            after: Vec::new(),
            due: None,
            receives: Vec::new(),
            writes: Vec::new(),
            regions: Regions::new(connection.from_responder.as_ref()),
            too_long: None,
            msns: vec![(start.prev(), 0)],
        };
        for (index, &(sender, frame)) in connection.steps.iter().enumerate() {
            let after = match sender {
                Sender::Responder => None,
                Sender::Requester => {
                    let outcome = outcome(frame, &connection.steps[index + 1..]);
                    let repeated = writer.is_repeated(frame);
                    writer.request(frame, outcome)?;
                    Some(After {
                        receives: writer.receives.len(),
                        due: writer.due,
                        executed: writer.expected.prev(),
                        repeated,
                    })
                }
            };
            writer.after.push(after);
        }
        writer.finish(connection.path_mtu(), start, rnr_timer(connection))
    }
}

/// How `request` was answered, by what follows it in the capture.
fn outcome(request: &Frame, later: &[(Sender, &Frame)]) -> Outcome {
    let psn = request.psn();
    for &(sender, frame) in later {
        if sender == Sender::Requester {
            if frame.psn() == psn {
                break;
            }
            continue;
        }
        let syndrome = frame.packet.headers.ext.aeth.map(|aeth| aeth.syndrome);
        match (frame.psn().since(psn), syndrome) {
            (0, Some(Syndrome::RnrNak { .. })) => return Outcome::NotReady,
            (0, Some(Syndrome::Nak(NakCode::PsnSequence))) => {}
            (0, Some(Syndrome::Nak(code))) => return Outcome::Refused(code),
            (0.., _) => break,
            _ => {}
        }
    }
    Outcome::Executed
}

/// RNR NAK timer code of the answers; that of 0.64 ms if they have none.
fn rnr_timer(connection: &Connection<'_>) -> u8 {
    let timer = |f: &Frame| match f.packet.headers.ext.aeth?.syndrome {
        Syndrome::RnrNak { timer } => Some(timer),
        _ => None,
    };
    connection.answers_recorded().find_map(timer).unwrap_or(12)
}

/// A [`Script`] in the making.
struct Writer {
    expected: Psn,
    msn: u32,
    /// The responder has refused a request for good.
    failed: bool,
    inbound: Option<Inbound>,
    after: Vec<Option<After>>,
    due: Option<Psn>,
    receives: Vec<Receive>,
    /// Address and payload of each WRITE packet.
    writes: Vec<(u64, Vec<u8>)>,
    regions: Regions,
    too_long: Option<Psn>,
    msns: Vec<(Psn, u32)>,
}

impl Writer {
    fn request(&mut self, frame: &Frame, outcome: Outcome) -> Result<(), Refusal> {
        let (opcode, psn) = (frame.opcode(), frame.psn());
        if !matches!(opcode.operation(), Operation::Send | Operation::Write) || opcode.has_ieth() {
            return Err(Refusal::Unsupported {
                number: frame.number,
                opcode,
                psn,
                role: "the responder",
                known: "SEND and WRITE, with and without immediate,",
            });
        }
        if self.failed || psn != self.expected {
            return Ok(());
        }
        match outcome {
            Outcome::NotReady => Ok(()),
            Outcome::Executed => self.execute(frame),
            Outcome::Refused(code) => {
                self.failed = true;
                self.refuse(frame, code)
            }
        }
    }

    fn is_repeated(&self, frame: &Frame) -> bool {
        let asks = frame.packet.headers.bth.ack_req;
        asks && !self.failed && frame.psn().since(self.expected) < 0
    }

    /// Whether the packet continues the message under way, or starts one when there is none.
    fn in_order(&self, frame: &Frame) -> bool {
        let opcode = frame.opcode();
        match &self.inbound {
            None => opcode.is_start(),
            Some(message) => !opcode.is_start() && message.operation == opcode.operation(),
        }
    }

    fn execute(&mut self, frame: &Frame) -> Result<(), Refusal> {
        let (opcode, psn, ext) = (frame.opcode(), frame.psn(), &frame.packet.headers.ext);
        if !self.in_order(frame) {
            return Err(Refusal::OutOfPlace {
                number: frame.number,
                opcode,
                psn,
            });
        }
        let is_send = opcode.operation() == Operation::Send;
        if opcode.is_start() {
            self.inbound = Some(Inbound {
                operation: opcode.operation(),
                reth: ext.reth,
                received: 0,
            });
            if is_send {
                self.receives.push(Receive::default());
            }
            if let Some(RethRepr { va, rkey, dma_len }) = ext.reth {
                self.regions.allow(frame.number, rkey, va, dma_len)?;
            }
        }
        let message = self.inbound.as_mut().expect("in order");
        match message.reth {
            None => {
                let receive = self.receives.last_mut().expect("posted at the start");
                receive.data.extend(frame.payload());
            }
            Some(reth) => {
                let at = reth.va.wrapping_add(message.received.into());
                self.writes.push((at, frame.payload().to_vec()));
            }
        }
        message.received += frame.payload().len() as u32;
        if opcode.is_end() {
            let message = self.inbound.take().expect("in order");
            self.msn = (self.msn + 1) & psn::MASK;
            if !is_send && ext.imm.is_some() {
                self.receives.push(Receive::default());
            }
            if is_send || ext.imm.is_some() {
                let receive = self.receives.last_mut().expect("just posted");
                receive.len = receive.data.len();
                receive.completion = Completion {
                    status: status::SUCCESS,
                    opcode: if is_send {
                        cqe_opcode::RECV
                    } else {
                        cqe_opcode::RECV_WRITE_IMM
                    },
                    byte_len: message.received,
                    imm: ext.imm,
                    solicited: frame.packet.headers.bth.solicited,
                };
            }
        }
        self.msns.push((psn, self.msn));
        self.expected = psn.next();
        if frame.packet.headers.bth.ack_req {
            self.due = Some(psn);
        }
        Ok(())
    }

    /// Sees to it that the device under test has the reason to refuse that the recorded one had.
    fn refuse(&mut self, frame: &Frame, code: NakCode) -> Result<(), Refusal> {
        let headers = &frame.packet.headers;
        match (frame.opcode().operation(), code, headers.ext.reth) {
            (Operation::Write, NakCode::RemoteAccess, Some(reth)) => {
                self.regions
                    .deny(frame.number, reth.rkey, reth.va, reth.dma_len)
            }
            (Operation::Send, NakCode::InvalidRequest | NakCode::RemoteOperational, _)
                if self.in_order(frame) && !frame.payload().is_empty() =>
            {
                if frame.opcode().is_start() {
                    self.receives.push(Receive::default());
                }
                let receive = self.receives.last_mut().expect("posted at the start");
                receive.len = receive.data.len() + frame.payload().len() - 1;
                receive.completion = Completion {
                    status: status::LOC_LEN_ERR,
                    ..Completion::default()
                };
                self.too_long = Some(frame.psn());
                Ok(())
            }
            // What is wrong with it stands in the request itself.
            (_, NakCode::InvalidRequest, _) => Ok(()),
            _ => Err(Refusal::Underivable {
                number: frame.number,
                what: format!(
                    "{:?} PSN {} was refused with {code:?}, for a reason that is not on the wire",
                    frame.opcode(),
                    frame.psn()
                ),
            }),
        }
    }

    fn finish(mut self, mtu: Mtu, start: Psn, rnr_timer: u8) -> Result<Script, Refusal> {
        if let Some(message) = self.inbound.take()
            && message.operation == Operation::Send
            && let Some(receive) = self.receives.last_mut()
            && receive.len == 0
        {
            // The capture ends within the message.
            receive.len = receive.data.len();
            receive.completion.status = status::WR_FLUSH_ERR;
        }
        let (memory, expected) = (Rc::new(Ranges::new()), Ranges::new());
        let regions = self.regions.finish()?;
        let pieces = regions.pieces;
        for &(addr, len) in &pieces {
            for ranges in [&*memory, &expected] {
                let fill = vec![super::FILL; len];
                ranges.map(addr, fill).expect("pieces are apart");
            }
        }
        let mut written = 0;
        for (addr, data) in &self.writes {
            crate::memory::HostMemory::write(&expected, *addr, data).expect("within a region");
            written += data.len();
        }
        Ok(Script {
            mtu,
            start,
            rnr_timer,
            after: self.after,
            receives: self.receives,
            regions: regions.targets,
            memory,
            expected,
            pieces,
            written,
            too_long: self.too_long,
            msns: self.msns,
        })
    }
}
