//! Memory windows that the card binds when it reaches the request.
//!
//! Second source of the rules: `rxe_mw.c` of Linux soft-RoCE, whose comments name the same clauses.

use ferroce_proto::abi::cmd::opcode::WRITE_MR;
use ferroce_proto::abi::cq::{opcode as cqe, status};
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::state;
use ferroce_proto::abi::wqe::WindowBind;
use ferroce_sim::testhost::{Host, Mr, PD, QpOptions, Rights, Side, Work};

use super::bench::{Bench, Conn};
use super::{WINDOW, cases, check, check_bytes};

cases! {
    bind_gives_rights, WINDOW, "IB1 10.6.7.2", "A window that a request binds gives a peer its rights to its bytes, under its new key.";
    bind_in_its_turn, WINDOW, "IB1 10.8.3.3", "A window is bound when the request is reached: not while one in front of it waits for its receiver, and before what stands behind it is sent.";
    bind_again, WINDOW, "IB1 10.6.7.2.1", "A window of type 1 that is bound again is reached by its new key alone; without bytes it is bound no more.";
    bind_is_flushed, WINDOW, "IB1 10.3.1", "A bind behind a request that fails is flushed, and has no effect.";
    bind_of_another_domain, WINDOW, "IB1 C10-72", "A window of another protection domain is not bound, nor one to a region of another domain.";
    bind_without_the_right, WINDOW, "IB1 C10-73", "A region that does not permit windows has none bound to it.";
    bind_to_write_needs_local_write, WINDOW, "IB1 C10-74", "A window by which a peer may write is not bound to a region without local write; one to read is.";
    bind_past_its_region, WINDOW, "IB1 C10-75", "A window with a byte outside of its region is not bound, also where its end passes that of the address space.";
    bind_over_a_type_2_window, WINDOW, "IB1 o10-37.2.30", "A window of type 2 that is bound is not bound again.";
    bind_of_no_bytes, WINDOW, "IB1 o10-37.2.40", "A window of type 2 is not bound to no bytes.";
    bind_of_no_window, WINDOW, "abi mr", "What is not the entry of a window is not bound: neither a region, nor an entry without use, nor that of another key.";
    bind_to_no_region, WINDOW, "abi mr", "A window is bound to a region of that key: neither to a window, nor to an entry without use.";
}

const INDEX: u32 = 0x203;
/// Keys of the window.
pub(super) const KEY: u32 = INDEX << 8 | 0x42;
pub(super) const NEXT: u32 = INDEX << 8 | 0x43;
pub(super) const BIND_ERR: u8 = status::MW_BIND_ERR;

/// A window that is bound to nothing.
pub(super) fn unbound() -> MrCtx {
    MrCtx {
        key: INDEX << 8 | 0x41,
        pd: PD,
        window: true,
        ..MrCtx::default()
    }
}

pub(super) fn put(host: &mut Host, entry: MrCtx) {
    host.expect(WRITE_MR, entry.key >> 8, &entry.emit());
}

/// A region of 64 bytes that windows may be bound to, and what `change` makes of it.
pub(super) fn region(host: &mut Host, change: impl FnOnce(&mut MrCtx)) -> Mr {
    let local = Rights {
        local_write: true,
        ..Rights::NONE
    };
    let region = host.create_mr(&[0x55; 64], local);
    let mut entry = host.region(&region, local);
    entry.bindable = true;
    change(&mut entry);
    put(host, entry);
    region
}

/// Bytes 16 to 47 of the region, to write and read.
pub(super) fn span(region: &Mr) -> WindowBind {
    WindowBind {
        addr: region.addr + 16,
        lkey: region.key,
        length: 32,
        remote_write: true,
        remote_read: true,
        ..WindowBind::default()
    }
}

/// The window by this key.
pub(super) fn by(key: u32, region: &Mr) -> Mr {
    Mr {
        addr: region.addr + 16,
        len: 32,
        key,
    }
}

/// A connection of which B has such a region and window, of type 2 if so asked.
pub(super) fn start(bench: &mut Bench, type_2: bool) -> (Conn, Mr) {
    start_as(bench, type_2, QpOptions::default())
}

pub(super) fn start_as(bench: &mut Bench, type_2: bool, options: QpOptions) -> (Conn, Mr) {
    let mut c = bench.connect(options);
    let region = region(&mut c.b, |_| {});
    let window = MrCtx {
        qp_only: type_2,
        ..unbound()
    };
    put(&mut c.b, window);
    (c, region)
}

/// B executes a request; what it completes with.
pub(super) fn at_b(c: &mut Conn, work: &Work) -> u8 {
    let qb = c.qb;
    let index = c.b.post_send(qb, work);
    let cqe = c.wait(Side::B);
    check("WQE index of the next CQE", cqe.wqe_index, index);
    cqe.status
}

