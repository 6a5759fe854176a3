//! Follows the requests of a capture as a responder does, and writes the [`Script`].

mod execute;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use ferroce_proto::abi::cq::{opcode as cqe_opcode, status};
use ferroce_proto::wire::ip::GRH_LEN;
use ferroce_proto::wire::{Class, Mtu, NakCode, Operation, Psn, RethRepr, Syndrome};

use super::flow::{Connection, Sender};
use super::input::{Frame, Refusal};
use super::learned::Learned;
use super::regions::Regions;
use super::script::{After, Completion, HostWrite, Receive, Script};
use crate::memory::Ranges;

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

/// A [`Script`] in the making.
pub(super) struct Writer<'a> {
    steps: &'a [(Sender, &'a Frame)],
    mtu: Mtu,
    qkey: u32,
    /// First PSN.
    start: Psn,
    expected: Psn,
    msn: u32,
    /// The responder has refused a request for good.
    failed: bool,
    inbound: Option<Inbound>,
    /// The last receive WQE was taken by a message that was dropped; the next message takes it.
    unused: bool,
    after: Vec<Option<After>>,
    due: Option<Psn>,
    receives: Vec<Receive>,
    /// Payload bytes of WRITEs.
    written: usize,
    memory: Learned,
    host_writes: BTreeMap<usize, Vec<HostWrite>>,
    regions: Regions,
    /// Keys that SENDs invalidate.
    invalidated: Vec<u32>,
    too_long: Option<Psn>,
    msns: HashMap<Psn, u32>,
    repeated: HashSet<Psn>,
    /// First PSN of each READ executed.
    reads: HashSet<Psn>,
    resumed: HashSet<Psn>,
    /// Requests are repeated or missing.
    pub(super) lossy: bool,
    /// A packet beyond this PSN came when it was expected: that draws a NAK.
    past_end: Option<Psn>,
}

impl<'a> Writer<'a> {
    /// Before the first request.
    pub(super) fn new(connection: &'a Connection<'a>) -> Self {
        let start = connection.start();
        Self {
            steps: &connection.steps,
            mtu: connection.path_mtu(),
            qkey: connection.qkey(),
            start,
            expected: start,
            msn: 0,
            failed: false,
            inbound: None,
            unused: false,
            after: Vec::new(),
            due: None,
            receives: Vec::new(),
            written: 0,
            memory: Learned::default(),
            host_writes: BTreeMap::new(),
            regions: Regions::new(connection.from_responder.as_ref()),
            invalidated: Vec::new(),
            too_long: None,
            msns: HashMap::from([(start.prev(), 0)]),
            repeated: HashSet::new(),
            reads: HashSet::new(),
            resumed: HashSet::new(),
            lossy: false,
            past_end: None,
        }
    }

    /// Where the connection stands now.
    pub(super) fn after(&self) -> After {
        After {
            receives: self.receives.len(),
            due: self.due,
            executed: self.expected.prev(),
            repeated: false,
            lost: false,
        }
    }

    /// A step was taken.
    pub(super) fn push(&mut self, after: Option<After>) {
        self.after.push(after);
    }

    /// A request of a reliable connection.
    pub(super) fn request(&mut self, at: usize, frame: &Frame) -> Result<(), Refusal> {
        let distance = frame.psn().since(self.expected);
        let outcome = outcome(frame, &self.steps[at + 1..]);
        self.lossy |= distance != 0;
        if distance > 0 {
            self.past_end = Some(self.expected);
        }
        if self.failed || distance > 0 {
            return Ok(());
        }
        if distance < 0 {
            self.duplicate(at, frame);
            return Ok(());
        }
        match outcome {
            Outcome::NotReady => Ok(()),
            Outcome::Executed => self.execute(at, frame),
            Outcome::Refused(code) => {
                self.failed = true;
                self.refuse(frame, code)
            }
        }
    }

    /// The responder asked for this very request afterwards, for no other reason than that it never came.
    pub(super) fn is_lost(&self, at: usize, frame: &Frame) -> bool {
        let psn = frame.psn();
        if psn != self.expected || self.past_end == Some(psn) || self.failed {
            return false;
        }
        for (sender, later) in &self.steps[at + 1..] {
            let distance = later.psn().since(psn);
            match sender {
                Sender::Requester if distance == 0 => return false,
                Sender::Requester => {}
                Sender::Responder if distance == 0 => return later.is_sequence_nak(),
                Sender::Responder if distance > 0 => return false,
                Sender::Responder => {}
            }
        }
        false
    }

