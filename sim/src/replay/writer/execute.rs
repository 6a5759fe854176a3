//! What a request that comes in order does: payload placed, receives taken, answers due.

use ferroce_proto::abi::cq::{opcode as cqe_opcode, status};
use ferroce_proto::wire::{NakCode, Operation, RethRepr, psn};

use super::{Inbound, Writer};
use crate::replay::input::{Frame, Refusal};
use crate::replay::learned;
use crate::replay::script::{Completion, Receive};

impl Writer<'_> {
    /// Whether the packet continues the message under way, or starts one when there is none.
    pub(super) fn in_order(&self, frame: &Frame) -> bool {
        let opcode = frame.opcode();
        match &self.inbound {
            None => opcode.is_start(),
            Some(message) => !opcode.is_start() && message.operation == opcode.operation(),
        }
    }

    pub(super) fn execute(&mut self, at: usize, frame: &Frame) -> Result<(), Refusal> {
        let (opcode, psn, ext) = (frame.opcode(), frame.psn(), &frame.packet.headers.ext);
        if !self.in_order(frame) {
            return Err(Refusal::OutOfPlace {
                number: frame.number,
                opcode,
                psn,
            });
        }
        let mut last = psn;
        match (ext.reth, ext.atomic) {
            (Some(RethRepr { va, rkey, dma_len }), _)
                if opcode.operation() == Operation::ReadRequest =>
            {
                self.regions.allow(frame.number, rkey, va, dma_len)?;
                self.read(at, frame);
                self.reads.insert(psn);
                last = psn.add(frame.psns(self.mtu)).prev();
                self.finish_message();
                self.due = Some(last);
            }
            (_, Some(atomic)) => {
                self.regions
                    .allow(frame.number, atomic.rkey, atomic.va, 8)?;
                if let Some(original) = learned::original(self.steps, at, psn) {
                    let found = self.memory.read(atomic.va, &original.to_le_bytes());
                    self.host_writes.entry(at).or_default().extend(found);
                }
                let original = self.memory.value(atomic.va);
                let value = match opcode.operation() {
                    Operation::FetchAdd => original.wrapping_add(atomic.swap_add),
                    _ if original == atomic.compare => atomic.swap_add,
                    _ => original,
                };
                self.memory.write(atomic.va, &value.to_le_bytes());
                self.written += 8;
                self.finish_message();
                self.due = Some(psn);
            }
            _ => {
                self.place(frame)?;
                if frame.packet.headers.bth.ack_req {
                    self.due = Some(psn);
                }
            }
        }
        for n in 0..frame.psns(self.mtu) {
            self.msns.insert(psn.add(n), self.msn);
        }
        self.expected = last.next();
        Ok(())
    }

    /// Learns what memory held from the recorded responses to a READ.
    pub(super) fn read(&mut self, at: usize, frame: &Frame) {
        let Some(reth) = frame.packet.headers.ext.reth else {
            return;
        };
        let (mut addr, mut left) = (reth.va, reth.dma_len as usize);
        for data in learned::read_data(self.steps, at, self.mtu) {
            let len = left.min(self.mtu.bytes());
            if let Some(data) = data.filter(|data| data.len() == len) {
                let found = self.memory.read(addr, data);
                self.host_writes.entry(at).or_default().extend(found);
            }
            addr += len as u64;
            left -= len;
        }
    }

    fn finish_message(&mut self) {
        self.msn = (self.msn + 1) & psn::MASK;
    }

    /// The payload of a SEND or WRITE.
    pub(super) fn place(&mut self, frame: &Frame) -> Result<(), Refusal> {
        let (opcode, ext) = (frame.opcode(), &frame.packet.headers.ext);
        let is_send = opcode.operation() == Operation::Send;
        if opcode.is_start() {
            self.inbound = Some(Inbound {
                operation: opcode.operation(),
                reth: ext.reth,
                received: 0,
            });
            if is_send {
                self.take_receive();
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
                let end = u64::from(message.received) + frame.payload().len() as u64;
                if end > u64::from(reth.dma_len) {
                    return Err(Refusal::Underivable {
                        number: frame.number,
                        what: format!(
                            "{opcode:?} goes beyond the {} bytes of its RETH",
                            reth.dma_len
                        ),
                    });
                }
                self.memory.write(at, frame.payload());
                self.written += frame.payload().len();
            }
        }
        message.received += frame.payload().len() as u32;
        if opcode.is_end() {
            let message = self.inbound.take().expect("in order");
            self.finish_message();
            if !is_send && ext.imm.is_some() {
                self.take_receive();
            }
            self.invalidated.extend(ext.ieth);
            if is_send || ext.imm.is_some() {
                let receive = self.receives.last_mut().expect("just posted");
                receive.len = receive.data.len().max(receive.stale);
                receive.completion = Completion {
                    status: status::SUCCESS,
                    opcode: if is_send {
                        cqe_opcode::RECV
                    } else {
                        cqe_opcode::RECV_WRITE_IMM
                    },
                    byte_len: message.received,
                    imm: ext.imm,
                    inv: ext.ieth,
                    solicited: frame.packet.headers.bth.solicited,
                    datagram: None,
                };
            }
        }
        Ok(())
    }

    /// The receive WQE of a message: a new one, or that of a message that was dropped.
    fn take_receive(&mut self) {
        if !std::mem::take(&mut self.unused) {
            self.receives.push(Receive::default());
        } else if let Some(receive) = self.receives.last_mut() {
            receive.stale = receive.stale.max(receive.data.len());
            receive.data.clear();
        }
    }

    /// Sees to it that the device under test has the reason to refuse that the recorded one had.
    pub(super) fn refuse(&mut self, frame: &Frame, code: NakCode) -> Result<(), Refusal> {
        let ext = &frame.packet.headers.ext;
        match (frame.opcode().operation(), code) {
            (Operation::Write | Operation::ReadRequest, NakCode::RemoteAccess)
                if let Some(reth) = ext.reth =>
            {
                self.regions
                    .deny(frame.number, reth.rkey, reth.va, reth.dma_len)
            }
            (Operation::CmpSwap | Operation::FetchAdd, NakCode::RemoteAccess)
                if let Some(atomic) = ext.atomic =>
            {
                self.regions.deny(frame.number, atomic.rkey, atomic.va, 8)
            }
            (Operation::Send, NakCode::InvalidRequest | NakCode::RemoteOperational)
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
            (_, NakCode::InvalidRequest) => Ok(()),
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
}
