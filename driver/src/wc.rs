//! Work completions.

use std::fmt;

use bitflags::bitflags;
use ferroce_proto::abi::cq::{Cqe, opcode, status};
use thiserror::Error;

/// Result of a work request (`enum ibv_wc_status`). Displayed in the words of `ibv_wc_status_str`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WcStatus {
    /// Done.
    #[default]
    Success,
    /// A receive buffer too short, or a request over the limits.
    LocLenErr,
    /// A request that makes no sense to the card.
    LocQpOpErr,
    /// lkey, protection domain, rights or bounds of a gather or scatter entry.
    LocProtErr,
    /// The queue pair was in error before the request ran.
    WrFlushErr,
    /// A memory window was not bound: a rule forbids it.
    MwBindErr,
    /// A response that cannot be.
    BadRespErr,
    /// The memory that a peer's WRITE with immediate named went away before its end.
    LocAccessErr,
    /// The peer refused the request as invalid.
    RemInvReqErr,
    /// The peer refused access: rkey, rights or bounds.
    RemAccessErr,
    /// The peer could not carry the request out.
    RemOpErr,
    /// The peer did not answer after all retries.
    RetryExcErr,
    /// The peer had no receive posted after all retries.
    RnrRetryExcErr,
    /// The peer aborted.
    RemAbortErr,
    /// The card is gone. Said by the driver in its place.
    FatalErr,
    /// Anything else.
    GeneralErr,
    /// A value this driver does not know.
    Unknown(u8),
}

impl From<u8> for WcStatus {
    fn from(value: u8) -> Self {
        match value {
            status::SUCCESS => Self::Success,
            status::LOC_LEN_ERR => Self::LocLenErr,
            status::LOC_QP_OP_ERR => Self::LocQpOpErr,
            status::LOC_PROT_ERR => Self::LocProtErr,
            status::WR_FLUSH_ERR => Self::WrFlushErr,
            status::MW_BIND_ERR => Self::MwBindErr,
            status::BAD_RESP_ERR => Self::BadRespErr,
            status::LOC_ACCESS_ERR => Self::LocAccessErr,
            status::REM_INV_REQ_ERR => Self::RemInvReqErr,
            status::REM_ACCESS_ERR => Self::RemAccessErr,
            status::REM_OP_ERR => Self::RemOpErr,
            status::RETRY_EXC_ERR => Self::RetryExcErr,
            status::RNR_RETRY_EXC_ERR => Self::RnrRetryExcErr,
            status::REM_ABORT_ERR => Self::RemAbortErr,
            status::GENERAL_ERR => Self::GeneralErr,
            other => Self::Unknown(other),
        }
    }
}

impl fmt::Display for WcStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Success => "success",
            Self::LocLenErr => "local length error",
            Self::LocQpOpErr => "local QP operation error",
            Self::LocProtErr => "local protection error",
            Self::WrFlushErr => "Work Request Flushed Error",
            Self::MwBindErr => "memory bind operation error",
            Self::BadRespErr => "bad response error",
            Self::LocAccessErr => "local access error",
            Self::RemInvReqErr => "remote invalid request error",
            Self::RemAccessErr => "remote access error",
            Self::RemOpErr => "remote operation error",
            Self::RetryExcErr => "transport retry counter exceeded",
            Self::RnrRetryExcErr => "RNR retry counter exceeded",
            Self::RemAbortErr => "aborted error",
            Self::FatalErr => "fatal error",
            Self::GeneralErr => "general error",
            Self::Unknown(_) => "unknown",
        })
    }
}

/// What completed (`enum ibv_wc_opcode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WcOpcode {
    /// SEND of any form.
    #[default]
    Send,
    /// RDMA WRITE of any form.
    RdmaWrite,
    /// RDMA READ.
    RdmaRead,
    /// Compare and swap.
    CompSwap,
    /// Fetch and add.
    FetchAdd,
    /// A memory window bound.
    BindMw,
    /// A key invalidated locally.
    LocalInv,
    /// Receive of a SEND.
    Recv,
    /// Receive of the immediate data of a WRITE.
    RecvRdmaWithImm,
    /// A value this driver does not know.
    Unknown(u8),
}

