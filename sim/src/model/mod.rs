//! Golden model: the card's behaviour, written from the specification.
//!
//! It reads the same registers, doorbells, rings and commands as the engine and shares only
//! `ferroce_proto` with it, so that everything above runs on either. What it models is semantics:
//! every step does the work that is there, host memory answers at once, and the port sends 64 bytes a
//! cycle.
//!
//! | file | holds |
//! |---|---|
//! | `csr`, `command` | registers, doorbells, command ring |
//! | `rx` | parsing, silent drops |
//! | `responder`, `execute`, `reply` | requests: order and refusal; execution; answers and duplicates |
//! | `requester`, `segment`, `response`, `retry` | messages; packets; answers; timers and retries |
//! | `qp` | a queue pair: errors and flush |
//! | `wqe`, `access` | work queue entries; DMA, memory regions, gather and scatter |
//! | `completion`, `events` | completion queues; event queues and interrupts |
//! | `datagram` | UD: receive |
//! | `egress` | queues by class, pauses of the peer |
//! | `asks` | pauses that the peer is asked for |
//! | `srq` | shared receive queues |
//! | `classes` | class of a packet by DSCP or PCP |
//! | `congestion` | DCQCN, Swift, start times |
//! | `exceptions` | exception queue |
//! | `notify` | marks of congestion, CNPs |
//! | `pacing` | rates of queue pairs, windows of Swift |
//! | `tx` | frames, arbitration, the pace of the port |
//! | `stats` | statistics |
//!
//! The sources are those of `ferroce_proto::wire`: IB1 and A17.

mod access;
mod agenda;
mod asks;
pub mod classes;
mod command;
mod completion;
pub mod congestion;
mod csr;
mod datagram;
mod egress;
mod events;
mod exceptions;
mod execute;
mod held;
mod notify;
mod pacing;
mod qp;
mod reply;
mod requester;
mod responder;
mod response;
mod retry;
mod round_trip;
mod rx;
mod segment;
mod srq;
mod stats;
mod tx;
mod wqe;

use std::collections::VecDeque;
use std::rc::Rc;

use ferroce_proto::abi::cmd::{GidEntry, PortConfig};
use ferroce_proto::abi::qpc::AvCtx;
use ferroce_proto::abi::regs::{Params, Params3, feature};

use crate::memory::HostMemory;
use crate::nic::Nic;
use agenda::Agenda;

/// Cycles of 1.024 us, the unit of interrupt moderation.
const CYCLES_PER_TICK: u64 = 256;

/// All that the model can do, register FEATURES.
pub const FEATURES: u32 = feature::RC
    | feature::READ
    | feature::ATOMIC
    | feature::UC
    | feature::UD
    | feature::SRQ
    | feature::IPV6
    | feature::VLAN
    | feature::EVENTS
    | feature::LONG_WQE
    | feature::INVALIDATE
    | feature::EXCEPTION
    | feature::RESIZE_CQ
    | feature::MEM_WINDOW
    | feature::CNP
    | feature::RATES
    | feature::CLASSES
    | feature::SEND_WINDOW
    | feature::SWIFT;

/// Table sizes of a small card.
pub const DEFAULT_PARAMS: Params = Params {
    log_qp: 8,
    log_mr: 10,
    log_cq: 8,
    log_outstanding: 14,
    log_gid: 4,
    log_eq: 4,
};

/// As many address handles as queue pairs, a shared receive queue for each four.
const fn params3(params: &Params) -> Params3 {
    Params3 {
        log_ah: params.log_qp,
        log_srq: params.log_qp.saturating_sub(2),
    }
}

/// What all queue pairs share.
#[derive(Clone)]
struct Env {
    /// The current cycle.
    now: u64,
    dma: access::Dma,
    stats: stats::Stats,
    regions: access::Regions,
    cqs: Vec<completion::Cq>,
    eqs: Vec<events::Eq>,
    /// MSI-X vectors requested.
    interrupts: VecDeque<u16>,
    gids: Vec<GidEntry>,
    /// Address handles.
    ahs: Vec<AvCtx>,
    srqs: Vec<srq::Srq>,
    config: PortConfig,
    /// Parameters of Swift.
    swift: congestion::SwiftParams,
    /// What the card does, register FEATURES.
    features: u32,
}

