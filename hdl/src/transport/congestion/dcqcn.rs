//! DCQCN, the reaction point of all queue pairs (docs/congestion.md): CNPs and bytes in, rates out.
//!
//! No queue pair has a timer. What is due is found out when an event comes or, in turn, on a visit, and happens as at its own time; an event
//! counts in the microsecond in which it is taken up. A visit comes when nothing waits, and behind seven events.
//!
//! ```text
//!  pick ─► load ─► due ─► choose ─┬─► add ─► mean ─────────┐ (increase)
//!           ▲       ▲             └─► catch up ─┬─► cut ───┤ (decrease)
//!           │       └───────────────────────────┼──────────┘
//!           └── answer ◄── store ◄──────────────┴─► act
//! ```
//!
//! An event takes some 12 cycles and, of the ticks since the last look, twice the logarithm of their number; each increase 2, and a
//! decrease 40. So it takes 10 to 20 million events a second, and in the largest build a queue pair is visited every 2 ms if all are
//! paced, and every 110 ms in the worst case: 2^20 us never pass unseen. For that more than 63 increases at once are dropped, which needs
//! a queue pair that was not looked at for 63 times `rpg_time_reset`.
use super::alpha::Alpha;
use super::cut::Cut;
use super::dcqcn_terms::DcqcnTermsOf;
use super::front::CongestionFront;
use super::periods::Periods;
use super::types::*;
use crate::prelude::*;

/// What the block is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum DcqcnStep {
    /// Clears the table.
    Sweep,
    /// Chooses an event.
    Pick,
    /// The state arrives.
    Load,
    /// Compares times.
    Due,
    /// Chooses what happens first.
    Choose,
    /// Starts the ticks before it.
    CatchUp,
    /// They are counted.
    Tick,
    /// An increase: the target;
    Add,
    /// the rate.
    Mean,
    /// A decrease.
    Cut,
    /// The event itself.
    Act,
    /// Counts its bytes.
    Count,
    /// Bytes beyond the next increase.
    Bytes,
    /// A CNP that decreases at once: alpha.
    Raise,
    /// The state goes back.
    Store,
    /// A rate update leaves.
    Answer,
}

/// Reaction point of 2^Q queue pairs.
#[derive(Block)]
pub struct Dcqcn<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Parameters; a change counts from the next event of a queue pair on.
    pub params: Signal<In, DcqcnParams>,
    /// A microsecond passed; one cycle.
    pub tick: Signal<In, Bit>,
    /// Events.
    pub s: StreamIn<CongestionEvent>,
    /// Rate updates.
    pub m: StreamOut<RateUpdate>,
    /// A CNP found no room; one cycle.
    pub lost: Signal<Out, Bit>,
    /// A queue pair that a CNP came for once was looked at; one cycle.
    pub look_valid: Signal<Out, Bit>,
    /// See `look_valid`.
    pub look: Signal<Out, DcqcnLook>,
    /// The table is swept after reset, and alpha's tables stand.
    pub ready: Signal<Out, Bit>,
    /// The table is swept after reset: events are taken, and wait until alpha's tables stand.
    pub swept: Signal<Out, Bit>,

    front: CongestionFront<Q>,
    terms: DcqcnTermsOf,
    alpha: Alpha,
    monitor: Periods,
    cut: Cut,
    table: Ram<DcqcnState, Q>,
    no_state: Zero<DcqcnState>,

    now: Reg<Bits<20>>,
    step: Reg<DcqcnStep>,
    visit: Reg<Bits<Q>>,
    events: Reg<Bits<3>>,
    event: Dff<CongestionEvent>,
    /// When it counts.
    at: Dff<Bits<20>>,
    state: Dff<DcqcnState>,
    old_rate: Dff<Bits<20>>,
    /// Times since increase and end of the period; from the former to the latter.
    late_increase: Dff<Bits<20>>,
    late_decrease: Dff<Bits<20>>,
    lead: Dff<Bits<20>>,
    late_alpha: Dff<Bits<20>>,
    decreases: Dff<Bit>,
    increases: Dff<Bits<6>>,
    by_bytes: Reg<Bit>,
    alpha_ticks: Dff<Bit>,
    monitor_ticks: Dff<Bit>,
    /// The first CNP, or one that decreases at once.
    sets: Dff<Bit>,
    cuts: Dff<Bit>,
    sum: Dff<Bits<25>>,
    /// It is enough for an increase; a cycle behind it.
    enough: Dff<Bit>,
    cutting: Reg<Bit>,
}

