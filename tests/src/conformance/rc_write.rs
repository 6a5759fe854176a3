//! RC RDMA WRITE: data arrives, whatever its shape.

use ferroce_proto::abi::cq::opcode;
use ferroce_proto::abi::wqe::RecvWqe;
use ferroce_proto::wire::{Mtu, Opcode};
use ferroce_sim::testhost::{Mr, QpOptions, Rights, Side, Work, pattern};

use super::bench::Bench;
use super::{LONG, RC, cases, check, check_bytes};

cases! {
    write_of_no_bytes, RC, "IB1 9.7.4.1.5", "A WRITE of no bytes is one packet; its key and address are not checked.";
    write_mtu_256, RC, "IB1 9.7.2", "At a path MTU of 256 bytes a WRITE is cut into packets; the first alone has the RETH of the message.";
    write_mtu_512, RC, "IB1 9.7.2", "The same at a path MTU of 512 bytes.";
    write_mtu_1024, RC, "IB1 9.7.2", "The same at a path MTU of 1024 bytes.";
    write_mtu_2048, RC, "IB1 9.7.2", "The same at a path MTU of 2048 bytes.";
    write_mtu_4096, RC, "IB1 9.7.2", "The same at a path MTU of 4096 bytes.";
    write_takes_no_receive_wqe, RC, "IB1 9.4.3", "A WRITE neither needs nor takes a receive WQE.";
    write_with_immediate, RC, "IB1 9.4.3", "A WRITE with immediate takes one receive WQE and completes it with the data and the length.";
    write_with_immediate_of_no_bytes, RC, "IB1 9.4.3", "Immediate data travels without payload too.";
    write_immediate_ignores_the_list, RC, "IB1 9.4.3", "The scatter list of the receive WQE that immediate data takes is not used.";
    write_solicited_needs_immediate, RC, "IB1 9.2", "The solicited event bit goes out with immediate data only: a plain WRITE has no receive CQE.";
    write_gathers_sixteen_pieces, LONG, "IB1 10.7", "A gather list of a WRITE may have 1 to 16 pieces.";
    write_inline, RC, "abi wqe", "Payload of a WRITE may stand in its WQE.";
    writes_and_sends_mix, RC, "IB1 9.5", "Operations of different kinds keep their order.";
}

fn at_mtu(bench: &mut Bench, mtu: Mtu) {
    let mut c = bench.connect(QpOptions {
        mtu,
        ..QpOptions::default()
    });
    let m = mtu.bytes();
    let source = c.a.create_mr(&pattern(4 * m, 0x31), Rights::NONE);
    let target = c.b.create_mr(&vec![0; 4 * m], Rights::ALL);
    for (len, offset) in [(1, 0), (5, 3), (m - 1, 0), (m, 1), (m + 1, 2), (3 * m, 7)] {
        let what = format!("{len} bytes at MTU {m} to offset {offset}");
        c.sent.clear();
        c.b.write(target.addr, &vec![0xee; 4 * m]);
        let work = Work::write(&[source.sge(0, len as u32)], &target, offset as u64);
        check(&what, c.execute(&work).opcode, opcode::WRITE);
        // Nothing tells B when it sees the data.
        c.settle();
        let mut expected = vec![0xee; 4 * m];
        expected[offset..][..len].copy_from_slice(&pattern(4 * m, 0x31)[..len]);
        check_bytes(&what, &c.b.contents(&target), &expected);
        let packets = c.packets(Side::A);
        check(&format!("{what}: packets"), packets.len(), len.div_ceil(m));
        for (i, packet) in packets.iter().enumerate() {
            let reth = packet.headers.ext.reth;
            let reth = reth.map(|reth| (reth.va, reth.rkey, reth.dma_len as usize));
            let expected = (i == 0).then_some((target.addr + offset as u64, target.key, len));
            check(&format!("{what}: RETH of packet {i}"), reth, expected);
        }
    }
}

fn write_mtu_256(bench: &mut Bench) {
    at_mtu(bench, Mtu::Mtu256);
}

fn write_mtu_512(bench: &mut Bench) {
    at_mtu(bench, Mtu::Mtu512);
}

fn write_mtu_1024(bench: &mut Bench) {
    at_mtu(bench, Mtu::Mtu1024);
}

fn write_mtu_2048(bench: &mut Bench) {
    at_mtu(bench, Mtu::Mtu2048);
}

fn write_mtu_4096(bench: &mut Bench) {
    at_mtu(bench, Mtu::Mtu4096);
}

/// A region that is not there.
const NOWHERE: Mr = Mr {
    addr: 0,
    len: 0,
    key: 0xdead_beef,
};

fn write_of_no_bytes(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    c.execute(&Work::write(&[], &NOWHERE, 0));
    c.execute(&Work::write(&[], &NOWHERE, u64::MAX));
    let only = Opcode::RcWriteOnly;
    check("opcodes", c.opcodes(Side::A), vec![only, only]);
    check("messages completed", c.query(Side::B).msn, 2);
}

