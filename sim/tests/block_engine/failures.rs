//! Failures: every failure of one side arrives at the other.

use ferroce_hdl::engine::failures::Failures;
use ferroce_hdl::transport::requester::event::SqEventKind;
use ferroce_hdl::transport::responder::event::RqEventKind;
use ferroce_sim::bench::{Bench, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;

#[test]
fn every_send_queue_that_fails_is_reported_to_the_responder() {
    let mut bench = Bench::of(Failures::default).unwrap();
    let mut rq = StreamSink::new(bench.dut(), "rq", Pauses::new(0.7, 30)).unwrap();
    let mut down = StreamSource::new(bench.dut(), "sq_down", Pauses::NONE).unwrap();
    let lost = bench.dut().input("lost").unwrap();
    bench.dut_mut().set(lost, 0);
    // more than can wait
    for qpn in 0..40 {
        down.push(down.item().with("payload", qpn));
        rq.expect(
            rq.item()
                .with("kind", RqEventKind::SqFailed as u64)
                .with("qpn", qpn),
        );
    }
    bench.reset(&mut [&mut down, &mut rq]);
    bench.finish(&mut [&mut down, &mut rq], 5000).unwrap();
}

#[test]
fn a_failed_request_and_a_lost_completion_flush_and_a_lost_packet_fails_its_message() {
    let mut bench = Bench::of(Failures::default).unwrap();
    let mut responder = StreamSource::new(bench.dut(), "responder", Pauses::new(0.3, 3)).unwrap();
    let mut cqe = StreamSource::new(bench.dut(), "lost_cqe", Pauses::new(0.3, 3)).unwrap();
    let mut err_report = StreamSink::new(bench.dut(), "err_report", Pauses::new(0.5, 5)).unwrap();
    let mut sq = StreamSink::new(bench.dut(), "sq", Pauses::new(0.5, 5)).unwrap();
    let lost = bench.dut().input("lost").unwrap();
    let lost_qpn = bench.dut().input("lost_qpn").unwrap();
    let lost_psn = bench.dut().input("lost_psn").unwrap();
    let lost_incarnation = bench.dut().input("lost_incarnation").unwrap();
    bench.dut_mut().set(lost, 0);
    let kind = SqEventKind::Failed as u64;
    for qpn in 0..20 {
        responder.push(responder.item().with("qpn", qpn));
        err_report.expect(err_report.item().with("qpn", qpn));
        sq.expect(sq.item().with("kind", kind).with("qpn", qpn));
    }
    bench.reset(&mut [&mut responder, &mut cqe, &mut err_report, &mut sq]);
    bench
        .finish(
            &mut [&mut responder, &mut cqe, &mut err_report, &mut sq],
            1000,
        )
        .unwrap();

    for qpn in 20..40 {
        cqe.push(cqe.item().with("qpn", qpn).with("recv", 0));
        sq.expect(sq.item().with("kind", kind).with("qpn", qpn));
    }
    bench
        .finish(
            &mut [&mut responder, &mut cqe, &mut err_report, &mut sq],
            1000,
        )
        .unwrap();

    for qpn in [3, 9] {
        sq.expect(
            sq.item()
                .with("kind", SqEventKind::Unread as u64)
                .with("qpn", qpn)
                .with("psn", 1000 + qpn)
                .with("generation", qpn % 4),
        );
        bench.dut_mut().set(lost, 1);
        bench.dut_mut().set(lost_qpn, qpn);
        bench.dut_mut().set(lost_psn, 1000 + qpn);
        bench.dut_mut().set(lost_incarnation, qpn % 4);
        bench
            .step(&mut [&mut responder, &mut cqe, &mut err_report, &mut sq])
            .unwrap();
    }
    bench.dut_mut().set(lost, 0);
    bench
        .finish(
            &mut [&mut responder, &mut cqe, &mut err_report, &mut sq],
            1000,
        )
        .unwrap();
}

/// Whatever state the requester is in.
#[test]
fn a_lost_receive_is_reported_to_both_sides() {
    let mut bench = Bench::of(Failures::default).unwrap();
    let mut cqe = StreamSource::new(bench.dut(), "lost_cqe", Pauses::new(0.3, 3)).unwrap();
    let mut sq = StreamSink::new(bench.dut(), "sq", Pauses::NONE).unwrap();
    let mut rq = StreamSink::new(bench.dut(), "rq", Pauses::NONE).unwrap();
    for port in ["lost", "responder_valid", "sq_down_valid"] {
        let port = bench.dut().input(port).unwrap();
        bench.dut_mut().set(port, 0);
    }
    for qpn in 0..20 {
        cqe.push(cqe.item().with("qpn", qpn).with("recv", 1));
        let failed = SqEventKind::Failed as u64;
        sq.expect(sq.item().with("kind", failed).with("qpn", qpn));
        let failed = RqEventKind::SqFailed as u64;
        rq.expect(rq.item().with("kind", failed).with("qpn", qpn));
    }
    bench.reset(&mut [&mut cqe, &mut sq, &mut rq]);
    bench
        .finish(&mut [&mut cqe, &mut sq, &mut rq], 1000)
        .unwrap();
}

/// More packets are lost than can wait, while the requester takes none: `lost_hold` comes in time, and all are reported.
#[test]
fn every_lost_packet_is_reported() {
    const LOST: u64 = 100;
    let mut bench = Bench::of(Failures::default).unwrap();
    let mut sq = StreamSink::new(bench.dut(), "sq", Pauses::new(0.05, 60)).unwrap();
    let kind = SqEventKind::Unread as u64;
    let lost = bench.dut().input("lost").unwrap();
    let lost_qpn = bench.dut().input("lost_qpn").unwrap();
    let hold = bench.dut().output("lost_hold").unwrap();
    for port in [
        "lost",
        "lost_psn",
        "lost_incarnation",
        "responder_valid",
        "lost_cqe_valid",
        "sq_down_valid",
    ] {
        let port = bench.dut().input(port).unwrap();
        bench.dut_mut().set(port, 0);
    }
    for qpn in 0..LOST {
        sq.expect(sq.item().with("kind", kind).with("qpn", qpn));
    }
    bench.reset(&mut [&mut sq]);
    let mut qpn = 0;
    let mut held = [false; 2];
    while qpn < LOST {
        // a packet that is lost when `lost_hold` comes is seen two cycles later
        let loses = !held[1];
        held = [bench.dut().is_set(hold), held[0]];
        bench.dut_mut().set(lost, loses.into());
        bench.dut_mut().set(lost_qpn, qpn);
        qpn += u64::from(loses);
        bench.step(&mut [&mut sq]).unwrap();
    }
    bench.dut_mut().set(lost, 0);
    bench.finish(&mut [&mut sq], 10_000).unwrap();
}
