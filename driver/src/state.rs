//! Types and states of queue pairs.

use std::fmt;

use ferroce_proto::abi::qpc::{qp_type, state};

/// Transport of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QpType {
    /// Reliable connection.
    Rc,
    /// Unreliable connection: no READs, no atomics, no retransmission.
    Uc,
    /// Unreliable datagram: SENDs of up to an MTU to any queue pair, by address handle.
    Ud,
}

impl QpType {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Rc => qp_type::RC,
            Self::Uc => qp_type::UC,
            Self::Ud => qp_type::UD,
        }
    }
}

impl fmt::Display for QpType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rc => "RC",
            Self::Uc => "UC",
            Self::Ud => "UD",
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
    pub(crate) fn code(self) -> u8 {
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
    pub(crate) fn from_code(code: u8) -> Self {
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

    /// States that `modify` reaches from this one (IB1 10.3.1).
    pub(crate) fn next(self) -> &'static [Self] {
        match self {
            Self::Reset => &[Self::Init, Self::Err, Self::Reset],
            Self::Init => &[Self::Init, Self::Rtr, Self::Err, Self::Reset],
            Self::Rtr => &[Self::Rts, Self::Err, Self::Reset],
            Self::Rts => &[Self::Sqd, Self::Err, Self::Reset],
            Self::Sqd | Self::Sqe => &[Self::Rts, Self::Err, Self::Reset],
            Self::Err => &[Self::Err, Self::Reset],
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
