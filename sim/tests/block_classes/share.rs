//! How far acknowledgements get ahead of data.

use ferroce_hdl::egress::CLASSES;
use ferroce_hdl::egress::ack_share::{AckShare, LEAD};
use ferroce_sim::bench::Bench;

use crate::gate::{get, set};

const BEATS: u64 = LEAD / 64;
const CONTROL: u64 = 1 << CLASSES;

fn bench() -> Bench {
    let mut bench = Bench::of(AckShare::<64>::default).unwrap();
    cycle(&mut bench, 0, 0, 0);
    bench.reset(&mut []);
    bench
}

/// A cycle; whether acknowledgements wait behind the one before.
fn cycle(bench: &mut Bench, pop: u64, waiting: u64, shut: u64) -> bool {
    set(bench, "pop", pop);
    set(bench, "waiting", waiting);
    set(bench, "shut", shut);
    bench.step(&mut []).unwrap();
    get(bench, "no_acks") == 1
}

#[test]
fn a_flood_stops_at_its_lead_until_data_made_up_for_it() {
    let mut bench = bench();
    for _ in 0..3 {
        for beat in 1..=BEATS + 100 {
            assert_eq!(cycle(&mut bench, CONTROL, 1, 0), beat > BEATS, "{beat}");
        }
        // a beat of a wire that stands changes nothing
        assert!(cycle(&mut bench, 0, 1, 0));
        for beat in 1..=BEATS {
            assert!(cycle(&mut bench, 1, 1, 0), "{beat}");
        }
    }
}

#[test]
fn without_data_that_may_leave_there_is_no_lead() {
    let mut bench = bench();
    for (waiting, shut) in [(CONTROL, 0), (CONTROL | 0b1010, 0b1010)] {
        for _ in 0..2 * BEATS {
            assert!(!cycle(&mut bench, CONTROL, waiting, shut));
        }
    }
    // a pause of all that waits lets acknowledgements of others go on
    for _ in 0..=BEATS {
        cycle(&mut bench, CONTROL, 0b10, 0);
    }
    assert!(get(&bench, "no_acks") == 1);
    cycle(&mut bench, CONTROL, 0b10, 0b10);
    assert!(!cycle(&mut bench, CONTROL, 0b10, 0b10));
}

#[test]
fn any_order_of_beats() {
    let mut bench = bench();
    let (mut lead, mut stops, mut stopped) = (0, false, 0);
    for _ in 0..200_000 {
        let rng = bench.rng();
        // control leaves as it comes, data seldom; all that waits is paused seldom
        let mut pop = match rng.u8(..10) {
            0 => 0,
            1 => 1 << rng.usize(..CLASSES),
            _ => CONTROL << rng.usize(..CLASSES),
        };
        if stops {
            pop >>= CLASSES;
        }
        let shut = if rng.u16(..20_000) == 0 { 15 } else { 0b0101 };
        let stopped_before = stops;
        cycle(&mut bench, pop, 0b1000, shut);
        match (shut, pop) {
            (15, _) => (lead, stops) = (0, false),
            (_, CONTROL..) if lead < BEATS => {
                lead += 1;
                stops |= lead == BEATS;
            }
            (_, 1..CONTROL) if lead > 0 => {
                lead -= 1;
                stops &= lead > 0;
            }
            _ => {}
        }
        stopped += u64::from(stops);
        assert_eq!(
            get(&bench, "no_acks"),
            u64::from(stopped_before),
            "lead {lead}"
        );
    }
    assert!(stopped > 10_000, "{stopped} cycles");
}
