//! First-in first-out queue between two streams of one clock.
//!
//! Holds 2^A + 1 items; of LUT RAM of 2^5 words and more, 2^A. Full rate: a push and a pop in every cycle. An item pushed
//! in cycle n can be popped in cycle n + 1: while the RAM is empty it goes past it. `s.ready` and `m.valid` come straight
//! from registers, as does `level`; `m.payload` of LUT RAM is read at an address in a register, of one or two bits comes from
//! a register, and that of block RAM stands behind a multiplexer.
use crate::cell::count::one_less;
use crate::cell::fifo_ram::FifoRam;
use crate::cell::ram::Style;
use crate::prelude::*;

/// Queue of items of type `T` over a RAM of 2^A words.
#[derive(Clone, Debug, Block)]
#[block(no_default, A = "LOG_DEPTH")]
pub struct Fifo<T: Synth, const A: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Items in.
    pub s: StreamIn<T>,
    /// Items out.
    pub m: StreamOut<T>,
    /// Items held, the one that is offered included.
    pub level: Signal<Out, Bits<16>>,
    ram: FifoRam<T, A>,
    /// Where the next item is written.
    write: Reg<Bits<16>>,
    /// Where the one behind that offered stands.
    read: Reg<Bits<16>>,
    items: Reg<Bits<16>>,
    full: Reg<Bit>,
    empty: Reg<Bit>,
    held: Reg<Bit>,
    /// Items when there is room for one more.
    most: Constant<Bits<16>>,
    /// Bits of the number of items.
    mask: Constant<Bits<16>>,
    /// Bits of an address.
    wrap: Constant<Bits<16>>,
}

impl<T: Synth, const A: usize> Fifo<T, A> {
    /// A queue whose RAM is made of `style`.
    pub fn new(style: Style) -> Self {
        let ram = FifoRam::<T, A>::new(style);
        let words = ram.words();
        // LUT RAM has the item that is offered in it
        let items = match style {
            Style::Distributed => words.min((1 << A) + 1),
            Style::Block | Style::Ultra => words + 1,
        };
        Self {
            clock: ClkRst::default(),
            s: StreamIn::default(),
            m: StreamOut::default(),
            level: Signal::default(),
            ram,
            write: Reg::default(),
            read: Reg::default(),
            items: Reg::default(),
            full: Reg::default(),
            empty: Reg::new(true),
            held: Reg::default(),
            most: Constant::new((items - 1).to_bits()),
            mask: Constant::new(((2u64 << A) - 1).to_bits()),
            wrap: Constant::new((words - 1).to_bits()),
        }
    }

    /// What it is made of.
    pub fn style(&self) -> Style {
        self.ram.style()
    }
}

impl<T: Synth, const A: usize> Default for Fifo<T, A> {
    fn default() -> Self {
        Self::new(Style::for_depth(A))
    }
}

impl<T: Synth, const A: usize> Logic for Fifo<T, A> {
    describe!(
        "fifo",
        |this| format!("{}x{}_{}", 1usize << A, T::BITS, this.ram.style().name()),
        "Stream queue, full rate, one cycle of latency."
    );

    #[kernel]
    fn update(&mut self) {
        // where the item that comes goes, and which one is offered next
        let free = !held | m.ready;
        let push = s.valid & !full;
        let pop = held & m.ready;
        let pass = s.valid & empty & free;
        let store = push & !pass;
        // an item in the RAM stands behind one that is offered
        let fetch = !empty & m.ready;
        // an item that goes past the RAM is written too, and counts as read
        ram.we = push;
        ram.waddr = write;
        ram.wdata = s.payload;
        ram.re = free;
        ram.pass = empty;
        ram.raddr = read;
        let next_write = write + 1;
        if push {
            write = next_write & wrap;
        }
        let next_read = read + 1;
        if fetch | pass {
            read = next_read & wrap;
            held = true;
        } else if m.ready {
            held = false;
        }
        let more = items + 1;
        let fewer = one_less(items);
        if push & !pop {
            items = more & mask;
        } else if !push & pop {
            items = fewer & mask;
        }
        // one of them is offered whenever another one is stored or fetched
        if store & !fetch {
            full = items == most;
            empty = false;
        } else if !store & fetch {
            full = false;
            empty = items == 2;
        }
        s.ready = !full;
        m.valid = held;
        m.payload = ram.rdata;
        level = items;
    }
}
