//! First-in first-out queue between two streams of one clock.
//!
//! Holds 2^A items in RAM and one in its output register. Full rate: a push and a pop in every cycle. An item pushed
//! in cycle n can be popped in cycle n + 1: while the RAM is empty it goes past it. `s.ready` and `m.valid` come straight
//! from registers, as does `level`; `m.payload` of block RAM stands behind a multiplexer, `s.payload` of LUT RAM in front of one.
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
    /// Items held, the one in the output register included.
    pub level: Signal<Out, Bits<16>>,
    ram: FifoRam<T, A>,
    write: Reg<Bits<A>>,
    read: Reg<Bits<A>>,
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
    more: Signal<Local, Bits<16>>,
    fewer: Signal<Local, Bits<16>>,
    /// Items with the RAM full but for one word, and the output register.
    most: Constant<Bits<16>>,
    /// Bits of the number of items.
    mask: Constant<Bits<16>>,
}

impl<T: Synth, const A: usize> Fifo<T, A> {
    /// A queue whose RAM is made of `style`.
    pub fn new(style: Style) -> Self {
        assert!(A < 16, "FIFO of 2^{A} items: up to 2^15 can be built");
        Self {
            clock: ClkRst::default(),
            s: StreamIn::default(),
            m: StreamOut::default(),
            level: Signal::default(),
            ram: FifoRam::new(style),
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
            more: Signal::default(),
            fewer: Signal::default(),
            most: Constant::new((1u64 << A).to_bits()),
            mask: Constant::new(((2u64 << A) - 1).to_bits()),
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
        // where an item that goes past the RAM would stand is free
        self.ram.we.next = self.push.val();
        self.ram.waddr.next = self.write.q.val();
        self.ram.wdata.next = self.s.payload.val();
        self.ram.re.next = self.free.val();
        self.ram.pass.next = self.empty.q.val();
        self.ram.raddr.next = self.read.q.val();
        if self.store.val() {
            self.write.d.next = self.write.q.val() + 1;
        }
        if self.fetch.val() {
            self.read.d.next = self.read.q.val() + 1;
        }
        if self.fetch.val() | self.pass.val() {
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
        // the output register holds one of them whenever the RAM is written or read
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
