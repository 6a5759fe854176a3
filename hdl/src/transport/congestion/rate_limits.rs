//! The lower of two rates of each queue pair: that of congestion control, and a limit set by the host.
//!
//! One update in 4 cycles, of both streams in turn.
use super::pace_types::RateLimit;
use super::types::RateUpdate;
use crate::prelude::*;

/// What the block is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum LimitStep {
    /// Clears the tables.
    Sweep,
    /// Takes an update.
    Pick,
    /// The other rate is read.
    Read,
    /// Compares.
    Compare,
    /// The lower one leaves.
    Leave,
}

/// Rates of 2^Q queue pairs.
#[derive(Block)]
pub struct RateLimits<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Rates of congestion control.
    pub controlled: StreamIn<RateUpdate>,
    /// Limits set by the host.
    pub fixed: StreamIn<RateUpdate>,
    /// The lower ones.
    pub m: StreamOut<RateUpdate>,

    controls: Ram<RateLimit, Q>,
    limits: Ram<RateLimit, Q>,
    no_limit: Zero<RateLimit>,
    step: Reg<LimitStep>,
    sweep: Reg<Bits<Q>>,
    /// The update is a limit of the host.
    of_host: Reg<Bit>,
    update_in: Dff<RateUpdate>,
}

impl<const Q: usize> Logic for RateLimits<Q> {
    describe!(
        "rate_limits",
        format!("q{Q}"),
        "The lower of two rates of each queue pair."
    );

    #[kernel]
    fn update(&mut self) {
        let picks = step == LimitStep::Pick;
        // turns: after one of a stream the other goes first
        let takes_host = fixed.valid & (!of_host | !controlled.valid);
        fixed.ready = picks & takes_host;
        controlled.ready = picks & !takes_host;
        let mut taken = controlled.payload;
        if takes_host {
            taken = fixed.payload;
        }
        let mut word = no_limit;
        word.limited = update_in.limited;
        word.rate = update_in.rate;
        let at = update_in.qpn.low::<Q>();
        controls.we = (step == LimitStep::Read) & !of_host;
        controls.waddr = at;
        controls.wdata = word;
        controls.re = step == LimitStep::Read;
        controls.raddr = at;
        limits.we = (step == LimitStep::Read) & of_host;
        limits.waddr = at;
        limits.wdata = word;
        limits.re = step == LimitStep::Read;
        limits.raddr = at;

        let next = if of_host {
            controls.rdata
        } else {
            limits.rdata
        };
        match step {
            LimitStep::Sweep => {
                controls.we = true;
                controls.waddr = sweep;
                controls.wdata = no_limit;
                limits.we = true;
                limits.waddr = sweep;
                limits.wdata = no_limit;
                sweep = sweep + 1;
                if sweep.all() {
                    step = LimitStep::Pick;
                }
            }
            LimitStep::Pick => {
                update_in = taken;
                if fixed.valid | controlled.valid {
                    of_host = takes_host;
                    step = LimitStep::Read;
                }
            }
            LimitStep::Read => {
                step = LimitStep::Compare;
            }
            LimitStep::Compare => {
                if next.limited & (!update_in.limited | (next.rate < update_in.rate)) {
                    update_in.limited = true;
                    update_in.rate = next.rate;
                }
                step = LimitStep::Leave;
            }
            _ => {
                if m.ready {
                    step = LimitStep::Pick;
                }
            }
        }
        m.valid = step == LimitStep::Leave;
        m.payload = update_in;
    }
}
