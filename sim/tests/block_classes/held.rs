//! Queue pairs whose class stays closed try again, one after the other.

use ferroce_hdl::egress::held_queues::HeldQueues;
use ferroce_sim::bench::Bench;

use crate::gate::{get, set};

/// Cycles from one that tries to the next.
const TICK: u64 = 4096;
/// Cycles in which one that is refused is back.
const BACK: u64 = 50;

const APART: u64 = 16;

/// A ring of 2^Q whose first class is closed.
fn bench<const Q: usize>() -> Bench {
    let mut bench = Bench::of(HeldQueues::<Q>::default).unwrap();
    for name in ["push", "qpn", "packet_class", "short"] {
        set(&mut bench, name, 0);
    }
    for name in ["closed", "closed_short", "m_ready"] {
        set(&mut bench, name, 1);
    }
    set(&mut bench, "apart", APART);
    bench.reset(&mut []);
    bench
}

/// So many wait in a ring of 2^Q.
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
fn a_full_ring_goes_round() {
    try_again::<5>(&[32]);
    try_again::<6>(&[64]);
}

/// Of an open class one that needs little room leaves in `apart` cycles, of the others one in eight times as many.
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
    let apart = [8 * APART + 1, APART + 1];
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
        for _ in 0..16 * APART {
            bench.step(&mut []).unwrap();
            if get(&bench, "m_valid") == 1 {
                left.push(get(&bench, "m_payload"));
            }
        }
        assert_eq!(left, [short], "{closed}");
    }
}
