//! States and attributes of queue pairs.

use std::fmt;

use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_proto::wire::{Gid, Mac, Mtu};
use thiserror::Error;

use crate::command::CommandError;
use crate::mr::Access;

/// P_Key of every RoCEv2 port (A17.7.1).
pub const DEFAULT_PKEY: u16 = 0xffff;

/// Transport of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QpType {
    /// Reliable connection.
    Rc,
    /// Unreliable connection: no READs, no atomics, no retransmission.
    Uc,
}

impl QpType {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Rc => qp_type::RC,
            Self::Uc => qp_type::UC,
        }
    }
}

impl fmt::Display for QpType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rc => "RC",
            Self::Uc => "UC",
        })
    }
}

/// State of a queue pair (`enum ibv_qp_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QpState {
    /// Reset: nothing is posted, sent or received.
    Reset,
    /// Initialised: receives may be posted.
    Init,
    /// Ready to receive.
    Rtr,
    /// Ready to send.
    Rts,
    /// The send queue drains.
    Sqd,
    /// The send queue is in error.
    Sqe,
    /// Error: everything posted is flushed.
    Err,
}

impl QpState {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Reset => state::RESET,
            Self::Init => state::INIT,
            Self::Rtr => state::RTR,
            Self::Rts => state::RTS,
            Self::Sqd => state::SQD,
            Self::Sqe => state::SQE,
            Self::Err => state::ERR,
        }
    }

    /// State of a code that the card answered; what is no state counts as error.
    pub(super) fn from_code(code: u8) -> Self {
        let all = [
            Self::Reset,
            Self::Init,
            Self::Rtr,
            Self::Rts,
            Self::Sqd,
            Self::Sqe,
        ];
        all.into_iter()
            .find(|s| s.code() == code)
            .unwrap_or(Self::Err)
    }

    /// States that `modify` reaches from this one (IB1 10.3.1; draining is not offered).
    pub(super) fn next(self) -> &'static [Self] {
        match self {
            Self::Reset => &[Self::Init, Self::Err, Self::Reset],
            Self::Init => &[Self::Init, Self::Rtr, Self::Err, Self::Reset],
            Self::Rtr => &[Self::Rts, Self::Err, Self::Reset],
            _ => &[Self::Err, Self::Reset],
        }
    }
}

impl fmt::Display for QpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reset => "RESET",
            Self::Init => "INIT",
            Self::Rtr => "RTR",
            Self::Rts => "RTS",
            Self::Sqd => "SQD",
            Self::Sqe => "SQE",
            Self::Err => "ERR",
        })
    }
}

/// The way to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// GID of the peer: its IP address.
    pub dgid: Gid,
    /// MAC address of the peer, or of the router to it.
    pub dmac: Mac,
    /// Entry of the local GID table to send from; of the same address family as `dgid`.
    pub sgid_index: u8,
    /// 802.1Q tag control information to send: PCP, DEI, VLAN id.
    pub vlan: Option<u16>,
    /// Type of service or traffic class: DSCP and ECN.
    pub traffic_class: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// IPv6 flow label, 20 bits; also spreads connections over paths.
    pub flow_label: u32,
    /// UDP source port; `None`: from the flow label, or if that is 0 from both queue pair numbers.
    pub udp_sport: Option<u16>,
}

impl Path {
    /// To `dgid` by way of `dmac`, from GID 0, hop limit 64, everything else 0.
    #[must_use]
    pub fn new(dgid: Gid, dmac: Mac) -> Self {
        Self {
            dgid,
            dmac,
            sgid_index: 0,
            vlan: None,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
            udp_sport: None,
        }
    }
}

/// Attributes of INIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitAttr {
    /// What the peer may do; a region must permit it too.
    pub access: Access,
    /// P_Key.
    pub pkey: u16,
}

impl Default for InitAttr {
    /// The peer may do what regions permit; [`DEFAULT_PKEY`].
    fn default() -> Self {
        Self {
            access: Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC,
            pkey: DEFAULT_PKEY,
        }
    }
}

/// Attributes of RTR, ready to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtrAttr {
    /// The way to the peer.
    pub path: Path,
    /// Path MTU; equal at both ends.
    pub path_mtu: Mtu,
    /// Queue pair of the peer, 24 bits.
    pub dest_qpn: u32,
    /// First PSN of the peer, 24 bits.
    pub rq_psn: u32,
    /// READs and atomics the peer may have outstanding; `None`: as many as the card takes.
    pub max_dest_rd_atomic: Option<u8>,
    /// Code of the wait asked of a peer for which no receive is posted, 0 to 31.
    pub min_rnr_timer: u8,
}

