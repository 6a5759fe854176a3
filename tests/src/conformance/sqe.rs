//! The state that a send queue of UC or UD fails into, SQE, and the way out of it.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::state;
use ferroce_sim::testhost::{QpOptions, Rights, Work};

use super::bench::Bench;
use super::event_queue::Eq;
use super::script::{QKEY, Script};
use super::{EVENTS, RC, UD, cases, check, ud};

cases! {
    flush_before_sqe_is_left, UD, "IB1 10.3.1", "A send queue that is told to leave SQE flushes what was posted behind the failed request before that; none of it is sent.";
    rts_while_sqe_is_left, UD, "IB1 10.3.1", "RTS, given again while a send queue leaves SQE, flushes nothing of what was posted since the first time.";
    sqd_while_sqe_is_left, UD | EVENTS, "IB1 10.3.1", "A send queue that leaves SQE takes SQD: when all is flushed it has drained, and sends nothing before RTS.";
    sqe_of_a_connection, RC, "IB1 10.3.1", "RC has no SQE: the send queue goes to the error state, and is not revived by RTS.";
}

const FLUSHED: u8 = status::WR_FLUSH_ERR;
/// Requests behind the one that fails.
const AFTER: usize = 119;

/// A send queue whose request failed, just now, with many behind it.
struct Failed {
    s: Script,
    cqn: u16,
    good: Work,
}

impl Failed {
    fn new(bench: &mut Bench) -> Self {
        let mut s = bench.script(QpOptions {
            sq_log: 8,
            ..ud::options()
        });
        let (cqn, peer) = (s.host.create_cq(8), s.peer);
        s.reopen(|contexts| contexts.sq.cqn = cqn);
        s.host.write_ah(0, &peer, |_| {});
        let source = s.host.create_mr(&[1; 64], Rights::NONE);
        let good = Work::datagram(&[source.all()], 0, 5, QKEY);
        let mut bad = good.clone();
        bad.head.opcode = 0x40;
        s.host.write_slots(s.qpn, &bad.slots());
        for _ in 1..AFTER {
            s.host.write_slots(s.qpn, &good.slots());
        }
        s.host.post_send(s.qpn, &good);
        let first = (0..100_000).find_map(|_| {
            check("packets", s.run(1).len(), 0);
            s.host.poll(cqn)
        });
        let first = first.expect("the failed one completes");
        check(
            "the first",
            (first.wqe_index, first.status),
            (0, status::LOC_QP_OP_ERR),
        );
        Self { s, cqn, good }
    }

    /// Statuses of what completed since.
    fn statuses(&mut self) -> Vec<u8> {
        std::iter::from_fn(|| self.s.host.poll(self.cqn))
            .map(|cqe| cqe.status)
            .collect()
    }
}

fn flush_before_sqe_is_left(bench: &mut Bench) {
    let mut failed = Failed::new(bench);
    failed.s.host.modify_state(failed.s.qpn, state::RTS);
    check("packets", failed.s.quiet().len(), 0);
    check("the others", failed.statuses(), vec![FLUSHED; AFTER]);
    let sent = failed.s.post(&failed.good).len();
    check("packets of what is posted then", sent, 1);
}

fn rts_while_sqe_is_left(bench: &mut Bench) {
    let mut failed = Failed::new(bench);
    let qpn = failed.s.qpn;
    failed.s.host.modify_state(qpn, state::RTS);
    failed.s.host.post_send(qpn, &failed.good);
    failed.s.host.modify_state(qpn, state::RTS);
    check("packets", failed.s.quiet().len(), 1);
    let mut expected = vec![FLUSHED; AFTER];
    expected.push(status::SUCCESS);
    check("the others", failed.statuses(), expected);
}

fn sqd_while_sqe_is_left(bench: &mut Bench) {
    let mut failed = Failed::new(bench);
    let mut eq = Eq::new(&mut failed.s.host, 0, 4, 0);
    let qpn = failed.s.qpn;
    failed.s.host.modify_state(qpn, state::RTS);
    failed.s.host.modify_state(qpn, state::SQD);
    check("state", failed.s.host.query(qpn).sq_state, state::SQD);
    failed.s.host.post_send(qpn, &failed.good);
    let found = (0..100_000).find_map(|_| {
        check("packets", failed.s.run(1).len(), 0);
        eq.take(&failed.s.host)
    });
    check("event", found, Some((event::SQ_DRAINED, qpn, 0)));
    check(
        "completions at the event",
        failed.statuses(),
        vec![FLUSHED; AFTER],
    );
    check("packets", failed.s.quiet().len(), 0);
    check("further events", eq.take(&failed.s.host), None);
    failed.s.host.modify_state(qpn, state::RTS);
    check("packets in RTS", failed.s.quiet().len(), 1);
    check("completions", failed.statuses(), vec![status::SUCCESS]);
}

fn sqe_of_a_connection(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.host.modify_state(s.qpn, state::SQE);
    check("state", s.host.query(s.qpn).sq_state, state::ERR);
    s.host.modify_state(s.qpn, state::RTS);
    check("state behind RTS", s.host.query(s.qpn).sq_state, state::ERR);
    check("packets", s.post(&Work::send(&[])).len(), 0);
    check("completions", s.results(), vec![(0, FLUSHED)]);
}
