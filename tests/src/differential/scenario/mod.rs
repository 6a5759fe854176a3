//! What a run does, as data: connections, messages, hostile frames, and when everything comes to rest.
//!
//! Receive buffers are consumed in order, so a message and the buffer it takes are one step: a scenario
//! that loses steps (see [`shrink`](mod@super::shrink)) keeps its meaning.

mod display;
mod hostile;

use ferroce_proto::wire::Mtu;
use ferroce_sim::testhost::Side;

pub use hostile::{Command, Denial, Fault, Forgery, Noise, Spoil};

/// Registered buffers of a connection at each host.
pub mod region {
    /// Gathered from.
    pub const SOURCE: usize = 0;
    /// Gathered from, too.
    pub const OTHER_SOURCE: usize = 1;
    /// Received into and written to by the peer.
    pub const TARGET: usize = 2;
    /// No request may write it.
    pub const READ_ONLY: usize = 3;
    /// Of another protection domain.
    pub const FOREIGN: usize = 4;
    /// Takes what READs and atomics bring.
    pub const RESULT: usize = 5;
    /// The peer's atomics work on it.
    pub const ATOMIC: usize = 6;
    /// How many there are.
    pub const COUNT: usize = 7;
}

/// A scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it was made from; also seeds wires and contents of memory.
    pub seed: u64,
    /// The wire, both ways.
    pub wire: Hardship,
    /// The hosts talk over IPv6.
    pub ipv6: bool,
    /// Completion queues of each host.
    pub cqs: u8,
    /// Connections, each between a queue pair of either host.
    pub connections: Vec<Connection>,
    /// What happens, in order. Messages run concurrently up to the next [`Step::Rest`].
    pub steps: Vec<Step>,
}

/// What a wire does to frames; chances in 1/1000.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hardship {
    /// Cycles on the way.
    pub latency: u64,
    /// A frame is lost.
    pub loss: u16,
    /// A frame arrives twice.
    pub duplication: u16,
    /// A frame arrives late.
    pub reordering: u16,
    /// A bit of a frame is flipped.
    pub corruption: u16,
}

/// Two queue pairs that talk to each other; arrays by side.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Transport, see `qpc::qp_type`: RC, or UC on a wire that harms nothing.
    pub qp_type: u8,
    /// READs and atomics outstanding, as requester and as responder.
    pub rd_atomic: u8,
    /// Path MTU.
    pub mtu: Mtu,
    /// PSNs outstanding at most; 0: any number.
    pub window: u16,
    /// Mb/s at most; 0: any number.
    pub rate: u32,
    /// Congestion control by round trips.
    pub swift: bool,
    /// First PSN sent.
    pub psn: [u32; 2],
    /// Log2 of the slots of the send queue.
    pub sq_log: [u8; 2],
    /// Log2 of the entries of the receive queue.
    pub rq_log: [u8; 2],
    /// Log2 of the slots of a receive WQE.
    pub rq_stride: u8,
    /// Log2 of the messages outstanding.
    pub ot_log: [u8; 2],
    /// ACK timeout codes.
    pub timeout: [u8; 2],
    /// Retries.
    pub retry_cnt: u8,
    /// RNR retries.
    pub rnr_retry: u8,
    /// RNR NAK timer code.
    pub rnr_timer: u8,
    /// Completion queue of the send queue.
    pub send_cq: [u8; 2],
    /// Completion queue of the receive queue.
    pub recv_cq: [u8; 2],
    /// Bytes of each region.
    pub region_len: u32,
    /// Place of regions within a page, in bytes.
    pub misaligned: u16,
    /// 802.1Q tag.
    pub vlan: Option<u16>,
    /// The peer of side A is there.
    pub reachable: bool,
    /// Responders take WRITEs.
    pub remote_write: bool,
}

/// Part of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which, see [`region`].
    pub region: usize,
    /// First byte in it.
    pub offset: u32,
    /// Bytes.
    pub len: u32,
}

/// What a message does at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// SEND.
    Send,
    /// RDMA WRITE to this byte of the target.
    Write(u32),
    /// RDMA READ from this byte of the source.
    Read(u32),
    /// Compare and swap of this word of the atomics' region: compare, swap.
    CmpSwap(u32, u64, u64),
    /// Fetch and add to this word of the atomics' region.
    FetchAdd(u32, u64),
}

impl Operation {
    /// READ or atomic: the peer answers with data.
    #[must_use]
    pub const fn is_answered(&self) -> bool {
        matches!(self, Self::Read(_) | Self::CmpSwap(..) | Self::FetchAdd(..))
    }
}

