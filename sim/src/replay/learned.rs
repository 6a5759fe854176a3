//! Memory of the recorded responder, as far as its answers tell it.

use std::collections::BTreeMap;

use ferroce_proto::wire::{Mtu, Operation, Psn};

use super::FILL;
use super::flow::Sender;
use super::input::Frame;

const PAGE: u64 = 4096;

/// Bytes at addresses that are known.
#[derive(Default)]
struct Sparse(BTreeMap<u64, Vec<Option<u8>>>);

impl Sparse {
    fn get(&self, addr: u64) -> Option<u8> {
        self.0.get(&(addr / PAGE))?[(addr % PAGE) as usize]
    }

    fn put(&mut self, addr: u64, byte: u8) {
        let page = self.0.entry(addr / PAGE);
        page.or_insert_with(|| vec![None; PAGE as usize])[(addr % PAGE) as usize] = Some(byte);
    }

    /// Puts what is known over `bytes`, which stand at `first`.
    fn overlay(&self, first: u64, bytes: &mut [u8]) {
        let last = first + (bytes.len() as u64).saturating_sub(1);
        for (page, known) in self.0.range(first / PAGE..=last / PAGE) {
            for (at, byte) in (page * PAGE..).zip(known) {
                if let (Some(byte), true) = (byte, (first..=last).contains(&at)) {
                    bytes[(at - first) as usize] = *byte;
                }
            }
        }
    }
}

/// The memory: what it held at first, and what it holds now.
#[derive(Default)]
pub(super) struct Learned {
    first: Sparse,
    now: Sparse,
    /// What the peer wrote: the host of the responder leaves that as it is.
    peer: Sparse,
}

impl Learned {
    /// The peer wrote.
    pub(super) fn write(&mut self, addr: u64, data: &[u8]) {
        for (at, byte) in (addr..).zip(data) {
            self.now.put(at, *byte);
            self.peer.put(at, *byte);
        }
    }

    /// The peer found `data`. What nothing was known of was there from the start; the answer is what the
    /// host of the responder must have written since the peer last found something else there.
    pub(super) fn read(&mut self, addr: u64, data: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut changed: Vec<(u64, Vec<u8>)> = Vec::new();
        for (at, byte) in (addr..).zip(data) {
            match self.now.get(at) {
                None => self.first.put(at, *byte),
                Some(known) if known == *byte || self.peer.get(at).is_some() => continue,
                Some(_) => match changed.last_mut() {
                    Some((first, run)) if *first + run.len() as u64 == at => run.push(*byte),
                    _ => changed.push((at, vec![*byte])),
                },
            }
            self.now.put(at, *byte);
        }
        changed
    }

    /// The 64-bit value of the host at `addr`.
    pub(super) fn value(&self, addr: u64) -> u64 {
        let mut bytes = [FILL; 8];
        self.now.overlay(addr, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// `len` bytes at `addr`, as they were at first and as they are now.
    pub(super) fn piece(&self, addr: u64, len: usize) -> (Vec<u8>, Vec<u8>) {
        let mut first = vec![FILL; len];
        self.first.overlay(addr, &mut first);
        let mut now = first.clone();
        self.now.overlay(addr, &mut now);
        (first, now)
    }
}

/// Payload of the recorded responses to the READ request `steps[at]`, by packet; `None` where there is none.
pub(super) fn read_data<'a>(
    steps: &[(Sender, &'a Frame)],
    at: usize,
    mtu: Mtu,
) -> Vec<Option<&'a [u8]>> {
    let request = steps[at].1;
    let packets = request.psns(mtu);
    let mut data = vec![None; packets as usize];
    // Packets before this one can only answer this request, not one that came later.
    let mut limit = packets;
    let mut left = packets;
    for (sender, frame) in &steps[at + 1..] {
        if left == 0 || limit == 0 {
            break;
        }
        let operation = frame.opcode().operation();
        let place = frame.psn().value().wrapping_sub(request.psn().value()) & 0xff_ffff;
        match (sender, operation) {
            (Sender::Requester, Operation::ReadRequest) => limit = limit.min(place),
            (Sender::Responder, Operation::ReadResponse) if place < limit => {
                let slot = &mut data[place as usize];
                left -= u32::from(slot.is_none());
                slot.get_or_insert(frame.payload());
            }
            _ => {}
        }
    }
    data
}

/// The original value in the first recorded response to the atomic `psn` behind `steps[at]`.
pub(super) fn original(steps: &[(Sender, &Frame)], at: usize, psn: Psn) -> Option<u64> {
    let mut answers = steps[at + 1..].iter().map(|step| step.1);
    let answer = answers.find(|f| f.opcode().has_atomic_ack() && f.psn() == psn)?;
    answer.packet.headers.ext.atomic_ack.map(|ack| ack.original)
}