fn write_takes_no_receive_wqe(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let target = c.b.create_mr(&[0; 64], Rights::ALL);
    let work = Work::write(&[], &target, 0).inline(&[7; 8]);
    c.execute(&work);
    c.recv(&[target.sge(32, 32)]);
    c.execute(&work);
    c.nothing_completes();
    check("receive WQEs taken", c.query(Side::B).rq_index, 0);
}

fn write_with_immediate(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let source = c.a.create_mr(&pattern(2500, 1), Rights::NONE);
    let target = c.b.create_mr(&[0; 4096], Rights::ALL);
    for (len, imm) in [(2500, 0xa0b0_c0d0), (100, 7)] {
        let taken = c.recv(&[]);
        c.execute(&Work::write(&[source.sge(0, len)], &target, 9).imm(imm));
        let cqe = c.succeeds(Side::B, taken);
        check(
            "receive CQE",
            (cqe.opcode, cqe.with_imm, cqe.imm, cqe.byte_len, cqe.recv),
            (opcode::RECV_WRITE_IMM, true, imm, len, true),
        );
        let data = c.b.read(target.addr + 9, len as usize);
        check_bytes("the target", &data, &pattern(2500, 1)[..len as usize]);
    }
}

fn write_with_immediate_of_no_bytes(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let taken = c.recv(&[]);
    c.execute(&Work::write(&[], &NOWHERE, 7).imm(0x0102_0304));
    let cqe = c.succeeds(Side::B, taken);
    check(
        "receive CQE",
        (cqe.opcode, cqe.with_imm, cqe.imm, cqe.byte_len),
        (opcode::RECV_WRITE_IMM, true, 0x0102_0304, 0),
    );
}

fn write_immediate_ignores_the_list(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let target = c.b.create_mr(&[0; 8], Rights::ALL);
    let head = RecvWqe {
        num_sge: 255,
        length: 1,
        ..RecvWqe::default()
    };
    let qb = c.qb;
    let taken = c.b.post_recv_wqe(qb, head, &[]);
    c.execute(&Work::write(&[], &target, 0).inline(&[5; 8]).imm(3));
    let cqe = c.succeeds(Side::B, taken);
    check("receive CQE", (cqe.imm, cqe.byte_len), (3, 8));
    check_bytes("the target", &c.b.contents(&target), &[5; 8]);
}

fn write_solicited_needs_immediate(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let target = c.b.create_mr(&[0; 8], Rights::ALL);
    let taken = c.recv(&[]);
    let mut work = Work::write(&[], &target, 0).inline(&[5; 8]);
    work.head.solicited = true;
    c.execute(&work);
    c.execute(&work.imm(1));
    check("CQE", c.succeeds(Side::B, taken).solicited, true);
    let packets = c.packets(Side::A);
    let bits: Vec<_> = packets.iter().map(|p| p.headers.bth.solicited).collect();
    check("SE of the packets", bits, vec![false, true]);
}

fn write_gathers_sixteen_pieces(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let data = pattern(4096, 5);
    let source = c.a.create_mr(&data, Rights::NONE);
    let target = c.b.create_mr(&[0; 4096], Rights::ALL);
    for n in [3, 6, 7, 16] {
        let list: Vec<_> = (0..n).map(|i| source.sge(251 * i, 203)).collect();
        c.b.write(target.addr, &[0; 4096]);
        c.execute(&Work::write(&list, &target, 1));
        c.settle();
        let mut expected = vec![0];
        for i in 0..n as usize {
            expected.extend(&data[251 * i..][..203]);
        }
        expected.resize(4096, 0);
        check_bytes(&format!("{n} pieces"), &c.b.contents(&target), &expected);
    }
}

fn write_inline(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let target = c.b.create_mr(&[0; 64], Rights::ALL);
    for len in [1, 17, 32] {
        c.execute(&Work::write(&[], &target, 3).inline(&pattern(len, 4)));
        c.settle();
        let data = c.b.read(target.addr + 3, len);
        check_bytes(&format!("{len} bytes"), &data, &pattern(len, 4));
    }
}

fn writes_and_sends_mix(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let target = c.b.create_mr(&[0; 64], Rights::ALL);
    for _ in 0..4 {
        c.recv(&[target.sge(32, 8)]);
    }
    // The same place is written each time: the order shows in what stands there in the end.
    let works: Vec<_> = (0..8)
        .map(|i| match i % 2 {
            0 => Work::write(&[], &target, 0).inline(&[i; 8]),
            _ => Work::send(&[]).inline(&[i; 8]),
        })
        .collect();
    c.post_all(&works);
    for i in 0..8 {
        let cqe = c.succeeds(Side::A, i);
        let expected = [opcode::WRITE, opcode::SEND][usize::from(i % 2)];
        check("opcode of the CQE", cqe.opcode, expected);
    }
    for i in 0..4 {
        c.succeeds(Side::B, i);
    }
    check_bytes("written last", &c.b.read(target.addr, 8), &[6; 8]);
    check_bytes("received last", &c.b.read(target.addr + 32, 8), &[7; 8]);
}
