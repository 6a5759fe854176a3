//! Completions as the header has them.

use std::ffi::c_int;

use ferroce_driver::{Wc, WcFlags, WcOpcode, WcStatus};

use crate::abi::*;

/// A completion as the header has it.
pub(super) fn convert(wc: &Wc) -> ibv_wc {
    let mut flags = 0;
    for (flag, value) in [
        (WcFlags::GRH, IBV_WC_GRH),
        (WcFlags::WITH_IMM, IBV_WC_WITH_IMM),
        (WcFlags::WITH_INV, IBV_WC_WITH_INV),
    ] {
        if wc.flags.contains(flag) {
            flags |= value as u32;
        }
    }
    // Immediate data are in network order, keys are not.
    let imm_data = if wc.flags.contains(WcFlags::WITH_IMM) {
        wc.imm.to_be()
    } else {
        wc.imm
    };
    ibv_wc {
        wr_id: wc.wr_id,
        status: status_code(wc.status),
        opcode: match wc.opcode {
            WcOpcode::RdmaWrite => IBV_WC_RDMA_WRITE,
            WcOpcode::RdmaRead => IBV_WC_RDMA_READ,
            WcOpcode::CompSwap => IBV_WC_COMP_SWAP,
            WcOpcode::FetchAdd => IBV_WC_FETCH_ADD,
            WcOpcode::BindMw => IBV_WC_BIND_MW,
            WcOpcode::LocalInv => IBV_WC_LOCAL_INV,
            WcOpcode::Recv => IBV_WC_RECV,
            WcOpcode::RecvRdmaWithImm => IBV_WC_RECV_RDMA_WITH_IMM,
            _ => IBV_WC_SEND,
        },
        vendor_err: wc.vendor_err.into(),
        byte_len: wc.byte_len,
        imm_data,
        qp_num: wc.qp_num,
        src_qp: wc.src_qp,
        wc_flags: flags,
        ..ibv_wc::zero()
    }
}

/// A result as the header counts.
fn status_code(status: WcStatus) -> c_int {
    match status {
        WcStatus::Success => IBV_WC_SUCCESS,
        WcStatus::LocLenErr => IBV_WC_LOC_LEN_ERR,
        WcStatus::LocQpOpErr => IBV_WC_LOC_QP_OP_ERR,
        WcStatus::LocProtErr => IBV_WC_LOC_PROT_ERR,
        WcStatus::WrFlushErr => IBV_WC_WR_FLUSH_ERR,
        WcStatus::MwBindErr => IBV_WC_MW_BIND_ERR,
        WcStatus::BadRespErr => IBV_WC_BAD_RESP_ERR,
        WcStatus::LocAccessErr => IBV_WC_LOC_ACCESS_ERR,
        WcStatus::RemInvReqErr => IBV_WC_REM_INV_REQ_ERR,
        WcStatus::RemAccessErr => IBV_WC_REM_ACCESS_ERR,
        WcStatus::RemOpErr => IBV_WC_REM_OP_ERR,
        WcStatus::RetryExcErr => IBV_WC_RETRY_EXC_ERR,
        WcStatus::RnrRetryExcErr => IBV_WC_RNR_RETRY_EXC_ERR,
        WcStatus::RemAbortErr => IBV_WC_REM_ABORT_ERR,
        WcStatus::FatalErr => IBV_WC_FATAL_ERR,
        _ => IBV_WC_GENERAL_ERR,
    }
}
