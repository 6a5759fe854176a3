//! The calendar as Verilog: no start before its time, none much later, every rate kept, whatever changes.

use std::collections::{BTreeMap, VecDeque};

use fastrand::Rng;
use ferroce_hdl::transport::congestion::calendar::Calendar;
use ferroce_sim::bench::{Agent, Bench, Item, StreamSource};
use ferroce_sim::model::congestion::Pace;
use ferroce_sim::random::Pauses;
use ferroce_sim::verilator::{Dut, Field, Input, Output};

/// Cycles of a slot.
const SLOT: u64 = 64;

/// A queue pair as its scheduler sees it.
#[derive(Clone, Copy, Default)]
struct Queue {
    pace: Pace,
    /// It wants to start.
    waits: bool,
    /// When it wanted to, or its rate changed.
    since: u64,
    /// A start that came when its rate changed: it may have moved or not.
    unsure: bool,
    /// Cycle of the latest order.
    ordered: u64,
    releases: u64,
    first: u64,
    latest: u64,
    bytes: u64,
    burst: u64,
}

/// Scheduler and send queues around the calendar: orders in, queue pairs that may start out.
struct Scheduler {
    order_valid: Input,
    order: Input,
    order_fields: [Field; 3],
    m_valid: Output,
    m_payload: Output,
    m_ready: Input,
    ready_now: bool,
    /// Releases are held up now and then.
    pauses: bool,
    orders: VecDeque<(u16, u32, bool)>,
    driven: Option<(u16, u32, bool)>,
    paced_valid: Output,
    paced_qpn: Output,
    paced: Output,
    /// Rates on their way.
    rates: VecDeque<Option<u32>>,
    queues: Vec<Queue>,
    /// Grants to come: cycle, queue pair.
    grants: BTreeMap<(u64, u16), ()>,
    /// Bytes of a grant.
    size: u32,
    /// Cycles from a release to its grant, at most.
    latency: u64,
    /// Cycles that a release may be late.
    late: u64,
    /// They go on by themselves.
    endless: bool,
}

impl Scheduler {
    fn new(dut: &Dut, queues: usize, pauses: bool) -> Self {
        let mut ports = dut.model().ports().iter();
        let port = ports.find(|port| port.name == "order").unwrap();
        let order_fields = ["qpn", "bytes", "pushes"].map(|name| {
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
            orders: VecDeque::new(),
            driven: None,
            paced_valid: dut.output("paced_valid").unwrap(),
            paced_qpn: dut.output("paced_qpn").unwrap(),
            paced: dut.output("paced").unwrap(),
            rates: VecDeque::new(),
            queues: vec![Queue::default(); queues],
            grants: BTreeMap::new(),
            size: 1024,
            latency: 300,
            late: SLOT + 80,
            endless: true,
        }
    }

    fn push(&mut self, qpn: u16, bytes: u32, pushes: bool) {
        self.orders.push_back((qpn, bytes, pushes));
    }
}

impl Agent for Scheduler {
    fn drive(&mut self, dut: &mut Dut, rng: &mut Rng) {
        self.ready_now = !self.pauses || rng.u8(..4) == 0;
        dut.set(self.m_ready, self.ready_now.into());
        self.driven = self.orders.pop_front();
        dut.set(self.order_valid, self.driven.is_some().into());
        if let Some((qpn, bytes, pushes)) = self.driven {
            let values = [u64::from(qpn), bytes.into(), pushes.into()];
            let fields = self.order_fields.iter().zip(values);
            let order = fields.fold(0, |order, (field, value)| order | value << field.offset);
            dut.set(self.order, order);
        }
    }

