//! Registers of the exception queue, part of [`csr`](super::csr).
//!
//! A write has its effect one cycle later; a read is answered in its cycle, with 0 for other registers. EXC_CONFIG written
//! with `on` = 0 clears the indices that the host writes, and keeps its other fields. So does one that turns the queue on while the
//! card is busy with the former one.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation

use ferroce_proto::abi::exception::MAX_LOG_SLOTS;

use super::bar::{EXC_BASE_HI, EXC_BASE_LO, EXC_CONFIG, EXC_RX_CI, EXC_STATUS, EXC_TX_PI};
use super::register_access::RegisterAccess;
use crate::bus::payload::payload;
use crate::eth::exception_types::ExceptionSetup;
use crate::prelude::*;

payload! {
    /// What the card says about the exception queue.
    ExceptionStatus {
        /// Frames to send that are read or passed over.
        tx_consumer: Bits<16>,
        /// Memory of the host is in use.
        busy: Bit,
    }
}

/// The block.
#[derive(Clone, Debug, Block)]
pub struct ExceptionCsr {
    /// Clock and reset of the pins.
    pub clock: ClkRst,
    /// The write and the read.
    pub access: Signal<In, RegisterAccess>,
    /// Its value, 0 if it is none of these.
    pub value: Signal<Out, Bits<32>>,
    /// What the card says.
    pub status: Signal<In, ExceptionStatus>,
    /// What the host says.
    pub setup: Signal<Out, ExceptionSetup>,
    state: Reg<ExceptionSetup>,
    no_state: Zero<ExceptionSetup>,
}

const MAX_LOG: u64 = MAX_LOG_SLOTS as u64;

impl Logic for ExceptionCsr {
    describe!("exception_csr", "Registers of the exception queue.");

    #[kernel]
    fn update(&mut self) {
        state.arm = false;
        let mut log = access.data.low::<4>();
        if log > MAX_LOG {
            log = bits::<4>(MAX_LOG);
        }
        // The queue is turned off, or on.
        let mut stops = false;
        if access.write {
            match access.at {
                EXC_BASE_LO => {
                    state.base = ((state.base >> 32) << 32)
                        | (access.data.slice::<20>(12).resize::<64>() << 12);
                }
                EXC_BASE_HI => {
                    state.base =
                        (access.data.resize::<64>() << 32) | state.base.low::<32>().resize::<64>();
                }
                EXC_CONFIG => {
                    // not while memory of before is in use
                    let on = access.data.bit(5) & (state.on | !status.busy);
                    state.on = on;
                    // what came late while it was off is void
                    stops = !on | !state.on;
                    // the frame under way is finished in its slot
                    if on {
                        state.log_slots = log;
                        state.large = access.data.bit(4);
                    }
                }
                EXC_RX_CI => {
                    state.rx_consumer = access.data.low::<16>();
                    state.arm = access.data.bit(16) & state.on;
                }
                EXC_TX_PI => {
                    state.tx_producer = access.data.low::<16>();
                }
                _ => {}
            }
        }
        // over all else: the registers' own reset then does it
        if stops {
            state.rx_consumer = bits::<16>(0);
            state.tx_producer = bits::<16>(0);
        }
        if access.clear {
            state = no_state;
        }
        setup = state;

        value = bits::<32>(0);
        match access.from {
            EXC_BASE_LO => {
                value = state.base.low::<32>();
            }
            EXC_BASE_HI => {
                value = state.base.slice::<32>(32);
            }
            EXC_CONFIG => {
                value = state
                    .log_slots
                    .resize::<32>()
                    .replace_bit(4, state.large)
                    .replace_bit(5, state.on);
            }
            EXC_RX_CI => {
                value = state.rx_consumer.resize::<32>();
            }
            EXC_TX_PI => {
                value = state.tx_producer.resize::<32>();
            }
            EXC_STATUS => {
                value = status
                    .tx_consumer
                    .resize::<32>()
                    .replace_bit(16, status.busy);
            }
            _ => {}
        }
    }
}
