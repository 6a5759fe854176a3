//! Rates: what the registers of the reaction point hold, and the rate of the port.

use super::layout::layout;
use super::regs::*;

/// Highest rate, Mb/s.
pub const RATE_MAX: u32 = (1 << 20) - 1;
/// Longest period, microseconds.
pub const PERIOD_MAX: u32 = (1 << 17) - 1;

layout! { $
    /// Value of [`RP_CONFIG`]; the parameters are named as mlx5 does, but for `alpha_first` and `alpha_whole`, which it has not.
    pub struct RpConfig (with_rp_config) [4] {
        /// CNPs slow queue pairs down.
        enable: bool [1],
        /// A decrease always takes the target rate down to the current rate.
        clamp_tgt_rate: bool [1],
        /// So does a decrease behind an increase by time.
        clamp_tgt_rate_after_time_inc: bool [1],
        /// A tick of alpha comes before what else is due at its time.
        alpha_first: bool [1],
        /// Alpha is in whole 1/1024, as in published integers of mlx5; else in 1/65536.
        alpha_whole: bool [1],
    }
}

/// The least and the greatest value of each parameter of the reaction point; one beyond them is taken as the nearer of the two.
pub const RP_RANGES: &[(u32, u32, u32)] = &[
    (LINE_RATE, 0, RATE_MAX),
    (RPG_TIME_RESET, 1, PERIOD_MAX),
    (RPG_BYTE_RESET, 0, (1 << 18) - 1),
    (RPG_THRESHOLD, 1, 31),
    (RPG_MAX_RATE, 0, RATE_MAX),
    (RPG_AI_RATE, 0, RATE_MAX),
    (RPG_HAI_RATE, 0, RATE_MAX),
    (RPG_GD, 0, 15),
    (RPG_MIN_DEC_FAC, 0, 100),
    (RPG_MIN_RATE, 1, RATE_MAX),
    (RATE_TO_SET_ON_FIRST_CNP, 0, RATE_MAX),
    (DCE_TCP_G, 0, 1023),
    (DCE_TCP_RTT, 1, PERIOD_MAX),
    (RATE_REDUCE_MONITOR_PERIOD, 0, PERIOD_MAX),
    (INITIAL_ALPHA_VALUE, 0, 1023),
];

/// A parameter of Swift: bits of a register.
#[derive(Clone, Copy, Debug)]
pub struct SwiftField {
    /// Its name.
    pub name: &'static str,
    /// The register.
    pub register: u32,
    /// Its lowest bit.
    pub at: u32,
    /// The least value; a lower one is taken as this.
    pub least: u32,
    /// The greatest value; a higher one is taken as this.
    pub greatest: u32,
}

impl SwiftField {
    /// Bits that hold any value of it, from bit 0 on.
    #[must_use]
    pub const fn mask(&self) -> u32 {
        u32::MAX >> self.greatest.leading_zeros()
    }

    /// The value in a register that is written.
    #[must_use]
    pub fn value(&self, register: u32) -> u32 {
        (register >> self.at & self.mask()).clamp(self.least, self.greatest)
    }
}

macro_rules! swift_fields {
    ($($name:ident $register:ident $at:literal $least:literal $greatest:expr;)*) => {
        &[$(SwiftField {
            name: stringify!($name),
            register: $register,
            at: $at,
            least: $least,
            greatest: $greatest,
        }),*]
    };
}

/// The parameters of Swift.
pub const SWIFT_FIELDS: &[SwiftField] = swift_fields!(
    base_target SWIFT_TARGET 0 4 (1 << 20) - 1;
    max_mdf SWIFT_TARGET 20 0 1024;
    fs_range SWIFT_RANGE 0 0 (1 << 20) - 1;
    max_cwnd SWIFT_RANGE 20 1 4095;
    fs_alpha SWIFT_ALPHA 0 0 (1 << 20) - 1;
    initial_cwnd SWIFT_ALPHA 20 1 4095;
    fs_beta SWIFT_BETA 0 0 (1 << 20) - 1;
    min_cwnd SWIFT_BETA 20 1 1024;
    ai SWIFT_STEP 0 1 0xffff;
    beta SWIFT_STEP 16 0 1024;
    retx_reset_threshold SWIFT_STEP 27 1 7;
);

/// Rate of the port of a build, Mb/s, by the width of its data path: what a [`LINE_RATE`] of 0 stands for.
#[must_use]
pub const fn line_rate(data_width: u16) -> u32 {
    match data_width {
        512 => 100_000,
        256 => 50_000,
        128 => 25_000,
        _ => 10_000,
    }
}
