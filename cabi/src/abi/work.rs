//! Work requests and completions.

use std::ffi::{c_int, c_uint, c_void};

use super::{ibv_ah, ibv_mr, ibv_mw, structures, zero};

structures! { pub(super) LAYOUTS:
    /// An entry of a gather or scatter list.
    struct ibv_sge {
        addr: u64,
        length: u32,
        lkey: u32,
    }

    /// A send request.
    struct ibv_send_wr {
        wr_id: u64,
        next: *mut ibv_send_wr,
        sg_list: *mut ibv_sge,
        num_sge: c_int,
        opcode: c_int,
        send_flags: c_uint,
        imm_data: u32,
        wr: OfTransport,
        qp_type: u32,
        bind_mw: BindMw,
    }

    /// What a memory window is bound to.
    struct ibv_mw_bind_info {
        mr: *mut ibv_mr,
        addr: u64,
        length: u64,
        mw_access_flags: c_uint,
    }

    /// A request to bind a memory window.
    struct ibv_mw_bind {
        wr_id: u64,
        send_flags: c_uint,
        bind_info: ibv_mw_bind_info,
    }

    /// A receive request.
    struct ibv_recv_wr {
        wr_id: u64,
        next: *mut ibv_recv_wr,
        sg_list: *mut ibv_sge,
        num_sge: c_int,
    }

    /// A completion.
    struct ibv_wc {
        wr_id: u64,
        status: c_int,
        opcode: c_int,
        vendor_err: u32,
        byte_len: u32,
        imm_data: u32,
        qp_num: u32,
        src_qp: u32,
        wc_flags: c_uint,
        pkey_index: u16,
        slid: u16,
        sl: u8,
        dlid_path_bits: u8,
    }
}

/// What depends on the operation.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the names of the header")]
pub union OfTransport {
    pub rdma: Rdma,
    pub atomic: Atomic,
    pub ud: Ud,
}

/// Of READ and WRITE.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the names of the header")]
pub struct Rdma {
    pub remote_addr: u64,
    pub rkey: u32,
}

/// Of atomics.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the names of the header")]
pub struct Atomic {
    pub remote_addr: u64,
    pub compare_add: u64,
    pub swap: u64,
    pub rkey: u32,
}

/// Of a window that is bound.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BindMw {
    /// The window.
    pub mw: *mut ibv_mw,
    /// Its key from then on.
    pub rkey: u32,
    /// What it is bound to.
    pub bind_info: ibv_mw_bind_info,
}

/// Of datagrams.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the names of the header")]
pub struct Ud {
    pub ah: *mut ibv_ah,
    pub remote_qpn: u32,
    pub remote_qkey: u32,
}

/// Places inside of unions of `ibv_send_wr`, as C names them.
pub const NESTED: [(&str, usize); 8] = {
    use std::mem::offset_of;
    let wr = offset_of!(ibv_send_wr, wr);
    let bind = offset_of!(ibv_send_wr, bind_mw);
    [
        ("bind_mw.rkey", bind + offset_of!(BindMw, rkey)),
        ("bind_mw.bind_info", bind + offset_of!(BindMw, bind_info)),
        ("wr.rdma.rkey", wr + offset_of!(Rdma, rkey)),
        (
            "wr.atomic.compare_add",
            wr + offset_of!(Atomic, compare_add),
        ),
        ("wr.atomic.swap", wr + offset_of!(Atomic, swap)),
        ("wr.atomic.rkey", wr + offset_of!(Atomic, rkey)),
        ("wr.ud.remote_qpn", wr + offset_of!(Ud, remote_qpn)),
        ("wr.ud.remote_qkey", wr + offset_of!(Ud, remote_qkey)),
    ]
};

zero!(ibv_send_wr, ibv_wc);

/// A pointer that a C caller may leave out.
pub type Opaque = *mut c_void;
