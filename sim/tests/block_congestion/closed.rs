//! The whole reaction point: queue pairs send what the lower of the reference's rate and the host's limit lets through.

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_hdl::transport::congestion::reaction_point::ReactionPoint;
use ferroce_sim::bench::{Agent, Bench, StreamSource};
use ferroce_sim::model::congestion::{Dcqcn, Params};
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Dut, Field, Input, Output};

use super::rig::{Kind, LINE, set_params};

const QPS: usize = 16;
/// Cycles of a microsecond.
const MICROSECOND: u64 = 250;
/// Cycles from a release to its grant.
const LATENCY: u64 = 120;
/// Bytes of a grant: at the rate of the line it takes longer than the next release.
const SIZE: u32 = 16_384;

/// Send queues that never run dry.
struct Senders {
    order_valid: Input,
    order: Input,
    fields: [Field; 3],
    m_valid: Output,
    m_payload: Output,
    m_ready: Input,
    paced_valid: Output,
    paced_qpn: Output,
    paced: Output,
    limited: [bool; QPS],
    /// Grants to come: cycle, queue pair.
    grants: VecDeque<(u64, usize)>,
    /// Bytes sent.
    bytes: [u64; QPS],
    /// Order of this cycle: queue pair, bytes.
    driven: Option<(usize, u32)>,
}

impl Senders {
    fn new(dut: &Dut) -> Self {
        let mut ports = dut.model().ports().iter();
        let port = ports.find(|port| port.name == "order").unwrap();
        let fields = ["qpn", "bytes", "pushes"].map(|name| {
            let field = port.fields.iter().find(|field| field.path == name);
            field.unwrap().clone()
        });
        let output = |name: &str| dut.output(name).unwrap();
        Self {
            order_valid: dut.input("order_valid").unwrap(),
            order: dut.input("order").unwrap(),
            fields,
            m_valid: output("m_valid"),
            m_payload: output("m_payload"),
            m_ready: dut.input("m_ready").unwrap(),
            paced_valid: output("paced_valid"),
            paced_qpn: output("paced_qpn"),
            paced: output("paced"),
            limited: [false; QPS],
            grants: VecDeque::new(),
            bytes: [0; QPS],
            driven: None,
        }
    }
}

impl Agent for Senders {
    fn drive(&mut self, dut: &mut Dut, _: &mut Rng) {
        dut.set(self.m_ready, 1);
        dut.set(self.order_valid, self.driven.is_some().into());
        if let Some((qpn, bytes)) = self.driven.take() {
            let fields = self.fields.iter().zip([qpn as u64, bytes.into(), 1]);
            let order = fields.fold(0, |order, (field, value)| order | value << field.offset);
            dut.set(self.order, order);
        }
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        if dut.is_set(self.paced_valid) {
            self.limited[dut.get(self.paced_qpn) as usize] = dut.is_set(self.paced);
        }
        if dut.is_set(self.m_valid) {
            let qpn = dut.get(self.m_payload) as usize;
            self.grants.push_back((cycle + LATENCY, qpn));
        }
        Ok(())
    }

    fn pending(&self) -> Option<String> {
        None
    }

    fn reset(&mut self, dut: &mut Dut) {
        dut.set(self.order_valid, 0);
        dut.set(self.m_ready, 0);
    }
}

struct Rig {
    bench: Bench,
    events: StreamSource,
    limits: StreamSource,
    senders: Senders,
    tick: Input,
    references: Vec<Dcqcn>,
    us: u64,
}

impl Rig {
    fn new(params: Params) -> Self {
        let mut bench = Bench::of(ReactionPoint::<4, 6>::default).unwrap();
        set_params(bench.dut_mut(), &params);
        let feedback = bench.dut().input("feedback.valid").unwrap();
        bench.dut_mut().set(feedback, 0);
        let dut = bench.dut();
        let ready = dut.output("ready").unwrap();
        let mut rig = Self {
            events: StreamSource::new(dut, "events", Pauses::NONE).unwrap(),
            limits: StreamSource::new(dut, "limits", Pauses::NONE).unwrap(),
            senders: Senders::new(dut),
            tick: dut.input("tick").unwrap(),
            references: vec![Dcqcn::new(params, LINE); QPS],
            us: 0,
            bench,
        };
        rig.bench.dut_mut().set(rig.tick, 0);
        rig.bench
            .reset(&mut [&mut rig.events, &mut rig.limits, &mut rig.senders]);
        while !rig.bench.dut().is_set(ready) {
            rig.cycle(None);
        }
        // until the table of alpha is made
        for _ in 0..30_000 {
            rig.cycle(None);
        }
        rig
    }