impl<const Q: usize> Logic for Dcqcn<Q> {
    describe!(
        "dcqcn",
        format!("q{Q}"),
        "DCQCN: the reaction point of all queue pairs."
    );

    #[kernel]
    fn update(&mut self) {
        if tick {
            now = now + 1;
        }
        terms.params = params;
        terms.state = state;
        terms.at = at;
        let t = terms.terms;
        let reset = params.rpg_byte_reset.resize::<25>() << 6;

        let mut v = state;
        front.clear = step == DcqcnStep::Sweep;
        front.clear_qpn = visit;
        front.m.ready = false;
        table.we = false;
        table.waddr = event.qpn.low::<Q>();
        table.wdata = state;
        table.re = step == DcqcnStep::Pick;
        let pops = front.m.valid & !events.all();
        table.raddr = if pops {
            front.m.payload.qpn.low::<Q>()
        } else {
            visit
        };
        alpha.g = params.dce_tcp_g;
        alpha.idle = step == DcqcnStep::Pick;
        alpha.start = false;
        alpha.alpha = state.alpha;
        alpha.rises = state.alpha_cnp;
        alpha.late = late_alpha;
        alpha.period = params.dce_tcp_rtt;
        monitor.start = false;
        monitor.late = late_decrease;
        monitor.period = params.rate_reduce_monitor_period;
        cut.start = false;
        cut.rate = state.rate;
        cut.alpha = state.alpha;
        cut.gd = params.rpg_gd;
        cut.leaves = params.rpg_min_dec_fac;
        cut.least = terms.terms.lowest;
        m.valid = step == DcqcnStep::Answer;

        let with_target = state.target.resize::<21>() + t.more.resize::<21>();
        let both = state.rate.resize::<21>() + state.target.resize::<21>();
        let beyond = sum - reset;
        enough = sum >= reset;
        let period_end = state.decrease_at - 1;
        let increase_due = !late_increase.bit(19) & (!state.decrease_cnp | !lead.bit(19));

        match step {
            DcqcnStep::Sweep => {
                table.we = true;
                table.waddr = visit;
                table.wdata = no_state;
                visit = visit + 1;
                if visit.all() {
                    step = DcqcnStep::Pick;
                }
            }
            DcqcnStep::Pick => {
                at = now;
                event = front.m.payload;
                if !pops {
                    event.kind = CongestionEventKind::None;
                    event.qpn = visit.resize::<16>();
                }
                if alpha.ready {
                    front.m.ready = pops;
                    events = events + 1;
                    if !pops {
                        visit = visit + 1;
                        events = bits::<3>(0);
                    }
                    step = DcqcnStep::Load;
                }
            }
            DcqcnStep::Load => {
                v = table.rdata;
                old_rate = table.rdata.rate;
                sets = false;
                cuts = false;
                decreases = false;
                increases = bits::<6>(0);
                by_bytes = false;
                step = DcqcnStep::Due;
                if event.kind == CongestionEventKind::Reset {
                    v = no_state;
                    step = DcqcnStep::Store;
                } else if !table.rdata.active {
                    step = DcqcnStep::Pick;
                    if event.kind == CongestionEventKind::Cnp {
                        step = DcqcnStep::Act;
                        sets = true;
                    }
                }
            }
            DcqcnStep::Due => {
                late_increase = at - state.increase_at;
                late_decrease = at - state.decrease_at;
                lead = state.decrease_at - state.increase_at;
                step = DcqcnStep::Choose;
            }
            DcqcnStep::Choose => {
                decreases = state.decrease_cnp & !late_decrease.bit(19);
                late_alpha = at - state.alpha_at;
                if state.decrease_cnp & !late_decrease.bit(19) {
                    late_alpha = period_end - state.alpha_at;
                    if params.alpha_first {
                        late_alpha = state.decrease_at - state.alpha_at;
                    }
                }
                step = if increase_due {
                    DcqcnStep::Add
                } else {
                    DcqcnStep::CatchUp
                };
            }
            DcqcnStep::CatchUp => {
                let idle_period = !state.decrease_cnp & !late_decrease.bit(19) & !t.at_once;
                alpha.start = !late_alpha.bit(19);
                monitor.start = idle_period;
                alpha_ticks = !late_alpha.bit(19);
                monitor_ticks = idle_period;
                step = DcqcnStep::Tick;
            }
            DcqcnStep::Tick => {
                if !alpha.busy & !monitor.busy {
                    if alpha_ticks {
                        v.alpha = alpha.result;
                        v.alpha_cnp = false;
                        v.alpha_at = state.alpha_at + alpha.passed;
                    }
                    if monitor_ticks {
                        v.decrease_at = state.decrease_at + monitor.passed;
                    }
                    step = if decreases | cuts {
                        DcqcnStep::Cut
                    } else {
                        DcqcnStep::Act
                    };
                    // all but the decrease is done
                    if sets & !cuts {
                        step = DcqcnStep::Store;
                    }
                }
            }
            DcqcnStep::Add => {
                v.target = with_target.low::<20>();
                if with_target > t.highest.resize::<21>() {
                    v.target = t.highest;
                }
                late_increase = late_increase - params.rpg_time_reset.resize::<20>();
                lead = lead - params.rpg_time_reset.resize::<20>();
                if by_bytes {
                    v.byte_stage = later(state.byte_stage);
                } else {
                    v.time_stage = later(state.time_stage);
                    v.increase_at = state.increase_at + params.rpg_time_reset.resize::<20>();
                    increases = increases + 1;
                }
                step = DcqcnStep::Mean;
            }
            DcqcnStep::Mean => {
                v.rate = both.slice::<20>(1);
                step = DcqcnStep::Due;
                if by_bytes {
                    step = DcqcnStep::Bytes;
                } else if increases.all() {
                    v.increase_at = at + params.rpg_time_reset.resize::<20>();
                } else if increase_due {
                    step = DcqcnStep::Add;
                }
            }
            DcqcnStep::Cut => {
                cut.start = !cutting;
                cutting = true;
                if !cutting & t.clamps {
                    v.target = state.rate;
                }
                if cutting & !cut.busy {
                    cutting = false;
                    v.rate = cut.result;
                    v.time_stage = bits::<6>(0);
                    v.byte_stage = bits::<6>(0);
                    v.byte_count = bits::<24>(0);
                    v.increase_at = at + params.rpg_time_reset.resize::<20>();
                    step = DcqcnStep::Store;
                    if !cuts {
                        v.increase_at = state.decrease_at + params.rpg_time_reset.resize::<20>();
                        v.decrease_cnp = false;
                        v.decrease_at =
                            state.decrease_at + params.rate_reduce_monitor_period.resize::<20>();
                        step = DcqcnStep::Due;
                    }
                }
            }
            DcqcnStep::Act => {
                sum = state.byte_count.resize::<25>() + event.bytes.resize::<25>();
                step = DcqcnStep::Store;
                if event.kind == CongestionEventKind::Cnp {
                    v.alpha_cnp = true;
                    v.decrease_cnp = !t.at_once;
                    if sets {
                        v = terms.begun;
                    }
                    if t.at_once {
                        v.alpha_at = at;
                        step = DcqcnStep::Raise;
                    }
                } else if (event.kind == CongestionEventKind::Sent) & !t.no_bytes {
                    step = DcqcnStep::Count;
                }
            }
            DcqcnStep::Count => {
                step = DcqcnStep::Bytes;
            }
            DcqcnStep::Bytes => {
                by_bytes = true;
                v.byte_count = sum.low::<24>();
                step = DcqcnStep::Store;
                if enough {
                    sum = beyond;
                    step = DcqcnStep::Add;
                }
            }
            DcqcnStep::Raise => {
                // one tick, now; the rate falls unless this CNP has set it
                late_alpha = bits::<20>(0);
                late_decrease = bits::<20>(0).replace_bit(19, true);
                cuts = !sets | !params.rate_to_set_on_first_cnp.any();
                step = DcqcnStep::CatchUp;
            }
            DcqcnStep::Store => {
                table.we = true;
                step = DcqcnStep::Pick;
                if (state.rate != old_rate) | !state.active {
                    step = DcqcnStep::Answer;
                }
            }
            _ => {
                if m.ready {
                    step = DcqcnStep::Pick;
                }
            }
        }
        state = v;
        m.payload.qpn = event.qpn;
        m.payload.limited = t.limited;
        m.payload.rate = state.rate;
        m.payload.window = bits::<24>(0);
        look_valid = step == DcqcnStep::Store;
        look.qpn = event.qpn;
        look.visit = event.kind == CongestionEventKind::None;
        look.at = at;
        look.state = state;
        lost = front.lost;
        forward!(front.s <= s);
        swept = step != DcqcnStep::Sweep;
        ready = swept & alpha.ready;
    }
}

/// A stage further, up to 63.
#[kernel_fn]
fn later(stage: Bits<6>) -> Bits<6> {
    let mut next = stage;
    if !stage.all() {
        next = stage + 1;
    }
    next
}
