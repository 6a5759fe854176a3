//! The parameters of DCQCN, under the names, units and defaults that mlx5 gives them.

use ferroce_proto::abi::rates::{self, RpConfig};
use ferroce_proto::abi::regs;
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
    /// Alpha is in whole 1/1024, each tick rounded down, as in the published integers. Not a parameter of mlx5.
    pub alpha_whole: bool,
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
            alpha_whole: false,
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
    pub const RATE_MAX: u32 = rates::RATE_MAX;

    /// The numbers, each with its register and its name.
    fn numbers(&mut self) -> [(u32, &'static str, &mut u32); 14] {
        macro_rules! numbers {
            ($($register:ident $name:ident),*) => { [$((regs::$register, stringify!($name), &mut self.$name)),*] };
        }
        numbers!(
            RPG_TIME_RESET rpg_time_reset,
            RPG_BYTE_RESET rpg_byte_reset,
            RPG_THRESHOLD rpg_threshold,
            RPG_MAX_RATE rpg_max_rate,
            RPG_AI_RATE rpg_ai_rate,
            RPG_HAI_RATE rpg_hai_rate,
            RPG_GD rpg_gd,
            RPG_MIN_DEC_FAC rpg_min_dec_fac,
            RPG_MIN_RATE rpg_min_rate,
            RATE_TO_SET_ON_FIRST_CNP rate_to_set_on_first_cnp,
            DCE_TCP_G dce_tcp_g,
            DCE_TCP_RTT dce_tcp_rtt,
            RATE_REDUCE_MONITOR_PERIOD rate_reduce_monitor_period,
            INITIAL_ALPHA_VALUE initial_alpha_value
        )
    }

    /// Are all values in range?
    ///
    /// # Errors
    /// The first parameter that is not.
    pub fn check(mut self) -> Result<(), BadParam> {
        for (register, name, value) in self.numbers() {
            let (low, high) = range(register);
            if !(low..=high).contains(value) {
                return Err(BadParam {
                    name,
                    value: *value,
                    low,
                    high,
                });
            }
        }
        Ok(())
    }

    /// The registers that hold these, and their values; the reaction point is on.
    #[must_use]
    pub fn registers(mut self) -> Vec<(u32, u32)> {
        let config = RpConfig {
            enable: true,
            clamp_tgt_rate: self.clamp_tgt_rate,
            clamp_tgt_rate_after_time_inc: self.clamp_tgt_rate_after_time_inc,
            alpha_first: self.alpha_first,
            alpha_whole: self.alpha_whole,
        };
        let config = (regs::RP_CONFIG, u32::from_le_bytes(config.emit()));
        let numbers = self.numbers();
        let numbers = numbers.into_iter().map(|(at, _, value)| (at, *value));
        std::iter::once(config).chain(numbers).collect()
    }

    /// The parameter of a register.
    pub(in crate::model) fn register(&mut self, register: u32) -> Option<&mut u32> {
        let mut numbers = self.numbers().into_iter();
        numbers.find_map(|(at, _, value)| (at == register).then_some(value))
    }
}

/// The least and the greatest value of a register of the reaction point.
pub(in crate::model) fn range(register: u32) -> (u32, u32) {
    let range = rates::RP_RANGES.iter().find(|(at, ..)| *at == register);
    let (_, low, high) = range.expect("a register of the reaction point");
    (*low, *high)
}
