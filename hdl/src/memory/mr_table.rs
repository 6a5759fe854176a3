//! Memory region table: the check that guards host memory.
//!
//! 2^M entries ([`image::MrCtx`]) and N check ports that never wait: a port has its own copy of the table in block RAM
//! and takes a request in every cycle. An access is allowed when it has no bytes, or when the entry at key bits 8 and
//! up is valid, has this key bit for bit, the same protection domain and the right asked for, and the bytes lie between
//! `base` and `last` without passing the end of the address space. Local reads need no right; a memory window has none
//! locally, and one that is only of a queue pair is that one's.
//!
//! A peer may invalidate a key (SEND with invalidate): port `inv` clears the entry if it is valid, its key and
//! protection domain fit, and it is a window of this queue pair only or a region that no window may be bound to. It
//! answers in 5 cycles; a command that writes meanwhile makes it look again. One request at a time.
//!
//! Latency: [`MR_LATENCY`](crate::bus::dma::MR_LATENCY) cycles. An entry written in cycle n holds for requests from
//! cycle n + 1 on. After reset the table is swept, an entry a cycle; `ready` tells when it is done, and requests and
//! writes before that are lost.
//!
//! ```text
//!  cycle n             n+1                 n+2                  n+3              n+4
//!  RAM read, len - 1 ─► latch, addr+len-1 ─► bounds, key, PD ... ─► all of them ─► ok
//! ```
use crate::bus::types::image::MrCtx;
use crate::prelude::*;

use super::types::{MrAccess, MrVerdict};

/// What the port `inv` is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum Invalidation {
    /// Nothing.
    Idle,
    /// Reads the entry.
    Read,
    /// Compares it.
    Compare,
    /// Clears it, if it is still the same.
    Clear,
}

/// Memory region table with `N` check ports.
#[derive(LogicBlock)]
pub struct MrTable<const M: usize, const N: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Replaces the entry at `index` (command block).
    pub write: Signal<In, Bit>,
    /// Index of the entry; bits from M up are 0.
    pub index: Signal<In, Bits<16>>,
    /// The new entry.
    pub entry: Signal<In, MrCtx>,
    /// The sweep after reset is done.
    pub ready: Signal<Out, Bit>,
    /// Check ports.
    pub check: [MrCheckIn; N],
    /// Keys to invalidate: of the request `key` and `pd` count.
    pub inv: MrCheckIn,
    port: [MrPort<M>; N],
    /// The copy of `inv`.
    copy: Ram<MrCtx, M>,
    step: Reg<Invalidation>,
    key: Dff<Bits<32>>,
    pd: Dff<Bits<24>>,
    qpn: Dff<Bits<16>>,
    may: Signal<Local, Bit>,
    entry_there: Dff<Bit>,
    touched: Dff<Bit>,
    done: Reg<Bit>,
    ok: Dff<Bit>,
    clear: Signal<Local, Bit>,
    sweep: Reg<Bits<M>>,
    swept: Reg<Bit>,
    we: Signal<Local, Bit>,
    waddr: Signal<Local, Bits<M>>,
    wdata: Signal<Local, MrCtx>,
    none: Constant<MrCtx>,
}

impl<const M: usize, const N: usize> Default for MrTable<M, N> {
    fn default() -> Self {
        assert!(
            (2..=16).contains(&M),
            "2^{M} memory regions: 2^2 to 2^16 can be built"
        );
        Self {
            clock: ClkRst::default(),
            write: Signal::default(),
            index: Signal::default(),
            entry: Signal::default(),
            ready: Signal::default(),
            check: std::array::from_fn(|_| MrCheckIn::default()),
            inv: MrCheckIn::default(),
            port: std::array::from_fn(|_| MrPort::default()),
            copy: Ram::default(),
            step: Reg::default(),
            key: Dff::default(),
            pd: Dff::default(),
            qpn: Dff::default(),
            may: Signal::default(),
            entry_there: Dff::default(),
            touched: Dff::default(),
            done: Reg::default(),
            ok: Dff::default(),
            clear: Signal::default(),
            sweep: Reg::default(),
            swept: Reg::default(),
            we: Signal::default(),
            waddr: Signal::default(),
            wdata: Signal::default(),
            none: Constant::new(MrCtx::default()),
        }
    }
}

