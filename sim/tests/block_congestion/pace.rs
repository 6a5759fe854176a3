//! The calendar as Verilog: no start before its time, none much later, every rate kept, whatever changes.

mod scheduler;

use fastrand::Rng;
use ferroce_hdl::transport::congestion::calendar::Calendar;
use ferroce_sim::bench::{Agent, Bench, Item, StreamSource};
use ferroce_sim::random::Pauses;

use scheduler::Scheduler;

/// Cycles of a slot.
const SLOT: u64 = 64;

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

/// The scheduler compares the gap of each with its rate, and the span with the gap.
#[test]
fn gap_and_span_of_rates_of_20_bits() {
    let mut rig = Rig::new::<4, 4>(false);
    for log in 0..20 {
        let least = 1_u32 << log;
        let between = rig.bench.rng().u32(least..2 * least);
        for rate in [least, between, 2 * least - 1] {
            rig.set_rate(3, Some(rate));
        }
    }
    rig.set_rate(3, None);
}

#[test]
fn sixteen_rates_of_all_sizes() {
    keeps::<4, 6>(8192, 400_000);
}

/// An acknowledgement or a doorbell has a queue pair ask again while its WQE is read: that takes nothing of its rate.
#[test]
fn asking_beside_a_grant_costs_no_time() {
    let mut rig = Rig::new::<4, 6>(false);
    rig.scheduler.size = 4096;
    rig.scheduler.asks = true;
    for qpn in 0..4 {
        // a grant in 630 to 820 cycles
        rig.set_rate(qpn, Some(10_000 + 1000 * u32::from(qpn)));
        rig.scheduler.push(qpn, 0, true);
    }
    rig.run(100_000);
    for (queue, rate) in rig.scheduler.queues[..4].iter().zip((10..).map(f64::from)) {
        let seen = queue.bytes as f64 * 2.0 / (queue.latest - queue.first) as f64;
        assert!(
            (0.99..1.01).contains(&(seen / rate)),
            "{seen} at {rate} Gb/s"
        );
    }
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

#[test]
fn orders_wait_while_no_start_is_taken() {
    const QUEUE_PAIRS: u16 = 64;
    const BLOCKED: u64 = 1000;
    let mut rig = Rig::new::<6, 6>(false);
    rig.scheduler.endless = false;
    rig.scheduler.late += BLOCKED + u64::from(QUEUE_PAIRS);
    rig.scheduler.blocked = true;
    for qpn in 0..QUEUE_PAIRS {
        rig.scheduler.push(qpn, 0, true);
    }
    rig.run(BLOCKED);
    rig.scheduler.blocked = false;
    rig.run(1000);
    assert!(rig.scheduler.queues.iter().all(|queue| queue.releases == 1));
}

/// Grants in consecutive cycles; whether 32 of them wait at once.
fn crowds(rig: &mut Rig, grants: impl Iterator<Item = (u16, u32)>) -> bool {
    let crowded = rig.bench.dut().output("crowded").unwrap();
    for (qpn, bytes) in grants {
        rig.scheduler.push(qpn, bytes, false);
    }
    let mut crowds = false;
    while !rig.scheduler.orders.is_empty() {
        rig.cycle();
        crowds |= rig.bench.dut().is_set(crowded);
    }
    crowds
}

/// However many come one behind the other, of any size, each byte of them counts. Those of two queue pairs in turns wait one by one.
#[test]
fn grants_of_one_queue_pair_wait_as_one() {
    // about half of the largest that an order can say, 2^17 - 1
    const LARGE: [u32; 8] = [131_071, 1, 65_535, 65_535, 65_536, 65_535, 131_071, 65_535];
    let mut rig = Rig::new::<4, 6>(false);
    rig.scheduler.endless = false;
    rig.set_rate(7, Some(100_000));
    for grants in [vec![200; 500], LARGE.to_vec()] {
        rig.scheduler.push(7, 0, true);
        rig.run(200);
        assert!(!rig.scheduler.queues[7].waits);
        let grants = grants.into_iter().map(|bytes| (7, bytes));
        assert!(!crowds(&mut rig, grants));
        rig.run(20);
        rig.scheduler.push(7, 0, true);
        let next = rig.scheduler.queues[7].pace.next();
        rig.run(next - rig.bench.cycle());
        assert!(rig.scheduler.queues[7].waits);
        rig.run(SLOT + 100);
        assert!(!rig.scheduler.queues[7].waits);
    }
    assert!(crowds(&mut rig, (0..60).map(|i| (7 + i % 2, 100))));
}
