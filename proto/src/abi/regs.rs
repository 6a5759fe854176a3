//! Registers of BAR0, 32 bits each. Declared once: the decoder in hardware, the driver's accessors and
//! the documentation come from [`REGISTERS`].

use super::classes::{
    CLASS_WEIGHT_RESET, PFC_LOSSY_RESET, PFC_STORM_RESET, PFC_WATCHDOG_RESET, PFC_XOFF_RESET,
    PFC_XON_RESET, PRIO_CLASS_RESET, TRUST_RESET, dscp_prio_reset,
};
use super::layout::{codes, layout};

/// Bytes of BAR0.
pub const BAR0_BYTES: u64 = 0x40_0000;
/// Value of [`MAGIC`]: "FRCE" read as little-endian bytes.
pub const MAGIC_VALUE: u32 = u32::from_le_bytes(*b"FRCE");
/// Version of this contract: major in the high half, minor in the low half. Equal majors understand each other.
pub const ABI_VERSION: u32 = 0x0002_0000;

/// Largest value of [`CMD_LOG_SIZE`].
pub const MAX_CMD_LOG_SIZE: u8 = 8;

/// The side that may write a register.
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
    /// The side that may write it.
    pub access: Access,
    /// Value after reset (for a parameter of the build: 0 here, the value in the card).
    pub reset: u32,
    /// What it is.
    pub doc: &'static str,
}