impl<const M: usize, const N: usize> Logic for MrTable<M, N> {
    describe!(
        "mr_table",
        format!("{}x{N}", 1usize << M),
        "Memory region table with check ports."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, copy);
        dff_setup!(
            self,
            clock,
            sweep,
            swept,
            step,
            key,
            pd,
            qpn,
            entry_there,
            touched,
            done,
            ok
        );
        self.ready.next = self.swept.q.val();
        self.we.next = self.write.val();
        self.waddr.next = self.index.val().get_bits::<M>(0);
        self.wdata.next = self.entry.val();

        self.copy.re.next = true;
        self.copy.raddr.next = self.key.q.val().get_bits::<M>(8);
        self.may.next = !self.copy.rdata.val().bindable & !self.copy.rdata.val().window;
        if self.copy.rdata.val().qp_only {
            self.may.next = self.copy.rdata.val().qpn == bit_cast::<24, 16>(self.qpn.q.val());
        }
        self.clear.next = false;
        self.done.d.next = false;
        self.touched.d.next = self.touched.q.val() | self.write.val();
        match self.step.q.val() {
            Invalidation::Idle => {
                self.key.d.next = self.inv.request.val().key;
                self.pd.d.next = self.inv.request.val().pd;
                self.qpn.d.next = self.inv.request.val().qpn;
                if self.inv.valid.val() {
                    self.step.d.next = Invalidation::Read;
                }
            }
            Invalidation::Read => {
                self.touched.d.next = self.write.val();
                self.step.d.next = Invalidation::Compare;
            }
            Invalidation::Compare => {
                self.entry_there.d.next = self.copy.rdata.val().valid
                    & (self.copy.rdata.val().key == self.key.q.val())
                    & (self.copy.rdata.val().pd == self.pd.q.val())
                    & self.may.val();
                self.step.d.next = Invalidation::Clear;
            }
            Invalidation::Clear => {
                if self.touched.q.val() | self.write.val() {
                    self.step.d.next = Invalidation::Read;
                } else {
                    self.clear.next = self.entry_there.q.val();
                    self.ok.d.next = self.entry_there.q.val();
                    self.done.d.next = true;
                    self.step.d.next = Invalidation::Idle;
                }
            }
            _ => {}
        }
        self.inv.done.next = self.done.q.val();
        self.inv.ok.next = self.ok.q.val();
        if self.clear.val() {
            self.we.next = true;
            self.waddr.next = self.key.q.val().get_bits::<M>(8);
            self.wdata.next = self.none.val();
        }
        if !self.swept.q.val() {
            self.sweep.d.next = self.sweep.q.val() + 1;
            self.swept.d.next = self.sweep.q.val().all();
            self.we.next = true;
            self.waddr.next = self.sweep.q.val();
            self.wdata.next = self.none.val();
        }
        self.copy.we.next = self.we.val();
        self.copy.waddr.next = self.waddr.val();
        self.copy.wdata.next = self.wdata.val();
        for i in 0..N {
            ClkRst::link(&mut self.clock, &mut self.port[i].clock);
            self.port[i].we.next = self.we.val();
            self.port[i].waddr.next = self.waddr.val();
            self.port[i].wdata.next = self.wdata.val();
            MrCheckIn::link(&mut self.check[i], &mut self.port[i].check);
        }
    }
}

