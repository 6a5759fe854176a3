//! Notice: an event of the exception queue from a pulse.
//!
//! The host asks for one event at a time, so that one is all that has to wait; a pulse while it does is the same event.
use ferroce_proto::abi::eq::event::EXCEPTION;

use super::types::EqEvent;
use crate::prelude::*;

/// The block.
#[derive(Block)]
pub struct EqNotice {
    /// Clock and reset.
    pub clock: ClkRst,
    /// The exception queue has what the host armed it for; one cycle.
    pub notify: Signal<In, Bit>,
    /// EXCEPTION, for event queue 0.
    pub events: StreamOut<EqEvent>,

    due: Reg<Bit>,
    no_event: Zero<EqEvent>,
}

impl Logic for EqNotice {
    describe!("eq_notice", "An event of the exception queue from a pulse.");

    #[kernel]
    fn update(&mut self) {
        if events.ready {
            due = false;
        }
        if notify {
            due = true;
        }
        events.valid = due;
        events.payload = no_event;
        events.payload.event = EXCEPTION;
    }
}
