//! What a run did, to compare with another run or with what was expected.
//!
//! A [`Record`] holds memory regions, completions and packets under names of the caller's choice. The
//! [`Scoreboard`] watches the ports of a [`World`](crate::world::World), checks every frame that a
//! card sends and collects the packets for a record.

pub mod icrc;
mod record;

use std::collections::BTreeMap;
use std::fmt;

use ferroce_proto::wire::{self, Extensions, Opcode, Operation, Psn, Syndrome};

pub use record::{Difference, Packets, Record};

use crate::axi::Violations;
use crate::world::{Direction, Event, Observer};
use icrc::Roce;

/// What two runs have in common of a packet: all of its transport, nothing of its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Opcode.
    pub opcode: Opcode,
    /// Packet sequence number.
    pub psn: Psn,
    /// Acknowledgement requested.
    pub ack_req: bool,
    /// Solicited event.
    pub solicited: bool,
    /// Extension headers.
    pub ext: Extensions,
    /// Bytes of payload.
    pub len: usize,
    /// CRC-32 of the payload.
    pub digest: u32,
}

impl Packet {
    /// Takes it from a frame that proved to be `packet`.
    #[must_use]
    pub fn new(packet: &wire::Packet, frame: &[u8]) -> Self {
        let bth = &packet.headers.bth;
        Self {
            opcode: bth.opcode,
            psn: bth.psn,
            ack_req: bth.ack_req,
            solicited: bth.solicited,
            ext: packet.headers.ext,
            len: packet.payload.len(),
            digest: icrc::crc32(&frame[packet.payload.clone()]),
        }
    }

    /// An acknowledgement that says nothing but ACK. How many of them there are depends on timing: a
    /// responder may acknowledge several requests at once.
    #[must_use]
    pub fn is_plain_ack(&self) -> bool {
        let syndrome = self.ext.aeth.map(|aeth| aeth.syndrome);
        self.opcode.operation() == Operation::Ack && matches!(syndrome, Some(Syndrome::Ack { .. }))
    }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} PSN {:#08x}", self.opcode, self.psn.value())?;
        let flags = [(self.ack_req, " AckReq"), (self.solicited, " SE")];
        for (_, name) in flags.iter().filter(|(set, _)| *set) {
            f.write_str(name)?;
        }
        if self.ext != Extensions::default() {
            write!(f, " {:?}", self.ext)?;
        }
        write!(f, ", {} bytes (CRC {:08x})", self.len, self.digest)
    }
}

/// Checks and collects the packets that cards send.
///
/// Every RoCEv2 frame must be well formed and carry the ICRC computed here from the specification;
/// a frame on which this and `ferroce_proto` disagree is an error of its own.
#[derive(Debug, Default)]
pub struct Scoreboard {
    packets: BTreeMap<(String, u32), Vec<Packet>>,
    other: u64,
    log: Violations,
}

impl Scoreboard {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Packets sent, by name of the sender and destination queue pair.
    #[must_use]
    pub fn packets(&self) -> &BTreeMap<(String, u32), Vec<Packet>> {
        &self.packets
    }

    /// Frames sent that are not RoCEv2.
    #[must_use]
    pub fn other_frames(&self) -> u64 {
        self.other
    }

    /// Frames that no card should send, in words.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        self.log.list().iter().map(ToString::to_string).collect()
    }

    fn check(&mut self, event: &Event<'_>) {
        let frame = event.frame;
        let Some(roce) = Roce::locate(frame) else {
            self.other += 1;
            return;
        };
        let (expected, carried) = (roce.expected(frame), roce.carried(frame));
        let sealed = expected == carried;
        match wire::Packet::parse(frame) {
            Ok(packet) => {
                let key = (event.name.to_owned(), packet.headers.bth.dest_qp);
                self.packets
                    .entry(key)
                    .or_default()
                    .push(Packet::new(&packet, frame));
                if !sealed {
                    self.fail(
                        event,
                        format!("proto accepts ICRC {carried:#010x}; {expected:#010x} is right"),
                    );
                }
            }
            Err(_) if !sealed => {
                self.fail(
                    event,
                    format!("ICRC {carried:#010x}; {expected:#010x} is expected"),
                );
            }
            Err(error) => self.fail(event, error.to_string()),
        }
    }

    fn fail(&mut self, event: &Event<'_>, what: String) {
        self.log.add(
            event.cycle,
            "frame sent",
            format!("by {}: {what}", event.name),
        );
    }
}

impl Observer for Scoreboard {
    fn frame(&mut self, event: &Event<'_>) {
        if event.direction == Direction::Transmit {
            self.check(event);
        }
    }
}
