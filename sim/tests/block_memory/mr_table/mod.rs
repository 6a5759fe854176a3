//! `mr_table`: the check of `ferroce_proto::abi::mr` at full rate on all ports.

mod change;
mod invalidate;

use std::collections::VecDeque;

use fastrand::Rng;
use ferroce_hdl::bus::dma::MR_LATENCY;
use ferroce_hdl::memory::mr_table::MrTable;
use ferroce_proto::abi::mr::{Access, MrCtx, Right};
use ferroce_sim::bench::Bench;
use ferroce_sim::verilator::{Input, Output};

const LOG: usize = 4;
const PORTS: usize = 3;

/// A region that peers may write; it belongs into entry 3.
fn region() -> MrCtx {
    MrCtx {
        base: 0x1000,
        last: 0x1fff,
        key: 0x0042_0305,
        pd: 7,
        valid: true,
        remote_write: true,
        invalidate: true,
        ..Default::default()
    }
}

/// A WRITE of a peer to [`region`], by queue pair 5.
fn write_of(key: u32, addr: u64, len: u32) -> Access {
    Access {
        key,
        pd: 7,
        addr,
        len,
        right: Right::RemoteWrite,
        qpn: 5,
    }
}

fn allowed(table: &[MrCtx], a: &Access) -> bool {
    table[(a.key >> 8) as usize % table.len()].permits(a)
}

struct Port {
    fields: [Input; 6],
    valid: Input,
    ok: Output,
    done: Output,
}

struct Setup {
    bench: Bench,
    ports: Vec<Port>,
    table: Vec<MrCtx>,
    /// Answers to come: cycle, port, access, answer.
    expected: VecDeque<(u64, usize, Access, bool)>,
    now: u64,
}

impl Setup {
    /// A table of random regions.
    fn new() -> Self {
        let bench = Bench::of(MrTable::<LOG, PORTS>::default).unwrap();
        let dut = bench.dut();
        let port = |i| {
            let input = |field: &str| dut.input(&format!("check_{i}_{field}")).unwrap();
            let output = |field: &str| dut.output(&format!("check_{i}_{field}")).unwrap();
            Port {
                fields: ["key", "pd", "addr", "len", "right", "qpn"]
                    .map(|f| input(&format!("request.{f}"))),
                valid: input("valid"),
                ok: output("ok"),
                done: output("done"),
            }
        };
        let mut setup = Self {
            ports: (0..PORTS).map(port).collect(),
            table: vec![MrCtx::default(); 1 << LOG],
            expected: VecDeque::new(),
            now: 0,
            bench,
        };
        setup.reset();
        for index in 0..1 << LOG {
            let rng = setup.bench.rng();
            let base = if rng.bool() {
                rng.u64(..)
            } else {
                u64::MAX - rng.u64(..5000)
            };
            let mr = MrCtx {
                base,
                last: base.saturating_add(if rng.bool() {
                    rng.u64(..5000)
                } else {
                    rng.u64(..1 << 34)
                }),
                key: index << 8 | u32::from(rng.u8(..)) | (rng.u32(..) << (8 + LOG)),
                pd: rng.u32(..4),
                valid: rng.u8(..8) > 0,
                local_write: rng.bool(),
                remote_write: rng.bool(),
                remote_read: rng.bool(),
                remote_atomic: rng.bool(),
                window: rng.u8(..4) == 0,
                qp_only: rng.u8(..3) == 0,
                invalidate: rng.bool(),
                qpn: rng.u32(..4),
                bindable: rng.bool(),
            };
            setup.write(index as usize, mr);
        }
        setup
    }

    /// Gives the request of `port` to the table; the answer comes within `limit` cycles. `during` says what happens meanwhile.
    fn ask(&mut self, port: &str, limit: usize, during: impl Fn(&mut Self, usize)) -> bool {
        let dut = self.bench.dut_mut();
        let valid = dut.input(&format!("{port}_valid")).unwrap();
        let [done, ok] = ["done", "ok"].map(|name| dut.output(&format!("{port}_{name}")).unwrap());
        dut.set(valid, 1);
        for n in 0..limit {
            let before = self.now;
            during(self, n);
            if self.now == before {
                self.cycle(&[None; PORTS]);
            }
            let dut = self.bench.dut_mut();
            dut.set(valid, 0);
            dut.settle();
            if dut.is_set(done) {
                return dut.is_set(ok);
            }
        }
        panic!("no answer in {limit} cycles");
    }

    /// Resets and waits for the sweep.
    fn reset(&mut self) {
        let dut = self.bench.dut_mut();
        dut.set(dut.input("write").unwrap(), 0);
        dut.set(dut.input("inv_valid").unwrap(), 0);
        dut.set(dut.input("change_valid").unwrap(), 0);
        self.ports.iter().for_each(|port| dut.set(port.valid, 0));
        self.bench.reset(&mut []);
        let ready = self.bench.dut().output("ready").unwrap();
        assert!(!self.bench.dut().is_set(ready));
        self.bench.run(&mut [], (1 << LOG) + 1).unwrap();
        assert!(self.bench.dut().is_set(ready), "an entry a cycle");
        self.table.fill(MrCtx::default());
    }

