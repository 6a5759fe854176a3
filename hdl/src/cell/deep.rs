//! Queue in block RAM, for wide items that may take a cycle more: no LUT a bit of payload.
//!
//! Holds 2^A items. Full rate: a push and a pop in every cycle. An item pushed in cycle n can be popped in cycle n + 2;
//! nothing goes past the RAM. `s.ready` and `m.valid` come straight from registers, as does `level`, and `m.payload` from
//! the RAM. An item is there before it is offered: that nothing is, `level` tells, not `m.valid`.
use crate::cell::count::one_less;
use crate::cell::ram::{Ram, Style};
use crate::prelude::*;

/// Queue of items of type `T` over a RAM of 2^A words.
#[derive(Clone, Debug, Block)]
#[block(A = "LOG_DEPTH")]
pub struct Deep<T: Synth, const A: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Items in.
    pub s: StreamIn<T>,
    /// Items out.
    pub m: StreamOut<T>,
    /// Items held, the one that is offered included.
    pub level: Signal<Out, Bits<16>>,
    /// For a RAM beside this one, with more of each item: it is written in this cycle.
    pub we: Signal<Out, Bit>,
    /// Where.
    pub waddr: Signal<Out, Bits<A>>,
    /// It is read.
    pub re: Signal<Out, Bit>,
    /// Where.
    pub raddr: Signal<Out, Bits<A>>,
    #[init(Ram::new(Style::Block))]
    ram: Ram<T, A>,
    /// Where the next item is written.
    write: Reg<Bits<A>>,
    /// Where the one behind that offered stands.
    read: Reg<Bits<A>>,
    items: Reg<Bits<16>>,
    full: Reg<Bit>,
    /// None stands behind the one that is offered.
    #[init(Reg::new(true))]
    empty: Reg<Bit>,
    held: Reg<Bit>,
    /// Items when there is room for one more.
    #[init(Constant::new(((1u64 << A) - 1).to_bits()))]
    most: Constant<Bits<16>>,
    /// Bits of the number of items.
    #[init(Constant::new(((2u64 << A) - 1).to_bits()))]
    mask: Constant<Bits<16>>,
}

impl<T: Synth, const A: usize> Logic for Deep<T, A> {
    describe!(
        "deep",
        format!("{}x{}", 1usize << A, T::BITS),
        "Stream queue in block RAM, full rate, two cycles of latency."
    );

    #[kernel]
    fn update(&mut self) {
        let push = s.valid & !full;
        let pop = held & m.ready;
        let fetch = !empty & (m.ready | !held);
        ram.we = push;
        ram.waddr = write;
        ram.wdata = s.payload;
        ram.re = fetch;
        ram.raddr = read;
        we = push;
        waddr = write;
        re = fetch;
        raddr = read;
        if push {
            write += 1;
        }
        if fetch {
            read += 1;
            held = true;
        } else if m.ready {
            held = false;
        }
        let more = items + 1;
        let fewer = one_less(items);
        if push & !pop {
            items = more & mask;
            full = items == most;
        } else if !push & pop {
            items = fewer & mask;
            full = false;
        }
        // with nothing offered no more than one is behind it
        if push & !fetch {
            empty = false;
        } else if !push & fetch {
            empty = (items == 2) | !held;
        }
        s.ready = !full;
        m.valid = held;
        m.payload = ram.rdata;
        level = items;
    }
}