impl From<u8> for WcOpcode {
    fn from(value: u8) -> Self {
        match value {
            opcode::SEND => Self::Send,
            opcode::WRITE => Self::RdmaWrite,
            opcode::READ => Self::RdmaRead,
            opcode::CMP_SWAP => Self::CompSwap,
            opcode::FETCH_ADD => Self::FetchAdd,
            opcode::BIND_MW => Self::BindMw,
            opcode::LOCAL_INV => Self::LocalInv,
            opcode::RECV => Self::Recv,
            opcode::RECV_WRITE_IMM => Self::RecvRdmaWithImm,
            other => Self::Unknown(other),
        }
    }
}

bitflags! {
    /// What else a completion says (`enum ibv_wc_flags`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct WcFlags: u8 {
        /// `imm` holds immediate data.
        const WITH_IMM = 1 << 0;
        /// `imm` holds an invalidated rkey.
        const WITH_INV = 1 << 1;
        /// The first 40 bytes of the buffer hold a GRH.
        const GRH = 1 << 2;
        /// The message asked for a solicited event.
        const SOLICITED = 1 << 3;
    }
}

/// A work completion.
///
/// When `status` is not success only `wr_id`, `qp_num` and `vendor_err` mean anything beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wc {
    /// As in the work request.
    pub wr_id: u64,
    /// Result.
    pub status: WcStatus,
    /// Cause in detail: the AETH syndrome of a NAK, else 0.
    pub vendor_err: u8,
    /// What completed.
    pub opcode: WcOpcode,
    /// Bytes received or read.
    pub byte_len: u32,
    /// Immediate data (host order of the value) or an invalidated rkey, as the flags say.
    pub imm: u32,
    /// Local queue pair.
    pub qp_num: u32,
    /// Source queue pair (UD).
    pub src_qp: u32,
    /// What else there is to say.
    pub flags: WcFlags,
}

impl Wc {
    #[inline]
    pub(crate) fn new(cqe: &Cqe, wr_id: u64) -> Self {
        let mut flags = WcFlags::empty();
        flags.set(WcFlags::WITH_IMM, cqe.with_imm);
        flags.set(WcFlags::WITH_INV, cqe.with_inv);
        flags.set(WcFlags::GRH, cqe.grh);
        flags.set(WcFlags::SOLICITED, cqe.solicited);
        Self {
            wr_id,
            status: cqe.status.into(),
            vendor_err: cqe.vendor_err,
            opcode: cqe.opcode.into(),
            byte_len: cqe.byte_len,
            imm: cqe.imm,
            qp_num: cqe.qpn,
            src_qp: cqe.src_qpn,
            flags,
        }
    }

    /// Immediate data that came with the message.
    #[must_use]
    pub fn imm_data(&self) -> Option<u32> {
        self.flags.contains(WcFlags::WITH_IMM).then_some(self.imm)
    }

    /// The rkey that the message invalidated.
    #[must_use]
    pub fn invalidated_rkey(&self) -> Option<u32> {
        self.flags.contains(WcFlags::WITH_INV).then_some(self.imm)
    }

    /// The completion itself if it is a success.
    ///
    /// # Errors
    /// [`WcError`] else.
    pub fn ok(self) -> Result<Self, WcError> {
        match self.status {
            WcStatus::Success => Ok(self),
            _ => Err(WcError(self)),
        }
    }
}

/// A work request that failed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "work request {:#x} of queue pair {}: {} (status {:?}, syndrome {:#04x}); {}",
    .0.wr_id, .0.qp_num, .0.status, .0.status, .0.vendor_err, advice(.0.status)
)]
pub struct WcError(pub Wc);

fn advice(status: WcStatus) -> &'static str {
    match status {
        WcStatus::FatalErr => {
            "the card is gone: drop everything opened on it, see that it is there, and open it anew"
        }
        _ => "the queue pair is in error, reset it to use it again",
    }
}
