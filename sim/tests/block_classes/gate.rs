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

/// Units of room that parts of any length, long and short ones need, and that there is to read one again.
const ANY: u64 = UNDER_WAY + OF_ACKS;
const LONG: u64 = ANY - LARGEST_PART + LONG_PART;
const SHORT: u64 = ANY - LARGEST_PART + SHORT_PART;
const AGAIN: u64 = LONG - 230;

/// Cycles from which a claim is of the period before.
const PERIOD: u64 = 8192 * UNIT;

fn step(bench: &mut Bench, cycles: u64) {
    for _ in 0..cycles {
        bench.step(&mut []).unwrap();
    }
}

#[test]
fn nothing_starts_without_room_for_all_that_is_under_way() {
    let mut bench = Bench::of(ClassGate::<8>::default).unwrap();
    bench.reset(&mut []);
    // claims are counted in periods from reset
    step(&mut bench, 2);
    for _ in 0..30 {
        let tables = write_classes(&mut bench);
        let rng = bench.rng();
        let [shut, responds, wanted] = [(); 3].map(|()| rng.u64(..16));
        let (dscp, pcp) = (rng.u8(..64), rng.u8(..8));
        let ahead = rng.u64(..=MOST_AHEAD);
        let ack = UNDER_WAY - MOST_AHEAD + ahead;
        // refused two periods ago, lately, or not
        let [any, long, short] = [(); 3].map(|()| [rng.u64(..16), rng.u64(..16), rng.u64(..16)]);
        let claims = |period: usize| any[period] | long[period] << 4 | short[period] << 8;
        let claimed = [any, long, short].map(|of| of[1] | of[2]);
        let bounds = [ack, ack + OF_ACKS, ANY, LONG, SHORT, AGAIN];
        // about the bounds
        let rooms: [u64; CLASSES] = [(); CLASSES].map(|()| {
            let bound = rng.choice(bounds).expect("one of six");
            UNIT * bound - rng.u64(..2)
        });
        let control: [u64; CLASSES] = [(); CLASSES].map(|()| UNIT * ACKS - rng.u64(..2));
        set(&mut bench, "shut", shut);
        set(&mut bench, "wanted", wanted);
        set(&mut bench, "responds", responds);
        set(&mut bench, "cnp_dscp", dscp.into());
        set(&mut bench, "cnp_pcp", pcp.into());
        for class in 0..CLASSES {
            set(&mut bench, &format!("room_{class}"), rooms[class]);
            set(&mut bench, &format!("control_room_{class}"), control[class]);
        }
        for period in 0..3 {
            set(&mut bench, "ahead", ahead | claims(period) << 16);
            step(&mut bench, 1);
            set(&mut bench, "ahead", ahead);
            if period < 2 {
                step(&mut bench, PERIOD - 1);
            }
        }
        step(&mut bench, 4);
        let bits = |of: &dyn Fn(usize) -> bool| -> u64 {
            (0..CLASSES).map(|c| u64::from(of(c)) << c).sum()
        };
        let needs = |c: usize, own: u64| {
            let of = |kind: usize, need| (claimed[kind] >> c & 1 == 1).then_some(need);
            (own, [of(0, ANY), of(1, LONG), of(2, AGAIN)])
        };
        // what is claimed by those that need more room is left to them
        let closes = |c: usize, (own, claims): (u64, [Option<u64>; 3]), kinds: usize| {
            let most = claims[..kinds].iter().flatten().fold(own, |a, &b| a.max(b));
            (shut | wanted) >> c & 1 == 1 || rooms[c] < UNIT * most
        };
        let kinds = [
            (ack + OF_ACKS, 3),
            (ANY, 0),
            (LONG, 1),
            (SHORT, 2),
            (AGAIN, 0),
        ];
        let closed = kinds.into_iter().enumerate().map(|(place, (own, kinds))| {
            bits(&|c| closes(c, needs(c, own), kinds)) << (CLASSES * place)
        });
        let closed: u64 = closed.sum();
        let waits = bits(&|c| {
            let behind = responds >> c & 1 == 1 && rooms[c] < UNIT * ack;
            shut >> c & 1 == 1 || control[c] < UNIT * ACKS || behind
        });
        assert_eq!(get(&bench, "closed"), closed);
        assert_eq!(get(&bench, "acks_wait"), waits);
        // a CNP has a tag, or none
        let of_cnps = [Some(pcp), None].map(|pcp| tables.class(tables.priority(dscp << 2, pcp)));
        let cnps_wait = of_cnps.iter().any(|&class| waits >> class & 1 == 1);
        assert_eq!(get(&bench, "cnps_wait"), u64::from(cnps_wait));
        // so that no claim is between two periods in one round and not in another
        step(&mut bench, PERIOD - 5);
    }
}
