//! The list of completion queues with something to report, by itself.
use ferroce_hdl::queue::cq_write::reports::CqReports;
use ferroce_sim::bench::{Bench, StreamSink};
use ferroce_sim::random::Pauses;

/// Events may wait while more CQEs are written than half of their count goes round.
#[test]
fn reports_follow_however_many_cqes_were_written_meanwhile() {
    for meanwhile in [1000, 0x8000, 40_000, 0x1_0000 + 40_000] {
        let mut bench = Bench::of(CqReports::<8>::default).unwrap();
        let mut events = StreamSink::new(bench.dut(), "events", Pauses::NONE).unwrap();
        for name in ["wrote", "done", "cqn", "report", "error", "take", "found"] {
            let input = bench.dut().input(name).expect("a port");
            bench.dut_mut().set(input, 0);
        }
        let [open, eqn] = ["open", "eqn"].map(|name| bench.dut().input(name).expect("a port"));
        bench.dut_mut().set(open, 1);
        bench.dut_mut().set(eqn, 1);
        bench.reset(&mut [&mut events]);
        let input = |bench: &Bench, name| bench.dut().input(name).expect("a port");
        let mut written = 0_u64;
        // three queues have a report with their CQE; then others write, each CQE with its response a cycle later
        for cycle in 0..3 + meanwhile {
            let (report, dut) = (u64::from(cycle < 3), &mut bench);
            for (name, value) in [
                ("wrote", 1),
                ("report", report),
                ("cqn", 7 + cycle.min(2)),
                ("done", written & 0xffff),
            ] {
                let port = input(dut, name);
                dut.dut_mut().set(port, value);
            }
            written += 1;
            bench.step(&mut [&mut events]).unwrap();
        }
        let [wrote, report, done] = ["wrote", "report", "done"].map(|name| input(&bench, name));
        bench.dut_mut().set(wrote, 0);
        bench.dut_mut().set(report, 0);
        bench.dut_mut().set(done, written & 0xffff);
        // the owner takes each report that is due, and finds its queue
        let (take, found) = (input(&bench, "take"), input(&bench, "found"));
        let due = bench.dut().output("due").expect("a port");
        let mut seen = vec![];
        let mut taken = false;
        for _ in 0..200 {
            bench.dut_mut().settle();
            let is_due = bench.dut().is_set(due) && !taken;
            bench.dut_mut().set(take, is_due.into());
            bench.dut_mut().set(found, taken.into());
            taken = is_due;
            bench.step(&mut [&mut events]).unwrap();
            while let Some((_, event)) = events.pop() {
                seen.push(event.get("object"));
            }
        }
        assert_eq!(seen, [7, 8, 9], "{meanwhile} CQEs later");
        let counts = ["entered", "left"].map(|name| bench.dut().output(name).expect("a port"));
        assert_eq!(counts.map(|port| bench.dut().get(port)), [3, 3]);
    }
}
