//! Counts what was granted and is not cut into packets yet, in units of 64 bytes of frames: the next WQE waits while there is enough.
//!
//! `ample` follows what enters after five cycles, so behind a part of a KiB or more the next waits for these. Of shorter ones some
//! more enter.
use super::send_types::CheckedWqe;
use crate::egress::class_gate::{LARGEST_PART, MOST_AHEAD};
use crate::prelude::*;

/// Units from which on no more is granted.
const ENOUGH: u64 = 128;
/// Cycles from a WQE that enters to `ample`.
const DELAY: u64 = 5;
/// Units of the largest part below a KiB, of packets of 128 bytes.
const SHORT: u64 = 16 + 2 * 8 + 2;

const _: () = assert!(ENOUGH + LARGEST_PART + (DELAY + 1) * SHORT <= MOST_AHEAD);

/// The counter.
#[derive(Block)]
pub struct PartCount {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A WQE is to ask for its grant.
    pub enters: Signal<In, Bit>,
    /// Which.
    pub entering: Signal<In, CheckedWqe>,
    /// It sends nothing.
    pub drops: Signal<In, Bit>,
    /// Which.
    pub dropping: Signal<In, CheckedWqe>,
    /// A part is cut to its end.
    pub ends: Signal<In, Bit>,
    /// Of which.
    pub ending: Signal<In, CheckedWqe>,
    /// No more payload is to be added to what is under way.
    pub crowded: Signal<In, Bit>,
    /// The next may enter.
    pub ample: Signal<Out, Bit>,
    /// What is counted, four cycles later than WQEs enter.
    pub ahead: Signal<Out, Bits<16>>,
    // what enters is deep logic already; `drops` and `ends` are known late
    enters_1: Reg<Bit>,
    entering_1: Dff<CheckedWqe>,
    enters_2: Reg<Bit>,
    come: Dff<Bits<16>>,
    drops_q: Reg<Bit>,
    dropped: Dff<Bits<16>>,
    ends_q: Reg<Bit>,
    ended: Dff<Bits<16>>,
    came: Reg<Bits<16>>,
    gone: Reg<Bits<16>>,
    units: Reg<Bits<16>>,
    few: Reg<Bit>,
    /// Cycles until the latest part shows in `few`.
    hidden: Reg<Bits<3>>,
}

/// Units that a part of a WQE can fill, at most: its payload, and of each packet two more for headers and what is not whole.
#[kernel_fn]
fn units_of(wqe: CheckedWqe) -> Bits<16> {
    let mut payload = wqe.length.slice::<10>(6).resize::<16>();
    if wqe.length.slice::<16>(16).any() {
        payload = bits::<16>(1024);
    }
    let mut packets = wqe.packets.low::<7>().resize::<16>();
    if wqe.packets.slice::<17>(7).any() {
        packets = bits::<16>(128);
    }
    // a READ or atomic is one packet without payload
    if wqe.answered {
        payload = bits::<16>(0);
        packets = bits::<16>(1);
    }
    let sum = payload + (packets << 1) + 1;
    sum
}

impl Logic for PartCount {
    describe!(
        "part_count",
        "Counts what was granted and is not cut into packets yet."
    );

    #[kernel]
    fn update(&mut self) {
        enters_1 = enters;
        entering_1 = entering;
        enters_2 = enters_1;
        come = units_of(entering_1);
        drops_q = drops;
        dropped = units_of(dropping);
        ends_q = ends;
        ended = units_of(ending);
        came = if enters_2 { come } else { 0 };
        let mut leaves = bits::<16>(0);
        if drops_q {
            leaves = dropped;
        }
        gone = leaves;
        if ends_q {
            gone = leaves + ended;
        }
        units = units + came - gone;
        ahead = units;
        few = units < ENOUGH;
        if hidden.any() {
            hidden -= 1;
        }
        if enters & !entering.answered & entering.length.slice::<22>(10).any() {
            hidden = bits::<3>(DELAY);
        }
        ample = few & !hidden.any() & !crowded;
    }
}
