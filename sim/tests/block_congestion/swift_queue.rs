//! The queue in front of Swift as Verilog: nothing but what is reported lost is missing, in order for each queue pair.

use std::collections::VecDeque;

use ferroce_hdl::transport::congestion::swift_queue::SwiftQueue;
use ferroce_sim::bench::{Bench, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;

use super::rig::Kind;

const QPS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Event {
    kind: u64,
    bytes: u64,
    rtt: u64,
}

/// What came of one queue pair, and what left of it.
#[derive(Default)]
struct Line {
    came: VecDeque<Event>,
    merged: u64,
}

impl Line {
    /// An event leaves: one that came, or some acknowledgements that did.
    fn leaves(&mut self, event: Event) {
        let mut all = self.came.pop_front().expect("it came");
        while event.kind == Kind::Ack as u64 && all.bytes < event.bytes {
            let next = self.came.pop_front().expect("it came");
            assert_eq!(next.kind, event.kind);
            all.bytes += next.bytes;
            if next.rtt > 0 {
                all.rtt = next.rtt;
            }
            self.merged += 1;
        }
        assert_eq!(all, event);
    }
}

/// Random events, one in `every` cycles; lost, and merged.
fn random(pauses: Pauses, every: u32) -> (u64, u64) {
    let mut bench = Bench::of(SwiftQueue::default).unwrap();
    let dut = bench.dut();
    let input = |name: &str| dut.input(name).unwrap();
    let valid = input("feedback.valid");
    let fields = ["kind", "qpn", "bytes", "rtt"].map(|f| input(&format!("feedback.payload.{f}")));
    let lost = dut.output("lost").unwrap();
    let mut resets = StreamSource::new(dut, "resets", Pauses::NONE).unwrap();
    let mut out = StreamSink::new(dut, "m", pauses).unwrap();
    bench.dut_mut().set(valid, 0);
    bench.reset(&mut [&mut resets, &mut out]);
    let mut lines: Vec<_> = (0..QPS).map(|_| Line::default()).collect();
    let (mut losses, mut in_reset) = (0, None);
    for cycle in 0..100_000_u64 {
        let rng = bench.rng();
        let mut event = None;
        if cycle < 90_000 && rng.u32(..every) == 0 {
            let qpn = rng.usize(..QPS) * rng.usize(..2);
            let kind = [Kind::Ack, Kind::Ack, Kind::Ack, Kind::Nak, Kind::Timeout][rng.usize(..5)];
            let long = rng.u8(..8) == 0;
            // a queue pair in RESET has no events
            event = (in_reset != Some(qpn)).then_some((
                qpn,
                Event {
                    kind: kind as u64,
                    bytes: rng.u64(1..if long { 1 << 24 } else { 5000 }),
                    rtt: rng.u64(..3) * rng.u64(..1 << 23),
                },
            ));
        } else if cycle < 90_000 && in_reset.is_none() && rng.u8(..100) == 0 {
            let qpn = rng.usize(..QPS);
            let item = resets.item().with("kind", Kind::Reset as u64);
            resets.push(item.with("qpn", qpn as u64));
            in_reset = Some(qpn);
            lines[qpn].came.push_back(Event {
                kind: Kind::Reset as u64,
                bytes: 0,
                rtt: 0,
            });
        }
        let dut = bench.dut_mut();
        dut.set(valid, event.is_some().into());
        if let Some((qpn, event)) = event {
            let values = [event.kind, qpn as u64, event.bytes, event.rtt];
            for (field, value) in fields.into_iter().zip(values) {
                dut.set(field, value);
            }
            lines[qpn].came.push_back(event);
        }
        bench.step(&mut [&mut resets, &mut out]).unwrap();
        if bench.dut().is_set(lost) {
            let (qpn, _) = event.expect("an event is lost");
            lines[qpn].came.pop_back();
            losses += 1;
        }
        while let Some((_, item)) = out.pop() {
            let qpn = item.get("qpn") as usize;
            let event = Event {
                kind: item.get("kind"),
                bytes: item.get("bytes"),
                rtt: item.get("rtt"),
            };
            lines[qpn].leaves(event);
            if event.kind == Kind::Reset as u64 {
                in_reset = None;
            }
        }
    }
    for line in &lines {
        assert!(line.came.is_empty(), "{:?}", line.came);
    }
    (losses, lines.iter().map(|line| line.merged).sum())
}

#[test]
fn nothing_is_lost_while_there_is_room() {
    let (losses, _) = random(Pauses::NONE, 2);
    assert_eq!(losses, 0);
}

#[test]
fn what_waits_becomes_one_and_what_finds_no_room_is_reported() {
    let (losses, merged) = random(Pauses::new(0.9, 100), 3);
    assert!(losses > 1000 && merged > 1000, "{losses}, {merged}");
}
