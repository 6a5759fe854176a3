//! Send and receive requests: their WQEs, and those that are refused.

use ferroce_driver::{
    Access, ConnectAttr, Data, Features, PostCause, QpAttr, RecvWr, Remote, SendFlags, SendOp,
    SendWr,
};
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::wqe::{AtomicOperands, SendWqe};

use crate::fake::{ALL, BASIC};
use crate::setup::{Connected, REMOTE, peer, sge, sges};

#[test]
fn signal_all_signals_all() {
    let Connected { fake, mut qp, .. } = Connected::new(ALL, 4, |b| b.signal_all());
    qp.post_send(&[SendWr::new(SendOp::Send, &[])]).unwrap();
    assert!(fake.send_wqe(qp.qpn(), 0).0.signaled);
}

#[test]
fn operations_and_flags_stand_in_the_wqe() {
    let Connected { fake, mut qp, .. } = Connected::new(ALL, 4, |b| b);
    let one = [sge(64, 8, 3)];
    let word = Remote {
        addr: 0x1000,
        rkey: 5,
    };
    let operations = [
        (SendOp::Send, 0, 0, Remote::default()),
        (
            SendOp::SendImm(0x0102_0304),
            1,
            0x0102_0304,
            Remote::default(),
        ),
        (SendOp::SendInv(77), 2, 77, Remote::default()),
        (SendOp::Write(REMOTE), 3, 0, REMOTE),
        (SendOp::WriteImm(REMOTE, 9), 4, 9, REMOTE),
        (SendOp::Read(REMOTE), 5, 0, REMOTE),
        (
            SendOp::CmpSwap {
                remote: word,
                compare: 11,
                swap: 12,
            },
            6,
            0,
            word,
        ),
        (
            SendOp::FetchAdd {
                remote: word,
                add: 13,
            },
            7,
            0,
            word,
        ),
    ];
    for (index, (op, code, imm, remote)) in (0..).zip(operations) {
        qp.post_send(&[SendWr::new(op, &one).solicited().fence()])
            .unwrap();
        let (head, list, body) = fake.send_wqe(qp.qpn(), index);
        let expected = SendWqe {
            opcode: code,
            solicited: true,
            fence: true,
            num_sge: 1,
            slots: 1,
            imm,
            remote_addr: remote.addr,
            rkey: remote.rkey,
            length: 8,
            ..SendWqe::default()
        };
        assert_eq!((head, &list[..]), (expected, &one[..]));
        let operands = AtomicOperands::parse(body[16..].try_into().unwrap());
        let expected = match op {
            SendOp::CmpSwap { .. } => AtomicOperands {
                swap_add: 12,
                compare: 11,
            },
            SendOp::FetchAdd { .. } => AtomicOperands {
                swap_add: 13,
                compare: 0,
            },
            _ => AtomicOperands::default(),
        };
        assert_eq!(operands, expected);
    }
}

#[test]
fn entries_of_no_bytes_are_left_out() {
    let Connected { fake, mut qp, .. } = Connected::new(BASIC, 4, |b| b);
    let list = [0, 5, 0, 0, 6].map(|length| sge(1, length, 2));
    let list_of_two = [list[1], list[4]];
    qp.post_send(&[SendWr::new(SendOp::Send, &list)]).unwrap();
    let (head, found, _) = fake.send_wqe(qp.qpn(), 0);
    assert_eq!(
        (head.num_sge, head.slots, head.length, &found[..]),
        (2, 1, 11, &list_of_two[..])
    );
    qp.post_recv(&[RecvWr::new(0, &list)]).unwrap();
    assert_eq!(fake.recv_wqe(qp.qpn(), 0).1, list_of_two);
}

