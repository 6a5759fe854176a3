//! The event of the exception queue: one for each arm, when a frame stands behind the consumer index of the host.
//!
//! The host may see a frame, and take it, before `producer` counts it.

use super::exception_types::ExceptionSetup;
use crate::prelude::*;

/// An arm, until its event.
#[derive(Clone, Debug, Block)]
pub struct ExceptionArm {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What the host says.
    pub setup: Signal<In, ExceptionSetup>,
    /// Frames that are visible to the host, modulo 2^16.
    pub producer: Signal<In, Bits<16>>,
    /// A frame stands behind the consumer index, as was asked; one cycle.
    pub notify: Signal<Out, Bit>,

    armed: Reg<Bit>,
    waiting: Reg<Bit>,
    event_q: Reg<Bit>,
}

impl Logic for ExceptionArm {
    describe!("exception_arm", "The event of the exception queue.");

    #[kernel]
    fn update(&mut self) {
        let used = producer - setup.rx_consumer;
        waiting = used.any() & !used.bit(15);
        event_q = armed & waiting & !setup.arm;
        if setup.arm {
            armed = true;
        } else if !setup.on | waiting {
            armed = false;
        }
        notify = event_q;
    }
}