impl Env {
    fn has(&self, feature: u32) -> bool {
        self.features & feature != 0
    }
}

/// The golden model of the card.
#[derive(Clone)]
pub struct Model {
    params: Params,
    env: Env,
    csr: csr::Csr,
    /// Register accesses that take effect in the next step.
    bus: Vec<csr::Access>,
    /// Answer of the register read that was asked for.
    answer: Option<u32>,
    is_read_open: bool,
    qps: Vec<qp::QueuePair>,
    /// Frames that have arrived.
    arrived: VecDeque<Vec<u8>>,
    exceptions: exceptions::Exceptions,
    notify: notify::Notify,
    reaction: pacing::Reaction,
    port: tx::Port,
    egress: egress::Egress,
    /// The command that waits for frames in the queues.
    held: Option<command::Held>,
    /// Queue pairs with a request packet to send.
    requests: tx::Ready,
    /// Queue pairs with a response packet to send.
    responses: tx::Ready,
    /// Deadlines of the queue pairs whose timer runs.
    timers: Agenda,
    /// Starts of the queue pairs with a request packet whose time has not come.
    starts: Agenda,
}

impl Model {
    /// A card after reset that does all that the model can, with `memory` as its host's.
    #[must_use]
    pub fn new(params: Params, memory: Rc<dyn HostMemory>) -> Self {
        Self::with_features(params, FEATURES, memory)
    }

    /// A card after reset with some of the features of `abi::regs::feature`. Transports, operations, long WQEs and event
    /// queues that are not among them are refused; IPv6 and VLAN are there in any case.
    ///
    /// # Panics
    /// If one of them is beyond the model.
    #[must_use]
    pub fn with_features(params: Params, features: u32, memory: Rc<dyn HostMemory>) -> Self {
        assert!(
            features & !FEATURES == 0,
            "features {features:#x}; at most {FEATURES:#x} are modelled"
        );
        let qps = 1u32 << params.log_qp;
        let params3 = params3(&params);
        Self {
            params,
            env: Env {
                now: 0,
                dma: access::Dma::new(memory),
                stats: stats::Stats::new(),
                regions: access::Regions::new(params.log_mr),
                cqs: (0..1 << params.log_cq)
                    .map(|_| completion::Cq::default())
                    .collect(),
                eqs: (0..1 << params.log_eq)
                    .map(|_| events::Eq::default())
                    .collect(),
                interrupts: VecDeque::new(),
                gids: vec![GidEntry::default(); 1 << params.log_gid],
                ahs: vec![AvCtx::default(); 1 << params3.log_ah],
                srqs: (0..1 << params3.log_srq)
                    .map(|_| srq::Srq::default())
                    .collect(),
                config: PortConfig::default(),
                swift: congestion::SwiftParams::default(),
                features,
            },
            csr: csr::Csr::default(),
            bus: Vec::new(),
            answer: None,
            is_read_open: false,
            qps: (0..qps).map(qp::QueuePair::new).collect(),
            arrived: VecDeque::new(),
            exceptions: exceptions::Exceptions::default(),
            notify: notify::Notify::new(qps),
            reaction: pacing::Reaction::default(),
            port: tx::Port::default(),
            egress: egress::Egress::default(),
            held: None,
            requests: tx::Ready::default(),
            responses: tx::Ready::default(),
            timers: Agenda::new(qps),
            starts: Agenda::new(qps),
        }
    }

    /// The answer of a register read was not taken.
    pub(crate) fn is_read_open(&self) -> bool {
        self.is_read_open
    }

    /// A DMA access was refused after its step.
    pub(crate) fn fail_dma(&mut self) {
        self.env.dma.failed = true;
    }

    /// CONTROL.engine_reset: everything is as after power-up, time goes on.
    fn reset_engine(&mut self) {
        let now = self.env.now;
        let is_read_open = self.is_read_open;
        let egress = std::mem::take(&mut self.egress).after_reset();
        *self = Self::with_features(self.params, self.env.features, self.env.dma.memory());
        self.egress = egress;
        self.env.now = now;
        self.is_read_open = is_read_open;
    }

