//! READ, compare and swap, fetch and add.

use ferroce_proto::abi::cq::{opcode, status};
use ferroce_proto::wire::{Mtu, Opcode};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use crate::{assert_status, assert_success, connected};

#[test]
fn read_at_every_mtu_and_size() {
    for mtu in Mtu::ALL {
        let (mut pair, qa, _) = connected(QpOptions {
            mtu,
            ..QpOptions::default()
        });
        let m = mtu.bytes();
        let data = pattern(4 * m, 3);
        let origin = pair.b.create_mr(&data, Rights::ALL);
        let sink = pair.a.create_mr(&vec![0; 4 * m], Rights::ALL);
        for (len, offset) in [(1, 0), (m - 1, 5), (m, 1), (m + 1, 2), (3 * m + 2, 3)] {
            pair.a.write(sink.addr, &vec![0; 4 * m]);
            let (half, rest) = (len as u32 / 2, len as u32 - len as u32 / 2);
            let list = [sink.sge(0, half), sink.sge(u64::from(half), rest)];
            let index = pair
                .a
                .post_send(qa, &Work::read(&list, &origin, offset as u64));
            let cqe = pair.wait(Side::A, 0);
            assert_success(&cqe, index);
            assert_eq!((cqe.opcode, cqe.byte_len as usize), (opcode::READ, len));
            let mut expected = data[offset..offset + len].to_vec();
            expected.resize(4 * m, 0);
            assert_eq!(pair.a.contents(&sink), expected);
        }
        pair.assert_no_faults();
    }
}

#[test]
fn reads_outstanding_stay_within_their_limit() {
    for limit in [1, 2, 16] {
        let options = QpOptions {
            max_rd_atomic: limit,
            ot_log: 5,
            ..QpOptions::default()
        };
        let (mut pair, qa, _) = connected(options);
        let origin = pair.b.create_mr(&pattern(32 * 2048, 3), Rights::ALL);
        let sink = pair.a.create_mr(&[0; 32 * 2048], Rights::ALL);
        for i in 0..32 {
            let work = Work::read(&[sink.sge(i * 2048, 2048)], &origin, i * 2048);
            pair.a.post_send(qa, &work);
        }
        for i in 0..32 {
            assert_success(&pair.wait(Side::A, 0), i);
        }
        assert_eq!(pair.a.contents(&sink), pattern(32 * 2048, 3));
        let (mut open, mut most) = (0, 0);
        for (_, frame) in &pair.sent {
            match ferroce_proto::wire::Packet::parse(frame)
                .unwrap()
                .headers
                .bth
                .opcode
            {
                Opcode::RcReadRequest => open += 1,
                Opcode::RcReadResponseLast | Opcode::RcReadResponseOnly => open -= 1,
                _ => {}
            }
            most = most.max(open);
        }
        assert_eq!(most, i32::from(limit));
    }
}

#[test]
fn responder_refuses_reads_beyond_its_limit() {
    let mut pair = crate::pair();
    let responder = QpOptions {
        max_rd_atomic: 1,
        ..QpOptions::default()
    };
    let (qa, _) = pair.connect(QpOptions::default(), responder);
    let origin = pair.b.create_mr(&pattern(65536, 3), Rights::ALL);
    let sink = pair.a.create_mr(&[0; 65536], Rights::ALL);
    let first = pair.a.post_send(qa, &Work::read(&[sink.all()], &origin, 0));
    let second = pair
        .a
        .post_send(qa, &Work::read(&[sink.sge(0, 8)], &origin, 0));
    assert_success(&pair.wait(Side::A, 0), first);
    assert_status(&pair.wait(Side::A, 0), second, status::REM_INV_REQ_ERR);
}

#[test]
fn a_read_goes_on_from_the_middle() {
    let (mut pair, qa, _) = connected(QpOptions {
        timeout: 2,
        ..QpOptions::default()
    });
    let origin = pair.b.create_mr(&pattern(5000, 3), Rights::ALL);
    let sink = pair.a.create_mr(&[0; 5000], Rights::ALL);
    let mut n = 0;
    pair.fate = Box::new(move |from, frame| {
        n += usize::from(from == Side::B);
        if from == Side::B && n == 3 {
            vec![]
        } else {
            vec![frame.to_vec()]
        }
    });
    let index = pair.a.post_send(qa, &Work::read(&[sink.all()], &origin, 0));
    assert_success(&pair.wait(Side::A, 0), index);
    assert_eq!(pair.a.contents(&sink), pattern(5000, 3));
    let requests = pair.packets(Side::A);
    let reth = requests[1].headers.ext.reth.unwrap();
    assert_eq!((reth.va, reth.dma_len), (origin.addr + 2048, 5000 - 2048));
    assert_eq!(requests[1].headers.bth.psn.value(), 0x1002);
    assert_eq!(
        pair.a.stat("implied_nak_seq_err"),
        1,
        "the fourth response shows the loss"
    );
}

