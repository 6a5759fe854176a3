//! Many queue pairs that wait for their rate, with a stand-in for their turns.

use std::collections::VecDeque;

use ferroce_hdl::transport::responder::reply::pace::ReplyPace;
use ferroce_sim::bench::{Agent, Bench, StreamSink};
use ferroce_sim::random::Pauses;

use super::rig::rate_bits;

/// Cycles from the start of a turn to its end, and from there until its queue pair is listed again.
const TURN: u64 = 100;
const AGAIN: u64 = 12;

/// Bytes that queue pair 0 sends in `cycles` at `mbps`, beside `others` at 1 Mb/s.
fn sent_beside(others: u64, mbps: u64, cycles: u64) -> u64 {
    let mut bench = Bench::of(ReplyPace::<8>::default).expect("the block builds");
    let mut m = StreamSink::new(bench.dut(), "m", Pauses::NONE).expect("a stream out");
    let inputs = ["rate", "sent", "ahead_qpn", "listed", "qpn", "runs"];
    let [rate, sent, ahead, listed, qpn, runs] = inputs.map(|n| bench.dut().input(n).unwrap());
    for input in [rate, sent, listed] {
        bench.dut_mut().set(input, 0);
    }
    bench.dut_mut().set(runs, 1);
    bench.reset(&mut [&mut m]);
    let step = |bench: &mut Bench, m: &mut StreamSink| {
        let mut agents: [&mut dyn Agent; 1] = [m];
        let result = bench.step(&mut agents);
        result.unwrap_or_else(|failure| panic!("{failure}"));
    };
    for _ in 0..300 {
        step(&mut bench, &mut m);
    }
    for number in 0..=others {
        let mbps = if number == 0 { mbps } else { 1 };
        bench.dut_mut().set(rate, rate_bits(number as u32, mbps));
        step(&mut bench, &mut m);
    }
    bench.dut_mut().set(rate, 0);
    let mut lists: VecDeque<(u64, u64)> = (0..=others).map(|q| (10 + q, q)).collect();
    let mut ends: VecDeque<(u64, u64, u64)> = VecDeque::new();
    let mut total = 0;
    for now in 0..cycles {
        let dut = bench.dut_mut();
        let next = lists.iter().find(|list| list.0 == now + 2);
        dut.set(ahead, next.map_or(0, |list| list.1));
        let due = lists.front().filter(|list| list.0 == now).copied();
        dut.set(listed, due.is_some().into());
        dut.set(qpn, due.map_or(0, |list| list.1));
        if due.is_some() {
            lists.pop_front();
        }
        let end = ends.front().filter(|end| end.0 <= now).copied();
        dut.set(
            sent,
            end.map_or(0, |(_, q, bytes)| 1 << 33 | bytes << 16 | q),
        );
        if let Some((_, q, bytes)) = end {
            ends.pop_front();
            total += if q == 0 { bytes } else { 0 };
            let after = lists.back().map_or(0, |list| list.0 + 1);
            lists.push_back((after.max(now + AGAIN), q));
        }
        step(&mut bench, &mut m);
        while let Some((_, item)) = m.pop() {
            assert_eq!(item.get("alone"), 0);
            let packets = ((1 << item.get("log_bytes")) / 1024).max(1);
            ends.push_back((now + TURN, item.get("qpn"), packets * 1088));
        }
    }
    total
}

#[test]
fn those_that_wait_take_nothing_from_a_fast_one() {
    for others in [0, 64, 128, 255] {
        let (mbps, cycles) = (25_000, 400_000);
        let sent = sent_beside(others, mbps, cycles);
        let expected = cycles * mbps / 2000;
        println!("{others} others: {sent} bytes, expected {expected}");
        assert!(
            sent.abs_diff(expected) < expected / 100,
            "{others} others: {sent}"
        );
    }
}