macro_rules! registers {
    ($( $(#[doc = $doc:literal])* $name:ident = $offset:literal, $access:ident, $reset:expr; )*) => {
        $(
            $(#[doc = $doc])*
            #[allow(rustdoc::broken_intra_doc_links)] // `[15:0]` are bits
            pub const $name: u32 = $offset;
        )*
        /// All registers, in order of offset.
        pub const REGISTERS: &[Register] = &[
            $( Register { offset: $offset, name: stringify!($name), access: Access::$access, reset: $reset, doc: concat!($($doc),*) } ),*
        ];
    };
}

registers! {
    /// Identification: reads as the bytes "FRCE".
    MAGIC = 0x000, ReadOnly, MAGIC_VALUE;
    /// Contract version: [31:16] major, [15:0] minor. Equal majors are compatible.
    VERSION = 0x004, ReadOnly, ABI_VERSION;
    /// First 8 hexadecimal digits of the source commit the build was made from; 0 = unknown.
    BUILD = 0x008, ReadOnly, 0;
    /// Parameters: [4:0] log2 queue pairs, [9:5] log2 memory regions, [14:10] log2 completion queues, [19:15] log2 outstanding pool, [24:20] log2 GID entries, [28:25] log2 event queues.
    PARAMS = 0x00c, ReadOnly, 0;
    /// Parameters: [15:0] data path width in bits, [31:16] core clock in MHz.
    PARAMS2 = 0x010, ReadOnly, 0;
    /// Feature bits: what this build does.
    FEATURES = 0x014, ReadOnly, 0;
    /// Bit 0: enable: frames are accepted, doorbells and commands take effect. Bit 1: reset the engine and these registers (self-clearing).
    CONTROL = 0x018, ReadWrite, 0;
    /// Bit 0: link up. Bit 1: ready after reset. Bit 2: a DMA access failed. Bit 3: an entry of a ring was refused. Both stay 1 until a reset.
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
    /// Commands completed, free running, low 16 bits. Counts when the completion is in host memory.
    CMD_CI = 0x038, ReadOnly, 0;
    /// Scratch: no effect.
    SCRATCH = 0x03c, ReadWrite, 0;
    /// Parameters: [4:0] log2 address handles, [9:5] log2 shared receive queues.
    PARAMS3 = 0x040, ReadOnly, 0;
    /// Address of the rings of the exception queue, low half; 4096-byte aligned.
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
    /// Notification point: [15:0] microseconds between two CNPs of a queue pair at least; 0: every marked packet draws one.
    MIN_TIME_BETWEEN_CNPS = 0x05c, ReadWrite, 4;
    /// Notification point: [5:0] DSCP of CNPs, [10:8] their PCP where the path has an 802.1Q tag, [16] marked packets draw CNPs.
    CNP_CONFIG = 0x060, ReadWrite, CNP_CONFIG_RESET;
    /// Reaction point: [0] CNPs slow queue pairs down, [1] clamp_tgt_rate, [2] clamp_tgt_rate_after_time_inc, [3] alpha_first, [4] alpha_whole: alpha in 1/1024, else in 1/65536.
    RP_CONFIG = 0x064, ReadWrite, RP_CONFIG_RESET;
    /// Reaction point: rate of the port, up to 1048575 Mb/s; 0: that of the build, 100 Gb/s with a data path of 512 bits, 10 Gb/s with 64.
    LINE_RATE = 0x068, ReadWrite, 0;
    /// Reaction point: microseconds between increases by time, 1 to 131071.
    RPG_TIME_RESET = 0x06c, ReadWrite, 300;
    /// Reaction point: units of 64 bytes sent between increases by bytes, up to 262143; 0: there are none.
    RPG_BYTE_RESET = 0x070, ReadWrite, 32_767;
    /// Reaction point: increases of fast recovery, 1 to 31.
    RPG_THRESHOLD = 0x074, ReadWrite, 1;
    /// Reaction point: highest rate, up to 1048575 Mb/s; 0: LINE_RATE.
    RPG_MAX_RATE = 0x078, ReadWrite, 0;
    /// Reaction point: step of an additive increase, up to 1048575 Mb/s.
    RPG_AI_RATE = 0x07c, ReadWrite, 5;
    /// Reaction point: step of a hyper increase, up to 1048575 Mb/s.
    RPG_HAI_RATE = 0x080, ReadWrite, 50;
    /// Reaction point: a decrease takes off rate * alpha / 2^this, 0 to 15.
    RPG_GD = 0x084, ReadWrite, 11;
    /// Reaction point: what a decrease leaves at least, 0 to 100 percent.
    RPG_MIN_DEC_FAC = 0x088, ReadWrite, 50;
    /// Reaction point: lowest rate, 1 to 1048575 Mb/s.
    RPG_MIN_RATE = 0x08c, ReadWrite, 1;
    /// Reaction point: rate behind the first CNP, up to 1048575 Mb/s; 0: as it was.
    RATE_TO_SET_ON_FIRST_CNP = 0x090, ReadWrite, 0;
    /// Reaction point: what a tick leaves of alpha, 0 to 1023 of 1024.
    DCE_TCP_G = 0x094, ReadWrite, 1019;
    /// Reaction point: microseconds between ticks of alpha, 1 to 131071.
    DCE_TCP_RTT = 0x098, ReadWrite, 1;
    /// Reaction point: microseconds between decreases at least, up to 131071; 0: every CNP decreases.
    RATE_REDUCE_MONITOR_PERIOD = 0x09c, ReadWrite, 4;
    /// Reaction point: alpha at the first CNP, 0 to 1023 of 1024.
    INITIAL_ALPHA_VALUE = 0x0a0, ReadWrite, 1023;
    /// Traffic classes: [1:0] 1: the PCP of a packet says its priority, 2: its DSCP; [10:8] priority of what has no tag, if the PCP says it.
    TRUST = 0x0a4, ReadWrite, TRUST_RESET;
    /// Traffic classes: priority of DSCPs 0 to 7, four bits each, of which the fourth is 0.
    DSCP_PRIO_0 = 0x0a8, ReadWrite, dscp_prio_reset(0);
    /// Traffic classes: priority of DSCPs 8 to 15.
    DSCP_PRIO_1 = 0x0ac, ReadWrite, dscp_prio_reset(1);
    /// Traffic classes: priority of DSCPs 16 to 23.
    DSCP_PRIO_2 = 0x0b0, ReadWrite, dscp_prio_reset(2);
    /// Traffic classes: priority of DSCPs 24 to 31.
    DSCP_PRIO_3 = 0x0b4, ReadWrite, dscp_prio_reset(3);
    /// Traffic classes: priority of DSCPs 32 to 39.
    DSCP_PRIO_4 = 0x0b8, ReadWrite, dscp_prio_reset(4);
    /// Traffic classes: priority of DSCPs 40 to 47.
    DSCP_PRIO_5 = 0x0bc, ReadWrite, dscp_prio_reset(5);
    /// Traffic classes: priority of DSCPs 48 to 55.
    DSCP_PRIO_6 = 0x0c0, ReadWrite, dscp_prio_reset(6);
    /// Traffic classes: priority of DSCPs 56 to 63.
    DSCP_PRIO_7 = 0x0c4, ReadWrite, dscp_prio_reset(7);
    /// Traffic classes: class of each priority, four bits each, of which the upper two are 0.
    PRIO_CLASS = 0x0c8, ReadWrite, PRIO_CLASS_RESET;
    /// Traffic classes: weight of each class, eight bits each: 0 strict, else 1 to 127; shares are as the weights to each other.
    CLASS_WEIGHT = 0x0cc, ReadWrite, CLASS_WEIGHT_RESET;
    /// Pause by priority (PFC): [7:0] priorities whose pause is obeyed, [15:8] priorities of which pauses are sent.
    PFC_CONFIG = 0x0d0, ReadWrite, 0;
    /// Pause by priority (PFC): [13:0] milliseconds for which the peer may hold a class; 0: for ever.
    PFC_WATCHDOG = 0x0d4, ReadWrite, PFC_WATCHDOG_RESET;
    /// Pause by priority (PFC): what of the receive buffer a class holds when it asks for a pause: [15:0] units of 64 bytes of payload or [31:16] packets.
    PFC_XOFF = 0x0d8, ReadWrite, PFC_XOFF_RESET;
    /// Pause by priority (PFC): it asks no more when it holds less than both: [15:0] units of 64 bytes of payload, [31:16] packets.
    PFC_XON = 0x0dc, ReadWrite, PFC_XON_RESET;
    /// Pause by priority (PFC): while pauses are sent, frames of classes without are dropped when these together hold [15:0] units of 64 bytes of payload or [31:16] packets.
    PFC_LOSSY = 0x0e0, ReadWrite, PFC_LOSSY_RESET;
    /// Pause by priority (PFC): [12:0] milliseconds for which a class asks while nothing of it leaves the receive buffer; 0: for ever.
    PFC_STORM = 0x0e4, ReadWrite, PFC_STORM_RESET;
    /// Swift: [19:0] base_target, ns, 4 at least; [30:20] max_mdf, up to 1024 of 1024.
    SWIFT_TARGET = 0x0e8, ReadWrite, 25_000 | 512 << 20;
    /// Swift: [19:0] fs_range, ns; [31:20] max_cwnd, packets of the path MTU, 1 at least.
    SWIFT_RANGE = 0x0ec, ReadWrite, 100_000 | 256 << 20;
    /// Swift: [19:0] fs_alpha, ns; [31:20] initial_cwnd, packets, 1 at least.
    SWIFT_ALPHA = 0x0f0, ReadWrite, 32_260 | 16 << 20;
    /// Swift: [19:0] fs_beta, ns; [30:20] min_cwnd, 1 to 1024 of 1024 packets.
    SWIFT_BETA = 0x0f4, ReadWrite, 2016 | 10 << 20;
    /// Swift: [15:0] ai, 1/256 packet a round trip, 1 at least; [26:16] beta, up to 1024 of 1024; [29:27] retx_reset_threshold, timeouts, 1 at least.
    SWIFT_STEP = 0x0f8, ReadWrite, 256 | 819 << 16 | 3 << 27;
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

layout! { $
    /// Value of [`CNP_CONFIG`], named as mlx5 does.
    pub struct CnpConfig (with_cnp_config) [4] {
        /// DSCP of CNPs.
        cnp_dscp: u8 [6],
        /// Reserved, 0.
        rsv0: u8 [2],
        /// PCP of CNPs where the path has an 802.1Q tag.
        cnp_802p_prio: u8 [3],
        /// Reserved, 0.
        rsv1: u8 [5],
        /// Marked packets draw CNPs.
        enable: bool [1],
    }
}

/// [`RP_CONFIG`] after reset: on, `clamp_tgt_rate_after_time_inc`.
pub const RP_CONFIG_RESET: u32 = 1 << 2 | 1 << 0;

/// Greatest MIN_TIME_BETWEEN_CNPS, us; a greater one is taken as this.
pub const LONGEST_TIME_BETWEEN_CNPS: u32 = 0xffff;

/// [`CNP_CONFIG`] after reset: on, DSCP 48 (CS6), PCP 6.
pub const CNP_CONFIG_RESET: u32 = 1 << 16 | 6 << 8 | 48;

codes! {
/// Bits of [`CONTROL`].
pub mod control {
    /// Frames are accepted, doorbells and commands take effect.
    pub const ENABLE: u32 = 1 << 0;
    /// Reset the engine; self-clearing.
    pub const ENGINE_RESET: u32 = 1 << 1;
}
}

codes! {
/// Bits of [`STATUS`].
pub mod status {
    /// Link up.
    pub const LINK_UP: u32 = 1 << 0;
    /// Ready after reset.
    pub const READY: u32 = 1 << 1;
    /// A DMA access failed.
    pub const DMA_ERROR: u32 = 1 << 2;
    /// Host memory refused the write of a CQE, an event or the completion of a command: it is missing, and its ring ends there.
    pub const RING_ERROR: u32 = 1 << 3;
}
}

codes! {
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
    /// Memory windows, of type 2 those of a queue pair, and the WQEs that bind and invalidate them.
    pub const MEM_WINDOW: u32 = 1 << 13;
    /// Notification point: packets marked CE draw CNPs.
    pub const CNP: u32 = 1 << 14;
    /// Rates: the limit of a queue pair, and the reaction point, by which CNPs slow queue pairs down.
    pub const RATES: u32 = 1 << 15;
    /// Traffic classes: trust tables, queues by class, pauses of the peer by priority.
    pub const CLASSES: u32 = 1 << 16;
    /// Send windows: the PSNs that an RC queue pair may have outstanding.
    pub const SEND_WINDOW: u32 = 1 << 17;
    /// Swift: congestion control of an RC queue pair by round-trip times.
    pub const SWIFT: u32 = 1 << 18;
}
}

pub use super::counters::{STAT_DOCS, STATS};
