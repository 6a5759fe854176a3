//! How much of a message a queue pair may send at once, and whether its turn ends with it.
//!
//! A queue pair that is not paced sends up to 64 KiB of a message in a turn, and goes on with the next one. One that is
//! paced sends what its rate sends in 4 us, a packet at least; a message of an eighth of that or more ends its turn. With a
//! window a turn is up to a quarter of it, as a power of two, a packet at least, and begins only if that fits. The smaller window counts,
//! of the host's and that of congestion control.
use super::pace_types::PaceClass;
use crate::prelude::*;

/// Classes of 2^Q queue pairs. Latency: two cycles.
#[derive(Block)]
pub struct PaceClasses<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A queue pair is paced from now on, or no more.
    pub paced_valid: Signal<In, Bit>,
    /// Which.
    pub paced_qpn: Signal<In, Bits<16>>,
    /// How.
    pub pace_class: Signal<In, PaceClass>,
    /// Queue pair to look up.
    pub qpn: Signal<In, Bits<16>>,
    /// A cycle later: its path MTU, IB code.
    pub mtu: Signal<In, Bits<3>>,
    /// Likewise: PSNs that the host lets it have outstanding; 0: any number.
    pub window: Signal<In, Bits<16>>,
    /// It is paced.
    pub paced: Signal<Out, Bit>,
    /// Packets that it may send at once.
    pub quantum: Signal<Out, Bits<8>>,
    /// It has a window.
    pub windowed: Signal<Out, Bit>,
    /// PSNs that may be outstanding when a turn begins.
    pub spare: Signal<Out, Bits<16>>,
    /// Paced: bits of a length that are 0 in that of a message which is less than an eighth of a turn.
    pub long: Signal<Out, Bits<32>>,
    /// The table is swept after reset.
    pub ready: Signal<Out, Bit>,

    table: SweptRam<PaceClass, Q>,
    paced_q: Dff<Bit>,
    quantum_q: Dff<Bits<8>>,
    long_q: Dff<Bits<32>>,
    windowed_q: Dff<Bit>,
    spare_q: Dff<Bits<16>>,
}

/// PSNs that may be outstanding when a turn begins.
#[kernel_fn]
fn spare_of(window: Bits<16>) -> Bits<16> {
    let part = quarter(window);
    window - (part & !(part >> 1)).resize::<16>()
}

/// Bit k: a turn of a window may be 2^k packets or more.
#[kernel_fn]
fn turns_of(window: Bits<16>) -> Bits<8> {
    if window.any() {
        quarter(window)
    } else {
        bits::<8>(0xff)
    }
}

/// Bit k: a quarter of the window is 2^k or more, 2^7 the largest that counts; bit 0 always.
#[kernel_fn]
fn quarter(window: Bits<16>) -> Bits<8> {
    let high: Bits<8> = window.slice::<8>(2);
    let mut or = high | (high >> 1);
    or = or | (or >> 2);
    or = or | (or >> 4);
    if window.slice::<6>(10).any() {
        or = bits::<8>(0xff);
    }
    or | 1
}

impl<const Q: usize> Logic for PaceClasses<Q> {
    describe!(
        "pace_classes",
        format!("q{Q}"),
        "How much a queue pair may send at once."
    );

    #[kernel]
    fn update(&mut self) {
        table.re = true;
        table.raddr = qpn.low::<Q>();
        table.we = paced_valid;
        table.waddr = paced_qpn.low::<Q>();
        table.wdata = pace_class;
        ready = table.ready;

        let found = table.rdata;
        paced_q = found.paced;
        // Bit j: a turn is longer than 2^j bytes.
        let mut longer: Bits<16> = bits::<16>(0xffff);
        if found.paced {
            longer = !(bits::<64>(0xffff_ffff_ffff_ffff) << found.span).low::<16>();
        }
        // MTU code c is 2^(7 + c) bytes; bit k: a turn is 2^k packets or more
        let turns = (longer >> mtu).slice::<8>(6) | 1;
        let own = found.window;
        windowed_q = window.any() | own.any();
        spare_q = spare_of(window);
        if own.any() & (!window.any() | (own < window)) {
            spare_q = spare_of(own);
        }
        let most = turns & turns_of(window) & turns_of(own);
        quantum_q = most & !(most >> 1);
        long_q = bits::<32>(0);
        if found.paced {
            long_q = (bits::<64>(0xffff_ffff_ffff_ffff) << found.span).slice::<32>(3);
        }
        paced = paced_q;
        quantum = quantum_q;
        long = long_q;
        windowed = windowed_q;
        spare = spare_q;
    }
}
