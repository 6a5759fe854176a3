//! How much of a message a queue pair may send at once, and whether its turn ends with it.
//!
//! A queue pair that is not paced sends up to 64 KiB of a message in a turn, and goes on with the next one. One that is
//! paced sends what its rate sends in 4 us, a packet at least; a message of an eighth of that or more ends its turn. With a
//! window a turn is up to a quarter of it, as a power of two, a packet at least, and begins only if that fits.
use super::pace_types::PaceClass;
use crate::prelude::*;

/// Log2 of the bytes that a queue pair without a rate sends in a turn.
const TURN: u64 = 16;

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
    /// Likewise: PSNs that it may have outstanding; 0: any number.
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

    table: Ram<PaceClass, Q>,
    no_class: Zero<PaceClass>,
    swept: Reg<Bit>,
    sweep: Reg<Bits<Q>>,
    paced_q: Dff<Bit>,
    quantum_q: Dff<Bits<8>>,
    long_q: Dff<Bits<32>>,
    windowed_q: Dff<Bit>,
    spare_q: Dff<Bits<16>>,
}

/// Log2 of a quarter of a window, 0 to 7.
#[kernel_fn]
fn quarter(window: Bits<16>) -> Bits<3> {
    if window.slice::<7>(9).any() {
        bits::<3>(7)
    } else if window.bit(8) {
        bits::<3>(6)
    } else if window.bit(7) {
        bits::<3>(5)
    } else if window.bit(6) {
        bits::<3>(4)
    } else if window.bit(5) {
        bits::<3>(3)
    } else if window.bit(4) {
        bits::<3>(2)
    } else if window.bit(3) {
        bits::<3>(1)
    } else {
        bits::<3>(0)
    }
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
        table.we = paced_valid | !swept;
        table.waddr = paced_qpn.low::<Q>();
        table.wdata = pace_class;
        if !swept {
            sweep = sweep + 1;
            swept = sweep.all();
            table.waddr = sweep;
            table.wdata = no_class;
        }
        ready = swept;

        let found = table.rdata;
        let mut log = bits::<6>(TURN);
        if found.paced & (found.span < TURN) {
            log = found.span.resize::<6>();
        }
        // MTU code c is 2^(7 + c) bytes
        let packets = log - 7 - mtu.resize::<6>();
        paced_q = found.paced;
        let mut step = packets.low::<3>();
        if packets.bit(5) {
            step = bits::<3>(0);
        } else if packets.bit(3) {
            step = bits::<3>(7);
        }
        let part = quarter(window);
        let windowed_now = window.any();
        windowed_q = windowed_now;
        spare_q = window - (bits::<16>(1) << part);
        // beside the difference, not behind it
        let most = part.resize::<6>() + 7 + mtu.resize::<6>();
        if windowed_now & (log > most) {
            step = part;
        }
        quantum_q = bits::<8>(1) << step;
        long_q = bits::<32>(0);
        if found.paced {
            long_q = bits::<32>(0xffff_ffff);
            if found.span > 3 {
                long_q = bits::<32>(0xffff_ffff) << (found.span - 3);
            }
        }
        paced = paced_q;
        quantum = quantum_q;
        long = long_q;
        windowed = windowed_q;
        spare = spare_q;
    }
}