    /// Puts a queue pair that something happened to on the lists it belongs on. One that was found
    /// `blocked` has no request to send until something happens.
    fn schedule(&mut self, qpn: u32, blocked: bool) {
        let now = self.env.now;
        let qp = &mut self.qps[qpn as usize];
        let wants_request = qp.wants_request() && !blocked;
        let wants = [(false, wants_request), (true, qp.wants_response())];
        let mut start = None;
        for (responses, _) in wants.into_iter().filter(|(_, wants)| *wants) {
            let at = qp.next_start(now, responses, &self.reaction);
            if at > now {
                start = start.into_iter().chain([at]).min();
            } else if responses {
                self.responses.add(qpn);
            } else {
                self.requests.add(qpn);
            }
        }
        self.timers.set(qpn, qp.deadline());
        self.starts.set(qpn, start);
    }

    /// One cycle: the timers that run out, the starts that have come.
    fn step_timers(&mut self) {
        while let Some(qpn) = self.starts.due(self.env.now) {
            self.schedule(qpn, false);
        }
        while let Some(qpn) = self.timers.due(self.env.now) {
            self.qps[qpn as usize].expire(&mut self.env);
            self.schedule(qpn, false);
        }
    }
}

impl Nic for Model {
    fn write32(&mut self, offset: u64, value: u32) {
        self.bus.push(csr::Access::Write(offset, value));
    }

    fn start_read32(&mut self, offset: u64) {
        assert!(
            !self.is_read_open,
            "take the answer of one read before starting the next"
        );
        self.is_read_open = true;
        self.bus.push(csr::Access::Read(offset));
    }

    fn take_read32(&mut self) -> Option<u32> {
        let answer = self.answer.take()?;
        self.is_read_open = false;
        Some(answer)
    }

    fn step(&mut self) {
        self.step_bus();
        let under_way = self.port.class();
        self.egress
            .step(under_way, self.env.now, &mut self.env.stats);
        let pause = self.egress.ask(&mut self.env.stats);
        self.port.sent.extend(pause);
        if self.csr.enabled {
            self.step_command();
            if let Some(frame) = self.arrived.pop_front() {
                self.receive_frame(&frame);
            }
            self.step_timers();
            self.step_transmit();
        } else {
            self.arrived.clear();
        }
        self.step_exceptions();
        self.env.step_events();
        self.env.now += 1;
    }

    fn now(&self) -> u64 {
        self.env.now
    }

    fn receive(&mut self, frame: &[u8]) {
        if !self.egress.takes(frame) {
            self.arrived.push_back(frame.to_vec());
        }
    }

    fn transmit(&mut self) -> Option<Vec<u8>> {
        self.port.sent.pop_front()
    }

    fn interrupt(&mut self) -> Option<u16> {
        self.env.interrupts.pop_front()
    }

    fn failures(&self) -> Vec<String> {
        let faults = self.env.dma.memory().faults();
        faults.iter().map(ToString::to_string).collect()
    }

    fn reset(&mut self) {
        *self = Self::with_features(self.params, self.env.features, self.env.dma.memory());
    }

    fn idle_until(&self) -> Option<u64> {
        let is_busy = !self.bus.is_empty()
            || !self.arrived.is_empty()
            || self.egress.is_busy()
            || self.exceptions.is_busy(self.csr.enabled)
            || (self.csr.enabled
                && (self.has_command()
                    || self.port.is_busy()
                    || !self.notify.due.is_empty()
                    || !self.requests.is_empty()
                    || !self.responses.is_empty()));
        let timers = [self.timers.next(), self.starts.next()];
        let timers = timers.into_iter().flatten().filter(|_| self.csr.enabled);
        let events = self.env.eqs.iter().map(events::Eq::due).min();
        let until = timers.chain(events).min().unwrap_or(u64::MAX);
        (!is_busy && until > self.env.now).then_some(until)
    }

    fn run_until(&mut self, cycle: u64) {
        while self.env.now < cycle {
            match self.idle_until() {
                Some(until) => self.env.now = until.min(cycle),
                None => self.step(),
            }
        }
    }
}
