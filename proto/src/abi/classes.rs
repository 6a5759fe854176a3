//! Traffic classes: what the registers of the trust tables hold (docs/classes.md).

use super::layout::layout;

/// Transmit classes.
pub const CLASSES: usize = 4;
/// Priorities of IEEE 802.1Q.
pub const PRIORITIES: usize = 8;

/// What of DSCP_PRIO_0 to 7, PRIO_CLASS and CLASS_WEIGHT is held.
pub const DSCP_PRIO_MASK: u32 = 0x7777_7777;
/// As [`DSCP_PRIO_MASK`].
pub const PRIO_CLASS_MASK: u32 = 0x3333_3333;
/// As [`DSCP_PRIO_MASK`].
pub const CLASS_WEIGHT_MASK: u32 = 0x7f7f_7f7f;

layout! { $
    /// Value of TRUST, coded as in mlx5's QPTS.
    pub struct Trust (with_trust) [4] {
        /// 1: PCP; else DSCP.
        trust: u8 [2],
        /// Reserved, 0.
        rsv0: u8 [6],
        /// Priority of what has no tag, when PCP is trusted.
        default_prio: u8 [3],
    }
}

/// [`Trust::trust`]: the PCP of the tag says the priority.
pub const TRUST_PCP: u8 = 1;
/// [`Trust::trust`]: the DSCP says it.
pub const TRUST_DSCP: u8 = 2;

/// TRUST after reset: DSCP.
pub const TRUST_RESET: u32 = TRUST_DSCP as u32;
/// PRIO_CLASS after reset: priority p has class p / 2.
pub const PRIO_CLASS_RESET: u32 = 0x3322_1100;
/// CLASS_WEIGHT after reset: a quarter each.
pub const CLASS_WEIGHT_RESET: u32 = 0x1919_1919;

/// What of PFC_WATCHDOG is held.
pub const PFC_WATCHDOG_MASK: u32 = 0x3fff;
/// PFC_WATCHDOG after reset, ms.
pub const PFC_WATCHDOG_RESET: u32 = 100;

/// What the receive buffer holds, in units of 64 bytes of payload.
pub const BUFFER_UNITS: usize = 2048;
/// In packets.
pub const BUFFER_PACKETS: usize = 1024;

/// Value of PFC_XOFF, PFC_XON and PFC_LOSSY: a share of the receive buffer, in units of 64 bytes of payload and in packets.
#[must_use]
pub const fn share(units: u16, packets: u16) -> u32 {
    (packets as u32) << 16 | units as u32
}

/// Bytes on the wire that may come behind XOFF, at 100 Gb/s over 100 m of cable (docs/classes.md).
pub const HEADROOM: usize = 62_854;

/// PFC_XOFF after reset: one class over 100 m at 100 Gb/s, with its headroom and PFC_LOSSY beside it.
pub const PFC_XOFF_RESET: u32 = share(352, 160);
/// PFC_XON after reset: two of the largest frames below.
pub const PFC_XON_RESET: u32 = share(220, 80);
/// PFC_LOSSY after reset.
pub const PFC_LOSSY_RESET: u32 = share(128, 64);
/// What of PFC_STORM is held.
pub const PFC_STORM_MASK: u32 = 0x1fff;
/// PFC_STORM after reset, ms.
pub const PFC_STORM_RESET: u32 = 100;

/// Register `i` of DSCP_PRIO_0 to 7 after reset: DSCP d has priority d / 8.
#[must_use]
pub const fn dscp_prio_reset(i: usize) -> u32 {
    i as u32 * 0x1111_1111
}
