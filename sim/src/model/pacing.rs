//! Reaction point: the rates and windows of the queue pairs, and when their requests and responses may leave (docs/congestion.md).

use ferroce_proto::abi::qpc::{RATE_HEADERS, SqCtx, qp_type};
use ferroce_proto::abi::rates::{RpConfig, line_rate};
use ferroce_proto::abi::regs;
use ferroce_proto::wire::Mtu;

use super::Env;
use super::congestion::{Dcqcn, Pace, Params, Swift, SwiftParams, range};
use super::csr::PARAMS2;
use crate::nic::NS_PER_CYCLE;

/// What the host says of the reaction point.
#[derive(Clone)]
pub(super) struct Reaction {
    config: RpConfig,
    /// Register LINE_RATE.
    line: u32,
    params: Params,
}

impl Default for Reaction {
    fn default() -> Self {
        let mut reaction = Self {
            config: RpConfig::default(),
            line: 0,
            params: Params::default(),
        };
        reaction.write(regs::RP_CONFIG, regs::RP_CONFIG_RESET);
        reaction
    }
}

impl Reaction {
    /// Writes a register; false if it is another's.
    pub(super) fn write(&mut self, offset: u32, value: u32) -> bool {
        if offset == regs::RP_CONFIG {
            self.config = RpConfig::parse(&value.to_le_bytes());
            self.params.clamp_tgt_rate = self.config.clamp_tgt_rate;
            self.params.clamp_tgt_rate_after_time_inc = self.config.clamp_tgt_rate_after_time_inc;
            self.params.alpha_first = self.config.alpha_first;
            self.params.alpha_whole = self.config.alpha_whole;
            return true;
        }
        let Some(register) = self.register(offset) else {
            return false;
        };
        let (low, high) = range(offset);
        *register = value.clamp(low, high);
        true
    }

    /// Reads a register, if it is one of these.
    pub(super) fn read(&mut self, offset: u32) -> Option<u32> {
        if offset == regs::RP_CONFIG {
            return Some(u32::from_le_bytes(self.config.emit()));
        }
        self.register(offset).copied()
    }

    fn register(&mut self, offset: u32) -> Option<&mut u32> {
        match offset {
            regs::LINE_RATE => Some(&mut self.line),
            _ => self.params.register(offset),
        }
    }

    /// Rate of the port, Mb/s.
    fn line(&self) -> u32 {
        match self.line {
            0 => line_rate(PARAMS2.data_width),
            rate => rate,
        }
    }
}

/// The pace of a queue pair. Requests and responses each have its rate.
#[derive(Clone, Default)]
pub(super) struct Pacing {
    /// The limit that the host sets, Mb/s; 0: none.
    limit: u32,
    /// What congestion control remembers since the first CNP.
    control: Option<Box<Dcqcn>>,
    /// Congestion control by round trips, if that is chosen.
    swift: Option<Box<Swift>>,
    /// The rate, Mb/s, if there is one.
    rate: Option<u32>,
    requests: Pace,
    responses: Pace,
}

impl Pacing {
    /// The limit of the host, Mb/s; 0: none.
    pub(super) fn set_limit(&mut self, mbps: u32) {
        self.limit = mbps;
        self.lift();
    }

    /// Without a rate nothing is owed.
    fn lift(&mut self) {
        if self.limit == 0 && self.control.is_none() {
            self.rate = None;
            self.requests = Pace::default();
            self.responses = Pace::default();
        }
    }

    /// What congestion control remembers is void.
    pub(super) fn reset(&mut self) {
        self.control = None;
        self.swift = None;
        self.lift();
    }

    /// The send queue starts afresh: by round trips, if its image says so.
    pub(super) fn choose(&mut self, env: &Env, ctx: &SqCtx) {
        let mtu = Mtu::from_code(ctx.mtu).filter(|_| ctx.swift && ctx.qp_type == qp_type::RC);
        self.swift = mtu.map(|mtu| Box::new(Swift::new(params(env, mtu.log2()))));
    }

    /// What the next event of Swift is to find, in nanoseconds too.
    fn swift(&mut self, env: &Env) -> Option<(&mut Swift, u64)> {
        let swift = self.swift.as_deref_mut()?;
        swift.set(params(env, swift.params().log_packet));
        Some((swift, env.now * NS_PER_CYCLE))
    }

    /// `bytes` were acknowledged, after a round trip of `rtt` cycles, if that is known.
    pub(super) fn on_ack(&mut self, env: &Env, bytes: u32, rtt: Option<u64>) {
        if let Some((swift, now)) = self.swift(env) {
            swift.on_ack(now, bytes, rtt.map(|cycles| cycles * NS_PER_CYCLE));
        }
    }

    /// Packets were lost.
    pub(super) fn on_nak(&mut self, env: &Env) {
        if let Some((swift, now)) = self.swift(env) {
            swift.on_nak(now);
        }
    }

    /// The ACK timer ran out.
    pub(super) fn on_timeout(&mut self, env: &Env) {
        if let Some((swift, now)) = self.swift(env) {
            swift.on_timeout(now);
        }
    }

    /// PSNs that congestion control lets be outstanding; `None`: any number.
    pub(super) fn window(&self) -> Option<u32> {
        self.swift.as_ref().map(|swift| swift.packets())
    }

    /// A CNP of the peer arrived.
    pub(super) fn on_cnp(&mut self, now: u64, reaction: &Reaction) {
        if !reaction.config.enable || self.swift.is_some() {
            return;
        }
        let (params, line) = (reaction.params, reaction.line());
        let control = self
            .control
            .get_or_insert_with(|| Box::new(Dcqcn::new(Params::default(), line)));
        control.set(params, line);
        control.on_cnp(now * NS_PER_CYCLE);
    }

    /// A request, or a response with data, left.
    pub(super) fn on_sent(
        &mut self,
        now: u64,
        responses: bool,
        payload: usize,
        reaction: &Reaction,
    ) {
        let bytes = payload as u32 + RATE_HEADERS;
        if let Some(control) = &mut self.control {
            control.set(reaction.params, reaction.line());
            control.on_sent(now * NS_PER_CYCLE, bytes);
        }
        self.pace(responses).grant(bytes);
    }

    fn pace(&mut self, responses: bool) -> &mut Pace {
        if responses {
            &mut self.responses
        } else {
            &mut self.requests
        }
    }

    /// The cycle in which the next request or response may leave, `now` or later; at the latest that in which it is to be asked again.
    pub(super) fn start(&mut self, now: u64, responses: bool, reaction: &Reaction) -> u64 {
        let control = self.control.as_mut().and_then(|control| {
            control.set(reaction.params, reaction.line());
            control.advance(now * NS_PER_CYCLE);
            control.is_limited().then(|| control.rate_mbps())
        });
        let limit = (self.limit > 0).then_some(self.limit);
        let swift = self.swift.as_ref().and_then(|swift| swift.rate_mbps());
        let rate = control.into_iter().chain(swift).chain(limit).min();
        if rate != self.rate {
            self.rate = rate;
            self.requests.set_rate(now, rate);
            self.responses.set_rate(now, rate);
        }
        if rate.is_none() {
            return now;
        }
        let start = self.pace(responses).start(now, false);
        let next = self.control.as_ref().and_then(|c| c.next_event());
        let asked = next.map_or(u64::MAX, |ns| ns.div_ceil(NS_PER_CYCLE));
        start.min(asked.max(now + 1)).max(now)
    }
}

/// The parameters of Swift in packets of 2^`log_packet` bytes.
fn params(env: &Env, log_packet: u32) -> SwiftParams {
    SwiftParams {
        log_packet,
        ..env.swift
    }
}
