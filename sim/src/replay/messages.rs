//! The messages of a requester, put together from the packets of a capture.

use std::collections::BTreeMap;

use ferroce_proto::abi::wqe::{AtomicOperands, opcode};
use ferroce_proto::wire::{Class, Mtu, Operation, Position, Psn, psn};

use super::compare;
use super::flow::{Connection, Sender};
use super::input::{Frame, Refusal};
use crate::testhost::Work;

/// Packets missing in a row of unreliable traffic that other messages can stand in for.
const MAX_GAP: i64 = 4096;

/// Address handle of datagrams.
pub(super) const HANDLE: u32 = 0;

/// A message of the capture.
pub(super) struct Message<'a> {
    /// The work request, without its list.
    pub(super) work: Work,
    /// The payload that it sends.
    pub(super) data: Vec<u8>,
    /// Bytes that it brings.
    pub(super) brings: usize,
    /// Its first PSN, counted from that of the first packet captured.
    pub(super) first: i64,
    pub(super) packets: u32,
    /// Step of the connection with which it is posted.
    pub(super) step: usize,
    /// Its first packet; `None` if it stands in for one that was not captured.
    pub(super) frame: Option<&'a Frame>,
}

impl Message<'_> {
    /// The PSN behind its last.
    pub(super) fn end(&self) -> i64 {
        self.first + i64::from(self.packets)
    }

    /// It ends with an answer that brings data.
    pub(super) fn is_answered(&self) -> bool {
        matches!(
            self.work.head.opcode,
            opcode::READ | opcode::CMP_SWAP | opcode::FETCH_ADD
        )
    }
}

/// PSNs as numbers that do not wrap, each within half the circle of the one before.
pub(super) struct Line {
    origin: Psn,
    last: i64,
}

impl Line {
    pub(super) fn new(origin: Psn) -> Self {
        Self { origin, last: 0 }
    }

    /// The number of `psn`.
    pub(super) fn place(&mut self, psn: Psn) -> i64 {
        let reached = self.last.rem_euclid(1 << 24) as u32;
        self.last += i64::from(psn.since(self.origin.add(reached)));
        self.last
    }
}

/// What a requester does.
pub(super) struct Plan<'a> {
    pub(super) messages: Vec<Message<'a>>,
    /// First packet captured of each PSN.
    pub(super) packets: BTreeMap<i64, &'a Frame>,
    /// The PSN that numbers count from.
    pub(super) origin: Psn,
    pub(super) mtu: Mtu,
    /// Each packet was captured once, in order.
    pub(super) in_order: bool,
}

impl<'a> Plan<'a> {
    /// Puts it together.
    pub(super) fn derive(connection: &Connection<'a>) -> Result<Self, Refusal> {
        let first = connection.requests().next();
        let origin = first.expect("a connection has requests").psn();
        let mut plan = Self {
            messages: Vec::new(),
            packets: BTreeMap::new(),
            origin,
            mtu: connection.path_mtu(),
            in_order: true,
        };
        let mut steps = BTreeMap::new();
        let mut line = Line::new(origin);
        let mut acknowledged = i64::MIN;
        for (step, (sender, frame)) in connection.steps.iter().enumerate() {
            let place = line.place(frame.psn());
            match sender {
                Sender::Requester => {
                    plan.packets.entry(place).or_insert(*frame);
                    steps.entry(place).or_insert(step);
                }
                Sender::Responder => {
                    let distance = frame.psn().since(compare::acknowledged(&frame.packet));
                    acknowledged = acknowledged.max(place - i64::from(distance));
                }
            }
        }
        match connection.class {
            Class::Rc => plan.reliable(acknowledged)?,
            _ => plan.unreliable()?,
        }
        let mut later = usize::MAX;
        for message in plan.messages.iter_mut().rev() {
            let own = steps.range(message.first..message.end());
            later = own.map(|(_, step)| *step).fold(later, usize::min);
            message.step = later.min(connection.steps.len() - 1);
        }
        let mut next = plan.first();
        for frame in connection.requests() {
            plan.in_order &= next == frame.psn();
            next = frame.psn().add(frame.psns(plan.mtu));
        }
        if plan.messages.iter().all(|message| message.frame.is_none()) {
            return Err(Refusal::NotWhole);
        }
        Ok(plan)
    }

    /// PSN of the first message.
    pub(super) fn first(&self) -> Psn {
        let first = self.messages.first().map_or(0, |message| message.first);
        self.psn(first)
    }

    /// The PSN of a number.
    pub(super) fn psn(&self, place: i64) -> Psn {
        self.origin.add((place & i64::from(psn::MASK)) as u32)
    }

    /// The number behind the last message.
    pub(super) fn end(&self) -> i64 {
        self.messages.last().map_or(0, Message::end)
    }

    /// Packets of the messages that were captured.
    pub(super) fn captured(&self) -> usize {
        self.packets.range(..self.end()).count()
    }

