//! Cuts byte ranges into AXI bursts.
//!
//! A range of any address and 1 to 8191 bytes leaves as bursts that stay within a multiple of
//! [`burst_bytes`](crate::bus::axi::burst_bytes), in order of address, one a cycle from the cycle after the range came
//! in; the next range follows without a gap. `m.payload` is 2 levels of logic behind a register and `s.ready` follows
//! `m.ready`: both sides go to a register stage.
use crate::bus::axi;
use crate::bus::types::ReadReq;
use crate::prelude::*;

use super::types::{Burst, Range};

/// What is known of a range of up to 8191 bytes before it is split: whether it ends in the window of its first byte, so
/// that it leaves as one burst, and its bytes less one. Combinational.
#[derive(Clone, Debug, Block)]
pub struct Fits<const K: usize> {
    /// It; not empty.
    pub range: Signal<In, ReadReq>,
    /// It does.
    pub fits: Signal<Out, Bit>,
    /// It, with one byte less.
    pub counted: Signal<Out, ReadReq>,
    first: Signal<Local, Bits<14>>,
    length: Signal<Local, Bits<14>>,
    over: Carry<14>,
    /// Offset bits of an address.
    #[init(Constant::new((axi::burst_bytes(K) as u64 - 1).to_bits()))]
    window: Constant<Bits<64>>,
    #[init(Constant::new((axi::burst_bytes(K) as u64).to_bits()))]
    burst: Constant<Bits<14>>,
}

impl<const K: usize> Logic for Fits<K> {
    describe!(
        "fits",
        format!("{K}"),
        "Whether a byte range is one AXI burst."
    );

    #[kernel]
    fn update(&mut self) {
        // offset + length > burst: the two and 2^14 - 1 - burst, as sums and carries of the three, make a carry
        first = (range.addr & window).resize::<14>();
        length = range.len.resize::<14>();
        over.a = !(first ^ length ^ burst);
        over.b = ((first | length) & !burst) << 1;
        fits = !over.carry;
        counted = range;
        counted.len = range.len - 1;
    }
}

/// Splitter for beats of `K` bytes.
#[derive(Clone, Debug, Block)]
pub struct Split<const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Ranges in.
    pub s: StreamIn<Range>,
    /// The range at `s` is one burst, see [`Fits`].
    pub s_fits: Signal<In, Bit>,
    /// Bursts out.
    pub m: StreamOut<Burst>,
    valid: Reg<Bit>,
    addr: Dff<Bits<64>>,
    /// Bytes less one.
    rest: Dff<Bits<13>>,
    tag: Dff<Bits<4>>,
    /// The rest ends in the window of its first byte.
    fits: Dff<Bit>,
    take: Signal<Local, Bit>,
    offset: Signal<Local, Bits<14>>,
    reach: Signal<Local, Bits<14>>,
    over: Signal<Local, Bits<14>>,
    /// Bytes from the start of the first beat to the last byte.
    bytes: Signal<Local, Bits<14>>,
    more: Signal<Local, Bits<14>>,
    /// Offset bits of an address.
    #[init(Constant::new((axi::burst_bytes(K) as u64 - 1).to_bits()))]
    window: Constant<Bits<64>>,
    #[init(Constant::new((axi::burst_bytes(K) as u64).to_bits()))]
    burst: Constant<Bits<14>>,
    /// Offset bits of a lane.
    #[init(Constant::new((K as u64 - 1).to_bits()))]
    lanes: Constant<Bits<14>>,
    #[init(Constant::new(u64::from(axi::burst_size(K)).to_bits()))]
    log_beat: Constant<Bits<3>>,
}

impl<const K: usize> Logic for Split<K> {
    describe!("split", format!("{K}"), "Cuts byte ranges into AXI bursts.");

    #[kernel]
    fn update(&mut self) {
        // Offset in the window of the last byte; beyond the window when the range is to be cut.
        offset = (addr & window).resize::<14>();
        reach = offset + rest.resize::<14>();
        over = reach - burst;
        // Beats less one: to the last byte, or to the end of the window.
        bytes = (offset & lanes) + rest.resize::<14>();
        more = ((burst - 1) & !offset) >> log_beat;
        if fits {
            more = bytes >> log_beat;
        }
        m.valid = valid;
        m.payload.addr = addr;
        m.payload.len = more.resize::<8>();
        m.payload.last = fits;
        m.payload.tag = tag;

        take = !valid | (fits & m.ready);
        s.ready = take;
        if take {
            fits = s_fits;
            valid = s.valid;
            addr = s.payload.addr;
            rest = s.payload.more;
            tag = s.payload.tag;
        } else if m.ready {
            addr = (addr | window) + 1;
            rest = over.resize::<13>();
            fits = !(over & !(burst - 1)).any();
        }
    }
}
