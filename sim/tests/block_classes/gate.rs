//! Of which classes nothing starts: random room and pauses, random places of CNPs.

use ferroce_hdl::egress::CLASSES;
use ferroce_hdl::egress::class_gate::{
    ClassGate, LARGEST_PART, LONG_PART, MOST_AHEAD, SHORT_PART, UNDER_WAY,
};
use ferroce_sim::bench::Bench;
use ferroce_sim::bench::classes::write_classes;

/// Beats of a unit of 64 bytes.
pub(crate) const UNIT: u64 = 8;
/// Units of room for ACKs of a class that is closed, and that those under way take.
pub(crate) const OF_ACKS: u64 = 64;
const ACKS: u64 = 192;

pub(crate) fn set(bench: &mut Bench, name: &str, value: u64) {
    let input = bench.dut().input(name).unwrap();
    bench.dut_mut().set(input, value);
}

pub(crate) fn get(bench: &Bench, name: &str) -> u64 {
    bench.dut().get(bench.dut().output(name).unwrap())
}

/// Units of room about which something changes, whatever is granted: for ACKs; for parts of any length, long and short ones; to be read
/// again.
const BOUNDS: [u64; 5] = [
    UNDER_WAY,
    UNDER_WAY + OF_ACKS,
    UNDER_WAY + OF_ACKS - LARGEST_PART + LONG_PART,
    UNDER_WAY + OF_ACKS - LARGEST_PART + SHORT_PART,
    UNDER_WAY + OF_ACKS - LARGEST_PART + LONG_PART - 230,
];

#[test]
fn nothing_starts_without_room_for_all_that_is_under_way() {
    let mut bench = Bench::of(ClassGate::<8>::default).unwrap();
    bench.reset(&mut []);
    for _ in 0..2000 {
        let tables = write_classes(&mut bench);
        let rng = bench.rng();
        let [shut, responds, wanted] = [(); 3].map(|()| rng.u64(..16));
        let (dscp, pcp) = (rng.u8(..64), rng.u8(..8));
        let ahead = rng.u64(..=MOST_AHEAD);
        let turn = UNDER_WAY + OF_ACKS - MOST_AHEAD + ahead;
        // about the bounds
        let rooms: [u64; CLASSES] = [(); CLASSES].map(|()| {
            let bounds = [&BOUNDS[..], &[turn]].concat();
            let bound = rng.choice(bounds).expect("one of six");
            UNIT * bound - rng.u64(..2)
        });
        let control: [u64; CLASSES] = [(); CLASSES].map(|()| UNIT * ACKS - rng.u64(..2));
        set(&mut bench, "shut", shut);
        set(&mut bench, "wanted", wanted);
        set(&mut bench, "responds", responds);
        set(&mut bench, "ahead", ahead);
        set(&mut bench, "cnp_dscp", dscp.into());
        set(&mut bench, "cnp_pcp", pcp.into());
        for class in 0..CLASSES {
            set(&mut bench, &format!("room_{class}"), rooms[class]);
            set(&mut bench, &format!("control_room_{class}"), control[class]);
        }
        for _ in 0..4 {
            bench.step(&mut []).unwrap();
        }
        let bits = |of: &dyn Fn(usize) -> bool| -> u64 {
            (0..CLASSES).map(|c| u64::from(of(c)) << c).sum()
        };
        let places = [turn].into_iter().chain(BOUNDS[1..].iter().copied());
        let closed = places.enumerate().map(|(place, bound)| {
            let closed = bits(&|c| (shut | wanted) >> c & 1 == 1 || rooms[c] < UNIT * bound);
            closed << (CLASSES * place)
        });
        let closed: u64 = closed.sum();
        let waits = bits(&|c| {
            let behind = responds >> c & 1 == 1 && rooms[c] < UNIT * UNDER_WAY;
            shut >> c & 1 == 1 || control[c] < UNIT * ACKS || behind
        });
        assert_eq!(get(&bench, "closed"), closed);
        assert_eq!(get(&bench, "acks_wait"), waits);
        // a CNP has a tag, or none
        let of_cnps = [Some(pcp), None].map(|pcp| tables.class(tables.priority(dscp << 2, pcp)));
        let cnps_wait = of_cnps.iter().any(|&class| waits >> class & 1 == 1);
        assert_eq!(get(&bench, "cnps_wait"), u64::from(cnps_wait));
    }
}