    fn cycle(&mut self, order: Option<(usize, u32)>) {
        self.senders.driven = order;
        let agents: &mut [&mut dyn Agent] =
            &mut [&mut self.events, &mut self.limits, &mut self.senders];
        if let Err(failure) = self.bench.step(agents) {
            panic!("{failure}");
        }
    }

    /// An event, for the reference too.
    fn event(&mut self, kind: Kind, qpn: usize, bytes: u32) {
        let item = self.events.item().with("kind", kind as u64);
        let item = item.with("qpn", qpn as u64).with("bytes", bytes.into());
        self.events.push(item);
        let now = self.us * 1000;
        match kind {
            Kind::Cnp => self.references[qpn].on_cnp(now),
            _ => self.references[qpn].on_sent(now, bytes),
        }
    }

    fn limit(&mut self, qpn: usize, mbps: u32) {
        let item = self.limits.item().with("qpn", qpn as u64);
        self.limits
            .push(item.with("limited", 1).with("rate", mbps.into()));
    }

    /// A microsecond: what is due is granted.
    fn microsecond(&mut self) {
        for cycle in 0..MICROSECOND {
            let now = self.bench.cycle();
            let due = self
                .senders
                .grants
                .front()
                .is_some_and(|&(at, _)| at <= now);
            let grant = due.then(|| self.senders.grants.pop_front().unwrap().1);
            self.bench
                .dut_mut()
                .set(self.tick, (cycle + 1 == MICROSECOND).into());
            self.cycle(grant.map(|qpn| (qpn, SIZE)));
            if let Some(qpn) = grant {
                self.senders.bytes[qpn] += u64::from(SIZE);
                self.event(Kind::Sent, qpn, SIZE);
            }
        }
        self.us += 1;
        for reference in &mut self.references {
            reference.advance(self.us * 1000);
        }
    }
}

#[test]
fn each_sends_what_the_lower_rate_lets_through() {
    const MICROSECONDS: usize = 4000;
    let params = Params {
        rpg_min_rate: 100,
        rpg_ai_rate: 100,
        rpg_hai_rate: 1000,
        ..Params::default()
    };
    let mut rig = Rig::new(params);
    // half of them have limits, some above what congestion leaves, some below
    let limits: Vec<_> = (0..QPS as u32)
        .map(|qpn| if qpn % 2 == 0 { LINE } else { 300 << (qpn / 2) })
        .collect();
    for (qpn, &limit) in limits.iter().enumerate() {
        if limit < LINE {
            rig.limit(qpn, limit);
        }
    }
    for _ in 0..40 {
        for qpn in 0..QPS {
            rig.event(Kind::Cnp, qpn, 0);
        }
        rig.microsecond();
    }
    assert_eq!(rig.senders.limited, [true; QPS]);
    let mut orders: VecDeque<_> = (0..QPS).collect();
    while let Some(qpn) = orders.pop_front() {
        rig.cycle(Some((qpn, 0)));
    }
    let mut allowed = [0.0; QPS];
    for at in 0..MICROSECONDS {
        // congestion comes and goes; each queue pair has more of it than the one before
        for qpn in 0..QPS {
            if at % 1000 < 500 && at % (400 / (qpn + 1)) == 0 {
                rig.event(Kind::Cnp, qpn, 0);
            }
        }
        rig.microsecond();
        for (qpn, allowed) in allowed.iter_mut().enumerate() {
            let rate = rig.references[qpn].rate_mbps().min(limits[qpn]);
            // Mb/s for a microsecond are bits
            *allowed += f64::from(rate) / 8.0;
        }
    }
    for (qpn, allowed) in allowed.into_iter().enumerate() {
        let sent = rig.senders.bytes[qpn] as f64;
        // the first grant leaves at once, the last one is not over, and one that waits is planned with the rate at its end alone
        let margin = 3.0 * f64::from(SIZE) + allowed * 0.02;
        assert!(
            (sent - allowed).abs() < margin,
            "queue pair {qpn}: {sent} bytes, {allowed:.0} allowed"
        );
    }
    // they had different rates
    let (low, high) = (
        rig.senders.bytes.iter().min(),
        rig.senders.bytes.iter().max(),
    );
    assert!(high > low.map(|low| low * 4).as_ref());
}
