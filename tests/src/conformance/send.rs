//! RC SEND: data arrives, whatever its shape.

use ferroce_proto::abi::cq::opcode;
use ferroce_proto::abi::wqe::Sge;
use ferroce_proto::wire::{Mtu, Opcode, Syndrome};
use ferroce_sim::testhost::{Mr, QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, Conn, MTU};
use super::script::syndromes;
use super::{LONG, RC, cases, check, check_bytes};

cases! {
    send_of_no_bytes, RC, "IB1 9.4.1", "A message of no bytes is one SEND Only without payload and completes both queues.";
    send_of_odd_lengths, RC, "IB1 9.2", "PadCnt fills the payload up to 4 bytes; exactly the bytes of the message arrive.";
    send_mtu_256, RC, "IB1 9.7.2", "At a path MTU of 256 bytes messages are cut into First, Middle, Last or Only; one PSN a packet.";
    send_mtu_512, RC, "IB1 9.7.2", "The same at a path MTU of 512 bytes.";
    send_mtu_1024, RC, "IB1 9.7.2", "The same at a path MTU of 1024 bytes.";
    send_mtu_2048, RC, "IB1 9.7.2", "The same at a path MTU of 2048 bytes.";
    send_mtu_4096, RC, "IB1 9.7.2", "The same at a path MTU of 4096 bytes.";
    send_with_immediate, RC, "IB1 9.2", "Immediate data travels in the last packet and arrives in the CQE.";
    send_solicited, RC, "IB1 9.2", "The solicited event bit is set in the last packet only and arrives in the CQE.";
    sends_keep_their_order, RC, "IB1 9.5", "Messages are executed and completed in the order in which they were posted.";
    send_rings_wrap, RC, "abi wqe", "Work queues are rings: WQEs behind the last entry stand at the first.";
    send_rings_wrap_in_a_wqe, LONG, "abi wqe", "A WQE of several slots may stand across the end of its ring.";
    unsignaled_send_has_no_cqe, RC, "IB1 10.8", "A send WQE that is not signaled has no CQE when it succeeds.";
    receives_posted_beside_sends, RC, "IB1 9.7.5.1", "SENDs that arrive one after another are all accepted while receive WQEs are posted.";
    both_directions_at_once, RC, "IB1 9.5", "Requester and responder of a queue pair do not disturb each other.";
}

fn receives_posted_beside_sends(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let mut answers = Vec::new();
    let mut completions = Vec::new();
    for _ in 0..8 {
        s.recv();
    }
    for round in 0..200 {
        let request = s.request(Opcode::RcSendOnly);
        s.hand_next(&request, &[round as u8; 8]);
        // About as long as a frame takes on a narrow data path: packets and doorbells come at the same time.
        answers.extend(s.run(9 + round % 7));
        completions.extend(s.results());
        if usize::from(s.recv()) > completions.len() + 24 {
            answers.extend(s.quiet());
            completions.extend(s.results());
        }
    }
    answers.extend(s.quiet());
    completions.extend(s.results());
    let bad = syndromes(&answers)
        .into_iter()
        .find(|s| *s != Syndrome::ACK);
    check("a refusal", bad, None);
    let expected = (0..200).map(|index| (index, 0)).collect();
    check("completions", completions, expected);
}

/// Opcodes of a SEND without suffix in `packets` packets.
fn train(packets: usize) -> Vec<Opcode> {
    match packets {
        1 => vec![Opcode::RcSendOnly],
        n => {
            let mut train = vec![Opcode::RcSendMiddle; n];
            (train[0], train[n - 1]) = (Opcode::RcSendFirst, Opcode::RcSendLast);
            train
        }
    }
}

