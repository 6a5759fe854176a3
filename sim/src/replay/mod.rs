//! Replay: the device under test takes one side of a captured connection.
//!
//! The capture is real traffic. The device is set up as the recorded end was, with its addresses, queue
//! pair number, PSNs, keys and memory addresses; it is fed what the other end sent, and what it answers
//! is compared with what was recorded, field by field. Nothing here knows whether the device is the
//! golden model or the engine.
//!
//! | file | holds |
//! |---|---|
//! | `input` | packets of a capture, and why one is refused |
//! | `flow` | the connection that it shows |
//! | `script`, `writer`, `regions`, `learned` | what a responder must be given and must do |
//! | `messages`, `expect` | what a requester is given to do, and what comes of it |
//! | `rig` | the device under test |
//! | `responder`, `requester` | the run in either role |
//! | `malformed` | packets that must be counted and dropped, between those of the capture |
//! | `fields`, `compare`, `resent` | fields, answers, requests, and the differences that are permitted |
//!
//! What cannot be seen on the wire is chosen so that the device must decide exactly as the recorded one
//! did:
//!
//! * receive buffers are as long as their messages;
//! * a region ends one byte before an access that was refused;
//! * a receive WQE is posted just before the request that was granted one;
//! * memory holds what the recorded READ responses and atomics brought.

mod compare;
mod expect;
mod fields;
mod flow;
mod input;
mod learned;
mod malformed;
mod messages;
mod regions;
mod requester;
mod resent;
mod responder;
mod rig;
mod script;
mod sent;
mod writer;

use std::fmt;
use std::rc::Rc;

use crate::memory::HostMemory;
use crate::nic::Nic;
use crate::pcap::Capture;

pub use compare::{Comparison, Match};
pub use fields::{FieldDifference, PERMITTED_BEHAVIOUR, PERMITTED_FIELDS, Permitted};
pub use flow::End;
pub use input::Refusal;
pub use rig::Passed;

/// What memory holds that nothing was written to.
const FILL: u8 = 0xc3;

/// The side that the device under test plays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It executes the requests, and its answers are compared.
    #[default]
    Responder,
    /// It posts the same messages, and its requests are compared.
    Requester,
}

/// How a capture is replayed.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Side of the device.
    pub role: Role,
    /// Queue pair of the recorded responder; needed if the capture has several connections.
    pub qpn: Option<u32>,
    /// Seed of malformed packets to feed, one before each of the capture.
    pub malformed: Option<u64>,
}

/// Something in which the device under test differs from the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Number of the packet in the capture.
    pub packet: Option<usize>,
    /// What differs.
    pub what: String,
    /// As it should be.
    pub expected: String,
    /// As it is.
    pub found: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(number) = self.packet {
            write!(f, "packet {number}: ")?;
        }
        let (what, expected, found) = (&self.what, &self.expected, &self.found);
        write!(f, "{what}: expected {expected}, found {found}")
    }
}

/// What was counted in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets of the capture fed.
    pub fed: u64,
    /// Malformed packets fed between them.
    pub malformed: u64,
    /// Packets recorded of the side that the device plays.
    pub recorded: u64,
    /// Packets of the device.
    pub sent: u64,
    /// Packets that are the same.
    pub same: u64,
    /// Recorded ACKs that the device coalesced.
    pub coalesced: u64,
    /// ACKs of the device that the recorded one coalesced.
    pub added: u64,
    /// Packets of the device that were sent once more or whose like the capture lost, and that are right.
    pub repeated: u64,
    /// Completions.
    pub completions: u64,
    /// Payload bytes compared in memory.
    pub bytes: u64,
    /// Cycles simulated.
    pub cycles: u64,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The end that requests.
    pub requester: End,
    /// The end that answers.
    pub responder: End,
    /// Queue pair of the device.
    pub local_qpn: u32,
    /// The queue pair of the capture that it stands for, if that number is beyond the build.
    pub mapped_from: Option<u32>,
    /// Path MTU in bytes.
    pub mtu: usize,
    /// The packets, compared.
    pub comparisons: Vec<Comparison>,
    /// What differs and must not; empty if the run passed.
    pub differences: Vec<Difference>,
    /// Counts.
    pub counts: Counts,
    /// Everything that passed the port of the device.
    pub passed: Vec<Passed>,
}

impl Outcome {
    /// The device did as the recorded one.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Why there is no outcome. `E` is the error of what builds the device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error<E> {
    /// The capture cannot be replayed.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The device cannot be built.
    #[error("the device under test cannot be built")]
    Device(#[source] E),
}

/// Replays a capture with the device that `build` makes. Its DMA must reach the memory that `build` is
/// given, and nothing else.
///
/// # Errors
/// [`Error`]; a device that behaves differently is none.
///
/// # Panics
/// If the device does not answer its host at all.
pub fn run<E>(
    capture: &Capture,
    options: &Options,
    build: impl FnOnce(Rc<dyn HostMemory>) -> Result<Box<dyn Nic>, E>,
) -> Result<Outcome, Error<E>> {
    let (frames, announcements) = input::read(capture)?;
    let packets = capture.packets.len();
    let connection = flow::Connection::find(&frames, &announcements, packets, options)?;
    match options.role {
        Role::Responder => responder::run(&connection, options, build),
        Role::Requester => requester::run(&connection, options, build),
    }
}
