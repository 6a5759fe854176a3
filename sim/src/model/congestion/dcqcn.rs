//! DCQCN for one queue pair, the golden reference.
//!
//! Y. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, in integers, with the names of mlx5. Time is counted in whole
//! microseconds: an event counts at the microsecond in which it comes, behind the ticks that are due then.

use super::params::Params;

/// Stages are counted up to this.
pub const STAGE_MAX: u32 = 63;
/// Ticks of alpha are counted up to this: not even a `dce_tcp_g` of 1023 leaves anything of alpha.
const TICKS_MAX: u32 = (1 << 14) - 1;
/// Highest alpha.
const ALPHA_MAX: u32 = (1 << 16) - 1;
/// What is below 1/1024 of alpha.
const FRACTION: u32 = 6;

/// What is remembered of a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// A CNP came; all else counts from then on.
    pub active: bool,
    /// Current rate, Mb/s.
    pub rate: u32,
    /// Target rate, Mb/s.
    pub target: u32,
    /// How much of the path is congested, 1/65536, behind the last tick that raised it.
    pub alpha: u32,
    /// Ticks of alpha since, up to 16383.
    pub alpha_ticks: u32,
    /// A CNP came since the last tick of alpha.
    pub alpha_cnp: bool,
    /// A CNP came in this monitor period.
    pub decrease_cnp: bool,
    /// Increases by time since the last decrease.
    pub time_stage: u32,
    /// Increases by bytes since the last decrease.
    pub byte_stage: u32,
    /// Bytes since the last increase by bytes, or the last decrease.
    pub byte_count: u32,
    /// Next tick of alpha, microseconds.
    pub alpha_at: u64,
    /// End of the monitor period, microseconds.
    pub decrease_at: u64,
    /// Next increase by time, microseconds.
    pub increase_at: u64,
}

/// What a tick did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fired {
    /// An increase that left the target (fast recovery).
    Recovery,
    /// An additive increase.
    Additive,
    /// A hyper increase.
    Hyper,
    /// A decrease.
    Decrease,
    /// A tick of alpha.
    Alpha,
}

/// Reaction point of one queue pair.
#[derive(Clone, Debug)]
pub struct Dcqcn {
    params: Params,
    /// What 2^k ticks leave of alpha, 2^-17.
    powers: [u32; 14],
    line: u32,
    state: State,
}

impl Dcqcn {
    /// State before the first congestion, on a line of `line_rate_mbps`.
    ///
    /// # Panics
    /// If a parameter is out of range (see [`Params::check`]), or the rate of the line.
    #[must_use]
    pub fn new(params: Params, line_rate_mbps: u32) -> Self {
        if let Err(error) = params.check() {
            panic!("{error}");
        }
        assert!(
            (1..=Params::RATE_MAX).contains(&line_rate_mbps),
            "a line of {line_rate_mbps} Mb/s: 1 to {} is possible",
            Params::RATE_MAX
        );
        let max = max_rate(&params, line_rate_mbps);
        assert!(
            params.rpg_min_rate <= max,
            "rpg_min_rate is {}: the highest rate is {max}",
            params.rpg_min_rate
        );
        Self {
            params,
            powers: powers(params.dce_tcp_g),
            line: line_rate_mbps,
            state: State::default(),
        }
    }

    /// Other parameters, and another line, count from the next event on, `dce_tcp_g` for all ticks since alpha last rose. A lowest rate above the highest one is taken as that.
    pub(in crate::model) fn set(&mut self, params: Params, line_rate_mbps: u32) {
        let max = max_rate(&params, line_rate_mbps);
        self.line = line_rate_mbps;
        if params.dce_tcp_g != self.params.dce_tcp_g {
            self.powers = powers(params.dce_tcp_g);
        }
        self.params = Params {
            rpg_min_rate: params.rpg_min_rate.min(max),
            ..params
        };
    }

    /// A CNP for the queue pair is there.
    pub fn on_cnp(&mut self, now_ns: u64) {
        self.advance(now_ns);
        let now = now_ns / 1000;
        let p = self.params;
        let first = !self.state.active;
        if first {
            self.start(now);
        }
        if p.rate_reduce_monitor_period == 0 {
            // the paper's rules: each CNP counts, and alpha falls only while none comes
            self.state.alpha_cnp = false;
            self.state.decrease_cnp = false;
            self.raise_alpha();
            self.state.alpha_at = now + u64::from(p.dce_tcp_rtt);
            if !first || p.rate_to_set_on_first_cnp == 0 {
                self.decrease(now);
            }
        } else if !first {
            self.state.alpha_cnp = true;
            self.state.decrease_cnp = true;
        }
    }