#[test]
fn a_batch_is_posted_as_a_whole_or_not() {
    let Connected { fake, mut qp, .. } = Connected::new(BASIC, 4, |b| b.max_send_wr(4));
    let long = sges(3);
    let good = SendWr::new(SendOp::Write(REMOTE), &long[..2]);
    let bytes = [0; 33];
    let atomic = SendOp::FetchAdd {
        remote: Remote { addr: 8, rkey: 0 },
        add: 1,
    };
    let misaligned = SendOp::FetchAdd {
        remote: Remote { addr: 12, rkey: 0 },
        add: 1,
    };
    let eight = [sge(64, 8, 3)];
    let huge = [sge(64, 1 << 31, 3), sge(64, 1, 3)];
    let cases = [
        (
            SendWr::new(SendOp::Send, &long),
            "its list has 3 entries, the queue pair was built for 2",
        ),
        (
            SendWr::inline(SendOp::Send, &bytes),
            "it has 33 bytes of inline data, the queue pair was built for 32",
        ),
        (
            SendWr::new(SendOp::Send, &huge),
            "its message has 2147483649 bytes, at most 2147483648",
        ),
        (
            SendWr::inline(SendOp::Read(REMOTE), &[]),
            "READs and atomics put data into memory",
        ),
        (
            SendWr::new(atomic, &long[..1]),
            "an atomic puts the old value into memory: give a list of one entry of 8",
        ),
        (
            SendWr::new(atomic, &[]),
            "an atomic puts the old value into memory",
        ),
        (
            SendWr::new(misaligned, &eight),
            "give a remote address that is a multiple of 8",
        ),
    ];
    for (bad, text) in cases {
        let e = qp.post_send(&[good, bad, good]).unwrap_err();
        assert_eq!(e.index, 1);
        assert!(e.to_string().contains(text), "{e}");
    }
    let e = qp
        .post_recv(&[RecvWr::new(0, &[]), RecvWr::new(0, &sges(4))])
        .unwrap_err();
    assert_eq!(
        (e.index, e.cause),
        (1, PostCause::Sges { found: 4, limit: 3 })
    );
    assert_eq!((qp.send_slots_free(), qp.recv_free()), (4, 64));
    assert_eq!(fake.take_doorbells(), []);
    qp.post_send(&[good; 3]).unwrap();
    let e = qp.post_send(&[good; 2]).unwrap_err();
    assert_eq!(
        (e.index, e.cause),
        (
            1,
            PostCause::Full {
                queue: "send",
                free: 0,
                needed: 1
            }
        )
    );
    assert_eq!(fake.take_doorbells(), [(doorbell::sq(qp.qpn()), 3)]);
}

#[test]
fn a_send_queue_takes_as_many_requests_as_it_says() {
    // Requests of two slots at most: 4 of these, or as many short ones.
    let Connected { fake, mut qp, .. } =
        Connected::new(ALL, 4, |b| b.max_send_wr(3).max_inline_data(36));
    assert_eq!((qp.max_send_wr(), qp.send_slots_free()), (4, 8));
    let short = SendWr::new(SendOp::Send, &[]);
    qp.post_send(&[short; 3]).unwrap();
    let e = qp.post_send(&[short; 2]).unwrap_err();
    let full = PostCause::Full {
        queue: "send",
        free: 0,
        needed: 1,
    };
    assert_eq!((e.index, e.cause), (1, full.clone()));
    let mut sends = qp.sends();
    sends.add(&short).unwrap();
    assert_eq!(sends.add(&short), Err(full));
    drop(sends);
    assert_eq!(fake.take_doorbells().last().unwrap().1, 4);
}

