//! Departures on their way: none is lost, those of the wire and of the loopback each keep their order.

use std::collections::VecDeque;

use ferroce_hdl::egress::passage::Passage;
use ferroce_sim::bench::Bench;

/// Requests that leave the queues behind `hold`, and that the loopback ends behind `hold_own`.
const LATE: u32 = 12;
const LATE_OWN: u32 = 2;

#[test]
fn every_request_is_reported_once() {
    let mut bench = Bench::of(Passage::default).unwrap();
    let input = |bench: &Bench, name: &str| bench.dut().input(name).unwrap();
    let output = |bench: &Bench, name: &str| bench.dut().output(name).unwrap();
    let [
        begins,
        begun,
        returns,
        queues,
        goes,
        gone,
        room,
        enters,
        passes,
    ] = [
        "started_valid",
        "started.next_psn",
        "returned",
        "queued",
        "departed.valid",
        "departed.payload.next_psn",
        "room",
        "enters",
        "passes",
    ]
    .map(|name| input(&bench, name));
    let assembling = input(&bench, "assembling");
    let [departure, hold, hold_own, valid, left, busy, level] = [
        "departure.next_psn",
        "hold",
        "hold_own",
        "left_valid",
        "left.next_psn",
        "activity.busy",
        "activity.level",
    ]
    .map(|name| output(&bench, name));
    for port in [
        begins, returns, queues, goes, room, enters, passes, assembling,
    ] {
        bench.dut_mut().set(port, 0);
    }
    bench.reset(&mut []);
    let mut path = VecDeque::new();
    let mut queue = VecDeque::new();
    // those that left by the wire and by the loopback, and are not reported
    let mut owed: [VecDeque<u64>; 2] = Default::default();
    let (mut number, mut held, mut held_own, mut had_room) = (0, 0, 0, false);
    let mut reported = [0; 2];
    let mut packets = 0_u64;
    for cycle in 0..60_000 {
        let ends = cycle > 50_000;
        // by turns much of each and little of each
        let [many_own, many_wire, slow] = [10, 11, 12].map(|bit| cycle >> bit & 1 == 1);
        let rng = bench.rng();
        let mut often = |much: bool| rng.u8(..16) < if much { 15 } else { 3 };
        let starts = !ends && path.len() < 60 && often(true);
        let mut back = !path.is_empty() && often(many_own);
        let forth = !path.is_empty() && !back && queue.len() < 900 && often(true);
        let mut leaves = !queue.is_empty() && often(many_wire);
        let takes = ends || often(!slow);
        let dut = bench.dut_mut();
        held = if dut.is_set(hold) {
            held + u32::from(leaves)
        } else {
            0
        };
        leaves &= held < LATE;
        held_own = if dut.is_set(hold_own) {
            held_own + u32::from(back)
        } else {
            0
        };
        back &= held_own < LATE_OWN;
        dut.set(begins, starts.into());
        dut.set(begun, number);
        dut.set(enters, starts.into());
        dut.set(passes, (back || forth).into());
        dut.set(returns, back.into());
        dut.set(queues, forth.into());
        dut.set(goes, leaves.into());
        dut.set(gone, queue.front().copied().unwrap_or(0));
        dut.set(room, takes.into());
        dut.settle();
        assert_eq!(dut.is_set(busy), packets > 0);
        assert!(dut.get(level) >= packets);
        if back || forth {
            assert_eq!(Some(dut.get(departure)), path.front().copied());
        }
        if dut.is_set(valid) {
            assert!(had_room);
            let report = dut.get(left);
            let from = owed.iter().position(|owed| owed.front() == Some(&report));
            let from = from.expect("a request that left, in its order");
            owed[from].pop_front();
            reported[from] += 1;
        }
        had_room = takes;
        if leaves {
            owed[0].extend(queue.pop_front());
        }
        if back {
            owed[1].extend(path.pop_front());
        }
        if forth {
            queue.extend(path.pop_front());
        }
        packets = packets + u64::from(starts) - u64::from(back || forth);
        if starts {
            path.push_back(number);
            number += 1;
        }
        bench.dut_mut().tick();
    }
    assert!(owed.iter().all(VecDeque::is_empty), "{owed:?}");
    assert!(reported.iter().all(|&count| count > 5000), "{reported:?}");
    assert_eq!(reported[0] + reported[1], number);
}