    /// The queue pair sent `bytes`.
    pub fn on_sent(&mut self, now_ns: u64, bytes: u32) {
        self.advance(now_ns);
        let reset = self.params.rpg_byte_reset * 64;
        if !self.state.active || reset == 0 {
            return;
        }
        let mut count = u64::from(self.state.byte_count) + u64::from(bytes);
        while count >= u64::from(reset) {
            count -= u64::from(reset);
            self.increase();
            self.state.byte_stage = (self.state.byte_stage + 1).min(STAGE_MAX);
        }
        self.state.byte_count = count as u32;
    }

    /// All that is due at `now_ns` happens.
    pub fn advance(&mut self, now_ns: u64) {
        while self.step(now_ns).is_some() {}
    }

    /// The earliest thing that is due at `now_ns` happens: its time, and what it was. Of one time the increase comes first, then the
    /// decrease, then the tick of alpha; with [`Params::alpha_first`] that comes before both.
    pub fn step(&mut self, now_ns: u64) -> Option<(u64, Fired)> {
        let now = now_ns / 1000;
        let p = self.params;
        if !self.state.active {
            return None;
        }
        self.skip(now);
        let State {
            alpha_at,
            decrease_at,
            increase_at,
            ..
        } = self.state;
        let alpha_before = |other: u64| alpha_at < other || p.alpha_first && alpha_at == other;
        let decreases = self.state.decrease_cnp && !alpha_before(decrease_at);
        let increases =
            !alpha_before(increase_at) && (!self.state.decrease_cnp || increase_at <= decrease_at);
        let (at, fired) = if increases && increase_at <= now {
            self.state.increase_at += u64::from(p.rpg_time_reset);
            let fired = self.increase();
            self.state.time_stage = (self.state.time_stage + 1).min(STAGE_MAX);
            (increase_at, fired)
        } else if decreases && decrease_at <= now {
            self.decrease(decrease_at);
            self.state.decrease_cnp = false;
            self.state.decrease_at += u64::from(p.rate_reduce_monitor_period);
            (decrease_at, Fired::Decrease)
        } else if alpha_at <= now {
            if self.state.alpha_cnp {
                self.raise_alpha();
            } else {
                self.state.alpha_ticks = (self.state.alpha_ticks + 1).min(TICKS_MAX);
            }
            self.state.alpha_cnp = false;
            self.state.alpha_at += u64::from(p.dce_tcp_rtt);
            (alpha_at, Fired::Alpha)
        } else {
            return None;
        };
        Some((at * 1000, fired))
    }

    /// The rate the queue pair may send with, Mb/s: that of the line if nothing limits it.
    #[must_use]
    pub const fn rate_mbps(&self) -> u32 {
        if self.is_limited() {
            self.state.rate
        } else {
            self.line
        }
    }