impl RtrAttr {
    /// With path MTU 1024, the card's limit of READs and atomics and an RNR wait of 0.64 ms.
    #[must_use]
    pub fn new(path: Path, dest_qpn: u32, rq_psn: u32) -> Self {
        Self {
            path,
            path_mtu: Mtu::Mtu1024,
            dest_qpn,
            rq_psn,
            max_dest_rd_atomic: None,
            min_rnr_timer: 12,
        }
    }
}

/// Attributes of RTS, ready to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtsAttr {
    /// First PSN to send, 24 bits.
    pub sq_psn: u32,
    /// Code of the ACK timeout, 0 to 31: 4.096 us * 2^timeout; 0 = never.
    pub timeout: u8,
    /// Retries after a timeout or a lost packet, 0 to 7.
    pub retry_cnt: u8,
    /// Retries after an RNR NAK, 0 to 7; 7 = for ever.
    pub rnr_retry: u8,
    /// READs and atomics outstanding; no more than the peer takes. `None`: as many as the card can.
    pub max_rd_atomic: Option<u8>,
}

impl RtsAttr {
    /// With timeout code 14 (67 ms), 7 retries, RNR retries for ever.
    #[must_use]
    pub fn new(sq_psn: u32) -> Self {
        Self {
            sq_psn,
            timeout: 14,
            retry_cnt: 7,
            rnr_retry: 7,
            max_rd_atomic: None,
        }
    }
}

/// A change of state with what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QpAttr {
    /// From any state: everything posted is forgotten, without completions.
    Reset,
    /// From RESET or INIT.
    Init(InitAttr),
    /// From INIT.
    Rtr(RtrAttr),
    /// From RTR.
    Rts(RtsAttr),
    /// From any state: everything posted is flushed.
    Err,
}

impl QpAttr {
    /// The state it leads to.
    #[must_use]
    pub fn state(&self) -> QpState {
        match self {
            Self::Reset => QpState::Reset,
            Self::Init(_) => QpState::Init,
            Self::Rtr(_) => QpState::Rtr,
            Self::Rts(_) => QpState::Rts,
            Self::Err => QpState::Err,
        }
    }
}

/// What a peer must know of a queue pair to connect to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpEndpoint {
    /// Number of the queue pair.
    pub qpn: u32,
    /// First PSN it sends.
    pub psn: u32,
    /// GID it sends from.
    pub gid: Gid,
    /// MAC address it sends from.
    pub mac: Mac,
}

/// A queue pair could not be modified.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModifyError {
    /// No such transition.
    #[error("queue pair {qpn} cannot go from {from} to {to}: from {from} it goes to {}", names(from.next()))]
    Transition {
        /// The queue pair.
        qpn: u32,
        /// State it is in.
        from: QpState,
        /// State asked for.
        to: QpState,
    },
    /// An attribute out of range.
    #[error("{attribute} of queue pair {qpn} is {value}, possible is {minimum} to {maximum}")]
    Range {
        /// The queue pair.
        qpn: u32,
        /// Name of the attribute.
        attribute: &'static str,
        /// Value asked for.
        value: u32,
        /// Smallest value.
        minimum: u32,
        /// Largest value.
        maximum: u32,
    },
    /// A part of the path that the card was not built for.
    #[error(
        "the path of queue pair {qpn} needs {what}, which this build of the card does not have"
    )]
    Unsupported {
        /// The queue pair.
        qpn: u32,
        /// What is missing.
        what: &'static str,
    },
    /// No local address to send from.
    #[error(
        "queue pair {qpn} is to send from GID {sgid_index}, which is empty: set it with Context::set_gid"
    )]
    NoGid {
        /// The queue pair.
        qpn: u32,
        /// Entry of the GID table.
        sgid_index: u8,
    },
    /// Local and remote address do not fit.
    #[error(
        "queue pair {qpn} cannot send from {local} to {remote}, which are not both IPv4 or both IPv6: choose another sgid_index"
    )]
    Family {
        /// The queue pair.
        qpn: u32,
        /// Local GID.
        local: Gid,
        /// Remote GID.
        remote: Gid,
    },
    /// Not the address of one station.
    #[error(
        "queue pair {qpn} cannot send to {dmac}: give the unicast MAC address of the peer or of the router to it"
    )]
    Mac {
        /// The queue pair.
        qpn: u32,
        /// Address asked for.
        dmac: Mac,
    },
    /// The card refused.
    #[error(transparent)]
    Command(#[from] CommandError),
}

fn names(states: &[QpState]) -> String {
    let names: Vec<_> = states.iter().map(ToString::to_string).collect();
    names.join(", ")
}
