//! Registers of the notification point, part of [`csr`](super::csr).
//!
//! A write has its effect one cycle later; a read is answered in its cycle, with 0 for other registers.
use ferroce_proto::abi::regs::{CNP_CONFIG_RESET, LONGEST_TIME_BETWEEN_CNPS};

use super::bar::{CNP_CONFIG, MIN_TIME, MIN_TIME_BETWEEN_CNPS};
use super::register_access::RegisterAccess;
use crate::prelude::*;
use crate::transport::congestion::notify_types::NotifySetup;

/// The block.
#[derive(Clone, Debug, Block)]
pub struct NotifyCsr {
    /// Clock and reset of the pins.
    pub clock: ClkRst,
    /// The write and the read.
    pub access: Signal<In, RegisterAccess>,
    /// Its value, 0 if it is none of these.
    pub value: Signal<Out, Bits<32>>,
    /// What the host says.
    pub setup: Signal<Out, NotifySetup>,
    #[init(Reg::new(MIN_TIME.into()))]
    min_time: Reg<Bits<16>>,
    #[init(Reg::new(u64::from(CNP_CONFIG_RESET).into()))]
    config: Reg<Bits<17>>,
}

/// Bits of CNP_CONFIG.
const HELD: u64 = 0x1_073f;
const ON: u64 = CNP_CONFIG_RESET as u64;
const LONGEST: u64 = LONGEST_TIME_BETWEEN_CNPS as u64;

impl Logic for NotifyCsr {
    describe!("notify_csr", "Registers of the notification point.");

    #[kernel]
    fn update(&mut self) {
        if access.write {
            match access.at {
                MIN_TIME_BETWEEN_CNPS => {
                    min_time = access.data.low::<16>();
                    if access.data.slice::<16>(16).any() {
                        min_time = bits::<16>(LONGEST);
                    }
                }
                CNP_CONFIG => {
                    config = access.data.low::<17>() & HELD;
                }
                _ => {}
            }
        }
        if access.clear {
            min_time = bits::<16>(MIN_TIME);
            config = bits::<17>(ON);
        }
        setup.min_time = min_time;
        setup.dscp = config.low::<6>();
        setup.prio = config.slice::<3>(8);
        setup.enable = config.bit(16);

        value = bits::<32>(0);
        match access.from {
            MIN_TIME_BETWEEN_CNPS => {
                value = min_time.resize::<32>();
            }
            CNP_CONFIG => {
                value = config.resize::<32>();
            }
            _ => {}
        }
    }
}
