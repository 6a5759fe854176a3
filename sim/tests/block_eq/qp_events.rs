//! Events of queue pairs: what is reported, where, and how often.

use ferroce_hdl::queue::eq_write::qp_events::QpEvents;
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::state;
use ferroce_sim::bench::{Bench, StreamSink, StreamSource};
use ferroce_sim::random::Pauses;

/// Log2 of queue pairs and of completion queues.
const Q: usize = 4;
const C: usize = 3;

/// The block; events as event queue, kind, detail, object.
struct Rig {
    bench: Bench,
    responder: StreamSource,
    marks: StreamSource,
    events: StreamSink,
}

impl Rig {
    fn new(back: Pauses) -> Self {
        let bench = Bench::of(QpEvents::<Q, C>::default).expect("the block builds");
        let mut rig = Self {
            responder: StreamSource::new(bench.dut(), "responder", Pauses::NONE).unwrap(),
            marks: StreamSource::new(bench.dut(), "marks", Pauses::NONE).unwrap(),
            events: StreamSink::new(bench.dut(), "events", back).unwrap(),
            bench,
        };
        for pulse in ["sq_we", "cq.valid", "answered", "sq_failed"] {
            rig.set(pulse, 0);
        }
        rig.bench
            .reset(&mut [&mut rig.responder, &mut rig.marks, &mut rig.events]);
        rig.run(40);
        rig
    }

    fn set(&mut self, name: &str, value: u64) {
        let input = self.bench.dut().input(name).expect("an input");
        self.bench.dut_mut().set(input, value);
    }

    fn run(&mut self, cycles: u64) {
        let run = self.bench.run(
            &mut [&mut self.responder, &mut self.marks, &mut self.events],
            cycles,
        );
        run.unwrap_or_else(|e| panic!("{e}"));
    }

    /// One cycle with these inputs; `pulse` is 1 in it alone.
    fn pulse(&mut self, pulse: &str, inputs: &[(&str, u64)]) {
        inputs
            .iter()
            .for_each(|(name, value)| self.set(name, *value));
        self.set(pulse, 1);
        self.run(1);
        self.set(pulse, 0);
    }

    fn open_cq(&mut self, cqn: u64, eqn: u64) {
        self.change_cq(cqn, 1, eqn);
    }

    fn close_cq(&mut self, cqn: u64) {
        self.change_cq(cqn, 0, 0);
    }

    fn change_cq(&mut self, cqn: u64, open: u64, eqn: u64) {
        let fields = [("cqn", cqn), ("open", open), ("eqn", eqn)];
        for (field, value) in fields {
            self.set(&format!("cq.payload.{field}"), value);
        }
        self.pulse("cq.valid", &[]);
    }

    /// The send queue of a queue pair completes to `cqn`.
    fn send_cq(&mut self, qpn: u64, cqn: u64) {
        self.pulse("sq_we", &[("sq_qpn", qpn), ("sq_cqn", cqn)]);
    }

    fn command(&mut self, qpn: u64, set: bool, state: u8) {
        let inputs = [
            ("command_qpn", qpn),
            ("command_set", set.into()),
            ("command_state", state.into()),
        ];
        self.pulse("answered", &inputs);
    }

    fn sq_fails(&mut self, qpn: u64, status: u8) {
        let inputs = [("sq_failed_qpn", qpn), ("sq_failed_status", status.into())];
        self.pulse("sq_failed", &inputs);
    }

    fn responder_fails(&mut self, qpn: u64, event: u8, detail: u8) {
        let item = self.responder.item();
        self.responder.push(
            item.with("qpn", qpn)
                .with("event", event.into())
                .with("detail", detail.into()),
        );
        self.run(3);
    }

    fn drains(&mut self, qpn: u64) {
        self.mark(qpn, false);
    }

    fn mark(&mut self, qpn: u64, recv: bool) {
        let item = self.marks.item().with("qpn", qpn);
        self.marks.push(item.with("recv", recv.into()));
        self.run(3);
    }

    fn reported(&mut self) -> Vec<(u64, u8, u8, u64)> {
        self.run(100);
        let mut reported = vec![];
        while let Some((_, item)) = self.events.pop() {
            let [eqn, kind, detail, object] =
                ["eqn", "event", "detail", "object"].map(|name| item.get(name));
            reported.push((eqn, kind as u8, detail as u8, object));
        }
        reported
    }
}

#[test]
fn the_send_queues_completion_queue_names_the_event_queue() {
    let mut rig = Rig::new(Pauses::NONE);
    rig.sq_fails(3, 5);
    assert_eq!(rig.reported(), [], "there is no completion queue 0");
    rig.open_cq(0, 9);
    rig.open_cq(6, 7);
    rig.send_cq(4, 6);
    rig.sq_fails(4, 5);
    rig.sq_fails(5, 0);
    let fatal = |eqn, detail, qpn| (eqn, event::QP_FATAL, detail, qpn);
    assert_eq!(
        rig.reported(),
        [fatal(7, 5, 4), fatal(9, status::GENERAL_ERR, 5)]
    );
    rig.close_cq(6);
    rig.drains(4);
    assert_eq!(rig.reported(), []);
}

