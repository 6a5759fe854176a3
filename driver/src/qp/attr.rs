//! States and attributes of queue pairs.

use ferroce_proto::wire::Mtu;
use thiserror::Error;

use crate::command::CommandError;
use crate::mr::Access;
use crate::path::{DEFAULT_PKEY, Path, PathError};
use crate::state::{QpState, QpType};

/// Path MTU by default: it fits into Ethernet frames of 1500 bytes.
pub const DEFAULT_MTU: Mtu = Mtu::Mtu1024;

/// Attributes of INIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitAttr {
    /// What the peer may do; a region must permit it too.
    pub access: Access,
    /// P_Key.
    pub pkey: u16,
    /// Q_Key that datagrams must bring (UD).
    pub qkey: u32,
}

impl Default for InitAttr {
    /// The peer may do what regions permit; [`DEFAULT_PKEY`].
    fn default() -> Self {
        Self {
            access: Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC,
            pkey: DEFAULT_PKEY,
            qkey: 0,
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
    /// With [`DEFAULT_MTU`], the card's limit of READs and atomics and an RNR wait of 0.64 ms.
    #[must_use]
    pub fn new(path: Path, dest_qpn: u32, rq_psn: u32) -> Self {
        Self {
            path,
            path_mtu: DEFAULT_MTU,
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
    /// From INIT, of a queue pair for datagrams: the MTU of its port.
    RtrUd(Mtu),
    /// From RTR.
    Rts(RtsAttr),
    /// From RTS: no further request is started; [`AsyncEvent::SqDrained`](crate::AsyncEvent::SqDrained) tells when those
    /// under way are done. Requests may be posted.
    Sqd,
    /// From SQD or SQE back to RTS.
    Resume,
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
            Self::Rtr(_) | Self::RtrUd(_) => QpState::Rtr,
            Self::Rts(_) | Self::Resume => QpState::Rts,
            Self::Sqd => QpState::Sqd,
            Self::Err => QpState::Err,
        }
    }
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
    /// RTS is entered in two ways.
    #[error(
        "queue pair {qpn} cannot go from {from} to RTS like this: from RTR it goes with `Rts`, from SQD and SQE with `Resume`"
    )]
    Resume {
        /// The queue pair.
        qpn: u32,
        /// State it is in.
        from: QpState,
    },
    /// Nothing is changed in this state.
    #[error(
        "queue pair {qpn} is in {state}: it is changed in RTR, RTS, SQD and SQE, before that by `modify`"
    )]
    Change {
        /// The queue pair.
        qpn: u32,
        /// State it is in.
        state: QpState,
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
    /// Datagrams have no path, connections have one.
    #[error(
        "queue pair {qpn} is of type {qp_type}: a connection goes to RTR with a path, one for datagrams with RtrUd"
    )]
    Transport {
        /// The queue pair.
        qpn: u32,
        /// Its type.
        qp_type: QpType,
    },
    /// The path cannot be.
    #[error("queue pair {qpn}: {cause}")]
    Path {
        /// The queue pair.
        qpn: u32,
        /// What is wrong with it.
        cause: PathError,
    },
    /// The card refused.
    #[error(transparent)]
    Command(#[from] CommandError),
}

fn names(states: &[QpState]) -> String {
    let names: Vec<_> = states.iter().map(ToString::to_string).collect();
    names.join(", ")
}
