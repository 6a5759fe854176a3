//! Packets of send queues that went back: dropped by the segmenter, and by the filter behind it.

use ferroce_hdl::transport::requester::recall_filter::RecallFilter;
use ferroce_proto::abi::wqe::opcode;
use ferroce_sim::bench::{Agent, Bench, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;

use super::setup::{Plan, Setup};
use super::work::{Work, sge};
use super::{steady, whole};

/// Packets of 256 bytes of the long messages.
const PACKETS: u32 = 200;

fn long(qpn: u16, pieces: u32) -> Work {
    let part = PACKETS / pieces * 256;
    let list: Vec<_> = (0..pieces)
        .map(|n| sge(0x10_0000 * u64::from(n), part))
        .collect();
    Work::new(qpn, opcode::WRITE, &list)
}

fn send(setup: &mut Setup, work: Work) {
    let plan = whole(&work);
    setup.post(work, plan);
}

#[test]
fn what_was_granted_in_another_round_is_dropped() {
    for pauses in [Pauses::NONE, Pauses::new(0.3, 12)] {
        let mut setup = Setup::new(pauses);
        for _ in 0..20 {
            send(&mut setup, long(0, 1));
            for pieces in [1, 10, 2] {
                setup.post(long(0, pieces), Plan::Stale);
            }
            send(&mut setup, long(5, 4));
            // the other side of the queue pair hears of it once
            let read = Work::new(0, opcode::READ, &[sge(0x1000, 5000)]);
            setup.post(read, Plan::Stale);
            send(&mut setup, Work::inline(0, opcode::SEND, 30));
        }
        setup.finish();
    }
}

#[test]
fn a_message_ends_at_the_packet_in_which_its_send_queue_goes_back() {
    for (pieces, sent) in [(1, 1), (1, 20), (8, 99), (10, 33)] {
        let mut setup = steady();
        send(&mut setup, long(0, pieces));
        for _ in 0..1000 {
            if setup.sent < sent {
                setup.step();
            }
        }
        assert_eq!(setup.sent, sent, "packets that left");
        setup.recall(0);
        setup.run(10);
        let dropped = setup.packets.len();
        assert!(dropped > PACKETS as usize - sent - 10, "{dropped} dropped");
        assert_eq!(setup.pieces.len(), dropped, "a piece a packet");
        setup.packets.clear();
        setup.pieces.clear();
        send(&mut setup, long(0, pieces));
        send(&mut setup, long(5, 1));
        setup.finish();
    }
}

#[test]
fn another_queue_pair_that_goes_back_changes_nothing() {
    let mut setup = steady();
    for _ in 0..10 {
        send(&mut setup, long(0, 3));
        setup.run(50);
        setup.recall(5);
    }
    setup.finish();
}

/// Queue pairs of the filter, as a power of two.
const Q: usize = 4;

#[test]
fn the_filter_passes_packets_of_the_round() {
    for pauses in [Pauses::NONE, Pauses::new(0.4, 9)] {
        let mut bench = Bench::of(RecallFilter::<Q, 3>::default).unwrap();
        let dut = bench.dut();
        let mut s = StreamSource::new(dut, "s", pauses).unwrap();
        let mut m = StreamSink::new(dut, "m", pauses).unwrap();
        let mut payload = StreamSink::new(dut, "payload", pauses).unwrap();
        bench.reset(&mut [&mut s, &mut m, &mut payload]);
        for turn in 0..20 {
            let rounds: Vec<u64> = (0..1 << Q).map(|_| bench.rng().u64(..4)).collect();
            for (qpn, round) in rounds.iter().enumerate() {
                let dut = bench.dut_mut();
                dut.set(dut.input("recall_valid").unwrap(), 1);
                dut.set(dut.input("recall.qpn").unwrap(), qpn as u64);
                dut.set(dut.input("recall.round").unwrap(), *round);
                let mut agents: [&mut dyn Agent; 3] = [&mut s, &mut m, &mut payload];
                bench.step(&mut agents).unwrap();
            }
            let dut = bench.dut_mut();
            dut.set(dut.input("recall_valid").unwrap(), 0);
            for number in 0..100 {
                let (qpn, round) = (bench.rng().usize(..1 << Q), bench.rng().u64(..4));
                let plen = [0, 1, 4096][bench.rng().usize(..3)];
                let item = s.item().with("qpn", qpn as u64).with("plen", plen);
                let item = item.with("round", round).with("psn", 100 * turn + number);
                let passes = round == rounds[qpn];
                if plen > 0 {
                    payload.expect(payload.item().with("payload", passes.into()));
                }
                if passes {
                    m.expect(item.clone());
                }
                s.push(item);
            }
            let mut agents: [&mut dyn Agent; 3] = [&mut s, &mut m, &mut payload];
            bench.finish(&mut agents, 4000).unwrap();
        }
    }
}
