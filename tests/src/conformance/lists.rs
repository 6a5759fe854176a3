//! Gather and scatter lists, inline payload.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::state;
use ferroce_proto::abi::wqe::Sge;
use ferroce_proto::wire::Mtu;
use ferroce_sim::testhost::{Mr, QpOptions, Rights, Side, Work, pattern};

use super::bench::Bench;
use super::{LONG, RC, cases, check, check_bytes};

cases! {
    send_unaligned, RC, "IB1 10.7", "Buffers may start at any byte on both sides.";
    send_gathers_two_pieces, RC, "IB1 10.7", "The message is the pieces of the gather list in order; a piece may be empty.";
    send_gathers_sixteen_pieces, LONG, "IB1 10.7", "A gather list may have as many pieces as the card announces: 1 to 16.";
    send_gathers_beside_flushed_wqes, LONG, "IB1 10.7", "A message of several turns is the pieces of its own gather list, however many WQEs of another queue pair are flushed meanwhile.";
    recv_scatters_three_pieces, RC, "IB1 10.7", "The message fills the pieces of the scatter list in order; a piece may be empty.";
    recv_scatters_sixteen_pieces, LONG, "IB1 10.7", "A scatter list may have up to 16 pieces; packets need not end with a piece.";
    recv_buffer_longer_than_message, RC, "IB1 9.7.5.1", "A message shorter than its buffer leaves the rest as it was; the CQE has its length.";
    send_inline, RC, "abi wqe", "Payload that stands in the first slot of the WQE is sent without a key.";
    send_inline_long, LONG, "abi wqe", "Payload that stands in up to five slots of the WQE is sent without a key.";
}

fn send_unaligned(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let source = c.a.create_mr(&pattern(8192, 7), Rights::NONE);
    let target = c.b.create_mr(&[0; 8192], Rights::ALL);
    for (from, to) in [(1, 0), (0, 1), (63, 5), (4095, 4093), (7, 2040)] {
        let data = c.a.read(source.addr + from, 2100);
        c.b.write(target.addr, &[0; 8192]);
        let taken = c.recv(&[target.sge(to, 2100)]);
        c.execute(&Work::send(&[source.sge(from, 2100)]));
        c.succeeds(Side::B, taken);
        let mut expected = vec![0; 8192];
        expected[to as usize..][..2100].copy_from_slice(&data);
        let what = format!("from offset {from} to offset {to}");
        check_bytes(&what, &c.b.contents(&target), &expected);
    }
}

/// `n` pieces of uneven length at uneven addresses of a region of 8192 bytes; the second is empty.
fn pieces(mr: &Mr, n: u64, step: u64) -> Vec<Sge> {
    (0..n)
        .map(|i| mr.sge(i * step + 1, if i == 1 { 0 } else { (step - 3) as u32 }))
        .collect()
}

/// What the pieces of a list hold.
fn bytes(host: &ferroce_sim::testhost::Host, list: &[Sge]) -> Vec<u8> {
    let pieces = list.iter();
    pieces
        .flat_map(|sge| host.read(sge.addr, sge.length as usize))
        .collect()
}

fn lists(bench: &mut Bench, gather: &[u64], scatter: u64, rq_stride: u8) {
    let mut c = bench.connect(QpOptions {
        rq_stride,
        ..QpOptions::default()
    });
    let source = c.a.create_mr(&pattern(8192, 9), Rights::NONE);
    let target = c.b.create_mr(&[0; 8192], Rights::ALL);
    for &n in gather {
        let gather = pieces(&source, n, 8000 / 16);
        let data = bytes(&c.a, &gather);
        let scatter = pieces(&target, scatter, 8190 / scatter);
        c.b.write(target.addr, &[0; 8192]);
        let taken = c.recv(&scatter);
        c.execute(&Work::send(&gather));
        let what = format!("{n} pieces to {}", scatter.len());
        let cqe = c.succeeds(Side::B, taken);
        check(&what, cqe.byte_len as usize, data.len());
        let received = bytes(&c.b, &scatter);
        check_bytes(&what, &received[..data.len()], &data);
        let sum = |bytes: &[u8]| bytes.iter().filter(|&&b| b != 0).count();
        let rest = sum(&c.b.contents(&target)) - sum(&data);
        check(&format!("{what}: bytes beside them"), rest, 0);
    }
}