    fn observe(&mut self, dut: &Dut, cycle: u64) -> Result<(), String> {
        if dut.is_set(self.paced_valid) {
            let qpn = dut.get(self.paced_qpn) as usize;
            let rate = self.rates.pop_front().expect("a rate update");
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
        if let Some((qpn, bytes, pushes)) = self.driven {
            let queue = &mut self.queues[usize::from(qpn)];
            queue.ordered = cycle;
            if bytes > 0 {
                queue.pace.grant(bytes);
            }
            if pushes {
                queue.pace.start(cycle, bytes > 0);
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
            if queue.releases == 0 {
                queue.first = cycle;
            } else {
                queue.bytes += queue.burst;
            }
            queue.releases += 1;
            queue.latest = cycle;
            queue.burst = self.size.into();
            self.grants.insert((cycle + self.latency, qpn), ());
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

struct Rig {
    bench: Bench,
    updates: StreamSource,
    scheduler: Scheduler,
}

impl Rig {
    fn new<const Q: usize, const W: usize>(pauses: bool) -> Self {
        let mut bench = Bench::of(Calendar::<Q, W>::default).unwrap();
        let dut = bench.dut();
        let mut updates = StreamSource::new(dut, "s", Pauses::NONE).unwrap();
        let mut scheduler = Scheduler::new(dut, 1 << Q, pauses);
        let ready = dut.output("ready").unwrap();
        bench.reset(&mut [&mut updates, &mut scheduler]);
        let mut rig = Self {
            bench,
            updates,
            scheduler,
        };
        rig.run((1 << Q) + (1 << W) + 10);
        assert!(rig.bench.dut().is_set(ready));
        rig
    }

    fn cycle(&mut self) {
        let agents: &mut [&mut dyn Agent] = &mut [&mut self.updates, &mut self.scheduler];
        if let Err(failure) = self.bench.step(agents) {
            panic!("{failure}");
        }
    }

    fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.cycle();
        }
    }

    /// A rate update, and the cycles until it counts.
    fn set_rate(&mut self, qpn: u16, mbps: Option<u32>) {
        let item: Item = self.updates.item();
        let item = item
            .with("qpn", qpn.into())
            .with("limited", mbps.is_some().into())
            .with("rate", mbps.unwrap_or(100_000).into());
        self.updates.push(item);
        self.scheduler.rates.push_back(mbps);
        while !self.scheduler.rates.is_empty() {
            self.cycle();
        }
    }
}

/// Rates at random whose sum is that of the line, 100 Gb/s.
fn rates(rng: &mut Rng, count: usize) -> Vec<u32> {
    let weights: Vec<_> = (0..count).map(|_| 1.0 + 9.0 * rng.f64().powi(2)).collect();
    let sum: f64 = weights.iter().sum();
    let mut left = 0.0;
    let mut rate = |weight: &f64| {
        left += weight / sum * 1e5;
        let whole = f64::floor(left);
        left -= whole;
        whole as u32
    };
    weights.iter().map(&mut rate).collect()
}

/// Each of all queue pairs within 1 % of its rate, their sum within 1 % of the line's.
fn keeps<const Q: usize, const W: usize>(size: u32, cycles: u64) {
    let mut rig = Rig::new::<Q, W>(false);
    rig.scheduler.size = size;
    // of so many some 20 are due, or looked at, in a slot
    rig.scheduler.late = 2 * SLOT + 200;
    let rates = rates(rig.bench.rng(), 1 << Q);
    for (qpn, &rate) in rates.iter().enumerate() {
        rig.set_rate(qpn as u16, Some(rate));
    }
    for qpn in 0..1 << Q {
        // not all at once
        rig.scheduler.push(qpn, 0, true);
        rig.run(25);
    }
    let releases = |rig: &Rig| -> u64 { rig.scheduler.queues.iter().map(|q| q.releases).sum() };
    rig.run(cycles / 4);
    let before = releases(&rig);
    let count = cycles - cycles / 4;
    rig.run(count);
    let bytes = (releases(&rig) - before) * u64::from(size);
    let sum = bytes as f64 * 2000.0 / count as f64;
    println!("2^{Q} queue pairs: {sum:.0} Mb/s");
    assert!((99_000.0..101_000.0).contains(&sum));
    for (queue, &rate) in rig.scheduler.queues.iter().zip(&rates) {
        assert!(queue.releases > 2, "{} starts at {rate}", queue.releases);
        // a byte a cycle are 2000 Mb/s
        let seen = queue.bytes as f64 * 2000.0 / (queue.latest - queue.first) as f64;
        let ratio = seen / f64::from(rate);
        assert!((0.99..1.01).contains(&ratio), "{seen} at {rate}");
    }
}

#[test]
fn sixteen_rates_of_all_sizes() {
    keeps::<4, 6>(8192, 400_000);
}

#[test]
fn the_largest_build_keeps_every_rate() {
    keeps::<14, 10>(1024, 6_000_000);
}

#[test]
fn a_planned_start_moves_with_the_rate() {
    const TURN: u64 = 64 * SLOT;
    let mut rig = Rig::new::<6, 6>(false);
    rig.scheduler.endless = false;
    // 4 KB at 1 Mb/s: 33 ms; the rate rises, and it starts a turn of the wheel later at most
    for (qpn, rate) in [(1, Some(10_000)), (2, None), (3, Some(2))] {
        rig.set_rate(qpn, Some(1));
        rig.run(100);
        rig.scheduler.push(qpn, 4096, true);
        rig.run(5000);
        let queue = &rig.scheduler.queues[usize::from(qpn)];
        assert!(queue.waits && queue.pace.next() > rig.bench.cycle() + 8_000_000);
        rig.set_rate(qpn, rate);
        rig.scheduler.late = TURN + 100;
        rig.run(TURN + 200);
        let waits = rig.scheduler.queues[usize::from(qpn)].waits;
        assert_eq!(waits, rate == Some(2), "queue pair {qpn}");
        rig.scheduler.late = SLOT + 80;
    }
    // at half the rate of before the start is twice as far
    let next = rig.scheduler.queues[3].pace.next();
    assert!(next < rig.bench.cycle() + 4_200_000);
    // 4 KB at 10 Gb/s: 819 cycles; at 100 Mb/s 81920
    rig.set_rate(4, Some(10_000));
    rig.scheduler.push(4, 0, true);
    rig.run(200);
    rig.scheduler.push(4, 4096, true);
    let from = rig.bench.cycle();
    rig.run(10);
    rig.set_rate(4, Some(100));
    let next = rig.scheduler.queues[4].pace.next();
    assert!((81_700..81_760).contains(&(next - from)), "{}", next - from);
    rig.run(82_100);
    assert!(!rig.scheduler.queues[4].waits);
}

#[test]
fn idle_time_is_no_credit() {
    let mut rig = Rig::new::<4, 4>(false);
    rig.scheduler.endless = false;
    rig.set_rate(7, Some(1000));
    rig.run(50_000);
    // at once, and the one behind it 2048 cycles after the grant
    rig.scheduler.push(7, 0, true);
    rig.run(20);
    assert!(!rig.scheduler.queues[7].waits);
    let from = rig.bench.cycle();
    rig.scheduler.push(7, 1024, true);
    rig.run(1900);
    assert!(rig.scheduler.queues[7].waits);
    rig.run(300);
    assert!(!rig.scheduler.queues[7].waits);
    let next = rig.scheduler.queues[7].pace.next();
    assert!(next - from < 2048, "it was released before");
    // late, but in its schedule: three grants that come together are planned one behind the other
    for _ in 0..3 {
        rig.scheduler.push(7, 1024, false);
        rig.run(10);
    }
    let after = rig.scheduler.queues[7].pace.next();
    assert_eq!(after - next, 3 * 2048);
    rig.scheduler.push(7, 0, true);
    rig.run(after - rig.bench.cycle() - 10);
    assert!(rig.scheduler.queues[7].waits);
    rig.run(SLOT + 30);
    assert!(!rig.scheduler.queues[7].waits);
}

/// Queue pairs come and go, rates change all the time, releases are held up.
#[test]
fn rates_that_change_at_random() {
    for (pauses, late) in [(false, 0), (true, 1000)] {
        let mut rig = Rig::new::<6, 6>(pauses);
        rig.scheduler.late = 64 * SLOT + 200 + late;
        rig.scheduler.size = 700;
        for qpn in 0..64 {
            rig.set_rate(qpn, Some(1000));
            rig.scheduler.push(qpn, 64, true);
        }
        for _ in 0..3000 {
            let rng = rig.bench.rng();
            let (qpn, cycles) = (rng.u16(..64), rng.u64(..300));
            let rate = [rng.u32(1..100), rng.u32(1..100_000)][rng.usize(..2)];
            let rate = (rng.u8(..10) > 0).then_some(rate);
            rig.run(cycles);
            rig.set_rate(qpn, rate);
        }
        let unsure = rig.scheduler.queues.iter().filter(|queue| queue.unsure);
        let unsure = unsure.count();
        assert!(
            unsure < 32,
            "{unsure} of 64 could not be compared to the end"
        );
        // all of them go on
        for qpn in 0..64 {
            rig.set_rate(qpn, Some(50_000));
        }
        let before = rig.scheduler.queues.clone();
        rig.run(10_000);
        for (queue, before) in rig.scheduler.queues.iter().zip(before) {
            assert!(queue.releases > before.releases + 4);
        }
    }
}

/// All are due at once: one leaves every second cycle.
#[test]
fn a_release_in_two_cycles() {
    let mut rig = Rig::new::<9, 6>(false);
    rig.scheduler.endless = false;
    rig.scheduler.late = 1200;
    for qpn in 0..512 {
        rig.set_rate(qpn, Some(1000));
    }
    for qpn in 0..512 {
        // all start in one slot
        rig.scheduler.push(qpn, 3000 - u32::from(qpn) / 2, true);
    }
    rig.run(600);
    let waiting = |rig: &Rig| rig.scheduler.queues.iter().filter(|q| q.waits).count();
    while waiting(&rig) == 512 {
        rig.cycle();
    }
    let first = rig.bench.cycle();
    while waiting(&rig) > 0 {
        rig.cycle();
    }
    let cycles = rig.bench.cycle() - first;
    assert!(cycles < 512 * 2 + 100, "{cycles} cycles");
}
