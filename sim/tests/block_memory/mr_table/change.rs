//! `mr_table`: windows that a send queue binds, and keys that it invalidates.

use std::cell::Cell;

use fastrand::Rng;
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::wqe::WindowBind;

use super::{LOG, PORTS, Setup, write_of};

/// A change that a queue pair asks for: of a bind its window.
#[derive(Clone, Copy, Debug)]
struct Change {
    bind: Option<WindowBind>,
    key: u32,
    pd: u32,
    qpn: u32,
}

const PD: u32 = 7;
const QPN: u32 = 5;
/// Place of the window, and of the region.
const WINDOW: u32 = 3;
const REGION: u32 = 6;

fn region() -> MrCtx {
    MrCtx {
        base: 0x1000,
        last: 0x1fff,
        key: 0x0042_0000 | REGION << 8 | 5,
        pd: PD,
        valid: true,
        local_write: true,
        bindable: true,
        ..Default::default()
    }
}

fn window(qp_only: bool) -> MrCtx {
    MrCtx {
        key: 0x0077_0000 | WINDOW << 8 | 1,
        pd: PD,
        window: true,
        qp_only,
        ..Default::default()
    }
}

fn bind(addr: u64, length: u64) -> Change {
    Change {
        bind: Some(WindowBind {
            addr,
            length,
            lkey: region().key,
            remote_write: true,
            ..Default::default()
        }),
        key: window(false).key + 1,
        pd: PD,
        qpn: QPN,
    }
}

/// The entry that a bind leaves, by the rules of IB1 10.6.7.2.
fn bound(table: &[MrCtx], change: &Change, bind: &WindowBind) -> Option<MrCtx> {
    let at = |key: u32| table[(key >> 8) as usize % table.len()];
    let (window, region) = (at(change.key), at(bind.lkey));
    let named = window.window && window.key >> 8 == change.key >> 8 && window.pd == change.pd;
    let length = u128::from(bind.length);
    let free = !window.qp_only || !window.valid && length > 0;
    let end = u128::from(bind.addr) + length;
    let inside = bind.addr >= region.base && end <= u128::from(region.last) + 1;
    let writes = bind.remote_write || bind.remote_atomic;
    let may = region.valid
        && region.bindable
        && !region.invalidate
        && !region.window
        && (region.key, region.pd) == (bind.lkey, change.pd)
        && (region.local_write || !writes);
    (named && free && (length == 0 || inside && may)).then(|| MrCtx {
        base: bind.addr,
        last: bind.addr.wrapping_add(bind.length).wrapping_sub(1),
        key: change.key,
        valid: length > 0,
        remote_write: bind.remote_write,
        remote_read: bind.remote_read,
        remote_atomic: bind.remote_atomic,
        qpn: if window.qp_only { change.qpn } else { 0 },
        local_write: false,
        invalidate: false,
        bindable: false,
        ..window
    })
}

fn invalidated(table: &[MrCtx], change: &Change) -> Option<MrCtx> {
    let entry = table[(change.key >> 8) as usize % table.len()];
    let may = match entry.qp_only {
        true => entry.qpn == change.qpn,
        false => entry.invalidate && !entry.window,
    };
    let named = entry.valid && (entry.key, entry.pd) == (change.key, change.pd);
    (named && may).then_some(MrCtx {
        valid: false,
        ..entry
    })
}

impl Setup {
    /// Asks for a change; the answer comes within `limit` cycles and is that of the rules. `during` says what happens meanwhile.
    fn change(&mut self, change: &Change, limit: usize, during: impl Fn(&mut Self, usize)) -> bool {
        let dut = self.bench.dut_mut();
        let mut set = |name: &str, value: u64| {
            dut.set(dut.input(&format!("change_{name}")).unwrap(), value);
        };
        set("request.binds", change.bind.is_some().into());
        set("request.key", change.key.into());
        set("request.pd", change.pd.into());
        set("request.qpn", change.qpn.into());
        let bind = change.bind.unwrap_or_default();
        set("request.lkey", bind.lkey.into());
        set("request.addr", bind.addr);
        set("request.length", bind.length);
        set("request.remote_write", bind.remote_write.into());
        set("request.remote_read", bind.remote_read.into());
        set("request.remote_atomic", bind.remote_atomic.into());
        let ok = self.ask("change", limit, during);
        let made = match &change.bind {
            Some(bind) => bound(&self.table, change, bind),
            None => invalidated(&self.table, change),
        };
        assert_eq!(ok, made.is_some(), "{change:x?} of {:x?}", self.table);
        if let Some(entry) = made {
            self.table[(change.key >> 8) as usize % (1 << LOG)] = entry;
        }
        ok
    }

    fn with_window(qp_only: bool) -> Self {
        let mut setup = Self::new();
        setup.write(WINDOW as usize, window(qp_only));
        setup.write(REGION as usize, region());
        setup
    }

    /// What the peer may do is that of the table.
    fn probe(&mut self, key: u32) {
        for (addr, len) in [(0x1000, 1), (0x1fff, 1), (0x1800, 8)] {
            let access = write_of(key, addr, len);
            self.cycle(&[Some(access); PORTS]);
        }
        (0..6).for_each(|_| self.cycle(&[None; PORTS]));
    }
}

