//! Memory windows: table entries that give a peer rights to a part of a region.

use ferroce_proto::abi::cmd::opcode::WRITE_MR;
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::wqe::opcode;
use ferroce_sim::testhost::{Host, Mr, PD, QpOptions, Rights, Side, Work};

use super::bench::{Bench, Conn};
use super::{WINDOW, cases, check, check_bytes};

cases! {
    window_gives_its_rights, WINDOW, "IB1 10.6.7", "A peer reaches memory by the key of a window whose rights the region itself does not give.";
    window_refuses_other_rights, WINDOW, "IB1 10.6.7", "What a window does not give is a remote access error, whatever its region gives.";
    window_has_bounds, WINDOW, "IB1 10.6.7", "Bytes of the region outside of the window are out of reach by its key.";
    window_is_not_local, WINDOW, "IB1 10.6.7", "The key of a window is no good for local buffers.";
    window_of_a_queue_pair, WINDOW, "IB1 10.6.7.2.4", "A type 2 window is reached through the queue pair it was bound by and no other.";
    window_is_invalidated_by_its_peer, WINDOW, "IB1 9.4.1", "SEND with invalidate ends a type 2 window; its region stays.";
    window_of_another_queue_pair_stays, WINDOW, "IB1 9.4.1", "The peer of another queue pair cannot invalidate a type 2 window.";
    window_of_type_1_is_not_invalidated, WINDOW, "IB1 9.4.1", "A type 1 window cannot be invalidated by a peer.";
    window_that_ends, WINDOW, "abi cmd", "A window whose entry is taken back is out of reach.";
}

const INDEX: u32 = 0x201;

/// A window to 32 bytes of a region from byte 16 on, that may be written and read.
fn window(host: &mut Host, region: &Mr, change: impl FnOnce(&mut MrCtx)) -> Mr {
    let mut entry = MrCtx {
        base: region.addr + 16,
        last: region.addr + 47,
        key: INDEX << 8 | 0x42,
        pd: PD,
        valid: true,
        window: true,
        remote_write: true,
        remote_read: true,
        ..MrCtx::default()
    };
    change(&mut entry);
    host.expect(WRITE_MR, INDEX, &entry.emit());
    Mr {
        addr: entry.base,
        len: 32,
        key: entry.key,
    }
}

const LOCAL: Rights = Rights {
    local_write: true,
    ..Rights::NONE
};

/// A connection, a region of B of 64 bytes that peers have no rights to, and a window to it.
fn with_window(bench: &mut Bench, change: impl FnOnce(&mut MrCtx, u32)) -> (Conn, Mr, Mr) {
    let mut c = bench.connect(QpOptions::default());
    let region = c.b.create_mr(&[0x55; 64], LOCAL);
    let qb = c.qb;
    let opened = window(&mut c.b, &region, |entry| change(entry, qb));
    (c, region, opened)
}

/// Type 2, bound by queue pair `qpn`.
fn type_2(entry: &mut MrCtx, qpn: u32) {
    (entry.qp_only, entry.qpn) = (true, qpn);
}

fn write(to: &Mr, offset: u64) -> Work {
    Work::write(&[], to, offset).inline(&[9; 8])
}

/// A WRITE to this place must be refused.
fn out_of_reach(c: &mut Conn, to: &Mr, offset: u64) {
    let index = c.post(&write(to, offset));
    c.ends(Side::A, index, status::REM_ACCESS_ERR);
}

fn window_gives_its_rights(bench: &mut Bench) {
    let (mut c, region, opened) = with_window(bench, |_, _| {});
    let local = c.a.create_mr(&[0; 64], Rights::ALL);
    c.execute(&write(&opened, 0));
    c.execute(&write(&opened, 24));
    c.execute(&Work::read(&[local.sge(0, 32)], &opened, 0));
    let mut expected = [0x55; 64];
    expected[16..24].fill(9);
    expected[40..48].fill(9);
    check_bytes("the region", &c.b.contents(&region), &expected);
    check_bytes(
        "what was read",
        &c.a.read(local.addr, 32),
        &expected[16..48],
    );
    out_of_reach(&mut c, &region, 16);
}