#[track_caller]
pub(super) fn bound(c: &mut Conn, key: u32, bind: WindowBind) {
    check("status of the bind", at_b(c, &Work::bind(key, bind)), 0);
}

/// Must be refused, and end the queue pair.
#[track_caller]
pub(super) fn refused(c: &mut Conn, work: &Work) {
    check("status of the request", at_b(c, work), BIND_ERR);
    check("state", c.query(Side::B).sq_state, state::ERR);
}

pub(super) fn write(to: &Mr) -> Work {
    Work::write(&[], to, 0).inline(&[9; 8])
}

/// Whether A writes by the key, over a connection of its own.
pub(super) fn reaches(c: &mut Conn, to: &Mr) -> bool {
    let (other, _) = c.pair.connect(QpOptions::default(), QpOptions::default());
    c.a.post_send(other, &write(to));
    let cqe = c.wait(Side::A);
    check("queue pair", cqe.qpn, other);
    match cqe.status {
        status::SUCCESS => true,
        status::REM_ACCESS_ERR => false,
        other => panic!("a WRITE by a key ends with status {other}"),
    }
}

/// Whether A writes by the key over the connection, which does not live on if not.
pub(super) fn writes(c: &mut Conn, to: &Mr) -> bool {
    c.post(&write(to));
    let status = c.wait(Side::A).status;
    check(
        "a WRITE by the key",
        [0, status::REM_ACCESS_ERR].contains(&status),
        true,
    );
    status == 0
}

fn bind_gives_rights(bench: &mut Bench) {
    for type_2 in [false, true] {
        let (mut c, region) = start(bench, type_2);
        let work = Work::bind(KEY, span(&region));
        let qb = c.qb;
        c.b.post_send(qb, &work);
        let done = c.succeeds(Side::B, 0);
        check(
            "CQE",
            (done.opcode, done.byte_len, done.imm),
            (cqe::BIND_MW, 0, 0),
        );
        let window = by(KEY, &region);
        c.execute(&write(&window));
        let local = c.a.create_mr(&[0; 64], Rights::ALL);
        c.execute(&Work::read(&[local.sge(0, 32)], &window, 0));
        let mut expected = [0x55; 64];
        expected[16..24].fill(9);
        check_bytes("the region", &c.b.contents(&region), &expected);
        check_bytes("read", &c.a.read(local.addr, 32), &expected[16..48]);
        check(
            "another queue pair reaches it",
            reaches(&mut c, &window),
            !type_2,
        );
        check(
            "past its end",
            writes(
                &mut c,
                &Mr {
                    addr: window.addr + 25,
                    ..window
                },
            ),
            false,
        );
    }
}

fn bind_in_its_turn(bench: &mut Bench) {
    let (mut c, region) = start(bench, false);
    let (qa, qb) = (c.qa, c.qb);
    let window = by(KEY, &region);
    for work in [
        Work::send(&[]),
        Work::bind(KEY, span(&region)),
        Work::send(&[]),
    ] {
        c.b.post_send(qb, &work);
    }
    check("before its turn", reaches(&mut c, &window), false);
    for _ in 0..2 {
        c.a.post_recv(qa, &[]);
    }
    for index in 0..3 {
        c.succeeds(Side::B, index);
    }
    for index in 0..2 {
        c.succeeds(Side::A, index);
    }
    check("after it", writes(&mut c, &window), true);
}

fn bind_again(bench: &mut Bench) {
    let (mut c, region) = start(bench, false);
    bound(&mut c, KEY, span(&region));
    c.execute(&write(&by(KEY, &region)));
    bound(&mut c, NEXT, span(&region));
    c.execute(&write(&by(NEXT, &region)));
    check("by its old key", reaches(&mut c, &by(KEY, &region)), false);
    bound(&mut c, KEY, WindowBind::default());
    for key in [KEY, NEXT] {
        check("without bytes", reaches(&mut c, &by(key, &region)), false);
    }
}

/// A WRITE of B that A refuses.
pub(super) fn failing(c: &mut Conn) -> Work {
    let closed = c.a.create_mr(&[0; 8], Rights::NONE);
    Work::write(&[], &closed, 0).inline(&[1; 8])
}

/// B posts a WRITE that fails, and this after it.
fn after_a_failure(c: &mut Conn, work: &Work) {
    let qb = c.qb;
    let works = [failing(c), work.clone(), Work::send(&[]), work.clone()];
    for work in &works {
        c.b.post_send(qb, work);
    }
    c.ends(Side::B, 0, status::REM_ACCESS_ERR);
    for index in 1..4 {
        c.ends(Side::B, index, status::WR_FLUSH_ERR);
    }
    // posted in error
    check("posted in error", at_b(c, work), status::WR_FLUSH_ERR);
}