#[test]
fn a_queue_pair_reports_its_first_failure() {
    let mut rig = Rig::new(Pauses::NONE);
    rig.open_cq(0, 1);
    // the requester fails for the sake of the responder
    rig.responder_fails(2, event::QP_ACCESS_ERR, 12);
    rig.sq_fails(2, 0);
    assert_eq!(rig.reported(), [(1, event::QP_ACCESS_ERR, 12, 2)]);
    // a command that only asks changes nothing, one that sets the state does
    rig.command(2, false, state::RESET);
    rig.sq_fails(2, 3);
    assert_eq!(rig.reported(), []);
    rig.command(2, true, state::RESET);
    rig.sq_fails(2, 3);
    rig.responder_fails(2, event::QP_REQ_ERR, 1);
    assert_eq!(rig.reported(), [(1, event::QP_FATAL, 3, 2)]);
    // all others are as before
    rig.sq_fails(1, 4);
    assert_eq!(rig.reported(), [(1, event::QP_FATAL, 4, 1)]);
}

#[test]
fn a_first_request_is_no_failure() {
    let mut rig = Rig::new(Pauses::NONE);
    rig.open_cq(0, 1);
    rig.responder_fails(2, event::COMM_EST, 0);
    rig.responder_fails(2, event::QP_REQ_ERR, 12);
    rig.responder_fails(2, event::COMM_EST, 0);
    let established = (1, event::COMM_EST, 0, 2);
    assert_eq!(
        rig.reported(),
        [established, (1, event::QP_REQ_ERR, 12, 2), established]
    );
}

#[test]
fn a_command_to_err_reports_no_event() {
    let mut rig = Rig::new(Pauses::NONE);
    rig.open_cq(0, 1);
    // the send queue fails by the command, in its cycle
    rig.set("sq_failed", 1);
    rig.set("sq_failed_qpn", 7);
    rig.command(7, true, state::ERR);
    rig.set("sq_failed", 0);
    rig.run(10);
    rig.responder_fails(7, event::QP_REQ_ERR, 1);
    assert_eq!(rig.reported(), []);
    rig.command(7, true, state::RTS);
    rig.run(10);
    rig.responder_fails(7, event::QP_REQ_ERR, 1);
    assert_eq!(rig.reported(), [(1, event::QP_REQ_ERR, 1, 7)]);
}

#[test]
fn a_send_queue_drains_as_often_as_it_does() {
    let mut rig = Rig::new(Pauses::NONE);
    rig.open_cq(0, 1);
    for _ in 0..3 {
        rig.drains(7);
    }
    assert_eq!(rig.reported(), [(1, event::SQ_DRAINED, 0, 7); 3]);
}

/// Of a queue pair that reported its failure too.
#[test]
fn the_last_receive_wqe_is_reported() {
    let mut rig = Rig::new(Pauses::NONE);
    rig.open_cq(0, 1);
    rig.sq_fails(7, 12);
    rig.mark(7, true);
    let reached = (1, event::LAST_WQE_REACHED, 0, 7);
    assert_eq!(rig.reported(), [(1, event::QP_FATAL, 12, 7), reached]);
}

/// All queue pairs fail in consecutive cycles while no event is taken: none is lost.
#[test]
fn as_many_events_as_queue_pairs_can_wait() {
    let mut rig = Rig::new(Pauses::new(1.0, u32::MAX));
    rig.open_cq(0, 3);
    for qpn in 0..1 << Q {
        rig.sq_fails(qpn, 1);
        rig.sq_fails(qpn, 2);
    }
    rig.run(100);
    rig.events = StreamSink::new(rig.bench.dut(), "events", Pauses::NONE).unwrap();
    let all: Vec<_> = (0..1 << Q)
        .map(|qpn| (3, event::QP_FATAL, 1, qpn))
        .collect();
    assert_eq!(rig.reported(), all);
}

/// A queue pair can have several events, of a first request, of a failure and of its last receive WQE: none is lost.
#[test]
fn more_events_than_queue_pairs_wait_at_the_inputs() {
    let mut rig = Rig::new(Pauses::new(1.0, u32::MAX));
    rig.open_cq(0, 3);
    for qpn in 0..1 << Q {
        rig.responder_fails(qpn, event::COMM_EST, 0);
        rig.sq_fails(qpn, 1);
        rig.mark(qpn, true);
    }
    rig.run(100);
    let busy = rig.bench.dut().output("busy").expect("a port");
    assert!(rig.bench.dut().is_set(busy));
    rig.events = StreamSink::new(rig.bench.dut(), "events", Pauses::NONE).unwrap();
    let mut reported = rig.reported();
    reported.sort_by_key(|event| (event.3, event.1));
    let of = |qpn| {
        let kinds = [event::QP_FATAL, event::COMM_EST, event::LAST_WQE_REACHED];
        kinds.map(|kind| (3, kind, u8::from(kind == event::QP_FATAL), qpn))
    };
    let all: Vec<_> = (0..1 << Q).flat_map(of).collect();
    assert_eq!(reported, all);
    assert!(!rig.bench.dut().is_set(busy));
}
