//! The lowest of three rates of each queue pair: that of DCQCN, that of Swift, and a limit set by the host; and the window of Swift.
//!
//! One update in 6 cycles, of the streams in turn. An algorithm that a queue pair has not chosen gives it no rate.
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
    /// Keeps it.
    Keep,
    /// The rates are read.
    Read,
    /// The lower one of the algorithms.
    Compare,
    /// The lower one of that and the limit.
    Limit,
    /// It leaves.
    Leave,
}

/// Rates of 2^Q queue pairs.
#[derive(Block)]
pub struct RateLimits<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Rates of DCQCN.
    pub controlled: StreamIn<RateUpdate>,
    /// Rates and windows of Swift.
    pub windows: StreamIn<RateUpdate>,
    /// Limits set by the host.
    pub fixed: StreamIn<RateUpdate>,
    /// The lowest ones.
    pub m: StreamOut<RateUpdate>,

    controls: Ram<RateLimit, Q>,
    slowed: Ram<RateLimit, Q>,
    bounds: Ram<Bits<16>, Q>,
    limits: Ram<RateLimit, Q>,
    no_limit: Zero<RateLimit>,
    step: Reg<LimitStep>,
    sweep: Reg<Bits<Q>>,
    /// The update is a limit of the host.
    of_host: Reg<Bit>,
    /// Else: it is of Swift; the latest one of an algorithm was.
    of_swift: Reg<Bit>,
    update_in: Dff<RateUpdate>,
}

/// The lower one of two rates.
#[kernel_fn]
fn lower(a: RateLimit, b: RateLimit) -> RateLimit {
    if b.limited & (!a.limited | (b.rate < a.rate)) {
        b
    } else {
        a
    }
}

impl<const Q: usize> Logic for RateLimits<Q> {
    describe!(
        "rate_limits",
        format!("q{Q}"),
        "The lowest of three rates of each queue pair."
    );

    #[kernel]
    fn update(&mut self) {
        let picks = step == LimitStep::Pick;
        // turns: after one of a stream another one goes first
        let controls_come = controlled.valid | windows.valid;
        let takes_host = fixed.valid & (!of_host | !controls_come);
        let takes_swift = windows.valid & (!of_swift | !controlled.valid);
        fixed.ready = picks & takes_host;
        windows.ready = picks & !takes_host & takes_swift;
        controlled.ready = picks & !takes_host & !takes_swift;
        let mut taken = controlled.payload;
        if takes_swift {
            taken = windows.payload;
        }
        if takes_host {
            taken = fixed.payload;
        }
        let mut word = no_limit;
        word.limited = update_in.limited;
        word.rate = update_in.rate;
        let sweeps = step == LimitStep::Sweep;
        let keeps = step == LimitStep::Keep;
        let mut at = update_in.qpn.low::<Q>();
        let mut window = update_in.window;
        if sweeps {
            at = sweep;
            word = no_limit;
            window = bits::<16>(0);
        }
        controls.we = sweeps | (keeps & !of_host & !of_swift);
        slowed.we = sweeps | (keeps & !of_host & of_swift);
        bounds.we = sweeps | (keeps & !of_host & of_swift);
        limits.we = sweeps | (keeps & of_host);
        controls.waddr = at;
        slowed.waddr = at;
        bounds.waddr = at;
        limits.waddr = at;
        controls.wdata = word;
        slowed.wdata = word;
        bounds.wdata = window;
        limits.wdata = word;
        let reads = step == LimitStep::Read;
        controls.re = reads;
        slowed.re = reads;
        bounds.re = reads;
        limits.re = reads;
        controls.raddr = at;
        slowed.raddr = at;
        bounds.raddr = at;
        limits.raddr = at;

        match step {
            LimitStep::Sweep => {
                sweep = sweep + 1;
                if sweep.all() {
                    step = LimitStep::Pick;
                }
            }
            LimitStep::Pick => {
                update_in = taken;
                if fixed.valid | controls_come {
                    of_host = takes_host;
                    if !takes_host {
                        of_swift = takes_swift;
                    }
                    step = LimitStep::Keep;
                }
            }
            LimitStep::Keep => {
                step = LimitStep::Read;
            }
            LimitStep::Read => {
                step = LimitStep::Compare;
            }
            LimitStep::Compare => {
                let least = lower(controls.rdata, slowed.rdata);
                update_in.limited = least.limited;
                update_in.rate = least.rate;
                update_in.window = bounds.rdata;
                step = LimitStep::Limit;
            }
            LimitStep::Limit => {
                let least = lower(word, limits.rdata);
                update_in.limited = least.limited;
                update_in.rate = least.rate;
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
