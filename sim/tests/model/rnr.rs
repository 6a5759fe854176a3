//! Receiver not ready.

use ferroce_proto::abi::cq::status;
use ferroce_proto::wire::{NakCode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use crate::{assert_status, assert_success, connected};

/// 1.28 ms in cycles, of RNR timer code 14.
const WAIT: u64 = 320_000;

fn options() -> QpOptions {
    QpOptions {
        min_rnr_timer: 14,
        timeout: 8,
        ..QpOptions::default()
    }
}

#[test]
fn send_waits_for_a_receive_wqe() {
    let (mut pair, qa, qb) = connected(options());
    let target = pair.b.create_mr(&[0; 4096], Rights::ALL);
    let source = pair.a.create_mr(&pattern(3000, 1), Rights::NONE);
    let first = pair.a.post_send(qa, &Work::send(&[source.all()]));
    let second = pair.a.post_send(qa, &Work::send(&[source.all()]));
    let start = pair.a.nic.now();
    pair.run(3 * WAIT + WAIT / 2);
    assert_eq!(pair.a.poll(0), None);
    assert_eq!(pair.a.stat("rnr_nak_received"), 4, "one each wait");
    assert_eq!(
        pair.a.stat("local_ack_timeout_err"),
        0,
        "no timeout while waiting"
    );
    pair.b.post_recv(qb, &[target.all()]);
    assert_success(&pair.wait(Side::A, 0), first);
    assert!(pair.a.nic.now() - start >= 4 * WAIT);
    pair.b.post_recv(qb, &[target.all()]);
    assert_success(&pair.wait(Side::A, 0), second);
    assert_eq!(pair.b.contents(&target)[..3000], pattern(3000, 1));
    assert_eq!(pair.b.query(qb).msn, 2);
    let aeth = pair.packets(Side::B)[0].headers.ext.aeth.unwrap();
    assert_eq!(
        (aeth.syndrome, aeth.msn),
        (Syndrome::RnrNak { timer: 14 }, 0)
    );
}

#[test]
fn write_with_immediate_waits_on_its_last_packet() {
    let (mut pair, qa, qb) = connected(options());
    let target = pair.b.create_mr(&[0; 4096], Rights::ALL);
    let source = pair.a.create_mr(&pattern(3000, 1), Rights::NONE);
    let index = pair
        .a
        .post_send(qa, &Work::write(&[source.all()], &target, 5).imm(7));
    pair.run(WAIT / 2);
    let state = pair.b.query(qb);
    assert_eq!(
        (state.rq_psn, state.msn),
        (0x1002, 0),
        "two of three packets are in"
    );
    pair.b.post_recv(qb, &[]);
    assert_success(&pair.wait(Side::A, 0), index);
    let cqe = pair.wait(Side::B, 0);
    assert_eq!((cqe.imm, cqe.byte_len), (7, 3000));
    assert_eq!(pair.b.read(target.addr + 5, 3000), pattern(3000, 1));
}

#[test]
fn rnr_retries_run_out() {
    for rnr_retry in [0, 1, 6] {
        let (mut pair, qa, _) = connected(QpOptions {
            rnr_retry,
            ..options()
        });
        let failed = pair.a.post_send(qa, &Work::send(&[]).unsignaled());
        let flushed = pair.a.post_send(qa, &Work::send(&[]).unsignaled());
        let cqe = pair.wait(Side::A, 0);
        assert_status(&cqe, failed, status::RNR_RETRY_EXC_ERR);
        assert_eq!(cqe.vendor_err, 0x20 | 14);
        assert_status(&pair.wait(Side::A, 0), flushed, status::WR_FLUSH_ERR);
        assert_eq!(pair.a.stat("rnr_nak_received"), u64::from(rnr_retry) + 1);
        assert_eq!(pair.a.stat("rnr_nak_retry_err"), 1);
    }
}

#[test]
fn a_sequence_nak_does_not_cut_the_wait_short() {
    // Soft-RoCE answers the packets behind a refused one with a PSN-error NAK.
    let (mut pair, qa, qb) = connected(QpOptions {
        retry_cnt: 0,
        ..options()
    });
    pair.fate = Box::new(|from, frame| {
        let packet = ferroce_proto::wire::Packet::parse(frame).unwrap();
        let mut headers = packet.headers;
        let mut frames = vec![frame.to_vec()];
        if from == Side::B {
            let aeth = headers.ext.aeth.as_mut().unwrap();
            if matches!(aeth.syndrome, Syndrome::RnrNak { .. }) {
                aeth.syndrome = Syndrome::Nak(NakCode::PsnSequence);
                let mut nak = vec![0; headers.frame_len(0)];
                headers.build(&[], &mut nak).unwrap();
                frames.push(nak);
            }
        }
        frames
    });
    let start = pair.a.nic.now();
    let index = pair.a.post_send(qa, &Work::send(&[]));
    pair.run(WAIT / 2);
    assert_eq!(pair.packets(Side::A).len(), 1);
    pair.b.post_recv(qb, &[]);
    assert_success(&pair.wait(Side::A, 0), index);
    assert!(pair.a.nic.now() - start >= WAIT);
    assert_eq!(pair.a.stat("packet_seq_err"), 1);
}