#[test]
fn fetch_add_and_compare_swap() {
    let (mut pair, qa, _) = connected(QpOptions::default());
    let target = pair.b.create_mr(&[0; 16], Rights::ALL);
    let result = pair.a.create_mr(&[0; 8], Rights::ALL);
    let value = |pair: &ferroce_sim::testhost::Pair| {
        let read = |host: &ferroce_sim::testhost::Host, addr| {
            u64::from_le_bytes(host.read(addr, 8).try_into().unwrap())
        };
        (read(&pair.a, result.addr), read(&pair.b, target.addr + 8))
    };
    pair.b.write(target.addr + 8, &u64::MAX.to_le_bytes());
    let steps = [
        (
            Work::fetch_add(result.all(), &target, 8, 3),
            (u64::MAX, 2),
            opcode::FETCH_ADD,
        ),
        (
            Work::cmp_swap(result.all(), &target, 8, 2, 77),
            (2, 77),
            opcode::CMP_SWAP,
        ),
        (
            Work::cmp_swap(result.all(), &target, 8, 2, 99),
            (77, 77),
            opcode::CMP_SWAP,
        ),
    ];
    for (work, expected, opcode) in steps {
        pair.a.post_send(qa, &work);
        let cqe = pair.wait(Side::A, 0);
        assert_eq!(
            (cqe.status, cqe.opcode, cqe.byte_len),
            (status::SUCCESS, opcode, 8)
        );
        assert_eq!(value(&pair), expected);
    }
    let index = pair
        .a
        .post_send(qa, &Work::fetch_add(result.all(), &target, 4, 1));
    let cqe = pair.wait(Side::A, 0);
    assert_status(&cqe, index, status::REM_INV_REQ_ERR);
}

#[test]
fn a_repeated_atomic_is_answered_from_its_saved_result() {
    let (mut pair, qa, _) = connected(QpOptions {
        timeout: 1,
        ..QpOptions::default()
    });
    let target = pair.b.create_mr(&[0; 8], Rights::ALL);
    let result = pair.a.create_mr(&[0; 128], Rights::ALL);
    // Every answer is lost the first time.
    let mut seen = std::collections::BTreeSet::new();
    pair.fate = Box::new(move |from, frame| {
        let psn = ferroce_proto::wire::Packet::parse(frame)
            .unwrap()
            .headers
            .bth
            .psn
            .value();
        if from == Side::B && seen.insert(psn) {
            vec![]
        } else {
            vec![frame.to_vec()]
        }
    });
    for i in 0..16 {
        pair.a
            .post_send(qa, &Work::fetch_add(result.sge(8 * i, 8), &target, 0, 1));
    }
    for i in 0..16 {
        assert_success(&pair.wait(Side::A, 0), i);
    }
    assert_eq!(
        pair.b.contents(&target),
        16u64.to_le_bytes(),
        "each added once"
    );
    let results = pair.a.contents(&result);
    let originals: Vec<_> = results.chunks(8).map(|b| b[0]).collect();
    assert_eq!(originals, (0..16).collect::<Vec<u8>>());
}

#[test]
fn fence_waits_for_reads() {
    let (mut pair, qa, _) = connected(QpOptions::default());
    let remote = pair.b.create_mr(&pattern(8192, 3), Rights::ALL);
    let sink = pair.a.create_mr(&[0; 8192], Rights::ALL);
    pair.a
        .write_slots(qa, &Work::read(&[sink.all()], &remote, 0).slots());
    let mut work = Work::write(&[sink.sge(8000, 8)], &remote, 0);
    work.head.fence = true;
    pair.a.post_send(qa, &work);
    assert_success(&pair.wait(Side::A, 0), 0);
    assert_success(&pair.wait(Side::A, 0), 1);
    assert_eq!(
        pair.b.read(remote.addr, 8),
        pattern(8192, 3)[8000..8008],
        "what the READ brought"
    );
}

#[test]
fn data_without_local_write_right_is_a_local_error() {
    let (mut pair, qa, _) = connected(QpOptions::default());
    let remote = pair.b.create_mr(&pattern(64, 3), Rights::ALL);
    let sink = pair.a.create_mr(&[0; 64], Rights::NONE);
    let index = pair.a.post_send(qa, &Work::read(&[sink.all()], &remote, 0));
    assert_status(&pair.wait(Side::A, 0), index, status::LOC_PROT_ERR);
    assert_eq!(pair.a.contents(&sink), [0; 64]);
}

#[test]
fn a_region_taken_back_under_a_read_is_not_read_any_more() {
    let (mut pair, qa, _) = connected(QpOptions::default());
    let remote = pair.b.create_mr(&pattern(1 << 20, 3), Rights::ALL);
    let sink = pair.a.create_mr(&[0; 1 << 20], Rights::ALL);
    let index = pair.a.post_send(qa, &Work::read(&[sink.all()], &remote, 0));
    pair.run(2000);
    pair.b.deregister(&remote);
    pair.b.memory.unmap(remote.addr);
    assert_status(&pair.wait(Side::A, 0), index, status::REM_ACCESS_ERR);
    pair.assert_no_faults();
}