/// One check port with its copy of the table.
#[derive(LogicBlock, Default)]
pub struct MrPort<const M: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Write enable.
    pub we: Signal<In, Bit>,
    /// Write address.
    pub waddr: Signal<In, Bits<M>>,
    /// Entry to write.
    pub wdata: Signal<In, MrCtx>,
    /// The port.
    pub check: MrCheckIn,
    table: Ram<MrCtx, M>,
    /// Requests under way, youngest in bit 0.
    valid: Reg<Bits<3>>,
    done: Reg<Bit>,
    ok: Dff<Bit>,
    fetched: Dff<MrAccess>,
    looked_up: Dff<MrAccess>,
    entry: Dff<MrCtx>,
    verdict: Dff<MrVerdict>,
    sum: Signal<Local, Bits<65>>,
    allowed: Signal<Local, Bit>,
}

impl<const M: usize> Logic for MrPort<M> {
    describe!(
        "mr_port",
        format!("{}", 1usize << M),
        "Memory region check, a request a cycle."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, table);
        dff_setup!(
            self, clock, valid, done, ok, fetched, looked_up, entry, verdict
        );
        self.table.we.next = self.we.val();
        self.table.waddr.next = self.waddr.val();
        self.table.wdata.next = self.wdata.val();

        // Cycle n.
        self.table.re.next = true;
        self.table.raddr.next = self.check.request.val().key.get_bits::<M>(8);
        self.fetched.d.next.addr = self.check.request.val().addr;
        self.fetched.d.next.more = bit_cast::<65, 32>(self.check.request.val().len - 1);
        self.fetched.d.next.none = self.check.request.val().len == 0;
        self.fetched.d.next.key = self.check.request.val().key;
        self.fetched.d.next.pd = self.check.request.val().pd;
        self.fetched.d.next.right = self.check.request.val().right;
        self.fetched.d.next.qpn = self.check.request.val().qpn;

        // Cycle n + 1: `more` becomes the last address, its top bit the wrap.
        self.sum.next = bit_cast::<65, 64>(self.fetched.q.val().addr) + self.fetched.q.val().more;
        self.looked_up.d.next = self.fetched.q.val();
        self.looked_up.d.next.more = self.sum.val();
        self.entry.d.next = self.table.rdata.val();

        // Cycle n + 2.
        self.allowed.next = false;
        match self.looked_up.q.val().right.index() {
            0 => {
                self.allowed.next = !self.entry.q.val().window;
            }
            1 => {
                self.allowed.next = self.entry.q.val().local_write;
            }
            2 => {
                self.allowed.next = self.entry.q.val().remote_write;
            }
            3 => {
                self.allowed.next = self.entry.q.val().remote_read;
            }
            4 => {
                self.allowed.next = self.entry.q.val().remote_atomic;
            }
            _ => {}
        }
        self.verdict.d.next.none = self.looked_up.q.val().none;
        self.verdict.d.next.right = self.entry.q.val().valid & self.allowed.val();
        self.verdict.d.next.key = self.entry.q.val().key == self.looked_up.q.val().key;
        self.verdict.d.next.pd = self.entry.q.val().pd == self.looked_up.q.val().pd;
        self.verdict.d.next.queue = !self.entry.q.val().qp_only
            | (self.entry.q.val().qpn == bit_cast::<24, 16>(self.looked_up.q.val().qpn));
        self.verdict.d.next.above = self.looked_up.q.val().addr >= self.entry.q.val().base;
        self.verdict.d.next.below =
            self.looked_up.q.val().more <= bit_cast::<65, 64>(self.entry.q.val().last);

        // Cycle n + 3.
        self.ok.d.next = self.verdict.q.val().none
            | (self.verdict.q.val().right
                & self.verdict.q.val().key
                & self.verdict.q.val().pd
                & self.verdict.q.val().queue
                & self.verdict.q.val().above
                & self.verdict.q.val().below);
        self.valid.d.next = (self.valid.q.val() << 1).replace_bit(0, self.check.valid.val());
        self.done.d.next = self.valid.q.val().get_bit(2);
        self.check.done.next = self.done.q.val();
        self.check.ok.next = self.ok.q.val();
    }
}