fn bind_is_flushed(bench: &mut Bench) {
    let (mut c, region) = start(bench, false);
    after_a_failure(&mut c, &Work::bind(KEY, span(&region)));
    check("bound", reaches(&mut c, &by(KEY, &region)), false);
}

fn bind_of_another_domain(bench: &mut Bench) {
    let (mut c, own) = start(bench, false);
    put(
        &mut c.b,
        MrCtx {
            pd: PD + 1,
            ..unbound()
        },
    );
    refused(&mut c, &Work::bind(KEY, span(&own)));
    check("bound", reaches(&mut c, &by(KEY, &own)), false);
    let (mut c, _) = start(bench, false);
    let foreign = region(&mut c.b, |entry| entry.pd = PD + 1);
    refused(&mut c, &Work::bind(KEY, span(&foreign)));
    check("bound", reaches(&mut c, &by(KEY, &foreign)), false);
}

fn bind_without_the_right(bench: &mut Bench) {
    let (mut c, _) = start(bench, false);
    let closed = region(&mut c.b, |entry| {
        *entry = MrCtx {
            bindable: false,
            remote_write: true,
            remote_read: true,
            ..*entry
        };
    });
    refused(&mut c, &Work::bind(KEY, span(&closed)));
    check("bound", reaches(&mut c, &by(KEY, &closed)), false);
}

fn bind_to_write_needs_local_write(bench: &mut Bench) {
    for (write, read, atomic) in [
        (true, false, false),
        (false, false, true),
        (false, true, false),
    ] {
        let (mut c, _) = start(bench, false);
        let fixed = region(&mut c.b, |entry| entry.local_write = false);
        let bind = WindowBind {
            remote_write: write,
            remote_read: read,
            remote_atomic: atomic,
            ..span(&fixed)
        };
        if write || atomic {
            refused(&mut c, &Work::bind(KEY, bind));
        } else {
            bound(&mut c, KEY, bind);
            let local = c.a.create_mr(&[0; 64], Rights::ALL);
            c.execute(&Work::read(&[local.sge(0, 32)], &by(KEY, &fixed), 0));
            check("it may be written", writes(&mut c, &by(KEY, &fixed)), false);
        }
    }
}

fn bind_past_its_region(bench: &mut Bench) {
    for (offset, length, may) in [
        (0, 64, true),
        (63, 1, true),
        (u64::MAX, 8, false),
        (0, 65, false),
        (60, 5, false),
        (64, 1, false),
        (0, 1 << 32, false),
        (1, u64::MAX, false),
        (0, u64::MAX, false),
    ] {
        for type_2 in [false, true] {
            let (mut c, region) = start(bench, type_2);
            let bind = WindowBind {
                addr: region.addr.wrapping_add(offset),
                length,
                ..span(&region)
            };
            match may {
                true => bound(&mut c, KEY, bind),
                false => refused(&mut c, &Work::bind(KEY, bind)),
            }
        }
    }
}

fn bind_over_a_type_2_window(bench: &mut Bench) {
    let (mut c, region) = start(bench, true);
    bound(&mut c, KEY, span(&region));
    let (_, qb) = c.pair.connect(QpOptions::default(), QpOptions::default());
    c.b.post_send(qb, &Work::bind(NEXT, span(&region)));
    let cqe = c.wait(Side::B);
    check("CQE", (cqe.qpn, cqe.status), (qb, BIND_ERR));
    // it stays as it was
    c.execute(&write(&by(KEY, &region)));
    refused(&mut c, &Work::bind(NEXT, span(&region)));
}

fn bind_of_no_bytes(bench: &mut Bench) {
    let (mut c, region) = start(bench, true);
    let empty = WindowBind {
        length: 0,
        ..span(&region)
    };
    refused(&mut c, &Work::bind(KEY, empty));
}

fn bind_of_no_window(bench: &mut Bench) {
    let keys: [fn(&Mr) -> u32; 4] = [
        |region| region.key,
        |_| KEY + 0x100,
        |_| KEY ^ 1 << 31,
        |_| u32::MAX,
    ];
    for key in keys {
        let (mut c, region) = start(bench, false);
        refused(&mut c, &Work::bind(key(&region), span(&region)));
        check("bound", reaches(&mut c, &by(key(&region), &region)), false);
    }
}

fn bind_to_no_region(bench: &mut Bench) {
    let (mut c, region) = start(bench, true);
    bound(&mut c, KEY, span(&region));
    let second = MrCtx {
        key: unbound().key + 0x100,
        ..unbound()
    };
    for lkey in [KEY, region.key ^ 1, region.key ^ 1 << 31, second.key, 0] {
        put(&mut c.b, second);
        let bind = WindowBind {
            lkey,
            ..span(&region)
        };
        c.start_again();
        refused(&mut c, &Work::bind(second.key + 1, bind));
    }
}
