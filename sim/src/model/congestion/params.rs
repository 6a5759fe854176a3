//! The parameters of DCQCN, under the names, units and defaults that mlx5 gives them.

use thiserror::Error;

/// Parameters of a reaction point. Names and units are those of mlx5's `cong_control_r_roce_ecn_rp`; the defaults are shipped with
/// ConnectX-5 and later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// A decrease always takes the target rate down to the current rate.
    pub clamp_tgt_rate: bool,
    /// So does a decrease behind an increase by time.
    pub clamp_tgt_rate_after_time_inc: bool,
    /// Microseconds from a decrease to an increase, and from one increase by time to the next.
    pub rpg_time_reset: u32,
    /// Units of 64 bytes sent from one increase by bytes to the next; 0: bytes increase nothing, and only time counts stages.
    pub rpg_byte_reset: u32,
    /// Increases, of time or of bytes, that leave the target where it is (fast recovery).
    pub rpg_threshold: u32,
    /// Highest rate, Mb/s; 0: that of the line.
    pub rpg_max_rate: u32,
    /// What an additive increase adds to the target, Mb/s.
    pub rpg_ai_rate: u32,
    /// What a hyper increase adds to the target, Mb/s.
    pub rpg_hai_rate: u32,
    /// A decrease takes off rate * alpha / 2^`rpg_gd`; alpha counts 1/1024, so 11 is half of alpha.
    pub rpg_gd: u32,
    /// What a decrease leaves at least, percent of the rate.
    pub rpg_min_dec_fac: u32,
    /// Lowest rate, Mb/s.
    pub rpg_min_rate: u32,
    /// Rate of a queue pair behind its first CNP, Mb/s; 0: as it was, and that CNP decreases like any other.
    pub rate_to_set_on_first_cnp: u32,
    /// What a tick leaves of alpha, 1/1024.
    pub dce_tcp_g: u32,
    /// Microseconds from one tick of alpha to the next.
    pub dce_tcp_rtt: u32,
    /// Microseconds from one decrease to the next at least; 0: every CNP raises alpha and decreases at once.
    pub rate_reduce_monitor_period: u32,
    /// Alpha at the first CNP, 1/1024.
    pub initial_alpha_value: u32,
    /// A tick of alpha comes before what else is due at its time, not behind it. Not a parameter of mlx5.
    pub alpha_first: bool,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            clamp_tgt_rate: false,
            clamp_tgt_rate_after_time_inc: true,
            rpg_time_reset: 300,
            rpg_byte_reset: 32_767,
            rpg_threshold: 1,
            rpg_max_rate: 0,
            rpg_ai_rate: 5,
            rpg_hai_rate: 50,
            rpg_gd: 11,
            rpg_min_dec_fac: 50,
            rpg_min_rate: 1,
            rate_to_set_on_first_cnp: 0,
            dce_tcp_g: 1019,
            dce_tcp_rtt: 1,
            rate_reduce_monitor_period: 4,
            initial_alpha_value: 1023,
            alpha_first: false,
        }
    }
}

/// A parameter that no register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{name} is {value}: {low} to {high} is possible")]
pub struct BadParam {
    /// The parameter.
    pub name: &'static str,
    /// Its value.
    pub value: u32,
    /// The lowest possible value.
    pub low: u32,
    /// The highest.
    pub high: u32,
}

impl Params {
    /// Highest rate of a register, Mb/s.
    pub const RATE_MAX: u32 = (1 << 20) - 1;
    /// Longest period, microseconds.
    pub const PERIOD_MAX: u32 = (1 << 17) - 1;

    /// Are all values in range?
    ///
    /// # Errors
    /// The first parameter that is not.
    pub const fn check(&self) -> Result<(), BadParam> {
        let limits = [
            ("rpg_time_reset", self.rpg_time_reset, 1, Self::PERIOD_MAX),
            ("rpg_byte_reset", self.rpg_byte_reset, 0, (1 << 18) - 1),
            ("rpg_threshold", self.rpg_threshold, 1, 31),
            ("rpg_max_rate", self.rpg_max_rate, 0, Self::RATE_MAX),
            ("rpg_ai_rate", self.rpg_ai_rate, 0, Self::RATE_MAX),
            ("rpg_hai_rate", self.rpg_hai_rate, 0, Self::RATE_MAX),
            ("rpg_gd", self.rpg_gd, 0, 15),
            ("rpg_min_dec_fac", self.rpg_min_dec_fac, 0, 100),
            ("rpg_min_rate", self.rpg_min_rate, 1, Self::RATE_MAX),
            (
                "rate_to_set_on_first_cnp",
                self.rate_to_set_on_first_cnp,
                0,
                Self::RATE_MAX,
            ),
            ("dce_tcp_g", self.dce_tcp_g, 0, 1023),
            ("dce_tcp_rtt", self.dce_tcp_rtt, 1, Self::PERIOD_MAX),
            (
                "rate_reduce_monitor_period",
                self.rate_reduce_monitor_period,
                0,
                Self::PERIOD_MAX,
            ),
            ("initial_alpha_value", self.initial_alpha_value, 0, 1023),
        ];
        let mut at = 0;
        while at < limits.len() {
            let (name, value, low, high) = limits[at];
            if value < low || value > high {
                return Err(BadParam {
                    name,
                    value,
                    low,
                    high,
                });
            }
            at += 1;
        }
        Ok(())
    }
}
