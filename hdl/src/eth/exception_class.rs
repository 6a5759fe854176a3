//! Class of a frame of the host: by the PCP of its 802.1Q tag, or by the DSCP behind it; what is not IP counts as of DSCP 0, as the
//! driver of mlx5 takes it.
//!
//! `packet_class` is that of the frame whose first 20 bytes have passed, from 3 cycles behind them on.
use ferroce_proto::wire::eth;

use crate::egress::class_of::ClassOf;
use crate::egress::types::ClassSetup;
use crate::prelude::*;

/// The block, for beats of `W` bits = `K` bytes.
#[derive(Clone, Debug, Block)]
pub struct ExceptionClass<const W: usize, const K: usize> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// What the host says.
    pub setup: Signal<In, ClassSetup>,
    /// A beat.
    pub valid: Signal<In, Bit>,
    /// Its place in the frame.
    pub place: Signal<In, Bits<16>>,
    /// Its bytes.
    pub data: Signal<In, Bits<W>>,
    /// Class of the frame.
    pub packet_class: Signal<Out, Bits<2>>,
    /// Bytes 12 to 15, and 16 to 19.
    near: Dff<Bits<32>>,
    far: Dff<Bits<32>>,
    look: ClassOf,
}

const WORD_AT: usize = eth::LEN - 2;
const TAG: u64 = eth::TPID_8021Q.swap_bytes() as u64;
const IPV4: u64 = eth::ETHERTYPE_IPV4.swap_bytes() as u64;
const IPV6: u64 = eth::ETHERTYPE_IPV6.swap_bytes() as u64;

impl<const W: usize, const K: usize> ExceptionClass<W, K> {
    const NEAR: u64 = (WORD_AT / K) as u64;
    const NEAR_BIT: u64 = 8 * (WORD_AT % K) as u64;
    const FAR: u64 = ((WORD_AT + 4) / K) as u64;
    const FAR_BIT: u64 = 8 * ((WORD_AT + 4) % K) as u64;
}

impl<const W: usize, const K: usize> Logic for ExceptionClass<W, K> {
    describe!(
        "exception_class",
        format!("w{W}"),
        "Class of a frame of the host, by its PCP or DSCP."
    );

    #[kernel]
    fn update(&mut self) {
        if valid & (place == Self::NEAR) {
            near = data.slice::<32>(Self::NEAR_BIT);
        }
        if valid & (place == Self::FAR) {
            far = data.slice::<32>(Self::FAR_BIT);
        }
        // type, and the two bytes behind it; the first byte in the lowest bits
        let tagged = near.low::<16>() == TAG;
        let mut word = near;
        if tagged {
            word = far;
        }
        let mut tclass = bits::<8>(0);
        if word.low::<16>() == IPV4 {
            tclass = word.slice::<8>(24);
        }
        if word.low::<16>() == IPV6 {
            tclass = (word.slice::<4>(16).resize::<8>() << 4) | word.slice::<4>(28).resize::<8>();
        }
        look.setup = setup;
        look.tclass = tclass;
        look.has_tag = tagged;
        look.pcp = near.slice::<3>(21);
        packet_class = look.packet_class;
    }
}
