//! Registers of Swift, part of [`reaction_csr`](super::reaction_csr).
//!
//! A write has its effect one cycle later: a value beyond the range of its parameter is taken as the nearer end of it. A read is
//! answered in its cycle, with 0 for other registers.
use ferroce_proto::abi::regs::REGISTERS;

use super::bar::{SWIFT_ALPHA, SWIFT_BETA, SWIFT_RANGE, SWIFT_STEP, SWIFT_TARGET};
use super::register_access::RegisterAccess;
use crate::cell::count::one_at_least;
use crate::prelude::*;
use crate::transport::congestion::swift_types::SwiftParams;

const TARGET: u64 = REGISTERS[SWIFT_TARGET].reset as u64;
const RANGE: u64 = REGISTERS[SWIFT_RANGE].reset as u64;
const ALPHA: u64 = REGISTERS[SWIFT_ALPHA].reset as u64;
const BETA: u64 = REGISTERS[SWIFT_BETA].reset as u64;
const STEP: u64 = REGISTERS[SWIFT_STEP].reset as u64;

/// The block.
#[derive(Clone, Debug, Block)]
pub struct SwiftCsr {
    /// Clock and reset of the pins.
    pub clock: ClkRst,
    /// The write and the read.
    pub access: Signal<In, RegisterAccess>,
    /// Its value, 0 if it is none of these.
    pub value: Signal<Out, Bits<32>>,
    /// What the host says.
    pub params: Signal<Out, SwiftParams>,

    #[init(Reg::new(TARGET.into()))]
    target: Reg<Bits<31>>,
    #[init(Reg::new(RANGE.into()))]
    range: Reg<Bits<32>>,
    #[init(Reg::new(ALPHA.into()))]
    alpha: Reg<Bits<32>>,
    #[init(Reg::new(BETA.into()))]
    beta: Reg<Bits<31>>,
    #[init(Reg::new(STEP.into()))]
    steps: Reg<Bits<30>>,
}

/// A share of 1024.
#[kernel_fn]
fn share(given: Bits<11>) -> Bits<11> {
    if given.bit(10) {
        bits::<11>(1024)
    } else {
        given
    }
}

/// 20 bits of nanoseconds with a number of packets above them, 1 at least.
#[kernel_fn]
fn with_packets(data: Bits<32>) -> Bits<32> {
    data.low::<20>().resize::<32>() | (one_at_least(data.slice::<12>(20)).resize::<32>() << 20)
}

/// 20 bits of nanoseconds with a share above them.
#[kernel_fn]
fn with_share(nanoseconds: Bits<20>, share: Bits<11>) -> Bits<31> {
    nanoseconds.resize::<31>() | (share.resize::<31>() << 20)
}

impl Logic for SwiftCsr {
    describe!("swift_csr", "Registers of Swift.");

    #[kernel]
    fn update(&mut self) {
        let data = access.data;
        if access.write {
            match access.at {
                SWIFT_TARGET => {
                    let mut delay = data.low::<20>();
                    if !delay.slice::<18>(2).any() {
                        delay = bits::<20>(4);
                    }
                    target = with_share(delay, share(data.slice::<11>(20)));
                }
                SWIFT_RANGE => {
                    range = with_packets(data);
                }
                SWIFT_ALPHA => {
                    alpha = with_packets(data);
                }
                SWIFT_BETA => {
                    let least = one_at_least(share(data.slice::<11>(20)));
                    beta = with_share(data.low::<20>(), least);
                }
                SWIFT_STEP => {
                    steps = one_at_least(data.low::<16>()).resize::<30>()
                        | (share(data.slice::<11>(16)).resize::<30>() << 16)
                        | (one_at_least(data.slice::<3>(27)).resize::<30>() << 27);
                }
                _ => {}
            }
        }
        if access.clear {
            target = bits::<31>(TARGET);
            range = bits::<32>(RANGE);
            alpha = bits::<32>(ALPHA);
            beta = bits::<31>(BETA);
            steps = bits::<30>(STEP);
        }
        value = bits::<32>(0);
        match access.from {
            SWIFT_TARGET => {
                value = target.resize::<32>();
            }
            SWIFT_RANGE => {
                value = range;
            }
            SWIFT_ALPHA => {
                value = alpha;
            }
            SWIFT_BETA => {
                value = beta.resize::<32>();
            }
            SWIFT_STEP => {
                value = steps.resize::<32>();
            }
            _ => {}
        }

        params.base_target = target.low::<20>();
        params.max_mdf = target.slice::<11>(20);
        params.fs_range = range.low::<20>();
        params.max_cwnd = range.slice::<12>(20);
        params.fs_alpha = alpha.low::<20>();
        params.initial_cwnd = alpha.slice::<12>(20);
        params.fs_beta = beta.low::<20>();
        params.min_cwnd = beta.slice::<11>(20);
        params.ai = steps.low::<16>();
        params.beta = steps.slice::<11>(16);
        params.retx_reset_threshold = steps.slice::<3>(27);
    }
}
