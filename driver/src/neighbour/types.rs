//! How neighbours are asked for, and what comes of it.

use thiserror::Error;

use crate::path::PathError;
use crate::{Gid, SendError};

/// How neighbours are asked for. The defaults are those of RFC 4861, 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourConfig {
    /// Slots of the exception queue each way, 1 to 256.
    pub slots: u32,
    /// Frames of up to 16320 bytes; else of 1984.
    pub jumbo: bool,
    /// Tag control information of all frames; frames of other VLANs are none of the driver's.
    pub vlan: Option<u16>,
    /// Questions before a neighbour counts as unreachable, at least 1.
    pub tries: u32,
    /// From one question to the next, in ns of the card's time.
    pub retry_ns: u64,
    /// How long an answer holds, in ns of the card's time.
    pub reachable_ns: u64,
    /// Neighbours remembered; more only while they are being asked for.
    pub entries: usize,
    /// Frames that wait for an unknown neighbour; the oldest give way.
    pub queue: usize,
}

impl NeighbourConfig {
    /// The longest that a resolution takes, in ns: a neighbour is asked whether it is still there, then all are.
    pub(super) fn limit_ns(&self) -> u64 {
        2 * self.retry_ns * u64::from(self.tries)
    }
}

impl Default for NeighbourConfig {
    fn default() -> Self {
        Self {
            slots: 64,
            jumbo: false,
            vlan: None,
            tries: 3,
            retry_ns: 1_000_000_000,
            reachable_ns: 30_000_000_000,
            entries: 1024,
            queue: 3,
        }
    }
}

/// What happened to frames so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NeighbourCounters {
    /// ARP requests and neighbour solicitations answered.
    pub answered: u64,
    /// Echo requests answered.
    pub echoes: u64,
    /// Questions asked: ARP requests and neighbour solicitations.
    pub asked: u64,
    /// Answers that confirmed a neighbour.
    pub confirmed: u64,
    /// Neighbours that did not answer.
    pub unreachable: u64,
    /// Frames that break a rule of ARP, ICMP or neighbour discovery.
    pub malformed: u64,
    /// Unsolicited answers, and answers that contradict a confirmed one.
    pub ignored: u64,
    /// Frames of another station that claims an address of the card.
    pub conflicts: u64,
    /// Frames handed to the bridge.
    pub to_bridge: u64,
    /// Frames taken from the bridge.
    pub from_bridge: u64,
    /// Frames that the card does not handle, without a bridge to take them.
    pub unclaimed: u64,
    /// Frames lost for want of room: towards the card, the bridge, or a neighbour that stays unknown.
    pub dropped: u64,
}

/// Where a peer is could not be found out.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResolveError {
    /// No address to ask from, or one of another family.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Not the address of one host.
    #[error("{} is not the address of one host: give a unicast address", .0.ip())]
    NotUnicast(Gid),
    /// No station answers.
    #[error(
        "{} does not answer: {questions} {} within {} ms; check the address, the cable and the VLAN, and that the peer runs and is on this link",
        .peer.ip(),
        if .peer.is_ipv4() { "ARP requests" } else { "neighbour solicitations" },
        .waited_ns / 1_000_000
    )]
    Unreachable {
        /// Address asked for.
        peer: Gid,
        /// How often.
        questions: u32,
        /// How long, in ns of the card's time.
        waited_ns: u64,
    },
    /// Too long for a frame.
    #[error(transparent)]
    Send(#[from] SendError),
}

/// An echo reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pong {
    /// Address that answered.
    pub from: Gid,
    /// Identifier of the request.
    pub ident: u16,
    /// Number of the request.
    pub seq: u16,
    /// Bytes that came back.
    pub data: Vec<u8>,
}
