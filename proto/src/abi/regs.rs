//! Registers of BAR0, 32 bits each. Declared once: the decoder in hardware, the driver's accessors and
//! the documentation come from [`REGISTERS`].

use super::layout::layout;

/// Bytes of BAR0.
pub const BAR0_BYTES: u64 = 0x40_0000;
/// Value of [`MAGIC`]: "FRCE" read as little-endian bytes.
pub const MAGIC_VALUE: u32 = u32::from_le_bytes(*b"FRCE");
/// Version of this contract: major in the high half, minor in the low half. Equal majors understand each other.
pub const ABI_VERSION: u32 = 0x0001_0000;

/// Who may write a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Host reads only.
    ReadOnly,
    /// Host reads and writes.
    ReadWrite,
}

/// A register.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    /// Byte offset in BAR0.
    pub offset: u32,
    /// Name.
    pub name: &'static str,
    /// Who may write it.
    pub access: Access,
    /// Value after reset (for a parameter of the build: 0 here, the value in the card).
    pub reset: u32,
    /// What it is.
    pub doc: &'static str,
}

macro_rules! registers {
    ($( $(#[doc = $doc:literal])* $name:ident = $offset:literal, $access:ident, $reset:expr; )*) => {
        $( $(#[doc = $doc])* pub const $name: u32 = $offset; )*
        /// All registers, in order of offset.
        pub const REGISTERS: &[Register] = &[
            $( Register { offset: $offset, name: stringify!($name), access: Access::$access, reset: $reset, doc: concat!($($doc),*) } ),*
        ];
    };
}

registers! {
    /// Identification: [`MAGIC_VALUE`].
    MAGIC = 0x000, ReadOnly, MAGIC_VALUE;
    /// Contract version: [`ABI_VERSION`].
    VERSION = 0x004, ReadOnly, ABI_VERSION;
    /// First 8 hexadecimal digits of the source commit the build was made from; 0 = unknown.
    BUILD = 0x008, ReadOnly, 0;
    /// Parameters: [4:0] log2 queue pairs, [9:5] log2 memory regions, [14:10] log2 completion queues, [19:15] log2 outstanding pool, [24:20] log2 GID entries, [28:25] log2 event queues.
    PARAMS = 0x00c, ReadOnly, 0;
    /// Parameters: [15:0] data path width in bits, [31:16] core clock in MHz.
    PARAMS2 = 0x010, ReadOnly, 0;
    /// Feature bits, see [`feature`].
    FEATURES = 0x014, ReadOnly, 0;
    /// Bit 0: enable (frames are accepted, doorbells heard). Bit 1: reset the engine (self-clearing).
    CONTROL = 0x018, ReadWrite, 0;
    /// Bit 0: link up. Bit 1: ready after reset. Bit 2: a DMA access failed.
    STATUS = 0x01c, ReadOnly, 0;
    /// Command ring address, low half; 64-byte aligned.
    CMD_BASE_LO = 0x020, ReadWrite, 0;
    /// Command ring address, high half.
    CMD_BASE_HI = 0x024, ReadWrite, 0;
    /// Command completion ring address, low half; 64-byte aligned.
    CPL_BASE_LO = 0x028, ReadWrite, 0;
    /// Command completion ring address, high half.
    CPL_BASE_HI = 0x02c, ReadWrite, 0;
    /// Log2 of the entries of both command rings, 0 to 8. Written while CONTROL.enable is 0.
    CMD_LOG_SIZE = 0x030, ReadWrite, 0;
    /// Command producer index, free running; writing it rings the doorbell.
    CMD_PI = 0x034, ReadWrite, 0;
    /// Commands completed, free running, low 16 bits.
    CMD_CI = 0x038, ReadOnly, 0;
    /// Scratch: no effect.
    SCRATCH = 0x03c, ReadWrite, 0;
    /// Parameters: [4:0] log2 address handles, [9:5] log2 shared receive queues.
    PARAMS3 = 0x040, ReadOnly, 0;
    /// Address of the rings of the exception queue, low half; 4096-byte aligned. See [`super::exception`].
    EXC_BASE_LO = 0x044, ReadWrite, 0;
    /// Address of the rings of the exception queue, high half.
    EXC_BASE_HI = 0x048, ReadWrite, 0;
    /// Exception queue: [3:0] log2 of the slots of each ring, 0 to 8, [4] large slots, [5] on. Written with `on` = 0 it clears EXC_RX_CI and EXC_TX_PI.
    EXC_CONFIG = 0x04c, ReadWrite, 0;
    /// Exception queue: [15:0] consumer index of the receive ring. Written with [16] = 1: one event when there is a frame beyond it; reads 0 there.
    EXC_RX_CI = 0x050, ReadWrite, 0;
    /// Exception queue: [15:0] producer index of the transmit ring.
    EXC_TX_PI = 0x054, ReadWrite, 0;
    /// Exception queue: [15:0] consumer index of the transmit ring, [16] busy.
    EXC_STATUS = 0x058, ReadOnly, 0;
}

/// First byte of the statistics: one 64-bit counter each 8 bytes, in the order of [`STATS`].
/// The low half is read first; it latches the high half.
pub const STATS_BASE: u32 = 0x1000;

layout! { $
    /// Value of [`PARAMS`].
    pub struct Params (with_params) [4] {
        /// Log2 queue pairs.
        log_qp: u8 [5],
        /// Log2 memory regions.
        log_mr: u8 [5],
        /// Log2 completion queues.
        log_cq: u8 [5],
        /// Log2 entries of the outstanding pool.
        log_outstanding: u8 [5],
        /// Log2 entries of the GID table.
        log_gid: u8 [5],
        /// Log2 event queues.
        log_eq: u8 [4],
    }
}

layout! { $
    /// Value of [`PARAMS2`].
    pub struct Params2 (with_params2) [4] {
        /// Data path width in bits.
        data_width: u16 [16],
        /// Core clock in MHz.
        core_clock_mhz: u16 [16],
    }
}

layout! { $
    /// Value of [`PARAMS3`].
    pub struct Params3 (with_params3) [4] {
        /// Log2 address handles.
        log_ah: u8 [5],
        /// Log2 shared receive queues.
        log_srq: u8 [5],
    }
}

/// Bits of [`CONTROL`].
pub mod control {
    /// Frames are accepted, doorbells heard.
    pub const ENABLE: u32 = 1 << 0;
    /// Reset the engine; self-clearing.
    pub const RESET: u32 = 1 << 1;
}

/// Bits of [`STATUS`].
pub mod status {
    /// Link up.
    pub const LINK_UP: u32 = 1 << 0;
    /// Ready after reset.
    pub const READY: u32 = 1 << 1;
    /// A DMA access failed.
    pub const DMA_ERROR: u32 = 1 << 2;
}

/// Feature bits of [`FEATURES`].
pub mod feature {
    /// RC SEND and WRITE.
    pub const RC: u32 = 1 << 0;
    /// RC READ.
    pub const READ: u32 = 1 << 1;
    /// RC atomics.
    pub const ATOMIC: u32 = 1 << 2;
    /// UC.
    pub const UC: u32 = 1 << 3;
    /// UD.
    pub const UD: u32 = 1 << 4;
    /// Shared receive queues.
    pub const SRQ: u32 = 1 << 5;
    /// IPv6.
    pub const IPV6: u32 = 1 << 6;
    /// VLAN tags.
    pub const VLAN: u32 = 1 << 7;
    /// Event queues and interrupts.
    pub const EVENTS: u32 = 1 << 8;
    /// Gather and scatter lists of 16 entries and inline data beyond the first slot.
    pub const LONG_WQE: u32 = 1 << 9;
    /// RC SEND with invalidate.
    pub const INVALIDATE: u32 = 1 << 10;
    /// Exception queue.
    pub const EXCEPTION: u32 = 1 << 11;
    /// Completion queues change their size.
    pub const RESIZE_CQ: u32 = 1 << 12;
    /// Entries of memory windows, of type 2 those of a queue pair, and the WQE that completes what the host did.
    pub const MEM_WINDOW: u32 = 1 << 13;
}

/// Names of the statistics, in order, as operators know them from Linux (`rdma statistic`, `ethtool -S`).
pub const STATS: &[&str] = &[
    "rx_frames",
    "rx_bytes",
    "rx_roce_packets",
    "rx_bad_frames",
    "rx_icrc_errors",
    "rx_malformed",
    "rx_not_roce",
    "rx_overflow",
    "rx_unknown_qp",
    "rx_qp_state",
    "rx_wrong_transport",
    "rx_pkey_violations",
    "rx_wrong_address",
    "rx_write_requests",
    "rx_send_requests",
    "rx_read_requests",
    "rx_atomic_requests",
    "out_of_sequence",
    "duplicate_request",
    "rnr_nak_sent",
    "invalid_request_errors",
    "access_errors",
    "operational_errors",
    "rx_acks",
    "rx_ghost_acks",
    "packet_seq_err",
    "implied_nak_seq_err",
    "rnr_nak_received",
    "remote_errors",
    "local_ack_timeout_err",
    "retry_exceeded_err",
    "rnr_nak_retry_err",
    "retransmissions",
    "tx_frames",
    "tx_bytes",
    "tx_roce_packets",
    "tx_acks",
    "cq_overflows",
    "commands",
    "command_errors",
    "rx_qkey_violations",
    "rx_exceptions",
    "rx_exception_drops",
    "tx_exceptions",
];
