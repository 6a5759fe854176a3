//! Registers of the exception queue, part of [`csr`](super::csr).
//!
//! A write has its effect one cycle later; a read is answered in its cycle, with 0 for other registers. EXC_CONFIG written
//! with `on` = 0 clears the indices that the host writes.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation

use ferroce_proto::abi::exception::MAX_LOG_SLOTS;

use super::bar::{EXC_BASE_HI, EXC_BASE_LO, EXC_CONFIG, EXC_RX_CI, EXC_STATUS, EXC_TX_PI};
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
#[derive(Clone, Debug, Default, LogicBlock)]
pub struct ExceptionCsr {
    /// Clock and reset of the pins.
    pub clock: ClkRst,
    /// A whole register is written in this cycle.
    pub write: Signal<In, Bit>,
    /// Its number.
    pub at: Signal<In, Bits<5>>,
    /// Its value.
    pub data: Signal<In, Bits<32>>,
    /// All are cleared.
    pub clear: Signal<In, Bit>,
    /// Register to read.
    pub from: Signal<In, Bits<5>>,
    /// Its value, 0 if it is none of these.
    pub value: Signal<Out, Bits<32>>,
    /// What the card says.
    pub status: Signal<In, ExceptionStatus>,
    /// What the host says.
    pub setup: Signal<Out, ExceptionSetup>,
    state: Reg<ExceptionSetup>,
    no_state: Zero<ExceptionSetup>,
    log: Signal<Local, Bits<4>>,
    /// The queue is turned off.
    stops: Signal<Local, Bit>,
}

const MAX_LOG: u64 = MAX_LOG_SLOTS as u64;

impl Logic for ExceptionCsr {
    describe!(
        "exception_csr",
        "Registers of the exception queue.";
        EXC_BASE_LO, EXC_BASE_HI, EXC_CONFIG, EXC_RX_CI, EXC_TX_PI, EXC_STATUS, MAX_LOG
    );

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state);
        self.state.d.next.arm = false;
        self.log.next = self.data.val().get_bits::<4>(0);
        if self.log.val() > MAX_LOG {
            self.log.next = bits::<4>(MAX_LOG);
        }
        self.stops.next = false;
        if self.write.val() {
            match self.at.val().index() {
                EXC_BASE_LO => {
                    self.state.d.next.base = ((self.state.q.val().base >> 32) << 32)
                        | (bit_cast::<64, 20>(self.data.val().get_bits::<20>(12)) << 12);
                }
                EXC_BASE_HI => {
                    self.state.d.next.base = (bit_cast::<64, 32>(self.data.val()) << 32)
                        | bit_cast::<64, 32>(self.state.q.val().base.get_bits::<32>(0));
                }
                EXC_CONFIG => {
                    self.state.d.next.log_slots = self.log.val();
                    self.state.d.next.large = self.data.val().get_bit(4);
                    self.state.d.next.on = self.data.val().get_bit(5);
                    self.stops.next = !self.data.val().get_bit(5);
                }
                EXC_RX_CI => {
                    self.state.d.next.rx_consumer = self.data.val().get_bits::<16>(0);
                    self.state.d.next.arm = self.data.val().get_bit(16);
                }
                EXC_TX_PI => {
                    self.state.d.next.tx_producer = self.data.val().get_bits::<16>(0);
                }
                _ => {}
            }
        }
        // over all else: the registers' own reset then does it
        if self.stops.val() {
            self.state.d.next.rx_consumer = bits::<16>(0);
            self.state.d.next.tx_producer = bits::<16>(0);
        }
        if self.clear.val() {
            self.state.d.next = self.no_state.val();
        }
        self.setup.next = self.state.q.val();

        self.value.next = bits::<32>(0);
        match self.from.val().index() {
            EXC_BASE_LO => {
                self.value.next = self.state.q.val().base.get_bits::<32>(0);
            }
            EXC_BASE_HI => {
                self.value.next = self.state.q.val().base.get_bits::<32>(32);
            }
            EXC_CONFIG => {
                self.value.next = bit_cast::<32, 4>(self.state.q.val().log_slots)
                    .replace_bit(4, self.state.q.val().large)
                    .replace_bit(5, self.state.q.val().on);
            }
            EXC_RX_CI => {
                self.value.next = bit_cast::<32, 16>(self.state.q.val().rx_consumer);
            }
            EXC_TX_PI => {
                self.value.next = bit_cast::<32, 16>(self.state.q.val().tx_producer);
            }
            EXC_STATUS => {
                self.value.next = bit_cast::<32, 16>(self.status.val().tx_consumer)
                    .replace_bit(16, self.status.val().busy);
            }
            _ => {}
        }
    }
}