    /// A request that was executed before; only a READ reads once more.
    fn duplicate(&mut self, at: usize, frame: &Frame) {
        let psns = (0..frame.psns(self.mtu)).map(|n| frame.psn().add(n));
        self.repeated.extend(psns);
        if frame.opcode().operation() == Operation::ReadRequest {
            if !self.reads.contains(&frame.psn()) {
                self.resumed.insert(frame.psn());
            }
            self.read(at, frame);
        }
    }

    /// UC: a gap drops the message under way and what is left of it (IB1 9.8.2).
    pub(super) fn unreliable(&mut self, frame: &Frame) -> Result<(), Refusal> {
        let (opcode, psn) = (frame.opcode(), frame.psn());
        if psn != self.expected || opcode.is_start() {
            let dropped = self.inbound.take();
            if dropped.is_some_and(|message| message.operation == Operation::Send) {
                self.unused = true;
            }
        }
        self.expected = psn.next();
        if self.in_order(frame) {
            self.place(frame)?;
        }
        Ok(())
    }

    /// UD: behind the IP header; a Q_Key that is not that of the queue pair is dropped.
    pub(super) fn datagram(&mut self, frame: &Frame) -> Result<(), Refusal> {
        let headers = &frame.packet.headers;
        let deth = headers.ext.deth.expect("a datagram has a DETH");
        if deth.qkey != self.qkey {
            return Ok(());
        }
        // The header stands at the end of 40 bytes; an IPv4 header is as long as its IHL, here 20.
        let (ip, len) = (headers.eth.header_len(), headers.ip.header_len());
        let mut data = vec![0; GRH_LEN - len];
        data.extend(&frame.bytes[ip..ip + len]);
        data.extend(frame.payload());
        self.receives.push(Receive {
            len: data.len(),
            completion: Completion {
                status: status::SUCCESS,
                opcode: cqe_opcode::RECV,
                byte_len: data.len() as u32,
                imm: headers.ext.imm,
                inv: None,
                solicited: headers.bth.solicited,
                datagram: Some(deth.src_qp),
            },
            data,
            stale: 0,
        });
        Ok(())
    }

    pub(super) fn is_repeated(&self, frame: &Frame) -> bool {
        let asks = frame.packet.headers.bth.ack_req
            && matches!(
                frame.opcode().operation(),
                Operation::Send | Operation::Write
            );
        let reliable = frame.opcode().class() == Class::Rc;
        asks && reliable && !self.failed && frame.psn().since(self.expected) < 0
    }

    pub(super) fn finish(mut self, rnr_timer: u8) -> Result<Script, Refusal> {
        let open = self.inbound.take();
        if (self.unused || open.is_some_and(|message| message.operation == Operation::Send))
            && let Some(receive) = self.receives.last_mut()
            && receive.len == 0
        {
            // The capture ends within the message.
            receive.len = receive.data.len().max(receive.stale);
            receive.completion.status = status::WR_FLUSH_ERR;
        }
        let (memory, expected) = (Rc::new(Ranges::new()), Ranges::new());
        self.regions.know(&self.invalidated);
        let regions = self.regions.finish()?;
        let pieces = regions.pieces;
        for &(addr, len) in &pieces {
            let (first, now) = self.memory.piece(addr, len);
            memory.map(addr, first).expect("pieces are apart");
            expected.map(addr, now).expect("pieces are apart");
        }
        self.host_writes.retain(|_, writes| !writes.is_empty());
        Ok(Script {
            mtu: self.mtu,
            start: self.start,
            rnr_timer,
            after: self.after,
            receives: self.receives,
            regions: regions.targets,
            memory,
            expected,
            pieces,
            written: self.written,
            too_long: self.too_long,
            msns: self.msns,
            host_writes: self.host_writes,
            repeated: self.repeated,
            resumed: self.resumed,
            lossy: self.lossy,
        })
    }
}
