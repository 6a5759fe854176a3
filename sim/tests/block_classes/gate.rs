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

/// Cycles of a period of claims.
const PERIOD: u64 = 8192 * UNIT;
/// Cycles until an input shows, and the rounds in which the claims of a period are looked at.
const SHOWS: u64 = 4;
const ROUNDS: u64 = 64;

fn step(bench: &mut Bench, cycles: u64) {
    for _ in 0..cycles {
        bench.step(&mut []).unwrap();
    }
}

/// Classes of which something is claimed: by parts of any length, by long and by short ones.
type Claimed = [u64; 3];

/// One refusal is two periods old, one is of the last period, and one is new: what of them counts.
fn claim(bench: &mut Bench) -> Claimed {
    let rng = bench.rng();
    let refused: [Claimed; 3] = [(); 3].map(|()| [(); 3].map(|()| rng.u64(..16)));
    for (age, [any, long, short]) in refused.into_iter().enumerate() {
        if age > 0 {
            step(bench, PERIOD - 1);
        }
        set(bench, "ahead", any << 16 | long << 20 | short << 24);
        step(bench, 1);
        set(bench, "ahead", 0);
    }
    [0, 1, 2].map(|kind| refused[1][kind] | refused[2][kind])
}

/// What is closed, with random room, pauses and places of CNPs.
fn look(bench: &mut Bench, claimed: Claimed) {
    let tables = write_classes(bench);
    let rng = bench.rng();
    let [shut, responds, wanted] = [(); 3].map(|()| rng.u64(..16));
    let (dscp, pcp) = (rng.u8(..64), rng.u8(..8));
    let no_acks = rng.u8(..4) == 0;
    let ahead = rng.u64(..=MOST_AHEAD);
    let ack = UNDER_WAY - MOST_AHEAD + ahead;
    let turn = ack + OF_ACKS;
    // about the bounds
    let rooms: [u64; CLASSES] = [(); CLASSES].map(|()| {
        let bound = rng.choice([ack, turn, ANY, LONG, SHORT, AGAIN]);
        UNIT * bound.expect("one of six") - rng.u64(..2)
    });
    let control: [u64; CLASSES] = [(); CLASSES].map(|()| UNIT * ACKS - rng.u64(..2));
    set(bench, "shut", shut);
    set(bench, "wanted", wanted);
    set(bench, "responds", responds);
    set(bench, "no_acks", no_acks.into());
    set(bench, "ahead", ahead);
    set(bench, "cnp_dscp", dscp.into());
    set(bench, "cnp_pcp", pcp.into());
    for class in 0..CLASSES {
        set(bench, &format!("room_{class}"), rooms[class]);
        set(bench, &format!("control_room_{class}"), control[class]);
    }
    step(bench, SHOWS);
    let bits =
        |of: &dyn Fn(usize) -> bool| -> u64 { (0..CLASSES).map(|c| u64::from(of(c)) << c).sum() };
    // its own need, or what the first of the kinds claim of this class
    let needs = |c: usize, own: u64, kinds: usize| {
        let claims = [ANY, LONG, AGAIN].into_iter().zip(claimed).take(kinds);
        let of_class = claims.filter(|(_, classes)| classes >> c & 1 == 1);
        of_class.map(|(room, _)| room).fold(own, u64::max)
    };
    let starts = [
        (turn, 3),
        (ANY, 0),
        (LONG, 1),
        (SHORT, 2),
        (AGAIN, 0),
        (AGAIN, 2),
    ];
    let closed = starts.into_iter().enumerate().map(|(place, (own, kinds))| {
        let closes =
            |c: usize| (shut | wanted) >> c & 1 == 1 || rooms[c] < UNIT * needs(c, own, kinds);
        bits(&closes) << (CLASSES * place)
    });
    let closed: u64 = closed.sum();
    let stops = bits(&|c| shut >> c & 1 == 1 || control[c] < UNIT * ACKS);
    // an ACK behind responses goes to the data queue, a CNP does not
    let no_data_room = bits(&|c| responds >> c & 1 == 1 && rooms[c] < UNIT * ack);
    let waits = stops | no_data_room;
    assert_eq!(get(bench, "closed"), closed);
    assert_eq!(get(bench, "acks_wait"), if no_acks { 15 } else { waits });
    // a CNP has a tag, or none
    let of_cnps = [Some(pcp), None].map(|pcp| tables.class(tables.priority(dscp << 2, pcp)));
    let cnps_wait = of_cnps.iter().any(|&class| stops >> class & 1 == 1);
    assert_eq!(get(bench, "cnps_wait"), u64::from(cnps_wait));
}

#[test]
fn nothing_starts_without_room_for_all_that_is_under_way() {
    let mut bench = Bench::of(ClassGate::<8>::default).unwrap();
    bench.reset(&mut []);
    // all rounds begin at the same place in a period, near its beginning
    step(&mut bench, 2);
    for _ in 0..32 {
        let claimed = claim(&mut bench);
        for _ in 0..ROUNDS {
            look(&mut bench, claimed);
        }
        step(&mut bench, PERIOD - 1 - ROUNDS * SHOWS);
    }
}
