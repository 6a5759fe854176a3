//! Events of the send path, and the grants that answer them.

use super::*;

impl Setup {
    /// Compares an event with the WQE it must be of, and carries out its plan.
    pub(super) fn answer(&mut self, event: &Item) {
        let (work, index, posted, plan) = self.waiting.pop_front().expect("a WQE that was posted");
        let field = |name| event.get(name);
        assert_eq!(
            (field("qpn"), field("index"), field("epoch")),
            (work.qpn.into(), index.into(), (work.qpn % 16).into()),
            "{work:?}"
        );
        let Some(plan) = plan else {
            assert_eq!(field("kind"), REFETCH, "{work:?}");
            return;
        };
        let status = work.status(posted);
        assert_eq!(field("kind"), START, "{work:?}");
        assert_eq!(field("status"), u64::from(status), "{work:?}");
        if work.unreadable != Some(0) {
            let flags = ["signaled", "fence", "answered"].map(|name| field(name) == 1);
            let wanted = [work.head.signaled, work.head.fence, work.is_answered()];
            assert_eq!(flags, wanted, "{work:?}");
            assert_eq!(
                field("cqe_opcode"),
                u64::from(work.cqe_opcode()),
                "{work:?}"
            );
        }
        assert_eq!(field("slots"), posted as u64, "{work:?}");
        if status == 0 {
            let size = (field("packets"), field("length"));
            let wanted = (work.packets().into(), work.head.length.into());
            assert_eq!(size, wanted, "{work:?}");
        } else {
            assert_eq!(field("packets"), 0, "{work:?}");
        }
        let psn = u64::from(self.bench.rng().u32(..1 << 24));
        let mut grant: Grant = [
            ("action", 0),
            ("psn", psn),
            ("offset", 0),
            ("count", 0),
            ("again", 0),
            ("final_part", 0),
            ("fresh", 0),
            ("round", self.rounds[usize::from(work.qpn)]),
            ("incarnation", incarnation(psn)),
            ("some", 0),
        ];
        match plan {
            Plan::Drop => {}
            Plan::Flush => {
                grant[0].1 = 2;
                self.expect_flush(&work, index);
            }
            Plan::Execute => {
                grant[0].1 = SendAction::Execute as u64;
                self.executes.expect(&work, incarnation(psn));
            }
            // it has its place among the messages, and no packet
            Plan::Send { .. } if status != 0 => grant[0].1 = 1,
            Plan::Send { from, to, again } => {
                let count = if work.is_answered() { 1 } else { to - from };
                grant[0].1 = 1;
                grant[2].1 = from.into();
                grant[3].1 = count.into();
                grant[4].1 = again.into();
                grant[5].1 = u64::from(to == work.packets() || work.is_answered());
                grant[6].1 = u64::from(from == 0 && again == 0);
                self.expected_resent += again as usize;
                if from == 0 && again == 0 && work.is_answered() {
                    self.expect_issue(&work, index, psn);
                }
                self.expect((&work, index, grant[7].1), psn, from, count);
            }
            Plan::Stale => {
                grant[0].1 = 1;
                grant[3].1 = if work.is_answered() {
                    1
                } else {
                    work.packets().into()
                };
                grant[5].1 = 1;
                grant[6].1 = 1;
                grant[7].1 = (grant[7].1 + 3) % 4;
                if work.is_answered() {
                    self.expect_issue(&work, index, psn);
                    self.expect((&work, index, grant[7].1), psn, 0, 1);
                }
            }
        }
        grant[9].1 = u64::from(grant[3].1 > 0);
        self.granted += usize::from(grant[0].1 == 1 && grant[3].1 > 0);
        let due = self.grants.cycle + self.delay;
        self.grants.queue.push_back((due, grant));
    }
}
