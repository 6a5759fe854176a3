//! Registers of the reaction point, part of [`csr`](super::csr).
//!
//! A write has its effect two cycles later: a value beyond the range of its parameter is taken as the nearer end of it. A read is
//! answered in its cycle, with 0 for other registers.
use ferroce_proto::abi::regs::{REGISTERS, RP_CONFIG_RESET, RP_RANGES};

use super::bar::{LINE_RATE, RP_CONFIG};
use crate::prelude::*;
use crate::transport::congestion::pace_types::CongestionSetup;

/// Parameters; their registers stand one behind the other from LINE_RATE on.
const PARAMS: usize = RP_RANGES.len();
const FIRST: usize = LINE_RATE;
const ON: u64 = RP_CONFIG_RESET as u64;

const _: () = {
    let mut i = 0;
    while i < PARAMS {
        assert!(
            RP_RANGES[i].0 as usize == 4 * (FIRST + i),
            "in the order of the registers"
        );
        i += 1;
    }
};

/// The block.
#[derive(Clone, Debug, Block)]
#[block(no_default)]
pub struct ReactionCsr {
    /// Clock and reset of the pins.
    pub clock: ClkRst,
    /// A whole register is written in this cycle.
    pub write: Signal<In, Bit>,
    /// Its number.
    pub at: Signal<In, Bits<6>>,
    /// Its value.
    pub data: Signal<In, Bits<32>>,
    /// All are as after reset.
    pub clear: Signal<In, Bit>,
    /// Register to read.
    pub from: Signal<In, Bits<6>>,
    /// Its value, 0 if it is none of these.
    pub value: Signal<Out, Bits<32>>,
    /// Rate of the port of this build, Mb/s.
    pub build_rate: Signal<In, Bits<20>>,
    /// What the host says.
    pub setup: Signal<Out, CongestionSetup>,

    config: Reg<Bits<4>>,
    word: [Reg<Bits<20>>; PARAMS],
    least: [Constant<Bits<20>>; PARAMS],
    most: [Constant<Bits<20>>; PARAMS],
    initial: [Constant<Bits<20>>; PARAMS],
    // the write, when its range is known
    writes: Reg<Bit>,
    number: Dff<Bits<6>>,
    given: Dff<Bits<32>>,
    low: Dff<Bits<20>>,
    high: Dff<Bits<20>>,
}

impl Default for ReactionCsr {
    fn default() -> Self {
        let bits20 = |value: u32| u64::from(value).to_bits();
        let reset = |i: usize| bits20(REGISTERS[FIRST + i].reset);
        Self {
            clock: ClkRst::default(),
            write: Signal::default(),
            at: Signal::default(),
            data: Signal::default(),
            clear: Signal::default(),
            from: Signal::default(),
            value: Signal::default(),
            build_rate: Signal::default(),
            setup: Signal::default(),
            config: Reg::new(ON.into()),
            word: std::array::from_fn(|i| Reg::new(reset(i))),
            least: std::array::from_fn(|i| Constant::new(bits20(RP_RANGES[i].1))),
            most: std::array::from_fn(|i| Constant::new(bits20(RP_RANGES[i].2))),
            initial: std::array::from_fn(|i| Constant::new(reset(i))),
            writes: Reg::default(),
            number: Dff::default(),
            given: Dff::default(),
            low: Dff::default(),
            high: Dff::default(),
        }
    }
}

impl Logic for ReactionCsr {
    describe!("reaction_csr", "Registers of the reaction point.");

    #[kernel]
    fn update(&mut self) {
        // the range of what is written
        writes = write;
        number = at;
        given = data;
        low = bits::<20>(0);
        high = bits::<20>(0);
        for i in 0..PARAMS {
            if at == FIRST + i {
                low = least[i];
                high = most[i];
            }
        }
        let mut taken = given.low::<20>();
        if given > high.resize::<32>() {
            taken = high;
        }
        if given < low.resize::<32>() {
            taken = low;
        }
        if writes & (number == RP_CONFIG) {
            config = given.low::<4>();
        }
        value = bits::<32>(0);
        if from == RP_CONFIG {
            value = config.resize::<32>();
        }
        for i in 0..PARAMS {
            if writes & (number == FIRST + i) {
                word[i] = taken;
            }
            if clear {
                word[i] = initial[i];
            }
            if from == FIRST + i {
                value = word[i].resize::<32>();
            }
        }
        if clear {
            config = bits::<4>(ON);
        }

        setup.enable = config.bit(0);
        setup.params.clamp_tgt_rate = config.bit(1);
        setup.params.clamp_tgt_rate_after_time_inc = config.bit(2);
        setup.params.alpha_first = config.bit(3);
        setup.params.line_rate = word[0];
        if !word[0].any() {
            setup.params.line_rate = build_rate;
        }
        setup.params.rpg_time_reset = word[1].low::<17>();
        setup.params.rpg_byte_reset = word[2].low::<18>();
        setup.params.rpg_threshold = word[3].low::<5>();
        setup.params.rpg_max_rate = word[4];
        setup.params.rpg_ai_rate = word[5];
        setup.params.rpg_hai_rate = word[6];
        setup.params.rpg_gd = word[7].low::<4>();
        setup.params.rpg_min_dec_fac = word[8].low::<7>();
        setup.params.rpg_min_rate = word[9];
        setup.params.rate_to_set_on_first_cnp = word[10];
        setup.params.dce_tcp_g = word[11].low::<10>();
        setup.params.dce_tcp_rtt = word[12].low::<17>();
        setup.params.rate_reduce_monitor_period = word[13].low::<17>();
        setup.params.initial_alpha_value = word[14].low::<10>();
    }
}
