//! Queue pair context (QPC): three static images, each one word of a table of the card.
//!
//! The driver composes the images; the card copies them into its tables unchanged. The dynamic state
//! (PSNs, indices, retry counters) belongs to the requester and the responder and is only ever
//! initialised from a command, never written by the host afterwards.

use super::layout::{codes, layout};

codes! {
/// Queue pair states (`enum ibv_qp_state`), held separately by requester and responder.
pub mod state {
    /// Reset.
    pub const RESET: u8 = 0;
    /// Initialised.
    pub const INIT: u8 = 1;
    /// Ready to receive.
    pub const RTR: u8 = 2;
    /// Ready to send.
    pub const RTS: u8 = 3;
    /// Send queue drains.
    pub const SQD: u8 = 4;
    /// Send queue in error.
    pub const SQE: u8 = 5;
    /// Error: everything flushes.
    pub const ERR: u8 = 6;
}
}

codes! {
/// Transport of a queue pair (field `qp_type`).
pub mod qp_type {
    /// Reliable connection.
    pub const RC: u8 = 0;
    /// Unreliable connection.
    pub const UC: u8 = 1;
    /// Unreliable datagram.
    pub const UD: u8 = 3;
}
}

/// Most READs and atomics outstanding, of a requester and of a responder.
pub const MAX_RD_ATOMIC: u8 = 16;

/// Bytes that a packet counts beside its payload, for a rate: about its headers.
pub const RATE_HEADERS: u32 = 64;

layout! { $
    /// Requester image: the send queue and its limits.
    pub struct SqCtx (with_sq_ctx) [64] {
        /// Transport, see [`qp_type`]; equal to the opcode class of its packets.
        qp_type: u8 [2],
        /// Path MTU, IB code 1 to 5 (256 to 4096 bytes).
        mtu: u8 [3],
        /// Log2 of the slots of the send queue, 0 to 15.
        sq_log: u8 [4],
        /// Log2 of the entries of the outstanding ring, 0 to 15.
        ot_log: u8 [4],
        /// Retries after a timeout, a PSN-error NAK or an implied NAK.
        retry_cnt: u8 [3],
        /// Retries after an RNR NAK; 7 = for ever.
        rnr_retry: u8 [3],
        /// Local ACK timeout code: 4.096 us * 2^timeout; 0 = never.
        timeout: u8 [5],
        /// READs and atomics outstanding at most, 0 to 16.
        max_rd_atomic: u8 [5],
        /// Reserved, 0.
        rsv0: u8 [3],
        /// Protection domain.
        pd: u32 [24],
        /// Completion queue of the send queue.
        cqn: u16 [16],
        /// First entry of the outstanding ring in the pool, a multiple of its size.
        ot_base: u32 [24],
        /// Address of the send queue, 64-byte aligned.
        sq_base: u64 [64],
        /// Its requests leave at this rate at most, and so do its responses to READs and atomics, Mb/s; 0 = that of the line.
        rate_limit: u32 [20],
        /// RC: congestion control of the send queue is Swift, by round-trip times; else DCQCN. Counts from the command that starts the
        /// queue afresh.
        swift: bool [1],
        /// Reserved, 0.
        rsv1: u16 [11],
        /// RC: a request leaves only while fewer PSNs than this are outstanding; 0 = any number. Those of READ responses count, those
        /// that are to be sent again do not.
        window: u16 [16],
    }
}

layout! { $
    /// Address vector image: everything of the path that headers need.
    pub struct AvCtx (with_av_ctx) [64] {
        /// Destination IP address as a GID, first byte in the lowest bits.
        dgid: u128 [128],
        /// Destination MAC address, first byte in the lowest bits.
        dmac: u64 [48],
        /// Local GID table entry the packets come from.
        sgid_index: u8 [8],
        /// The path is IPv6; else IPv4 with the address in the last four bytes of `dgid`.
        ipv6: bool [1],
        /// An 802.1Q tag is sent.
        vlan_valid: bool [1],
        /// Reserved, 0.
        rsv0: u8 [6],
        /// Tag control information: PCP, DEI, VLAN id.
        vlan: u16 [16],
        /// Type of service or traffic class: DSCP and ECN.
        tclass: u8 [8],
        /// TTL or hop limit.
        hop_limit: u8 [8],
        /// UDP source port.
        udp_sport: u16 [16],
        /// IPv6 flow label.
        flow_label: u32 [20],
        /// Reserved, 0.
        rsv1: u8 [4],
        /// Remote queue pair.
        remote_qpn: u32 [24],
        /// P_Key.
        pkey: u16 [16],
        /// Protection domain of an address handle. A queue pair's own vector is of its domain: there it does not count.
        pd: u32 [24],
    }
}

layout! { $
    /// Responder image: what a received packet is checked against, and the receive queue.
    pub struct RqCtx (with_rq_ctx) [64] {
        /// Remote IP address as a GID, first byte in the lowest bits (RC, UC).
        remote_gid: u128 [128],
        /// Address of the receive queue, 64-byte aligned.
        rq_base: u64 [64],
        /// Transport, see [`qp_type`].
        qp_type: u8 [2],
        /// Path MTU, IB code 1 to 5.
        mtu: u8 [3],
        /// Log2 of the entries of the receive queue, 0 to 15.
        rq_log: u8 [4],
        /// Log2 of the slots of a receive WQE, 0 to 3.
        rq_stride: u8 [2],
        /// RNR NAK timer code.
        min_rnr_timer: u8 [5],
        /// A peer may write.
        remote_write: bool [1],
        /// A peer may read.
        remote_read: bool [1],
        /// A peer may use atomics.
        remote_atomic: bool [1],
        /// READs and atomics a peer may have outstanding, 0 to 16.
        max_dest_rd_atomic: u8 [5],
        /// Receive from the shared receive queue.
        srq_valid: bool [1],
        /// Packets must come in the VLAN `vlan` (RC, UC).
        check_vlan: bool [1],
        /// Reserved, 0.
        rsv0: u8 [6],
        /// P_Key.
        pkey: u16 [16],
        /// Local GID table entry the packets must be addressed to (RC, UC).
        sgid_index: u8 [8],
        /// Protection domain.
        pd: u32 [24],
        /// Completion queue of the receive queue.
        cqn: u16 [16],
        /// Shared receive queue.
        srqn: u16 [16],
        /// Q_Key (UD).
        qkey: u32 [32],
        /// VLAN identifier; 0: packets have no tag, or one with a priority alone.
        vlan: u16 [12],
    }
}

layout! { $
    /// Shared receive queue: WQEs as those of a receive queue, and a ring of their numbers, 16 bits each.
    pub struct SrqCtx (with_srq_ctx) [64] {
        /// Address of the WQEs, 64-byte aligned.
        base: u64 [64],
        /// Log2 of the WQEs, and of the entries of the ring, 0 to 15.
        log_size: u8 [4],
        /// Log2 of the slots of a receive WQE, 0 to 3.
        stride: u8 [2],
        /// Reserved, 0.
        rsv0: u8 [2],
        /// Event queue that reports the limit.
        eqn: u8 [8],
        /// When fewer WQEs are left, SRQ_LIMIT is reported, once; 0 = never.
        limit: u16 [16],
        /// Protection domain of the scatter entries.
        pd: u32 [24],
        /// Reserved, 0.
        rsv1: u8 [8],
        /// Address of the ring of numbers, 64-byte aligned.
        numbers: u64 [64],
    }
}
