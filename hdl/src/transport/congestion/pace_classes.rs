//! How much of a message a queue pair may send at once, and whether its turn ends with it.
//!
//! A queue pair that is not paced sends up to 64 KiB of a message in a turn, and goes on with the next one. One that is
//! paced sends what its rate sends in 4 us, a packet at least; a message of an eighth of that or more ends its turn.
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
    /// It is paced.
    pub paced: Signal<Out, Bit>,
    /// Packets that it may send at once.
    pub quantum: Signal<Out, Bits<8>>,
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
    }
}