    fn write(&mut self, index: usize, mr: MrCtx) {
        let dut = self.bench.dut_mut();
        let mut set = |name: &str, value: u64| dut.set(dut.input(name).unwrap(), value);
        set("write", 1);
        set("index", index as u64);
        set("entry.base", mr.base);
        set("entry.last", mr.last);
        set("entry.key", mr.key.into());
        set("entry.pd", mr.pd.into());
        set("entry.qpn", mr.qpn.into());
        for (flag, value) in [
            ("valid", mr.valid),
            ("local_write", mr.local_write),
            ("remote_write", mr.remote_write),
            ("remote_read", mr.remote_read),
            ("remote_atomic", mr.remote_atomic),
            ("window", mr.window),
            ("qp_only", mr.qp_only),
            ("invalidate", mr.invalidate),
            ("bindable", mr.bindable),
        ] {
            set(&format!("entry.{flag}"), value.into());
        }
        self.table[index] = mr;
        self.cycle(&[None; PORTS]);
        let dut = self.bench.dut_mut();
        dut.set(dut.input("write").unwrap(), 0);
    }

    /// One cycle with an access at each port that has one; the answers due are looked at.
    fn cycle(&mut self, accesses: &[Option<Access>; PORTS]) {
        let now = self.now;
        let dut = self.bench.dut_mut();
        for (i, (port, access)) in self.ports.iter().zip(accesses).enumerate() {
            dut.set(port.valid, access.is_some().into());
            let Some(a) = access else { continue };
            let values = [
                a.key.into(),
                a.pd.into(),
                a.addr,
                a.len.into(),
                a.right as u64,
                a.qpn.into(),
            ];
            for (&field, value) in port.fields.iter().zip(values) {
                dut.set(field, value);
            }
            let due = now + MR_LATENCY as u64;
            self.expected
                .push_back((due, i, *a, allowed(&self.table, a)));
        }
        self.bench.dut_mut().settle();
        for (i, port) in self.ports.iter().enumerate() {
            let dut = self.bench.dut();
            let due = self.expected.front().filter(|e| (e.0, e.1) == (now, i));
            assert_eq!(
                dut.is_set(port.done),
                due.is_some(),
                "answer of port {i} in cycle {now}"
            );
            if let Some((_, _, access, answer)) = due {
                assert_eq!(
                    dut.is_set(port.ok),
                    *answer,
                    "{access:x?} {:x?}",
                    self.table
                );
                self.expected.pop_front();
            }
        }
        self.bench.dut_mut().rise();
        self.now += 1;
    }
}

/// An access on or near a region's edges, now and then with something wrong.
fn access(table: &[MrCtx], rng: &mut Rng) -> Access {
    let mr = &table[rng.usize(..table.len())];
    let size = mr.last - mr.base;
    let len = match rng.u8(..6) {
        0 => 0,
        1 => size.saturating_add(1),
        2 => size.saturating_add(2),
        3 => u64::from(rng.u32(..)),
        _ => 1 + rng.u64(..size.min(4096) + 1),
    };
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    let addr = match rng.u8(..6) {
        0 => mr.base.wrapping_sub(1),
        1 => mr.last.wrapping_sub(u64::from(len)).wrapping_add(1),
        2 => mr.last.wrapping_sub(u64::from(len)).wrapping_add(2),
        3 => mr.last,
        4 => u64::MAX - rng.u64(..100),
        _ => mr.base,
    };
    Access {
        key: if rng.u8(..8) == 0 {
            mr.key ^ 1 << rng.u8(..32)
        } else {
            mr.key
        },
        pd: if rng.u8(..8) == 0 {
            rng.u32(..1 << 24)
        } else {
            mr.pd
        },
        addr,
        len,
        right: Right::ALL[rng.usize(..5)],
        qpn: if rng.u8(..8) == 0 {
            rng.u32(..1 << 16)
        } else {
            mr.qpn
        },
    }
}

#[test]
fn every_port_checks_an_access_a_cycle() {
    let mut setup = Setup::new();
    let mut passed = 0;
    for n in 0..20_000 {
        let mut rng = setup.bench.rng().fork();
        let busy = if n < 10_000 { 8 } else { 3 };
        let accesses: [_; PORTS] =
            std::array::from_fn(|_| (rng.u8(..8) < busy).then(|| access(&setup.table, &mut rng)));
        passed += accesses
            .iter()
            .flatten()
            .filter(|a| allowed(&setup.table, a))
            .count();
        setup.cycle(&accesses);
    }
    (0..=MR_LATENCY).for_each(|_| setup.cycle(&[None; PORTS]));
    assert!(setup.expected.is_empty());
    assert!(
        (3_000..40_000).contains(&passed),
        "{passed} accesses allowed: the stimulus is lopsided"
    );
}

#[test]
fn an_entry_holds_from_the_next_cycle_on_and_a_reset_forgets_it() {
    let mut setup = Setup::new();
    let mr = region();
    let access = write_of(mr.key, 0x1fff, 1);
    setup.write(3, mr);
    setup.cycle(&[Some(access); PORTS]);
    setup.write(3, MrCtx { valid: false, ..mr });
    setup.cycle(&[Some(access); PORTS]);
    setup.write(3, mr);
    (0..MR_LATENCY).for_each(|_| setup.cycle(&[None; PORTS]));
    setup.reset();
    setup.cycle(&[Some(access); PORTS]);
    (0..MR_LATENCY).for_each(|_| setup.cycle(&[None; PORTS]));
    assert!(setup.expected.is_empty());
}
