//! Room in a lane of [`gather`](super) that is taken before the command comes, so that the command never waits for what
//! takes the payload away.
//!
//! `room` says that there is room for a packet of any size and four below 512 bytes: it knows of what is taken
//! 5 cycles later.
use super::space::beats_of;
use crate::bus::types::PayloadSize;
use crate::bus::valid::Valid;
use crate::prelude::*;

/// Packets that come while `room` does not know of them.
const UNKNOWN: u64 = 8;

/// Room for packets of one piece each, of 2^P.
#[derive(Block)]
pub struct GatherAhead<const K: usize, const P: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Room is taken.
    pub reserve: Signal<In, Valid<PayloadSize>>,
    /// Room is given back without a command.
    pub give_back: Signal<In, Valid<PayloadSize>>,
    /// A packet left the lane.
    pub closes: Signal<In, Bit>,
    /// The lane has beats for the largest piece.
    pub roomy: Signal<In, Bit>,
    /// Beats taken less those given back.
    pub claim: Signal<Out, Bits<16>>,
    /// There is room.
    pub room: Signal<Out, Bit>,

    taken: Reg<Bits<16>>,
    given: Reg<Bits<16>>,
    /// Packets.
    open: Reg<Bits<16>>,
    few: Reg<Bit>,
    #[init(Constant::new(((1 << P) - UNKNOWN).to_bits()))]
    most: Constant<Bits<16>>,
    #[init(Constant::new((K as u64 - 1).to_bits()))]
    lanes: Constant<Bits<6>>,
    #[init(Constant::new((K.trailing_zeros() as u64).to_bits()))]
    shift: Constant<Bits<3>>,
}

impl<const K: usize, const P: usize> Logic for GatherAhead<K, P> {
    describe!(
        "gather_ahead",
        format!("{K}_{P}"),
        "Room for payload that is taken before its command comes."
    );

    #[kernel]
    fn update(&mut self) {
        taken = if reserve.valid {
            beats_of(reserve.payload.lane & lanes, reserve.payload.plen, shift)
        } else {
            0
        };
        given = if give_back.valid {
            beats_of(
                give_back.payload.lane & lanes,
                give_back.payload.plen,
                shift,
            )
        } else {
            0
        };
        claim = taken - given;
        let come = bits::<16>(0).replace_bit(0, reserve.valid);
        let leave = bits::<16>(0).replace_bit(0, give_back.valid);
        let closed = bits::<16>(0).replace_bit(0, closes);
        open = open + come - leave - closed;
        few = open < most;
        room = few & roomy;
    }
}
