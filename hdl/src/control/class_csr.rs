//! Registers of the traffic classes, part of [`csr`](super::csr).
//!
//! A write has its effect one cycle later; a read is answered in its cycle, with 0 for other registers. Bits that mean nothing read
//! 0.
use ferroce_proto::abi::classes::{self, Trust};

use super::bar::{
    CLASS_WEIGHT, DSCP_PRIO_0, PFC_CONFIG, PFC_LOSSY, PFC_STORM, PFC_WATCHDOG, PFC_XOFF, PFC_XON,
    PRIO_CLASS, TRUST,
};
use super::register_access::RegisterAccess;
use crate::egress::types::ClassSetup;
use crate::prelude::*;

/// Registers of the priorities of DSCPs, eight each.
const TABLE: usize = 8;
/// What is held of them.
const TRUST_HELD: u64 = 0x703;
const DSCP_PRIO_HELD: u64 = classes::DSCP_PRIO_MASK as u64;
const PRIO_CLASS_HELD: u64 = classes::PRIO_CLASS_MASK as u64;
const CLASS_WEIGHT_HELD: u64 = classes::CLASS_WEIGHT_MASK as u64;
/// After reset.
const TRUST_RESET: u64 = classes::TRUST_RESET as u64;
const PRIO_CLASS_RESET: u64 = classes::PRIO_CLASS_RESET as u64;
const CLASS_WEIGHT_RESET: u64 = classes::CLASS_WEIGHT_RESET as u64;
const PFC_WATCHDOG_RESET: u64 = classes::PFC_WATCHDOG_RESET as u64;
const PFC_XOFF_RESET: u64 = classes::PFC_XOFF_RESET as u64;
const PFC_XON_RESET: u64 = classes::PFC_XON_RESET as u64;
const PFC_LOSSY_RESET: u64 = classes::PFC_LOSSY_RESET as u64;
const PFC_STORM_RESET: u64 = classes::PFC_STORM_RESET as u64;
/// Place of the default priority.
const DEFAULT_PRIO: u64 = Trust::FIELDS[2].lsb as u64;
const TRUST_PCP: u64 = classes::TRUST_PCP as u64;

fn initial(i: usize) -> Bits<32> {
    u64::from(classes::dscp_prio_reset(i)).to_bits()
}

/// The block.
#[derive(Clone, Debug, Block)]
pub struct ClassCsr {
    /// Clock and reset of the pins.
    pub clock: ClkRst,
    /// The write and the read.
    pub access: Signal<In, RegisterAccess>,
    /// Its value, 0 if it is none of these.
    pub value: Signal<Out, Bits<32>>,
    /// What the host says.
    pub setup: Signal<Out, ClassSetup>,
    #[init(Reg::new(TRUST_RESET.into()))]
    trust: Reg<Bits<11>>,
    #[init(std::array::from_fn(|i| Reg::new(initial(i))))]
    table: [Reg<Bits<32>>; TABLE],
    #[init(std::array::from_fn(|i| Constant::new(initial(i))))]
    initial: [Constant<Bits<32>>; TABLE],
    #[init(Reg::new(PRIO_CLASS_RESET.into()))]
    prio_class: Reg<Bits<32>>,
    #[init(Reg::new(CLASS_WEIGHT_RESET.into()))]
    weight: Reg<Bits<32>>,
    pfc: Reg<Bits<16>>,
    #[init(Reg::new(PFC_WATCHDOG_RESET.into()))]
    watchdog: Reg<Bits<14>>,
    #[init(Reg::new(PFC_XOFF_RESET.into()))]
    xoff: Reg<Bits<32>>,
    #[init(Reg::new(PFC_XON_RESET.into()))]
    xon: Reg<Bits<32>>,
    #[init(Reg::new(PFC_LOSSY_RESET.into()))]
    lossy: Reg<Bits<32>>,
    #[init(Reg::new(PFC_STORM_RESET.into()))]
    storm: Reg<Bits<13>>,
}

impl Logic for ClassCsr {
    describe!("class_csr", "Registers of the traffic classes.");

    #[kernel]
    fn update(&mut self) {
        if access.write {
            match access.at {
                TRUST => {
                    trust = access.data.low::<11>() & TRUST_HELD;
                }
                PRIO_CLASS => {
                    prio_class = access.data & PRIO_CLASS_HELD;
                }
                CLASS_WEIGHT => {
                    weight = access.data & CLASS_WEIGHT_HELD;
                }
                PFC_CONFIG => {
                    pfc = access.data.low::<16>();
                }
                PFC_WATCHDOG => {
                    watchdog = access.data.low::<14>();
                }
                PFC_XOFF => {
                    xoff = access.data;
                }
                PFC_XON => {
                    xon = access.data;
                }
                PFC_LOSSY => {
                    lossy = access.data;
                }
                PFC_STORM => {
                    storm = access.data.low::<13>();
                }
                _ => {}
            }
        }
        let mut found = bits::<32>(0);
        match access.from {
            TRUST => {
                found = trust.resize::<32>();
            }
            PRIO_CLASS => {
                found = prio_class;
            }
            CLASS_WEIGHT => {
                found = weight;
            }
            PFC_CONFIG => {
                found = pfc.resize::<32>();
            }
            PFC_WATCHDOG => {
                found = watchdog.resize::<32>();
            }
            PFC_XOFF => {
                found = xoff;
            }
            PFC_XON => {
                found = xon;
            }
            PFC_LOSSY => {
                found = lossy;
            }
            PFC_STORM => {
                found = storm.resize::<32>();
            }
            _ => {}
        }
        let mut all = bits::<256>(0);
        for i in 0..TABLE {
            if access.write & (access.at == DSCP_PRIO_0 + i) {
                table[i] = access.data & DSCP_PRIO_HELD;
            }
            if access.clear {
                table[i] = initial[i];
            }
            // an OR is a tree, where choices would follow one another
            let named = access.from == DSCP_PRIO_0 + i;
            found = found | if named { table[i] } else { 0 };
            all = all | (table[i].resize::<256>() << (32 * i));
        }
        value = found;
        if access.clear {
            trust = bits::<11>(TRUST_RESET);
            prio_class = bits::<32>(PRIO_CLASS_RESET);
            weight = bits::<32>(CLASS_WEIGHT_RESET);
            pfc = bits::<16>(0);
            watchdog = bits::<14>(PFC_WATCHDOG_RESET);
            xoff = bits::<32>(PFC_XOFF_RESET);
            xon = bits::<32>(PFC_XON_RESET);
            lossy = bits::<32>(PFC_LOSSY_RESET);
            storm = bits::<13>(PFC_STORM_RESET);
        }
        setup.by_pcp = trust.low::<2>() == TRUST_PCP;
        setup.default_prio = trust.slice::<3>(DEFAULT_PRIO);
        setup.dscp_prio = all;
        setup.prio_class = prio_class;
        setup.weight = weight;
        setup.obeys = pfc.low::<8>();
        setup.watchdog = watchdog;
        setup.sends = pfc.slice::<8>(8);
        setup.xoff = xoff;
        setup.xon = xon;
        setup.lossy = lossy;
        setup.storm = storm;
    }
}
