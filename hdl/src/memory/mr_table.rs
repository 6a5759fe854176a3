//! Memory region table: the check that guards host memory.
//!
//! 2^M entries ([`MrCtx`]) and N check ports that never wait: a port has its own copy of the table in block RAM
//! and takes a request in every cycle. An access without bytes is allowed. Any other one is allowed when the entry at
//! key bits 8 and up is valid, has this key bit for bit, the same protection domain and the right asked for. Its bytes
//! must lie between `base` and `last` without passing the end of the address space. Local reads need no right; a memory
//! window has none locally, and one that is only of a queue pair is that one's.
//!
//! A peer may invalidate a key (SEND with invalidate): port `inv` clears the entry if it is valid, its key and
//! protection domain fit, and it is a window of this queue pair only or a region that says so (`invalidate`). It
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
use crate::bus::types::MrRight;
use crate::bus::types::image::MrCtx;
use crate::prelude::*;

use super::types::{MrAccess, MrChecks};

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
#[derive(Block)]
#[block(check)]
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
    #[init(Constant::new(MrCtx::default()))]
    none: Constant<MrCtx>,
}

impl<const M: usize, const N: usize> MrTable<M, N> {
    fn check() {
        assert!(
            (2..=16).contains(&M),
            "2^{M} memory regions: 2^2 to 2^16 can be built"
        );
    }
}

impl<const M: usize, const N: usize> Logic for MrTable<M, N> {
    describe!(
        "mr_table",
        format!("{}x{N}", 1usize << M),
        "Memory region table with check ports."
    );

    #[kernel]
    fn update(&mut self) {
        ready = swept;
        we = write;
        waddr = index.low::<M>();
        wdata = entry;

        copy.re = true;
        copy.raddr = key.slice::<M>(8);
        may = copy.rdata.invalidate & !copy.rdata.window;
        if copy.rdata.qp_only {
            may = copy.rdata.qpn == qpn.resize::<24>();
        }
        clear = false;
        done = false;
        touched = touched | write;
        match step {
            Invalidation::Idle => {
                key = inv.request.key;
                pd = inv.request.pd;
                qpn = inv.request.qpn;
                if inv.valid {
                    step = Invalidation::Read;
                }
            }
            Invalidation::Read => {
                touched = write;
                step = Invalidation::Compare;
            }
            Invalidation::Compare => {
                entry_there =
                    copy.rdata.valid & (copy.rdata.key == key) & (copy.rdata.pd == pd) & may;
                step = Invalidation::Clear;
            }
            Invalidation::Clear => {
                if touched | write {
                    step = Invalidation::Read;
                } else {
                    clear = entry_there;
                    ok = entry_there;
                    done = true;
                    step = Invalidation::Idle;
                }
            }
            _ => {}
        }
        inv.done = done;
        inv.ok = ok;
        if clear {
            we = true;
            waddr = key.slice::<M>(8);
            wdata = none;
        }
        if !swept {
            sweep = sweep + 1;
            swept = sweep.all();
            we = true;
            waddr = sweep;
            wdata = none;
        }
        copy.we = we;
        copy.waddr = waddr;
        copy.wdata = wdata;
        for i in 0..N {
            port[i].we = we;
            port[i].waddr = waddr;
            port[i].wdata = wdata;
            forward!(check[i] <= port[i].check);
        }
    }
}

/// One check port with its copy of the table.
#[derive(Block)]
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
    access: Dff<MrAccess>,
    entry: Dff<MrCtx>,
    checks: Dff<MrChecks>,
    sum: Signal<Local, Bits<65>>,
    allowed: Signal<Local, Bit>,
}

impl<const M: usize> Logic for MrPort<M> {
    describe!(
        "mr_port",
        format!("{}", 1usize << M),
        "Memory region check, a request a cycle."
    );

    #[kernel]
    fn update(&mut self) {
        table.we = we;
        table.waddr = waddr;
        table.wdata = wdata;

        // Cycle n.
        table.re = true;
        table.raddr = check.request.key.slice::<M>(8);
        fetched.addr = check.request.addr;
        fetched.more = (check.request.len - 1).resize::<65>();
        fetched.none = check.request.len == 0;
        copy!(fetched <= check.request; key, pd, right, qpn);

        // Cycle n + 1: `more` becomes the last address, its top bit the wrap.
        sum = fetched.addr.resize::<65>() + fetched.more;
        access = fetched;
        access.more = sum;
        entry = table.rdata;

        // Cycle n + 2.
        allowed = match access.right {
            MrRight::LocalRead => !entry.window,
            MrRight::LocalWrite => entry.local_write,
            MrRight::RemoteWrite => entry.remote_write,
            MrRight::RemoteRead => entry.remote_read,
            MrRight::RemoteAtomic => entry.remote_atomic,
            _ => false,
        };
        checks.none = access.none;
        checks.right = entry.valid & allowed;
        checks.key = entry.key == access.key;
        checks.pd = entry.pd == access.pd;
        checks.queue = !entry.qp_only | (entry.qpn == access.qpn.resize::<24>());
        checks.above = access.addr >= entry.base;
        checks.below = access.more <= entry.last.resize::<65>();

        // Cycle n + 3.
        ok = checks.none
            | (checks.right & checks.key & checks.pd & checks.queue & checks.above & checks.below);
        valid = (valid << 1).replace_bit(0, check.valid);
        done = valid.bit(2);
        check.done = done;
        check.ok = ok;
    }
}