/// Sends `len` bytes from `source` to `target` and checks packets, completions and memory.
fn transfer(c: &mut Conn, mtu: usize, source: Sge, target: &Mr) {
    let what = format!("{} bytes at MTU {mtu}", source.length);
    let len = source.length as usize;
    c.sent.clear();
    c.b.write(target.addr, &vec![0xee; target.len as usize]);
    let first = c.query(Side::A).sq_psn;
    let taken = c.recv(&[target.all()]);
    let sent = c.post(&Work::send(&[source]));
    let cqe = c.succeeds(Side::B, taken);
    check(
        &format!("{what}: receive CQE"),
        (cqe.qpn, cqe.opcode, cqe.recv, cqe.byte_len as usize),
        (c.qb, opcode::RECV, true, len),
    );
    check(
        &format!("{what}: no immediate, not solicited"),
        (cqe.with_imm, cqe.with_inv, cqe.solicited),
        (false, false, false),
    );
    let cqe = c.succeeds(Side::A, sent);
    check(
        &format!("{what}: send CQE"),
        (cqe.qpn, cqe.opcode, cqe.recv),
        (c.qa, opcode::SEND, false),
    );
    let packets = c.packets(Side::A);
    check(
        &format!("{what}: opcodes"),
        c.opcodes(Side::A),
        train(len.div_ceil(mtu).max(1)),
    );
    for (i, packet) in packets.iter().enumerate() {
        let expected = (first + i as u32) & 0xff_ffff;
        check(
            &format!("{what}: PSN of packet {i}"),
            packet.psn(),
            expected,
        );
        let full = if i + 1 == packets.len() {
            len - i * mtu
        } else {
            mtu
        };
        check(
            &format!("{what}: payload of packet {i}"),
            packet.payload.len(),
            full,
        );
    }
    let mut expected = c.a.read(source.addr, len);
    expected.resize(target.len as usize, 0xee);
    check_bytes(&what, &c.b.contents(target), &expected);
}

fn at_mtu(bench: &mut Bench, mtu: Mtu) {
    let mut c = bench.connect(QpOptions {
        mtu,
        ..QpOptions::default()
    });
    let m = mtu.bytes();
    let source = c.a.create_mr(&pattern(3 * m + 5, 0x31), Rights::NONE);
    let target = c.b.create_mr(&vec![0; 3 * m + 21], Rights::ALL);
    for len in [m - 1, m, m + 1, 2 * m, 3 * m + 5] {
        transfer(&mut c, m, source.sge(0, len as u32), &target);
    }
}

fn send_mtu_256(bench: &mut Bench) {
    at_mtu(bench, Mtu::Mtu256);
}

fn send_mtu_512(bench: &mut Bench) {
    at_mtu(bench, Mtu::Mtu512);
}

fn send_mtu_1024(bench: &mut Bench) {
    at_mtu(bench, Mtu::Mtu1024);
}

fn send_mtu_2048(bench: &mut Bench) {
    at_mtu(bench, Mtu::Mtu2048);
}

fn send_mtu_4096(bench: &mut Bench) {
    at_mtu(bench, Mtu::Mtu4096);
}

fn lengths(bench: &mut Bench, lengths: &[u32]) {
    let mut c = bench.connect(QpOptions::default());
    let source = c.a.create_mr(&pattern(256, 7), Rights::NONE);
    let target = c.b.create_mr(&[0; 256], Rights::ALL);
    for &len in lengths {
        transfer(&mut c, MTU, source.sge(0, len), &target);
    }
}

fn send_of_no_bytes(bench: &mut Bench) {
    lengths(bench, &[0]);
    let mut c = bench.connect(QpOptions::default());
    let taken = c.recv(&[]);
    c.execute(&Work::send(&[]));
    check("bytes received", c.succeeds(Side::B, taken).byte_len, 0);
}

fn send_of_odd_lengths(bench: &mut Bench) {
    lengths(bench, &[1, 2, 3, 4, 5, 63, 65]);
}

fn send_with_immediate(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let source = c.a.create_mr(&pattern(2500, 1), Rights::NONE);
    let target = c.b.create_mr(&[0; 4096], Rights::ALL);
    for (len, imm) in [(2500, 0xa0b0_c0d0), (100, 0), (0, u32::MAX)] {
        c.sent.clear();
        let taken = c.recv(&[target.all()]);
        c.execute(&Work::send(&[source.sge(0, len)]).imm(imm));
        let cqe = c.succeeds(Side::B, taken);
        check("immediate", (cqe.with_imm, cqe.imm), (true, imm));
        check("byte_len", (cqe.byte_len, cqe.opcode), (len, opcode::RECV));
        let packets = c.packets(Side::A);
        for (i, packet) in packets.iter().enumerate() {
            let expected = (i + 1 == packets.len()).then_some(imm);
            check(&format!("packet {i}"), packet.headers.ext.imm, expected);
        }
    }
}