fn nothing(_: &mut Setup, _: usize) {}

#[test]
fn a_window_is_bound_and_invalidated() {
    for qp_only in [false, true] {
        let mut setup = Setup::with_window(qp_only);
        let request = bind(0x1800, 0x100);
        assert!(setup.change(&request, 7, nothing));
        setup.probe(request.key);
        assert_eq!(setup.change(&request, 7, nothing), !qp_only, "again");
        let end = Change {
            bind: None,
            ..request
        };
        let other = Change { qpn: 6, ..end };
        assert!(!setup.change(&other, 5, nothing), "of another queue pair");
        assert_eq!(setup.change(&end, 5, nothing), qp_only);
        setup.probe(request.key);
        assert!(setup.change(&request, 7, nothing), "free again");
        let empty = Change {
            bind: Some(WindowBind::default()),
            ..request
        };
        assert_eq!(setup.change(&empty, 7, nothing), !qp_only, "no bytes");
        setup.probe(request.key);
    }
}

fn spoilt(rng: &mut Rng) -> (MrCtx, MrCtx, Change) {
    let (mut window, mut region) = (window(rng.bool()), region());
    let base = [0, 0x1000, u64::MAX - 0xfff, 1 << 40][rng.usize(..4)];
    let size = [1, 0x1000, 1 << 33][rng.usize(..3)].min(u64::MAX - base);
    (region.base, region.last) = (base, base + (size - 1).min(u64::MAX - base));
    let edge = [0, 1, u64::MAX, size - 1, size, size.wrapping_add(1)];
    let mut request = bind(
        base.wrapping_add(edge[rng.usize(..6)]),
        edge[rng.usize(..6)],
    );
    let bind = request.bind.as_mut().unwrap();
    (bind.remote_write, bind.remote_read) = (rng.bool(), rng.bool());
    bind.remote_atomic = rng.bool();
    if rng.bool() {
        match rng.u8(..13) {
            0 => window.pd += 1,
            1 => window.window = false,
            2 => window.key ^= 1 << rng.u8(12..32),
            3 => window.valid = true,
            4 => region.pd += 1,
            5 => region.key ^= 1 << rng.u8(..8),
            6 => region.key ^= 1 << rng.u8(12..32),
            7 => region.bindable = false,
            8 => region.local_write = false,
            9 => region.window = true,
            10 => region.valid = false,
            11 => region.invalidate = true,
            _ => request.pd += 1,
        }
    }
    (window, region, request)
}

#[test]
fn binds_have_rules() {
    let mut setup = Setup::new();
    let mut bound = 0;
    for _ in 0..4000 {
        let (window, region, change) = spoilt(setup.bench.rng());
        setup.write(WINDOW as usize, window);
        setup.write(REGION as usize, region);
        bound += usize::from(setup.change(&change, 7, nothing));
    }
    assert!((400..2500).contains(&bound), "{bound} of 4000 bound");
}

/// A command that writes region or window while they are looked at is before or behind the bind.
#[test]
fn a_bind_and_a_command_do_not_mix() {
    for at in 0..7 {
        for place in [WINDOW, REGION] {
            let mut setup = Setup::with_window(true);
            let request = bind(0x1800, 0x100);
            setup.change(&request, 14, |setup, n| {
                if n == at {
                    setup.write(place as usize, MrCtx::default());
                }
            });
            setup.probe(request.key);
        }
    }
}

/// A peer's invalidation comes first, and holds the bind up for no longer than it takes.
#[test]
fn both_ports_at_once() {
    for at in 0..12 {
        let mut setup = Setup::with_window(true);
        let request = bind(0x1800, 0x100);
        assert!(setup.change(&request, 7, nothing));
        let again = Change {
            key: request.key + 1,
            ..request
        };
        let dut = setup.bench.dut_mut();
        let mut set = |name: &str, value: u64| dut.set(dut.input(name).unwrap(), value);
        set("inv_request.key", request.key.into());
        set("inv_request.pd", PD.into());
        set("inv_request.qpn", QPN.into());
        let done = setup.bench.dut().output("inv_done").unwrap();
        let ok = setup.bench.dut().output("inv_ok").unwrap();
        let (ended, now) = (Cell::new(false), Cell::new(0));
        // The reference knows what was first.
        let step = |setup: &mut Setup, n: usize| {
            now.set(n + 1);
            let dut = setup.bench.dut_mut();
            dut.set(dut.input("inv_valid").unwrap(), u64::from(n == at));
            setup.cycle(&[None; PORTS]);
            let dut = setup.bench.dut_mut();
            dut.set(dut.input("inv_valid").unwrap(), 0);
            dut.settle();
            if dut.is_set(done) {
                assert!(dut.is_set(ok));
                setup.table[WINDOW as usize].valid = false;
                ended.set(true);
            }
        };
        setup.change(&again, 13, step);
        for n in now.get()..30 {
            step(&mut setup, n);
        }
        setup.probe(request.key);
        setup.probe(again.key);
        assert!(ended.get(), "{at}");
    }
}