    /// All messages are whole, but for the last if the capture ends within it.
    fn reliable(&mut self, acknowledged: i64) -> Result<(), Refusal> {
        let mut place = *self.packets.keys().next().expect("there are requests");
        while let Some(message) = self.message(place) {
            place = message.end();
            self.messages.push(message);
        }
        let Some((&at, frame)) = self.packets.range(place..).next() else {
            return Ok(());
        };
        // What is missing may be at the end of the capture: then it was not acknowledged.
        let mut gap = place;
        while self.packets.contains_key(&gap) {
            gap += 1;
        }
        let starts = at != place || frame.opcode().is_start();
        if starts && acknowledged < gap && !self.messages.is_empty() {
            return Ok(());
        }
        let (opcode, psn) = (frame.opcode(), frame.psn());
        Err(Refusal::Underivable {
            number: frame.number,
            what: format!(
                "{opcode:?} PSN {psn} does not follow the packet before; the requester replays \
                 messages that were captured whole"
            ),
        })
    }

    /// What the capture lacks is stood in for by empty messages.
    fn unreliable(&mut self) -> Result<(), Refusal> {
        let places: Vec<i64> = self.packets.keys().copied().collect();
        let last = *places.last().expect("there are requests");
        let mut place = places[0];
        while place <= last {
            let next = *self
                .packets
                .range(place..)
                .next()
                .expect("before the last")
                .0;
            if next - place > MAX_GAP {
                let frame = self.packets[&next];
                return Err(Refusal::Underivable {
                    number: frame.number,
                    what: format!("the capture lacks the {} packets before it", next - place),
                });
            }
            let message = self.message(place).unwrap_or_else(|| Message {
                work: self.like(self.packets[&next], opcode::SEND),
                data: Vec::new(),
                brings: 0,
                first: place,
                packets: 1,
                step: 0,
                frame: None,
            });
            place = message.end();
            self.messages.push(message);
        }
        Ok(())
    }

    /// The message that starts at `place`, if it was captured whole.
    fn message(&self, place: i64) -> Option<Message<'a>> {
        let frame = *self.packets.get(&place)?;
        if !frame.opcode().is_start() {
            return None;
        }
        let mut message = Message {
            work: self.work(frame),
            data: Vec::new(),
            brings: 0,
            first: place,
            packets: frame.psns(self.mtu),
            step: 0,
            frame: Some(frame),
        };
        let ext = &frame.packet.headers.ext;
        if message.is_answered() {
            message.brings = match (ext.reth, ext.atomic) {
                (Some(reth), _) => reth.dma_len as usize,
                _ => 8,
            };
            return Some(message);
        }
        let mut last = frame;
        message.data.extend(frame.payload());
        while !last.opcode().is_end() {
            last = self.packets.get(&message.end())?;
            let opcode = last.opcode();
            if opcode.is_start() || opcode.operation() != frame.opcode().operation() {
                return None;
            }
            message.data.extend(last.payload());
            message.packets += 1;
        }
        let ext = &last.packet.headers.ext;
        if let Some(imm) = ext.imm {
            message.work = message.work.imm(imm);
        }
        if let Some(rkey) = ext.ieth {
            message.work.head.opcode = opcode::SEND_INV;
            message.work.head.imm = rkey;
        }
        message.work.head.solicited = last.packet.headers.bth.solicited;
        debug_assert!(matches!(
            last.opcode().position(),
            Position::Last | Position::Only
        ));
        Some(message)
    }

    /// The work request of a message that starts with `frame`.
    fn work(&self, frame: &Frame) -> Work {
        let ext = &frame.packet.headers.ext;
        let mut work = self.like(
            frame,
            match frame.opcode().operation() {
                Operation::Write => opcode::WRITE,
                Operation::ReadRequest => opcode::READ,
                Operation::CmpSwap => opcode::CMP_SWAP,
                Operation::FetchAdd => opcode::FETCH_ADD,
                _ => opcode::SEND,
            },
        );
        work.head.solicited = frame.packet.headers.bth.solicited;
        if let Some(reth) = ext.reth {
            (work.head.remote_addr, work.head.rkey) = (reth.va, reth.rkey);
        }
        if let Some(atomic) = ext.atomic {
            (work.head.remote_addr, work.head.rkey) = (atomic.va, atomic.rkey);
            work.operands = AtomicOperands {
                swap_add: atomic.swap_add,
                compare: atomic.compare,
            };
        }
        work
    }

    /// A work request to where `frame` went.
    fn like(&self, frame: &Frame, opcode: u8) -> Work {
        let headers = &frame.packet.headers;
        match headers.ext.deth {
            Some(deth) => Work::datagram(&[], HANDLE, headers.bth.dest_qp, deth.qkey),
            None => Work::new(opcode, &[]),
        }
    }
}