/// A send work request and the receive work request it takes.
#[derive(Clone, Debug)]
pub struct Message {
    /// Connection.
    pub connection: usize,
    /// Sender.
    pub from: Side,
    /// What it does.
    pub operation: Operation,
    /// Immediate data.
    pub imm: Option<u32>,
    /// Bytes that stand in the WQE; else `gather` counts.
    pub inline: Option<u16>,
    /// Where the payload is, or goes to.
    pub gather: Vec<Piece>,
    /// A CQE is asked for on success.
    pub signaled: bool,
    /// A solicited event is asked for.
    pub solicited: bool,
    /// It waits for READs and atomics before it.
    pub fence: bool,
    /// Posted with it.
    pub recv: Option<Recv>,
    /// What is wrong with it.
    pub fault: Option<Fault>,
}

/// A receive work request.
#[derive(Clone, Debug)]
pub struct Recv {
    /// Where the payload goes.
    pub scatter: Vec<Piece>,
    /// Posted this many cycles after the message; 0: before it.
    pub late: u16,
}

/// A step of a scenario.
#[derive(Clone, Debug)]
pub enum Step {
    /// A message is posted.
    Message(Message),
    /// A receive work request is posted that nothing takes but a flush.
    Spare {
        /// Connection.
        connection: usize,
        /// Where.
        side: Side,
        /// Where payload would go.
        scatter: Vec<Piece>,
    },
    /// A frame arrives amid the traffic which no queue pair may take notice of.
    Noise {
        /// Where.
        side: Side,
        /// Cycles after the traffic began.
        at: u16,
        /// Which.
        noise: Noise,
    },
    /// A frame arrives, at rest, that a queue pair must judge.
    Forgery {
        /// Connection.
        connection: usize,
        /// Where.
        side: Side,
        /// Which.
        forgery: Forgery,
    },
    /// A command is given, at rest, that the card must refuse.
    Command {
        /// Where.
        side: Side,
        /// Which.
        command: Command,
    },
    /// Both queue pairs go through RESET and begin afresh, at rest.
    Reconnect {
        /// Connection.
        connection: usize,
        /// First PSNs.
        psn: [u32; 2],
    },
    /// Everything comes to rest.
    Rest,
}

/// How far the packets of one direction of a connection agree between runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Each request once and in order; NAKs and the last ACK too.
    Exact,
    /// The same packet at each PSN; retransmissions are free.
    Contents,
    /// The same packet at each PSN that both sent: what went out behind the packet that failed is a matter of timing.
    UntilFailure,
}

impl Scenario {
    /// The wire harms nothing.
    #[must_use]
    pub fn is_lossless(&self) -> bool {
        let w = &self.wire;
        w.loss == 0 && w.duplication == 0 && w.reordering == 0 && w.corruption == 0
    }

    /// How far the packets from `from` agree; follows from the steps.
    #[must_use]
    pub fn agreement(&self, connection: usize, from: Side) -> Agreement {
        let c = &self.connections[connection];
        let room = 1usize << c.rq_log[1 - from as usize];
        let mut agreement = if self.is_lossless() {
            Agreement::Exact
        } else {
            Agreement::Contents
        };
        if !c.reachable {
            return Agreement::UntilFailure;
        }
        let mut posted = 0;
        for step in &self.steps {
            match step {
                Step::Message(m) if m.connection == connection && m.from == from => {
                    if m.fault.is_some() || !c.remote_write {
                        return Agreement::UntilFailure;
                    }
                    if let Some(recv) = &m.recv {
                        posted += 1;
                        if recv.late > 0 || posted > room {
                            agreement = Agreement::Contents;
                        }
                    }
                }
                step if step.needs_rest() => posted = 0,
                _ => {}
            }
        }
        agreement
    }

    /// Messages of both sides may be lost, delayed or failing, so that PSN-error NAKs and RNR NAKs are a matter of timing.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        (0..self.connections.len()).all(|connection| {
            [Side::A, Side::B]
                .iter()
                .all(|side| self.agreement(connection, *side) == Agreement::Exact)
        })
    }
}

impl Step {
    /// Everything before it has come to rest.
    #[must_use]
    pub const fn needs_rest(&self) -> bool {
        !matches!(
            self,
            Self::Message(_) | Self::Spare { .. } | Self::Noise { .. }
        )
    }
}

impl Message {
    /// Bytes of payload.
    #[must_use]
    pub fn len(&self) -> u32 {
        match self.inline {
            Some(len) => len.into(),
            None => self.gather.iter().map(|piece| piece.len).sum(),
        }
    }

    /// It has no payload.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// It takes a receive work request.
    #[must_use]
    pub fn consumes(&self) -> bool {
        self.operation == Operation::Send || self.imm.is_some()
    }
}
