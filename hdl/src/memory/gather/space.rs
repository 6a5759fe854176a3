//! Room in a lane of [`gather`](super): payload beats that are free, and packets.
use crate::prelude::*;

/// Beats that a packet takes: `plen` bytes from `lane` on, in beats of 2^`shift` bytes.
#[kernel_fn]
pub fn beats_of(lane: Bits<6>, plen: Bits<13>, shift: Bits<3>) -> Bits<16> {
    let last = lane.resize::<16>() + plen.resize::<16>() - 1;
    (last >> shift) + 1
}

/// Packets that may be opened while `ample` does not know of them.
const UNKNOWN: u64 = 8;

/// Space of 2 * 2^A beats of `K` bytes, for 2^P packets.
///
/// Latency: of a claim two cycles, for which room for two pieces is kept free.
#[derive(Block)]
#[block(no_default)]
pub struct GatherSpace<const K: usize, const A: usize, const P: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Beats claimed in this cycle; of 2^16 on less than none: given back.
    pub claim: Signal<In, Bits<16>>,
    /// A packet is opened.
    pub opens: Signal<In, Bit>,
    /// One is not, after all.
    pub returns: Signal<In, Bit>,
    /// One is closed.
    pub closes: Signal<In, Bit>,
    /// A beat is read.
    pub fetch: Signal<In, Bit>,
    /// The beats of a packet are not read.
    pub discard: Signal<In, Bit>,
    /// Count of beats read or forgotten, modulo 4 * 2^A.
    pub read: Signal<In, Bits<16>>,
    /// The same behind the beat of `fetch`.
    pub read_on: Signal<In, Bits<16>>,
    /// There is room for the largest piece, of a packet more.
    pub roomy: Signal<Out, Bit>,
    /// Beats claimed, two cycles ago.
    pub taken: Signal<Out, Bits<16>>,
    /// There is for it and for 7 packets that are not known of.
    pub ample: Signal<Out, Bit>,
    claimed: Reg<Bits<16>>,
    forgot: Reg<Bit>,
    read_before: Dff<Bits<16>>,
    forgotten: Reg<Bits<16>>,
    /// Beats free, less those that two pieces can need.
    free: Reg<Bits<16>>,
    /// They are not negative.
    enough: Reg<Bit>,
    /// Packets.
    open: Reg<Bits<16>>,
    few: Reg<Bit>,
    taken_q: Reg<Bits<16>>,
    whole: Constant<Bits<16>>,
    packets: Constant<Bits<16>>,
    most: Constant<Bits<16>>,
    /// Bits of `read`.
    mask: Constant<Bits<16>>,
}

impl<const K: usize, const A: usize, const P: usize> Default for GatherSpace<K, A, P> {
    fn default() -> Self {
        let (beats, most) = (2u64 << A, 4096 / K as u64 + 1);
        assert!(
            A < 14 && beats >= 3 * most,
            "payload store of {beats} beats: {} to 2^14 can be built",
            3 * most
        );
        Self {
            clock: ClkRst::default(),
            claim: Signal::default(),
            opens: Signal::default(),
            returns: Signal::default(),
            closes: Signal::default(),
            fetch: Signal::default(),
            discard: Signal::default(),
            read: Signal::default(),
            read_on: Signal::default(),
            roomy: Signal::default(),
            taken: Signal::default(),
            ample: Signal::default(),
            claimed: Reg::default(),
            forgot: Reg::default(),
            read_before: Dff::default(),
            forgotten: Reg::default(),
            free: Reg::new((beats - 2 * most).to_bits()),
            enough: Reg::new(true),
            open: Reg::default(),
            few: Reg::default(),
            taken_q: Reg::default(),
            whole: Constant::new((beats - 2 * most).to_bits()),
            packets: Constant::new((1u64 << P).to_bits()),
            most: Constant::new(((1u64 << P) - UNKNOWN).to_bits()),
            mask: Constant::new((2 * beats - 1).to_bits()),
        }
    }
}

impl<const K: usize, const A: usize, const P: usize> Logic for GatherSpace<K, A, P> {
    describe!(
        "gather_space",
        format!("{K}_{A}_{P}"),
        "Payload beats of gather that are free."
    );

    #[kernel]
    fn update(&mut self) {
        claimed = claim;
        // in the cycle behind, in which nothing is read
        forgot = discard;
        read_before = read_on;
        forgotten = bits::<16>(0);
        if forgot {
            forgotten = (read - read_before) & mask;
        }
        // free + forgotten - claimed by one carry chain, the beat that is read in the lowest carry
        // Sum bits and carries of what `free` is made of.
        let sums = free ^ forgotten ^ !claimed;
        let mut carries = ((free & forgotten) | ((free | forgotten) & !claimed)) << 1;
        carries = carries.replace_bit(0, fetch);
        let left = sums - !carries;
        free = left;
        taken_q = whole - free;
        taken = taken_q;
        enough = !left.bit(15);
        roomy = enough & !(open & packets).any();
        let come = bits::<16>(0).replace_bit(0, opens);
        let leave = bits::<16>(0).replace_bit(0, closes);
        let back = bits::<16>(0).replace_bit(0, returns);
        // not `- leave`: that would share its carry chain with the sum, behind the choice
        open = !(!(open + come) + leave + back);
        few = open < most;
        ample = enough & few;
    }
}