fn send_gathers_two_pieces(bench: &mut Bench) {
    lists(bench, &[1, 2], 1, 0);
}

fn send_gathers_sixteen_pieces(bench: &mut Bench) {
    lists(bench, &[3, 4, 6, 7, 10, 11, 14, 15, 16], 1, 0);
}

/// Entries of a gather list wait in the card; those of WQEs that are flushed pass them.
fn send_gathers_beside_flushed_wqes(bench: &mut Bench) {
    const FLUSHED: usize = 64;
    const ROUNDS: usize = 4;
    const FIRST: u32 = 185 * 256;
    let mut c = bench.connect(QpOptions {
        mtu: Mtu::Mtu256,
        ..QpOptions::default()
    });
    let cqn = c.a.create_cq(6);
    let beside = c.a.create_qp(QpOptions {
        send_cq: cqn,
        sq_log: 7,
        ..QpOptions::default()
    });
    let peer = c.b.peer(c.qb);
    c.a.connect(beside, &peer);
    c.a.modify_state(beside, state::ERR);
    let source = c.a.create_mr(&pattern(0x1_0000, 9), Rights::NONE);
    let others = c.a.create_mr(&[0xee; 64], Rights::NONE);
    let target = c.b.create_mr(&[0; 0x1_0000], Rights::ALL);
    // the first entry takes a turn, and most of the next
    let list: Vec<_> = (0..16)
        .map(|n| match n {
            0 => source.sge(0, FIRST),
            _ => source.sge(0x1_0000 - 512 * n, 256 + n as u32),
        })
        .collect();
    let data = bytes(&c.a, &list);
    for round in 0..ROUNDS {
        c.b.write(target.addr, &vec![0; data.len()]);
        let write = c.post(&Work::write(&list, &target, 0));
        let flushed = Work::send(&[others.all(); 4]);
        for _ in 1..FLUSHED {
            c.a.write_slots(beside, &flushed.slots());
        }
        c.a.post_send(beside, &flushed);
        c.succeeds(Side::A, write);
        c.settle();
        let what = format!("round {round}");
        check_bytes(&what, &c.b.read(target.addr, data.len()), &data);
        let flushed = std::iter::from_fn(|| c.a.poll(cqn));
        let statuses: Vec<_> = flushed.map(|cqe| cqe.status).collect();
        check(&what, statuses, vec![status::WR_FLUSH_ERR; FLUSHED]);
    }
}

fn recv_scatters_three_pieces(bench: &mut Bench) {
    lists(bench, &[1, 2], 3, 0);
}

fn recv_scatters_sixteen_pieces(bench: &mut Bench) {
    lists(bench, &[1, 3, 16], 16, 3);
}

fn recv_buffer_longer_than_message(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let source = c.a.create_mr(&pattern(4096, 7), Rights::NONE);
    let target = c.b.create_mr(&[0xaa; 4096], Rights::ALL);
    let taken = c.recv(&[target.sge(0, 2000), target.sge(2000, 2096)]);
    c.execute(&Work::send(&[source.sge(0, 1500)]));
    check("byte_len", c.succeeds(Side::B, taken).byte_len, 1500);
    let mut expected = pattern(4096, 7);
    expected[1500..].fill(0xaa);
    check_bytes("the buffer", &c.b.contents(&target), &expected);
}

fn inline_lengths(bench: &mut Bench, lengths: &[usize]) {
    let mut c = bench.connect(QpOptions {
        mtu: Mtu::Mtu256,
        ..QpOptions::default()
    });
    let target = c.b.create_mr(&[0; 512], Rights::ALL);
    for &len in lengths {
        let taken = c.recv(&[target.all()]);
        c.execute(&Work::send(&[]).inline(&pattern(len, 3)));
        let what = format!("{len} bytes inline");
        check(&what, c.succeeds(Side::B, taken).byte_len as usize, len);
        check_bytes(&what, &c.b.read(target.addr, len), &pattern(len, 3));
    }
}

fn send_inline(bench: &mut Bench) {
    inline_lengths(bench, &[0, 1, 31, 32]);
}

fn send_inline_long(bench: &mut Bench) {
    inline_lengths(bench, &[33, 96, 97, 160, 255, 256, 257, 288]);
}
