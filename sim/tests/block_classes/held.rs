//! Queue pairs whose class stays closed try again, one after the other.

use std::collections::VecDeque;

use ferroce_hdl::egress::held_queues::HeldQueues;
use ferroce_sim::bench::Bench;

use crate::gate::{get, set};

/// Cycles from one that tries to the next.
const TICK: u64 = 4096;
/// Cycles in which one that is refused is back.
const BACK: u64 = 50;

/// Cycles from one that leaves to the next, less one.
const APART: u64 = 16;
/// The same of those that need much room.
const APART_LONG: u64 = 128;

/// Lists of 2^Q whose first class is closed.
fn bench<const Q: usize>() -> Bench {
    let mut bench = Bench::of(HeldQueues::<Q>::default).unwrap();
    for name in ["push", "qpn", "packet_class", "short"] {
        set(&mut bench, name, 0);
    }
    for name in ["closed", "closed_short", "m_ready"] {
        set(&mut bench, name, 1);
    }
    set(&mut bench, "apart", APART);
    set(&mut bench, "apart_long", APART_LONG);
    bench.reset(&mut []);
    bench
}

/// So many wait in lists of 2^Q.
fn try_again<const Q: usize>(counts: &[u64]) {
    for &count in counts {
        let mut bench = bench::<Q>();
        let mut due: Vec<(u64, u64)> = (0..count).map(|qpn| (qpn, qpn)).collect();
        let mut tries = vec![0; count as usize];
        for now in 0..3 * TICK * (count + 2) {
            let back = due.iter().position(|&(time, _)| time <= now);
            set(&mut bench, "push", back.is_some().into());
            if let Some(place) = back {
                set(&mut bench, "qpn", due.remove(place).1);
            }
            bench.step(&mut []).unwrap();
            if get(&bench, "m_valid") == 1 {
                let qpn = get(&bench, "m_payload");
                tries[qpn as usize] += 1;
                due.push((now + BACK, qpn));
            }
            let (least, most) = (tries.iter().min(), tries.iter().max());
            let apart = most.unwrap() - least.unwrap();
            assert!(apart <= 2, "{count}: {tries:?}");
        }
        assert!(tries.iter().all(|&tries| tries >= 2), "{count}: {tries:?}");
    }
}

#[test]
fn each_tries_again_in_its_turn() {
    try_again::<8>(&[1, 3, 5, 12, 30, 100]);
}

#[test]
fn all_queue_pairs_wait() {
    try_again::<5>(&[32]);
    try_again::<6>(&[64]);
}

/// Of an open class one that needs little room leaves in `apart` cycles, of the others one in `apart_long`.
#[test]
fn some_try_seldom() {
    const EACH: u64 = 20;
    let mut bench = bench::<8>();
    set(&mut bench, "push", 1);
    for qpn in 0..2 * EACH {
        set(&mut bench, "qpn", qpn);
        set(&mut bench, "short", qpn % 2);
        bench.step(&mut []).unwrap();
    }
    set(&mut bench, "push", 0);
    bench.run(&mut [], 200).unwrap();
    set(&mut bench, "closed", 0);
    set(&mut bench, "closed_short", 0);
    let mut left = [vec![], vec![]];
    let apart = [APART_LONG + 1, APART + 1];
    for now in 0..apart[0] * (EACH + 1) {
        bench.step(&mut []).unwrap();
        if get(&bench, "m_valid") == 1 {
            left[(get(&bench, "m_payload") % 2) as usize].push(now);
        }
    }
    for (times, apart) in left.iter().zip(apart) {
        assert_eq!(times.len() as u64, EACH, "{times:?}");
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        let (least, most) = (gaps.clone().min(), gaps.max());
        assert!(
            least >= Some(apart) && most <= Some(apart + 60),
            "{times:?}"
        );
    }
}

/// A class may be open to what needs much room and closed to what needs little, which leaves it that.
#[test]
fn each_waits_for_its_own_room() {
    for (closed, short) in [("closed", 0), ("closed_short", 1)] {
        let mut bench = bench::<8>();
        set(&mut bench, "push", 1);
        for qpn in 0..2 {
            set(&mut bench, "qpn", qpn);
            set(&mut bench, "short", qpn);
            bench.step(&mut []).unwrap();
        }
        set(&mut bench, "push", 0);
        set(&mut bench, closed, 0);
        let mut left = vec![];
        for _ in 0..2 * APART_LONG {
            bench.step(&mut []).unwrap();
            if get(&bench, "m_valid") == 1 {
                left.push(get(&bench, "m_payload"));
            }
        }
        assert_eq!(left, [short], "{closed}");
    }
}