fn send_solicited(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let source = c.a.create_mr(&pattern(2500, 1), Rights::NONE);
    let target = c.b.create_mr(&[0; 4096], Rights::ALL);
    for solicited in [true, false, true] {
        c.sent.clear();
        let taken = c.recv(&[target.all()]);
        let mut work = Work::send(&[source.all()]);
        work.head.solicited = solicited;
        c.execute(&work);
        check("CQE", c.succeeds(Side::B, taken).solicited, solicited);
        let packets = c.packets(Side::A);
        let bits: Vec<_> = packets.iter().map(|p| p.headers.bth.solicited).collect();
        check("SE of the packets", bits, vec![false, false, solicited]);
    }
}

fn sends_keep_their_order(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions {
        ot_log: 2,
        ..QpOptions::default()
    });
    let target = c.b.create_mr(&[0; 64 * 16], Rights::ALL);
    for i in 0..16 {
        c.recv(&[target.sge(64 * i, 64)]);
    }
    let works: Vec<_> = (0..16)
        .map(|i| Work::send(&[]).inline(&pattern(32, i)))
        .collect();
    c.post_all(&works);
    for i in 0..16 {
        c.succeeds(Side::A, i);
        c.succeeds(Side::B, i);
        let place = c.b.read(target.addr + 64 * u64::from(i), 32);
        check_bytes("the message of this number", &place, &pattern(32, i as u8));
    }
}

fn send_rings_wrap(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions {
        sq_log: 2,
        rq_log: 1,
        ot_log: 1,
        ..QpOptions::default()
    });
    let target = c.b.create_mr(&[0; 32], Rights::ALL);
    for i in 0..11u16 {
        let taken = c.recv(&[target.all()]);
        let data = pattern(32, i as u8);
        let index = c.post(&Work::send(&[]).inline(&data));
        check("index of the WQE", (index, taken), (i, i));
        c.succeeds(Side::A, i);
        c.succeeds(Side::B, i);
        check_bytes("the message", &c.b.contents(&target), &data);
    }
}

fn send_rings_wrap_in_a_wqe(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions {
        sq_log: 3,
        ot_log: 1,
        ..QpOptions::default()
    });
    let target = c.b.create_mr(&[0; 100], Rights::ALL);
    for i in 0..9u16 {
        // Three slots each in a ring of eight.
        let data = pattern(100, i as u8);
        let taken = c.recv(&[target.all()]);
        let index = c.post(&Work::send(&[]).inline(&data));
        check("index of the WQE", index, 3 * i);
        c.succeeds(Side::A, index);
        c.succeeds(Side::B, taken);
        check_bytes("the message", &c.b.contents(&target), &data);
    }
}

fn unsignaled_send_has_no_cqe(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    for i in 0..4 {
        c.recv(&[]);
        let work = Work::send(&[]);
        c.post(&if i == 3 { work } else { work.unsignaled() });
        c.succeeds(Side::B, i);
    }
    c.succeeds(Side::A, 3);
    c.nothing_completes();
}

fn both_directions_at_once(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let (qa, qb) = (c.qa, c.qb);
    let from_a = c.a.create_mr(&pattern(3000, 1), Rights::ALL);
    let from_b = c.b.create_mr(&pattern(3000, 2), Rights::ALL);
    let at_a = c.a.create_mr(&[0; 3000], Rights::ALL);
    let at_b = c.b.create_mr(&[0; 3000], Rights::ALL);
    for _ in 0..3 {
        c.a.post_recv(qa, &[at_a.all()]);
        c.b.post_recv(qb, &[at_b.all()]);
        c.a.post_send(qa, &Work::send(&[from_a.all()]));
        c.b.post_send(qb, &Work::send(&[from_b.all()]));
    }
    for side in [Side::A, Side::B] {
        let mut cqes: Vec<_> = (0..6).map(|_| c.wait(side)).collect();
        cqes.sort_by_key(|cqe| (cqe.recv, cqe.wqe_index));
        let seen: Vec<_> = cqes
            .iter()
            .map(|q| (q.recv, q.wqe_index, q.status))
            .collect();
        let expected: Vec<_> = [false, true]
            .into_iter()
            .flat_map(|recv| (0..3).map(move |i| (recv, i, 0)))
            .collect();
        check(&format!("completions on {side:?}"), seen, expected);
    }
    check_bytes("at A", &c.a.contents(&at_a), &pattern(3000, 2));
    check_bytes("at B", &c.b.contents(&at_b), &pattern(3000, 1));
}
