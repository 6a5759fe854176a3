//! Scheduler and send queues around the calendar.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fastrand::Rng;
use ferroce_sim::bench::Agent;
use ferroce_sim::model::congestion::Pace;
use ferroce_sim::verilator::{Dut, Field, Input, Output};

use super::SLOT;

/// Log2 of the bytes that leave in less than 1024 cycles at this gap, 0 at least; also where nothing limits them.
fn span_of(gap: u64) -> u64 {
    let bytes = ((1_u64 << 30) - 1).checked_div(gap);
    bytes.and_then(u64::checked_ilog2).unwrap_or(0).into()
}

/// An order.
#[derive(Clone, Copy)]
pub(super) struct Order {
    qpn: u16,
    bytes: u32,
    pushes: bool,
    idle: bool,
}

/// A queue pair as its scheduler sees it.
#[derive(Clone, Copy, Default)]
pub(super) struct Queue {
    pub(super) pace: Pace,
    /// It wants to start.
    pub(super) waits: bool,
    /// When it wanted to, or its rate changed.
    pub(super) since: u64,
    /// A start that came when its rate changed: it may have moved or not.
    pub(super) unsure: bool,
    /// Cycle of the latest order.
    pub(super) ordered: u64,
    pub(super) releases: u64,
    pub(super) first: u64,
    pub(super) latest: u64,
    pub(super) bytes: u64,
    pub(super) burst: u64,
}

/// Scheduler and send queues around the calendar: orders in, queue pairs that may start out.
pub(super) struct Scheduler {
    pub(super) order_valid: Input,
    pub(super) order: Input,
    pub(super) order_fields: [Field; 4],
    pub(super) m_valid: Output,
    pub(super) m_payload: Output,
    pub(super) m_ready: Input,
    pub(super) ready_now: bool,
    /// Releases are held up now and then.
    pub(super) pauses: bool,
    /// None is taken.
    pub(super) blocked: bool,
    pub(super) orders: VecDeque<Order>,
    pub(super) driven: Option<Order>,
    pub(super) paced_valid: Output,
    pub(super) paced_qpn: Output,
    pub(super) paced: Output,
    pub(super) gap: Output,
    pub(super) span: Output,
    /// Rates on their way.
    pub(super) rates: VecDeque<Option<u32>>,
    pub(super) queues: Vec<Queue>,
    /// Grants to come: cycle, queue pair.
    pub(super) grants: BTreeMap<(u64, u16), ()>,
    /// Between a release and its grant an acknowledgement has a queue pair ask again.
    pub(super) asks: bool,
    /// When, and which.
    pub(super) asking: BTreeSet<(u64, u16)>,
    /// Bytes of a grant.
    pub(super) size: u32,
    /// Cycles from a release to its grant, at most.
    pub(super) latency: u64,
    /// Cycles that a release may be late.
    pub(super) late: u64,
    /// They go on by themselves.
    pub(super) endless: bool,
}

impl Scheduler {
    pub(super) fn new(dut: &Dut, queues: usize, pauses: bool) -> Self {
        let mut ports = dut.model().ports().iter();
        let port = ports.find(|port| port.name == "order").unwrap();
        let order_fields = ["qpn", "bytes", "pushes", "idle"].map(|name| {
            let field = port.fields.iter().find(|field| field.path == name);
            field.unwrap().clone()
        });
        Self {
            order_valid: dut.input("order_valid").unwrap(),
            order: dut.input("order").unwrap(),
            order_fields,
            m_valid: dut.output("m_valid").unwrap(),
            m_payload: dut.output("m_payload").unwrap(),
            m_ready: dut.input("m_ready").unwrap(),
            ready_now: false,
            pauses,
            blocked: false,
            orders: VecDeque::new(),
            driven: None,
            paced_valid: dut.output("paced_valid").unwrap(),
            paced_qpn: dut.output("paced_qpn").unwrap(),
            paced: dut.output("paced").unwrap(),
            gap: dut.output("gap").unwrap(),
            span: dut.output("span").unwrap(),
            rates: VecDeque::new(),
            queues: vec![Queue::default(); queues],
            grants: BTreeMap::new(),
            asks: false,
            asking: BTreeSet::new(),
            size: 1024,
            latency: 300,
            late: SLOT + 80,
            endless: true,
        }
    }

