//! Memory region table: the check that guards host memory.
//!
//! 2^M entries ([`MrCtx`]) and N check ports that never wait: a port has its own copy of the table in block RAM
//! and takes a request in every cycle. An access without bytes is allowed. Any other one is allowed when the entry at
//! key bits 8 and up is valid, has this key bit for bit, the same protection domain and the right asked for. Its bytes
//! must lie between `base` and `last` without passing the end of the address space. Local reads need no right; a memory
//! window has none locally, and one that is only of a queue pair is that one's.
//!
//! A peer may invalidate a key (SEND with invalidate): port `inv` makes the entry invalid if it is valid, its key and
//! protection domain fit, and it is a window of this queue pair only or a region that says so (`invalidate`). It
//! answers in 5 cycles, behind a change in 13 at most; a command that writes meanwhile makes it look again.
//!
//! Port `change` does the same for a request of the queue pair itself, or binds a window (IB1 10.6.7.2): the window is of this
//! protection domain, and not bound if it is one of a queue pair; the region too, with all bytes, `bindable`, and with local
//! write if a peer may write, and without `invalidate`: its windows would outlive its key. No bytes leave a window without a
//! queue pair unbound, whatever the region.
//!
//! A port has a request at a time, which stands until its answer.
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

/// What the ports `inv` and `change` are doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum Invalidation {
    /// Nothing.
    Idle,
    /// Reads the entry.
    Read,
    /// Compares it.
    Compare,
    /// Writes it, if it is still the same.
    Clear,
    /// Reads the region to bind a window to.
    Region,
    /// Compares that, and reads the entry.
    Span,
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
    /// Requests of send queues.
    pub change: KeyChangeIn,
    port: [MrPort<M>; N],
    /// The copy of `inv` and `change`.
    copy: Ram<MrCtx, M>,
    step: Reg<Invalidation>,
    inv_due: Reg<Bit>,
    change_due: Reg<Bit>,
    /// The request is that of `change`, and a window is bound.
    own: Dff<Bit>,
    binds: Dff<Bit>,
    key: Dff<Bits<32>>,
    pd: Dff<Bits<24>>,
    qpn: Dff<Bits<16>>,
    may: Signal<Local, Bit>,
    entry_there: Dff<Bit>,
    touched: Dff<Bit>,
    done: Reg<Bit>,
    changed: Reg<Bit>,
    ok: Dff<Bit>,
    /// Of a bind: its bytes less one, its last byte with bit 64 when that is beyond the address space.
    empty: Dff<Bit>,
    more: Dff<Bits<64>>,
    last: Dff<Bits<65>>,
    region: Dff<Bit>,
    above: Dff<Bit>,
    below: Dff<Bit>,
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

        // the request of `change` stands: its last byte is known two cycles on
        let wanted = change.request;
        empty = !wanted.length.any();
        more = wanted.length - 1;
        last = wanted.addr.resize::<65>() + more.resize::<65>();

        let inv_waits = inv.valid | inv_due;
        let change_waits = change.valid | change_due;
        inv_due = inv_waits;
        change_due = change_waits;
        copy.re = true;
        copy.raddr = key.slice::<M>(8);
        let found = copy.rdata;
        may = found.invalidate & !found.window;
        if found.qp_only {
            may = found.qpn == qpn.resize::<24>();
        }
        let in_domain = found.pd == pd;
        clear = false;
        done = false;
        changed = false;
        touched = touched | write;
        match step {
            Invalidation::Idle => {
                own = !inv_waits;
                binds = !inv_waits & wanted.binds;
                key = inv.request.key;
                pd = inv.request.pd;
                qpn = inv.request.qpn;
                if !inv_waits {
                    copy!(self <= wanted; key, pd, qpn);
                }
                if inv_waits {
                    inv_due = false;
                    step = Invalidation::Read;
                } else if change_waits {
                    change_due = false;
                    step = if wanted.binds {
                        Invalidation::Region
                    } else {
                        Invalidation::Read
                    };
                }
            }
            Invalidation::Region => {
                copy.raddr = wanted.lkey.slice::<M>(8);
                touched = write;
                step = Invalidation::Span;
            }
            Invalidation::Span => {
                let writes = wanted.remote_write | wanted.remote_atomic;
                region = found.valid
                    & found.bindable
                    & !found.invalidate
                    & !found.window
                    & in_domain
                    & (found.key == wanted.lkey)
                    & (found.local_write | !writes);
                above = wanted.addr >= found.base;
                below = last <= found.last.resize::<65>();
                step = Invalidation::Compare;
            }
            Invalidation::Read => {
                touched = write;
                step = Invalidation::Compare;
            }
            Invalidation::Compare => {
                let named = found.valid & (found.key == key) & may;
                let window = found.window & (found.key.slice::<24>(8) == key.slice::<24>(8));
                let free = !(found.qp_only & (found.valid | empty));
                let bindable = window & free & (empty | (region & above & below));
                entry_there = in_domain & if binds { bindable } else { named };
                step = Invalidation::Clear;
            }
            Invalidation::Clear => {
                if touched | write {
                    step = if binds {
                        Invalidation::Region
                    } else {
                        Invalidation::Read
                    };
                } else {
                    clear = entry_there;
                    ok = entry_there;
                    done = !own;
                    changed = own;
                    step = Invalidation::Idle;
                }
            }
            _ => {}
        }
        inv.done = done;
        inv.ok = ok;
        change.done = changed;
        change.ok = ok;
        // a window that is not bound keeps its place, its domain and its kind
        if clear {
            we = true;
            waddr = key.slice::<M>(8);
            wdata = none;
            wdata.base = wanted.addr;
            wdata.last = last.low::<64>();
            wdata.valid = binds & !empty;
            copy!(wdata <= self; key, pd);
            copy!(wdata <= wanted; remote_write, remote_read, remote_atomic);
            copy!(wdata <= found; window, qp_only);
            if found.qp_only {
                wdata.qpn = qpn.resize::<24>();
            }
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
