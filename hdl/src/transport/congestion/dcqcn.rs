//! DCQCN, the reaction point of all queue pairs (docs/congestion.md): CNPs and bytes in, rates out.
//!
//! No queue pair has a timer. What is due is found out when an event comes or, in turn, on a visit, and happens as at its own time; an event
//! counts in the microsecond in which it is taken up. A visit comes when nothing waits, and behind seven events.
//!
//! [`dcqcn_order`](super::dcqcn_order) says which step follows on which, [`dcqcn_rules`](super::dcqcn_rules) what a step makes of the state.
//!
//! ```text
//!  pick ─► load ─► due ─► choose ─┬─► add ─► mean ─────────┐ (increase)
//!           ▲       ▲             └─► catch up ─┬─► cut ───┤ (decrease)
//!           │       └───────────────────────────┼──────────┘
//!           └── answer ◄── store ◄──────────────┴─► act
//! ```
//!
//! An event takes some 14 cycles; each increase 2, and a CNP that raises alpha and decreases 65. So it takes 10 to 20 million events a
//! second, and in the largest build a queue pair is visited every 2 ms if all are paced, and every 110 ms in the worst case: 2^19 us never
//! pass unseen (but with `alpha_whole`, docs/congestion.md). For that more than 63 increases at once are dropped, which needs a queue
//! pair that was not looked at for 63 times `rpg_time_reset`.
use super::alpha::Alpha;
use super::cut::Cut;
use super::dcqcn_due::DcqcnDue;
use super::dcqcn_order::*;
use super::dcqcn_rules::DcqcnRules;
use super::dcqcn_terms::DcqcnTermsOf;
use super::front::CongestionFront;
use super::periods::Periods;
use super::types::*;
use crate::prelude::*;