    pub(super) fn push(&mut self, qpn: u16, bytes: u32, pushes: bool) {
        self.orders.push_back(Order {
            qpn,
            bytes,
            pushes,
            idle: bytes == 0,
        });
    }
}

impl Agent for Scheduler {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        self.ready_now = !self.blocked && (!self.pauses || rng.u8(..4) == 0);
        dut.set(self.m_ready, self.ready_now.into());
        self.driven = self.orders.pop_front();
        dut.set(self.order_valid, self.driven.is_some().into());
        if let Some(order) = self.driven {
            let (qpn, bytes) = (u64::from(order.qpn), u64::from(order.bytes));
            let values = [qpn, bytes, order.pushes.into(), order.idle.into()];
            let fields = self.order_fields.iter().zip(values);
            let order = fields.fold(0, |order, (field, value)| order | value << field.offset);
            dut.set(self.order, order);
        }
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        // one belongs to the other in every cycle
        let (gap, span) = (dut.get(self.gap), dut.get(self.span));
        if span != span_of(gap) {
            return Err(format!("a gap of {gap} has the span {span}"));
        }
        if dut.is_set(self.paced_valid) {
            let qpn = dut.get(self.paced_qpn) as usize;
            let rate = self.rates.pop_front().expect("a rate update");
            // a byte at 1 Mb/s takes 2000 cycles
            if gap != rate.map_or(0, |rate| (2000 << 20) / u64::from(rate)) {
                return Err(format!("queue pair {qpn} has a gap of {gap} at {rate:?}"));
            }
            if dut.is_set(self.paced) != rate.is_some() {
                return Err(format!("queue pair {qpn} has the rate {rate:?}"));
            }
            // compared four cycles later
            let queue = &mut self.queues[qpn];
            let compared = cycle + 4;
            // an order on its way counts before or after the rate
            queue.unsure |= queue.pace.next().abs_diff(compared) < 12;
            queue.unsure |= queue.ordered > 0 && compared - queue.ordered < 10;
            queue.pace.set_rate(compared, rate);
            queue.since = cycle;
        }
        if let Some(order) = self.driven {
            let queue = &mut self.queues[usize::from(order.qpn)];
            queue.ordered = cycle;
            if order.bytes > 0 {
                queue.pace.grant(order.bytes);
            }
            if order.pushes {
                queue.pace.start(cycle, !order.idle);
                queue.since = cycle;
                queue.waits = true;
            }
        }
        if self.ready_now && dut.is_set(self.m_valid) {
            let qpn = dut.get(self.m_payload) as u16;
            let queue = &mut self.queues[usize::from(qpn)];
            if !std::mem::take(&mut queue.waits) {
                return Err(format!("queue pair {qpn} did not wait"));
            }
            let next = queue.pace.next();
            let range = next..=next.max(queue.since) + self.late;
            if !queue.unsure && !range.contains(&cycle) {
                return Err(format!(
                    "queue pair {qpn} starts in {cycle}, not in {range:?}"
                ));
            }
            // what it asked for beside a grant to come has been read
            if !self.grants.keys().any(|&(_, granted)| granted == qpn) {
                if queue.releases == 0 {
                    queue.first = cycle;
                } else {
                    queue.bytes += queue.burst;
                }
                queue.releases += 1;
                queue.latest = cycle;
                queue.burst = self.size.into();
                self.grants.insert((cycle + self.latency, qpn), ());
                if self.asks {
                    // any moment, but for those in which it could not be released before the grant
                    let moment = cycle * 7919 % (self.latency - 100);
                    self.asking.insert((cycle + moment, qpn));
                }
            }
        }
        while let Some(&(at, qpn)) = self.asking.first()
            && at <= cycle
        {
            self.asking.pop_first();
            self.orders.push_back(Order {
                qpn,
                bytes: 0,
                pushes: true,
                idle: false,
            });
        }
        while let Some(grant) = self.grants.first_entry()
            && grant.key().0 <= cycle
        {
            let ((_, qpn), ()) = grant.remove_entry();
            if self.endless {
                self.push(qpn, self.size, true);
            }
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        let waits = self.queues.iter().position(|queue| queue.waits)?;
        Some(format!("queue pair {waits} waits"))
    }

    fn reset(&mut self, dut: &mut Dut) {
        dut.set(self.order_valid, 0);
        dut.set(self.m_ready, 0);
    }
}
