//! Room in a lane of [`gather`](super) that is taken before the command comes, so that the command never waits for what
//! takes the payload away.
//!
//! The lane says by `ample` that there is room for a packet of any size and four below 512 bytes. It knows of what is taken
//! 3 cycles later.
use super::space::beats_of;
use crate::bus::types::PayloadSize;
use crate::bus::valid::Valid;
use crate::memory::types::GatherClaim;
use crate::prelude::*;

/// Room for packets of one piece each.
#[derive(Block)]
pub struct GatherAhead<const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Room is taken.
    pub reserve: Signal<In, Valid<PayloadSize>>,
    /// Room is given back without a command.
    pub give_back: Signal<In, Valid<PayloadSize>>,
    /// What the lane is to count.
    pub claim: Signal<Out, GatherClaim>,

    taken: Reg<Bits<16>>,
    given: Reg<Bits<16>>,
    opens: Reg<Bit>,
    returns: Reg<Bit>,
    #[init(Constant::new((K as u64 - 1).to_bits()))]
    lanes: Constant<Bits<6>>,
    #[init(Constant::new((K.trailing_zeros() as u64).to_bits()))]
    shift: Constant<Bits<3>>,
}

impl<const K: usize> Logic for GatherAhead<K> {
    describe!(
        "gather_ahead",
        format!("{K}"),
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
        opens = reserve.valid;
        returns = give_back.valid;
        claim = GatherClaim {
            beats: taken - given,
            opens,
            returns,
        };
    }
}