/// Reaction point of 2^Q queue pairs.
#[derive(Block)]
pub struct Dcqcn<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Parameters; a change counts from the next event or visit on, for a first CNP a cycle later.
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
    /// The table is swept after reset, and alpha's table stands.
    pub ready: Signal<Out, Bit>,
    /// The table is swept after reset: events are taken, and wait until alpha's table stands.
    pub swept: Signal<Out, Bit>,

    front: CongestionFront<Q>,
    terms: DcqcnTermsOf,
    due: DcqcnDue,
    order: DcqcnOrder,
    rules: DcqcnRules,
    alpha: Alpha,
    monitor: Periods,
    cut: Cut,
    table: Ram<DcqcnState, Q>,
    no_state: Zero<DcqcnState>,
    no_work: Zero<DcqcnWork>,

    /// Parameters at the beginning of the event: 0 in one of them may mean none, and is looked at more than once.
    held: Dff<DcqcnParams>,
    now: Reg<Bits<20>>,
    step: Reg<DcqcnStep>,
    visit: Reg<Bits<Q>>,
    events: Reg<Bits<3>>,
    event: Dff<CongestionEvent>,
    /// When it counts.
    at: Dff<Bits<20>>,
    work: Dff<DcqcnWork>,
    state: Dff<DcqcnState>,
    old_rate: Dff<Bits<20>>,
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
        terms.params = held;
        copy!(terms <= self; state, at);
        let t = terms.terms;
        copy!(due <= self; step, at, state);
        due.params = held;

        // ticks of alpha, periods without a CNP, the decrease
        let alpha_due = !due.alpha.bit(19);
        let idle_period = !state.decrease_cnp & !due.monitor.bit(19) & !t.at_once;
        let ticked = !alpha.busy & !monitor.busy;
        let falls = due.decrease | work.cuts;
        alpha.g = params.dce_tcp_g;
        alpha.whole = held.alpha_whole;
        alpha.idle = step == DcqcnStep::Pick;
        alpha.start = (step == DcqcnStep::CatchUp) & (alpha_due | falls);
        alpha.due = alpha_due;
        alpha.rises = state.alpha_cnp;
        alpha.wanted = falls;
        alpha.alpha = state.alpha;
        alpha.ticks = state.alpha_ticks;
        alpha.late = due.alpha;
        alpha.period = held.dce_tcp_rtt;
        monitor.start = (step == DcqcnStep::CatchUp) & idle_period;
        monitor.late = due.monitor;
        monitor.period = held.rate_reduce_monitor_period;
        cut.start = (step == DcqcnStep::Cut) & !cutting;
        cut.rate = state.rate;
        cut.alpha = alpha.level;
        cut.gd = held.rpg_gd;
        cut.leaves = held.rpg_min_dec_fac;
        cut.least = t.lowest;
        let cut_ends = cutting & !cut.busy;

        // the event, or a visit
        let pops = front.m.valid & !events.all();
        front.clear = step == DcqcnStep::Sweep;
        front.clear_qpn = visit;
        front.m.ready = (step == DcqcnStep::Pick) & alpha.ready & pops;
        table.re = step == DcqcnStep::Pick;
        table.raddr = if pops {
            front.m.payload.qpn.low::<Q>()
        } else {
            visit
        };
        table.we = (step == DcqcnStep::Sweep) | (step == DcqcnStep::Store);
        table.waddr = event.qpn.low::<Q>();
        table.wdata = state;

        let reset = held.rpg_byte_reset.resize::<25>() << 6;
        enough = sum >= reset;
        match step {
            DcqcnStep::Sweep => {
                table.waddr = visit;
                table.wdata = no_state;
                visit = visit + 1;
            }
            DcqcnStep::Pick => {
                at = now;
                held = params;
                event = front.m.payload;
                if !pops {
                    event.kind = CongestionEventKind::None;
                    event.qpn = visit.resize::<16>();
                }
                if alpha.ready {
                    events = events + 1;
                    if !pops {
                        visit = visit + 1;
                        events = bits::<3>(0);
                    }
                }
            }
            DcqcnStep::Load => {
                old_rate = table.rdata.rate;
                work = no_work;
                work.sets = !table.rdata.active & (event.kind == CongestionEventKind::Cnp);
            }
            DcqcnStep::CatchUp => {
                work.alpha_ticks = alpha_due;
                work.monitor_ticks = idle_period;
            }
            DcqcnStep::Add => {
                if !work.by_bytes {
                    work.increases = work.increases + 1;
                }
            }
            DcqcnStep::Cut => cutting = !cut_ends,
            DcqcnStep::Act => sum = state.byte_count.resize::<25>() + event.bytes.resize::<25>(),
            DcqcnStep::Bytes => {
                work.by_bytes = true;
                if enough {
                    sum = sum - reset;
                }
            }
            // the rate falls unless this CNP has set it
            DcqcnStep::Raise => work.cuts = !work.sets | !held.rate_to_set_on_first_cnp.any(),
            _ => {}
        }

        copy!(order <= self; step, work);
        order.kind = event.kind;
        order.terms = t;
        order.status = DcqcnStatus {
            swept: visit.all(),
            open: alpha.ready,
            active: table.rdata.active,
            increase_due: due.increase,
            falls: falls,
            ticked: ticked,
            cut: cut_ends,
            enough: enough,
            changed: (state.rate != old_rate) | !state.active,
            taken: m.ready,
        };
        step = order.next_step;
        copy!(rules <= self; step, at, work, state, sum);
        rules.kind = event.kind;
        rules.params = held;
        rules.terms = t;
        rules.loaded = table.rdata;
        rules.begun = terms.begun;
        rules.ticked = ticked;
        rules.alpha = alpha.risen;
        rules.alpha_ticks = alpha.since;
        rules.alpha_passed = alpha.passed;
        rules.monitor_passed = monitor.passed;
        rules.cut_begins = !cutting;
        rules.cut_ends = cut_ends;
        rules.cut_rate = cut.result;
        state = rules.next_state;
        m.valid = step == DcqcnStep::Answer;
        m.payload.qpn = event.qpn;
        m.payload.limited = t.limited;
        m.payload.rate = state.rate;
        m.payload.window = bits::<16>(0);
        look_valid = step == DcqcnStep::Store;
        look.qpn = event.qpn;
        look.visit = event.kind == CongestionEventKind::None;
        copy!(look <= self; at, state);
        lost = front.lost;
        forward!(front.s <= s);
        swept = step != DcqcnStep::Sweep;
        ready = swept & alpha.stands;
    }
}
