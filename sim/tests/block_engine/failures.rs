//! Failures: every failure of one side arrives at the other.

use ferroce_hdl::engine::failures::Failures;
use ferroce_hdl::transport::requester::event::SqEventKind;
use ferroce_hdl::transport::responder::event::RqEventKind;
use ferroce_proto::abi::cq::status;
use ferroce_sim::bench::{Bench, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;

const QPS: u64 = 1 << 4;

#[test]
fn every_send_queue_that_fails_is_told_to_the_responder() {
    let mut bench = Bench::of(Failures::<4>::default).unwrap();
    let mut rq = StreamSink::new(bench.dut(), "rq", Pauses::new(0.7, 30)).unwrap();
    let failed = bench.dut().input("sq_failed").unwrap();
    let failed_qpn = bench.dut().input("sq_failed_qpn").unwrap();
    bench.reset(&mut [&mut rq]);
    // all at once, which is the most there can be
    for qpn in 0..QPS {
        rq.expect(
            rq.item()
                .with("kind", RqEventKind::SqFailed as u64)
                .with("qpn", qpn),
        );
        bench.dut_mut().set(failed, 1);
        bench.dut_mut().set(failed_qpn, qpn);
        bench.step(&mut [&mut rq]).unwrap();
    }
    bench.dut_mut().set(failed, 0);
    bench.finish(&mut [&mut rq], 5000).unwrap();
}

#[test]
fn a_failed_request_flushes_and_a_lost_packet_fails_its_message() {
    let mut bench = Bench::of(Failures::<4>::default).unwrap();
    let mut responder = StreamSource::new(bench.dut(), "responder", Pauses::new(0.3, 3)).unwrap();
    let mut sq = StreamSink::new(bench.dut(), "sq", Pauses::new(0.5, 5)).unwrap();
    let kind = SqEventKind::Failed as u64;
    for qpn in 0..20 {
        responder.push(responder.item().with("qpn", qpn));
        sq.expect(sq.item().with("kind", kind).with("qpn", qpn));
    }
    bench.reset(&mut [&mut responder, &mut sq]);
    bench.finish(&mut [&mut responder, &mut sq], 1000).unwrap();

    let lost = bench.dut().input("lost").unwrap();
    let lost_qpn = bench.dut().input("lost_qpn").unwrap();
    for qpn in [3, 9] {
        sq.expect(
            sq.item()
                .with("kind", kind)
                .with("qpn", qpn)
                .with("status", u64::from(status::GENERAL_ERR)),
        );
        bench.dut_mut().set(lost, 1);
        bench.dut_mut().set(lost_qpn, qpn);
        bench.step(&mut [&mut responder, &mut sq]).unwrap();
    }
    bench.dut_mut().set(lost, 0);
    bench.finish(&mut [&mut responder, &mut sq], 1000).unwrap();
}