fn window_refuses_other_rights(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let region = c.b.create_mr(&[0x55; 64], Rights::ALL);
    let opened = window(&mut c.b, &region, |entry| entry.remote_write = false);
    let local = c.a.create_mr(&[0; 64], Rights::ALL);
    c.execute(&write(&region, 0));
    c.execute(&Work::read(&[local.sge(0, 32)], &opened, 0));
    out_of_reach(&mut c, &opened, 0);
}

fn window_has_bounds(bench: &mut Bench) {
    for offset in [u64::MAX, 25, 32, 48] {
        let (mut c, region, opened) = with_window(bench, |_, _| {});
        c.execute(&write(&opened, 24));
        out_of_reach(&mut c, &opened, offset);
        let mut expected = [0x55; 64];
        expected[40..48].fill(9);
        check_bytes("the region", &c.b.contents(&region), &expected);
    }
}

fn window_is_not_local(bench: &mut Bench) {
    let (mut c, _, opened) = with_window(bench, |_, _| {});
    let qb = c.qb;
    let index = c.b.post_send(qb, &Work::send(&[opened.sge(0, 8)]));
    c.ends(Side::B, index, status::LOC_PROT_ERR);
    let (mut c, region, opened) = with_window(bench, |_, _| {});
    c.recv(&[opened.sge(0, 8)]);
    let index = c.post(&Work::send(&[]).inline(&[1; 8]));
    c.ends(Side::A, index, status::REM_OP_ERR);
    check_bytes("the region", &c.b.contents(&region), &[0x55; 64]);
}

fn window_of_a_queue_pair(bench: &mut Bench) {
    let (mut c, region, opened) = with_window(bench, type_2);
    let (other, _) = c.pair.connect(QpOptions::default(), QpOptions::default());
    c.execute(&write(&opened, 0));
    let local = c.a.create_mr(&[0; 64], Rights::ALL);
    c.execute(&Work::read(&[local.sge(0, 32)], &opened, 0));
    let before = c.b.contents(&region);
    c.a.post_send(other, &write(&opened, 8));
    let cqe = c.wait(Side::A);
    check(
        "CQE",
        (cqe.qpn, cqe.status),
        (other, status::REM_ACCESS_ERR),
    );
    check_bytes("the region", &c.b.contents(&region), &before);
    c.execute(&write(&opened, 8));
}

fn invalidate(key: u32) -> Work {
    let mut work = Work::new(opcode::SEND_INV, &[]);
    work.head.imm = key;
    work
}

fn window_is_invalidated_by_its_peer(bench: &mut Bench) {
    let (mut c, region, opened) = with_window(bench, type_2);
    c.execute(&write(&opened, 0));
    let taken = c.recv(&[]);
    c.execute(&invalidate(opened.key));
    let cqe = c.succeeds(Side::B, taken);
    check("receive CQE", (cqe.with_inv, cqe.imm), (true, opened.key));
    let qb = c.qb;
    let (a, buffer) = (c.qa, c.a.create_mr(&[0; 8], Rights::ALL));
    c.a.post_recv(a, &[buffer.all()]);
    let sent = c.b.post_send(qb, &Work::send(&[region.sge(0, 8)]));
    c.succeeds(Side::B, sent);
    c.wait(Side::A);
    out_of_reach(&mut c, &opened, 0);
}

/// To invalidate this key must be refused.
fn stays(mut c: Conn, key: &Mr) {
    c.recv(&[]);
    let index = c.post(&invalidate(key.key));
    c.ends(Side::A, index, status::REM_ACCESS_ERR);
}

fn window_of_another_queue_pair_stays(bench: &mut Bench) {
    let (c, _, opened) = with_window(bench, |entry, qpn| type_2(entry, qpn + 1));
    stays(c, &opened);
}

fn window_of_type_1_is_not_invalidated(bench: &mut Bench) {
    let (c, _, opened) = with_window(bench, |_, _| {});
    stays(c, &opened);
}

fn window_that_ends(bench: &mut Bench) {
    let (mut c, region, opened) = with_window(bench, type_2);
    c.execute(&write(&opened, 0));
    c.b.expect(WRITE_MR, INDEX, &MrCtx::default().emit());
    let before = c.b.contents(&region);
    out_of_reach(&mut c, &opened, 8);
    check_bytes("the region", &c.b.contents(&region), &before);
}
