//! The timers by themselves: how long a requester waits after an RNR NAK.

use ferroce_hdl::transport::requester::timer::Timer;
use ferroce_proto::wire::aeth::RNR_TIMER_NS;
use ferroce_sim::bench::{Bench, StreamSink};
use ferroce_sim::random::Pauses;

/// Log2 of the queue pairs: one for each code.
const Q: usize = 5;
/// Nanoseconds of a cycle at 250 MHz.
const CYCLE_NS: u64 = 4;
/// Cycles of a tick.
const TICK: u64 = 256;
/// Cycles of the run: the times of codes 1 to 12 end in it.
const CYCLES: u64 = 165_000;

/// Not less than its code says (IB1 9.7.5), and not much longer; all codes at once.
#[test]
fn each_rnr_code_has_its_time() {
    let mut bench = Bench::of(Timer::<Q>::default).unwrap();
    let mut ends = StreamSink::new(bench.dut(), "m", Pauses::NONE).unwrap();
    let set = |bench: &mut Bench, name: &str, value: u64| {
        let input = bench.dut().input(name).unwrap();
        bench.dut_mut().set(input, value);
    };
    for (name, value) in [
        ("order_valid", 0),
        ("order.on", 1),
        ("order.generation", 2),
        ("order.rnr", 1),
    ] {
        set(&mut bench, name, value);
    }
    bench.reset(&mut [&mut ends]);
    // the sweep
    bench.run(&mut [&mut ends], 2 << Q).unwrap();
    assert_eq!(ends.count(), 0, "none was set");
    set(&mut bench, "order_valid", 1);
    let mut begun = [0; 1 << Q];
    for (code, begun) in (0..).zip(&mut begun) {
        set(&mut bench, "order.qpn", code);
        set(&mut bench, "order.code", code);
        *begun = bench.cycle();
        bench.run(&mut [&mut ends], 1).unwrap();
    }
    set(&mut bench, "order_valid", 0);
    let mut lasted = [None; 1 << Q];
    for _ in 0..CYCLES {
        bench.run(&mut [&mut ends], 1).unwrap();
        // again on every walk
        while let Some((cycle, end)) = ends.pop() {
            assert_eq!(end.get("generation"), 2);
            let qpn = end.get("qpn") as usize;
            lasted[qpn].get_or_insert(cycle - begun[qpn]);
        }
    }
    for (code, ns) in RNR_TIMER_NS.into_iter().enumerate() {
        let least = u64::from(ns) / CYCLE_NS;
        // rounded up to ticks behind the one that runs; then a walk, and the way out
        let most = least.next_multiple_of(TICK) + TICK + (1 << Q) + 10;
        match lasted[code] {
            Some(cycles) => assert!(
                (least..=most).contains(&cycles),
                "code {code}: {cycles} cycles of {least}"
            ),
            None => assert!(least > CYCLES, "code {code} does not end"),
        }
    }
}
