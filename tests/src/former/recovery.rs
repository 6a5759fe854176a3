//! A send queue of UC that fails, and leaves SQE amid commands: what was posted before is flushed, what comes later is sent, and
//! each SQD that is waited for has its event.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_sim::testhost::{QpOptions, Work};

use super::life::modify;
use super::{PATIENCE, Test, stranger};

/// Its number, and that of its completion queue.
const QPN: u32 = 99;

/// What became of its WQEs.
struct Recovery {
    /// The one that fails.
    bad: u16,
    /// Those that were posted, and of these before the first RTS.
    posted: u16,
    before: u16,
    completed: u16,
    /// SQ_DRAINED since the latest SQD.
    drained: usize,
}

impl Test {
    pub(super) fn recover(&mut self) {
        let peer = stranger(0);
        let cqn = self.host.create_cq_as(QPN as u16, 8);
        let options = QpOptions {
            qp_type: qp_type::UC,
            sq_log: 8,
            send_cq: cqn,
            recv_cq: cqn,
            ..QpOptions::default()
        };
        self.open_apart(QPN, options, &peer);
        let source = self.region(1, 64, false);
        let good = Work::send(&[source.all()]);
        let mut bad = good.clone();
        bad.head.opcode = 0x40;

        let later = [0, 3, 30, 120][self.rng.usize(..4)];
        let mut recovery = Recovery {
            bad: self.rng.u16(..8),
            posted: 0,
            before: 0,
            completed: 0,
            drained: 0,
        };
        let last = recovery.bad + later;
        for index in 0..=last {
            let is_bad = index == recovery.bad;
            let slots = if is_bad { &bad } else { &good }.slots();
            match index == last {
                true => self.host.post_slots(QPN, &slots),
                false => self.host.write_slots(QPN, &slots),
            };
        }
        recovery.posted = last + 1;
        recovery.before = recovery.posted;
        self.until(&mut recovery, "the failure", |found| {
            found.completed > found.bad
        });
        let wait = self.rng.u64(..200);
        self.run(wait);
        self.command(modify(QPN, state::RTS, false), &[]);
        for _ in 0..self.rng.u8(1..6) {
            for _ in 0..self.rng.u8(..4) {
                self.host.post_send(QPN, &good);
                recovery.posted += 1;
            }
            let to = [state::SQD, state::RTS][self.rng.usize(..2)];
            self.take_events();
            recovery.drained = 0;
            self.command(modify(QPN, to, false), &[]);
            if self.rng.bool() {
                let found = self.query(QPN).sq_state;
                assert_eq!(found, to, "state of a send queue that leaves SQE");
            }
            if to == state::SQD && self.rng.bool() {
                self.until(&mut recovery, "SQ_DRAINED", |found| found.drained > 0);
                self.look(&mut recovery);
                assert!(
                    recovery.completed >= recovery.before,
                    "SQ_DRAINED came first"
                );
            }
            let wait = self.rng.u64(..300);
            self.run(wait);
        }
        self.command(modify(QPN, state::RTS, false), &[]);
        self.until(&mut recovery, "all completions", |found| {
            found.completed == found.posted
        });
        self.end_apart(QPN, cqn);
        self.invalidate(&source);
    }

    /// Takes completions and events.
    fn look(&mut self, recovery: &mut Recovery) {
        while let Some(cqe) = self.host.poll(QPN as u16) {
            let index = cqe.wqe_index;
            assert_eq!(index, recovery.completed, "order: {cqe:?}");
            recovery.completed += 1;
            let expected = match index {
                _ if index == recovery.bad => status::LOC_QP_OP_ERR,
                _ if index > recovery.bad && index < recovery.before => status::WR_FLUSH_ERR,
                _ => status::SUCCESS,
            };
            assert_eq!(cqe.status, expected, "{cqe:?}, {} failed", recovery.bad);
        }
        for (kind, qpn, _) in self.take_events() {
            recovery.drained += usize::from(kind == event::SQ_DRAINED && qpn == QPN);
        }
    }

    /// Looks until `done`.
    fn until(&mut self, recovery: &mut Recovery, what: &str, done: impl Fn(&Recovery) -> bool) {
        for _ in 0..PATIENCE / 16 {
            self.look(recovery);
            if done(recovery) {
                return;
            }
            self.run(16);
        }
        panic!("{what} of a send queue that leaves SQE: none in {PATIENCE} cycles");
    }
}