    /// The queue pair is to be paced. An average that is rounded down never reaches the highest rate itself: the limit ends 1 Mb/s
    /// below it. The state stays.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.state.active && self.state.rate + 1 < self.max_rate()
    }

    /// When the rate may next change without an event from outside, ns.
    #[must_use]
    pub fn next_event(&self) -> Option<u64> {
        let state = &self.state;
        let rises = state.rate + 1 < self.max_rate();
        let decrease = state.decrease_cnp.then_some(state.decrease_at);
        let increase = (state.active && rises).then_some(state.increase_at);
        let at = decrease.into_iter().chain(increase).min()?;
        Some(at * 1000)
    }

    /// What is remembered.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Goes on from another state.
    pub const fn set_state(&mut self, state: State) {
        self.state = state;
    }

    const fn max_rate(&self) -> u32 {
        max_rate(&self.params, self.line)
    }

    /// Ticks that change nothing are left out: they would be counted one by one for as long as a queue pair is silent.
    fn skip(&mut self, now: u64) {
        let p = self.params;
        let state = &mut self.state;
        let next_after = |at: u64, period: u32| match now.checked_sub(at) {
            Some(late) => at + (late / u64::from(period) + 1) * u64::from(period),
            None => at,
        };
        if state.alpha_ticks == TICKS_MAX && !state.alpha_cnp {
            state.alpha_at = next_after(state.alpha_at, p.dce_tcp_rtt);
        }
        if !state.decrease_cnp && p.rate_reduce_monitor_period != 0 {
            state.decrease_at = next_after(state.decrease_at, p.rate_reduce_monitor_period);
        }
    }

    /// The first CNP.
    fn start(&mut self, now: u64) {
        let p = self.params;
        let max = self.max_rate();
        let keeps = p.rate_to_set_on_first_cnp == 0;
        let rate = if keeps {
            max
        } else {
            p.rate_to_set_on_first_cnp.min(max)
        };
        self.state = State {
            active: true,
            rate,
            target: rate,
            alpha: p.initial_alpha_value << FRACTION,
            decrease_cnp: keeps && p.rate_reduce_monitor_period != 0,
            alpha_at: now + u64::from(p.dce_tcp_rtt),
            decrease_at: now + u64::from(p.rate_reduce_monitor_period),
            increase_at: now + u64::from(p.rpg_time_reset),
            ..State::default()
        };
    }

    /// Alpha now, 1/65536. The ticks since it rose count at once, by powers of two, so it does not matter when it is asked for. In whole
    /// 1/1024 ([`Params::alpha_whole`]) each tick is rounded.
    #[must_use]
    pub fn alpha(&self) -> u32 {
        let State {
            alpha, alpha_ticks, ..
        } = self.state;
        if self.params.alpha_whole {
            let falls = (0..alpha_ticks).try_fold(alpha, |alpha, _| match self.fall(alpha, 0) {
                0 => None,
                left => Some(left),
            });
            return falls.unwrap_or(0);
        }
        let ones = (0..self.powers.len()).filter(|k| alpha_ticks >> k & 1 == 1);
        ones.fold(alpha, |alpha, k| self.fall(alpha, k))
    }

    /// What 2^k ticks leave of it.
    fn fall(&self, alpha: u32, k: usize) -> u32 {
        let left = ((u64::from(alpha) * u64::from(self.powers[k])) >> 17) as u32;
        if self.params.alpha_whole {
            left >> FRACTION << FRACTION
        } else {
            left
        }
    }

    /// A tick with a CNP.
    fn raise_alpha(&mut self) {
        let rise = (1024 - self.params.dce_tcp_g) << FRACTION;
        let most = if self.params.alpha_whole {
            1023 << FRACTION
        } else {
            ALPHA_MAX
        };
        self.state.alpha = (self.fall(self.alpha(), 0) + rise).min(most);
        self.state.alpha_ticks = 0;
    }

    fn decrease(&mut self, at: u64) {
        let p = self.params;
        let alpha = self.alpha();
        let state = &mut self.state;
        if p.clamp_tgt_rate
            || state.byte_stage > 0
            || p.clamp_tgt_rate_after_time_inc && state.time_stage > 0
        {
            state.target = state.rate;
        }
        let rate = u64::from(state.rate);
        let share = (rate * u64::from(alpha)) >> (p.rpg_gd + FRACTION);
        let most = rate * u64::from(100 - p.rpg_min_dec_fac) / 100;
        state.rate = ((rate - share.min(most)) as u32).max(p.rpg_min_rate);
        state.time_stage = 0;
        state.byte_stage = 0;
        state.byte_count = 0;
        state.increase_at = at + u64::from(p.rpg_time_reset);
    }

    fn increase(&mut self) -> Fired {
        let p = self.params;
        let max = self.max_rate();
        let state = &mut self.state;
        // a counter that is switched off has no stage
        let (low, high) = if p.rpg_byte_reset == 0 {
            (state.time_stage, state.time_stage)
        } else {
            (
                state.time_stage.min(state.byte_stage),
                state.time_stage.max(state.byte_stage),
            )
        };
        let (fired, more) = if low > p.rpg_threshold {
            (Fired::Hyper, p.rpg_hai_rate)
        } else if high >= p.rpg_threshold {
            (Fired::Additive, p.rpg_ai_rate)
        } else {
            (Fired::Recovery, 0)
        };
        state.target = (state.target + more).min(max);
        state.rate = (state.rate + state.target) / 2;
        fired
    }
}

fn powers(g: u32) -> [u32; 14] {
    let mut power = u64::from(g) << 7;
    std::array::from_fn(|_| {
        let now = power as u32;
        power = (power * power) >> 17;
        now
    })
}

const fn max_rate(params: &Params, line: u32) -> u32 {
    let max = params.rpg_max_rate;
    if max == 0 || max > line { line } else { max }
}