/// Many of a class that is closed hold up none of another.
#[test]
fn a_closed_class_holds_up_no_other() {
    const MANY: u64 = 4000;
    let mut bench = bench::<12>();
    set(&mut bench, "push", 1);
    for qpn in 0..=MANY {
        set(&mut bench, "qpn", qpn);
        set(&mut bench, "packet_class", (qpn == MANY).into());
        set(&mut bench, "short", 1);
        bench.step(&mut []).unwrap();
    }
    set(&mut bench, "push", 0);
    let mut left = vec![];
    for _ in 0..2 * APART {
        bench.step(&mut []).unwrap();
        if get(&bench, "m_valid") == 1 {
            left.push(get(&bench, "m_payload"));
        }
    }
    // the other may be one that left whatever is closed
    assert!(left.contains(&MANY), "{left:?}");
}

/// Those of a closed class that try all the same do not count for those of an open one that need much room.
#[test]
fn tries_of_a_closed_class_slow_no_other() {
    const OPEN: u64 = 5;
    let apart_long = 1024;
    let mut bench = bench::<12>();
    set(&mut bench, "apart_long", apart_long);
    set(&mut bench, "push", 1);
    for qpn in 0..100 {
        set(&mut bench, "qpn", qpn);
        set(&mut bench, "packet_class", (qpn < OPEN).into());
        bench.step(&mut []).unwrap();
    }
    set(&mut bench, "push", 0);
    let mut left = 0;
    for _ in 0..(OPEN + 2) * apart_long {
        bench.step(&mut []).unwrap();
        left += u64::from(get(&bench, "m_valid") == 1 && get(&bench, "m_payload") < OPEN);
    }
    assert_eq!(left, OPEN);
}

/// Whatever comes and whatever is closed: of each list they leave in their order, none is lost.
#[test]
fn each_leaves_once_and_in_order() {
    const Q: usize = 5;
    let mut bench = bench::<Q>();
    let mut rng = bench.rng().clone();
    set(&mut bench, "apart", 3);
    set(&mut bench, "apart_long", 20);
    let mut lists: [VecDeque<u64>; 8] = Default::default();
    let mut free: Vec<u64> = (0..1 << Q).collect();
    let mut left = 0;
    for cycle in 0..100_000u64 {
        if cycle % 64 == 0 {
            set(&mut bench, "closed", rng.u64(..16));
            set(&mut bench, "closed_short", rng.u64(..16));
        }
        let push = !free.is_empty() && rng.u64(..if cycle & 1024 == 0 { 2 } else { 40 }) == 0;
        set(&mut bench, "push", push.into());
        if push {
            let qpn = free.swap_remove(rng.usize(..free.len()));
            let list = rng.u64(..8);
            set(&mut bench, "qpn", qpn);
            set(&mut bench, "packet_class", list % 4);
            set(&mut bench, "short", list / 4);
            lists[list as usize].push_back(qpn);
        }
        let ready = rng.u64(..2);
        set(&mut bench, "m_ready", ready);
        let leaves = get(&bench, "m_valid") & ready == 1;
        let qpn = get(&bench, "m_payload");
        bench.step(&mut []).unwrap();
        if leaves {
            let list = lists.iter_mut().find(|list| list.front() == Some(&qpn));
            list.unwrap_or_else(|| panic!("{qpn} left")).pop_front();
            free.push(qpn);
            left += 1;
        }
    }
    assert!(left > 5000, "{left}");
    set(&mut bench, "push", 0);
    set(&mut bench, "closed", 0);
    set(&mut bench, "closed_short", 0);
    set(&mut bench, "m_ready", 1);
    for _ in 0..30 << Q {
        if get(&bench, "m_valid") == 1 {
            let qpn = get(&bench, "m_payload");
            let list = lists.iter_mut().find(|list| list.front() == Some(&qpn));
            list.unwrap_or_else(|| panic!("{qpn} left")).pop_front();
        }
        bench.step(&mut []).unwrap();
    }
    assert!(lists.iter().all(VecDeque::is_empty), "{lists:?}");
}