#[test]
fn operations_the_card_or_the_connection_lacks_are_refused() {
    let one = [sge(64, 8, 3)];
    let read = SendWr::new(SendOp::Read(REMOTE), &one);
    let Connected { mut qp, .. } = Connected::new(Features::RC, 4, |b| b);
    let e = qp.post_send(&[read]).unwrap_err();
    assert!(
        e.to_string()
            .contains("this queue pair (RC) has no RDMA READ: the card was built without it"),
        "{e}"
    );
    let invalidate = SendWr::new(SendOp::SendInv(1), &one);
    let e = qp.post_send(&[invalidate]).unwrap_err();
    assert!(
        e.to_string()
            .contains("no SEND with invalidate: the card was built without it"),
        "{e}"
    );
    let Connected { mut qp, .. } = Connected::new(ALL, 4, |b| b.uc());
    for op in [
        SendOp::Read(REMOTE),
        SendOp::FetchAdd {
            remote: REMOTE,
            add: 1,
        },
        SendOp::SendInv(1),
    ] {
        let e = qp.post_send(&[SendWr::new(op, &one)]).unwrap_err();
        assert!(e.to_string().contains("build a reliable connection"), "{e}");
    }
    qp.post_send(&[SendWr::new(SendOp::WriteImm(REMOTE, 1), &one)])
        .unwrap();
    let Connected {
        fake: _fake,
        mut qp,
        ..
    } = Connected::new(ALL, 4, |b| b);
    qp.modify(&QpAttr::Reset).unwrap();
    let attr = ConnectAttr {
        max_rd_atomic: Some(0),
        ..Default::default()
    };
    qp.connect_with(&peer(), &attr).unwrap();
    assert!(
        qp.post_send(&[read])
            .unwrap_err()
            .to_string()
            .contains("its max_rd_atomic is 0")
    );
}

#[test]
fn data_may_be_built_by_hand() {
    let Connected {
        fake, pd, mut qp, ..
    } = Connected::new(ALL, 4, |b| b);
    let region = pd.alloc_mr(100, Access::LOCAL_WRITE).unwrap();
    let wr = SendWr {
        wr_id: 1,
        op: SendOp::Send,
        data: Data::Sges(&[region.sge(50..)]),
        flags: SendFlags::SIGNALED,
    };
    qp.post_send(&[wr]).unwrap();
    let (head, list, _) = fake.send_wqe(qp.qpn(), 0);
    assert_eq!(
        (head.length, list[0].addr(), list[0].lkey()),
        (50, region.addr() + 50, region.lkey())
    );
}

/// A list whose requests are posted as far as they can be, as in verbs: with one doorbell.
#[test]
fn one_doorbell_announces_what_was_posted_one_by_one() {
    let Connected {
        fake,
        mut qp,
        context,
        pd,
        cq,
    } = Connected::new(ALL, 8, |b| b.max_send_wr(4).max_recv_wr(4));
    let send = SendWr::new(SendOp::Send, &[]);
    let mut sends = qp.sends();
    for _ in 0..2 {
        sends.add(&send).unwrap();
    }
    // What is posted in between comes behind.
    sends.with(|qp| qp.post_send(&[send])).unwrap();
    sends.add(&send).unwrap();
    let e = sends.add(&send).unwrap_err();
    assert!(matches!(e, PostCause::Full { free: 0, .. }), "{e}");
    drop(sends);
    let (sq, rq) = (doorbell::sq(qp.qpn()), doorbell::rq(qp.qpn()));
    assert_eq!(fake.take_doorbells(), [(sq, 2), (sq, 3), (sq, 4)]);

    let recv = RecvWr::new(1, &[]);
    let mut receives = qp.receives();
    for _ in 0..4 {
        receives.add(&recv).unwrap();
    }
    let e = receives.add(&recv).unwrap_err();
    assert!(matches!(e, PostCause::Full { free: 0, .. }), "{e}");
    drop(receives);
    assert_eq!(fake.take_doorbells(), [(rq, 4)]);
    drop(qp.receives());
    drop(qp.sends());
    assert_eq!(fake.take_doorbells(), []);

    let mut srq = pd.create_srq(2, 1).unwrap();
    fake.take_doorbells();
    let mut receives = srq.receives();
    receives.add(&recv).unwrap();
    receives.add(&recv).unwrap();
    receives.add(&recv).unwrap_err();
    drop(receives);
    assert_eq!(fake.take_doorbells(), [(doorbell::srq(srq.srqn()), 2)]);
    let mut shared = ferroce_driver::Qp::builder(&pd)
        .cq(&cq)
        .srq(&srq)
        .build()
        .unwrap();
    assert!(shared.sends().add(&send).is_err() && shared.receives().add(&recv).is_err());
    drop((shared, srq, context));
}
