//! First-in first-out queue between two streams of one clock.
//!
//! Holds 2^A + 1 items; of LUT RAM of 2^5 words and more, 2^A. Full rate: a push and a pop in every cycle. An item pushed
//! in cycle n can be popped in cycle n + 1: while the RAM is empty it goes past it. `s.ready` and `m.valid` come straight
//! from registers, as does `level`; `m.payload` of LUT RAM is read at an address in a register, of one or two bits comes from
//! a register, and that of block RAM stands behind a multiplexer.
use crate::cell::fifo_ram::FifoRam;
use crate::cell::ram::Style;
use crate::prelude::*;

/// Queue of items of type `T` over a RAM of 2^A words.
#[derive(Clone, Debug, LogicBlock)]
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
    push: Signal<Local, Bit>,
    pop: Signal<Local, Bit>,
    fetch: Signal<Local, Bit>,
    pass: Signal<Local, Bit>,
    store: Signal<Local, Bit>,
    free: Signal<Local, Bit>,
    behind_write: Signal<Local, Bits<16>>,
    behind_read: Signal<Local, Bits<16>>,
    more: Signal<Local, Bits<16>>,
    fewer: Signal<Local, Bits<16>>,
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
            push: Signal::default(),
            pop: Signal::default(),
            fetch: Signal::default(),
            pass: Signal::default(),
            store: Signal::default(),
            free: Signal::default(),
            behind_write: Signal::default(),
            behind_read: Signal::default(),
            more: Signal::default(),
            fewer: Signal::default(),
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

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, ram);
        dff_setup!(self, clock, write, read, items, full, empty, held);
        // what becomes of the item that comes, and whose turn it is to be offered
        self.free.next = !self.held.q.val() | self.m.ready.val();
        self.push.next = self.s.valid.val() & !self.full.q.val();
        self.pop.next = self.held.q.val() & self.m.ready.val();
        self.pass.next = self.s.valid.val() & self.empty.q.val() & self.free.val();
        self.store.next = self.push.val() & !self.pass.val();
        // an item in the RAM stands behind one that is offered
        self.fetch.next = !self.empty.q.val() & self.m.ready.val();
        // an item that goes past the RAM is written too, and counts as read
        self.ram.we.next = self.push.val();
        self.ram.waddr.next = self.write.q.val();
        self.ram.wdata.next = self.s.payload.val();
        self.ram.re.next = self.free.val();
        self.ram.pass.next = self.empty.q.val();
        self.ram.raddr.next = self.read.q.val();
        self.behind_write.next = self.write.q.val() + 1;
        if self.push.val() {
            self.write.d.next = self.behind_write.val() & self.wrap.val();
        }
        self.behind_read.next = self.read.q.val() + 1;
        if self.fetch.val() | self.pass.val() {
            self.read.d.next = self.behind_read.val() & self.wrap.val();
            self.held.d.next = true;
        } else if self.m.ready.val() {
            self.held.d.next = false;
        }
        // two sums of which one is chosen; a difference would share a carry chain with the sum, behind the choice
        self.more.next = self.items.q.val() + 1;
        self.fewer.next = !(!self.items.q.val() + 1);
        if self.push.val() & !self.pop.val() {
            self.items.d.next = self.more.val() & self.mask.val();
        } else if !self.push.val() & self.pop.val() {
            self.items.d.next = self.fewer.val() & self.mask.val();
        }
        // one of them is offered whenever another one is stored or fetched
        if self.store.val() & !self.fetch.val() {
            self.full.d.next = self.items.q.val() == self.most.val();
            self.empty.d.next = false;
        } else if !self.store.val() & self.fetch.val() {
            self.full.d.next = false;
            self.empty.d.next = self.items.q.val() == 2;
        }
        self.s.ready.next = !self.full.q.val();
        self.m.valid.next = self.held.q.val();
        self.m.payload.next = self.ram.rdata.val();
        self.level.next = self.items.q.val();
    }
}
