//! Registers of the reaction point, part of [`csr`](super::csr).
//!
//! A write has its effect two cycles later: a value beyond the range of its parameter is taken as the nearer end of it. A read is
//! answered in its cycle, with 0 for other registers.
use ferroce_proto::abi::rates::RP_RANGES;
use ferroce_proto::abi::regs::{REGISTERS, RP_CONFIG_RESET};

use super::bar::{LINE_RATE, RP_CONFIG};
use super::register_access::RegisterAccess;
use super::swift_csr::SwiftCsr;
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

fn bits20(value: u32) -> Bits<20> {
    u64::from(value).to_bits()
}

/// Value of a parameter after reset.
fn initial(i: usize) -> Bits<20> {
    bits20(REGISTERS[FIRST + i].reset)
}

/// The block.
#[derive(Clone, Debug, Block)]
pub struct ReactionCsr {
    /// Clock and reset of the pins.
    pub clock: ClkRst,
    /// The write and the read.
    pub access: Signal<In, RegisterAccess>,
    /// Its value, 0 if it is none of these.
    pub value: Signal<Out, Bits<32>>,
    /// Rate of the port of this build, Mb/s.
    pub build_rate: Signal<In, Bits<20>>,
    /// What the host says.
    pub setup: Signal<Out, CongestionSetup>,

    swift: SwiftCsr,
    #[init(Reg::new(ON.into()))]
    config: Reg<Bits<5>>,
    #[init(std::array::from_fn(|i| Reg::new(initial(i))))]
    word: [Reg<Bits<20>>; PARAMS],
    #[init(std::array::from_fn(|i| Constant::new(bits20(RP_RANGES[i].1))))]
    least: [Constant<Bits<20>>; PARAMS],
    #[init(std::array::from_fn(|i| Constant::new(bits20(RP_RANGES[i].2))))]
    most: [Constant<Bits<20>>; PARAMS],
    #[init(std::array::from_fn(|i| Constant::new(initial(i))))]
    initial: [Constant<Bits<20>>; PARAMS],
    // the write, when its range is known
    writes: Reg<Bit>,
    number: Dff<Bits<6>>,
    given: Dff<Bits<32>>,
    low: Dff<Bits<20>>,
    high: Dff<Bits<20>>,
}

impl Logic for ReactionCsr {
    describe!("reaction_csr", "Registers of the reaction point.");

    #[kernel]
    fn update(&mut self) {
        // the range of what is written
        writes = access.write;
        number = access.at;
        given = access.data;
        low = bits::<20>(0);
        high = bits::<20>(0);
        for i in 0..PARAMS {
            if access.at == FIRST + i {
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
            config = given.low::<5>();
        }
        swift.access = access;
        setup.swift = swift.params;
        let mut found = swift.value;
        if access.from == RP_CONFIG {
            found = config.resize::<32>();
        }
        for i in 0..PARAMS {
            if writes & (number == FIRST + i) {
                word[i] = taken;
            }
            if access.clear {
                word[i] = initial[i];
            }
            // an OR is a tree, where choices would follow one another
            let named = access.from == FIRST + i;
            found = found | if named { word[i].resize::<32>() } else { 0 };
        }
        value = found;
        if access.clear {
            config = bits::<5>(ON);
        }

        setup.enable = config.bit(0);
        setup.params.clamp_tgt_rate = config.bit(1);
        setup.params.clamp_tgt_rate_after_time_inc = config.bit(2);
        setup.params.alpha_first = config.bit(3);
        setup.params.alpha_whole = config.bit(4);
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
