//! What was admitted goes through the reference; what arrives is compared with what it says.

use ferroce_sim::bench::Item;

use super::{BEAT, Event, Flush, Rig, S, rkey_ok};
use crate::drive::difference;
use crate::reference::{Outcome, Packet, Place};

impl Rig {
    pub(super) fn apply_packet(&mut self, packet: &Packet, found: u8, part: usize) {
        let place = packet.qpn as usize % self.qps.len();
        let qp = &mut self.qps[place];
        let outcome = match (packet.is_datagram(), part) {
            (false, _) => qp.packet(packet, found, rkey_ok(packet, qp.ctx.pd)),
            (true, 0) => qp.grh(packet, &packet.grh(BEAT), found),
            (true, _) => qp.payload(packet, found),
        };
        self.expect(place as u32, outcome);
    }

    pub(super) fn apply_event(&mut self, qpn: u32, event: &Event) {
        if self.apply_shared(qpn as u16, event) {
            return;
        }
        let qp = &mut self.qps[qpn as usize];
        let outcome = match event {
            Event::Doorbell(producer) => {
                qp.doorbell(*producer);
                Outcome::default()
            }
            Event::Replied(incarnation) => {
                qp.replied(*incarnation);
                Outcome::default()
            }
            Event::SqFailed => qp.sq_failed(),
            Event::Command(command) => {
                let [state, psn] = [qp.state.into(), qp.psn.into()];
                self.expected_answers
                    .push_back(Some([state, psn, qp.msn.into(), qp.index.into()]));
                qp.command(command)
            }
            _ => unreachable!("done before"),
        };
        self.expect(qpn, outcome);
    }

    /// The event, if it is of a shared receive queue.
    fn apply_shared(&mut self, srqn: u16, event: &Event) -> bool {
        match event {
            // not of this build: ignored
            Event::SrqDoorbell(_) if srqn >> S != 0 => return true,
            Event::SrqDoorbell(producer) => {
                self.srqs.get(srqn).producer = *producer;
                return true;
            }
            Event::SrqCreate(limit) => {
                let mut srq = self.srqs.get(srqn);
                (srq.exists, srq.consumer, srq.limit) = (true, 0, *limit);
            }
            Event::SrqDestroy => {
                let mut srq = self.srqs.get(srqn);
                (srq.exists, srq.limit) = (false, 0);
            }
            Event::SrqArm(limit) => {
                self.srqs.arm(srqn, *limit);
                self.expected_limits.extend(self.srqs.low());
            }
            _ => return false,
        }
        self.expected_answers.push_back(None);
        true
    }

    pub(super) fn expect(&mut self, qpn: u32, outcome: Outcome) {
        if let Some(place) = outcome.place {
            self.announced += 1;
            self.expected_places.push_back((place, outcome.read));
        }
        self.expected_limits.extend(self.srqs.low());
        self.expected_replies.extend(outcome.reply);
        let failure = outcome.failure;
        self.expected_failures
            .extend(failure.map(|(event, detail)| (qpn, event, detail)));
        for name in outcome.counts {
            *self.expected_counts.entry(name).or_default() += 1;
        }
        let after_places = self.announced;
        let flushes = self.qps[qpn as usize].flushed.drain(..);
        self.expected_flushes[qpn as usize].extend(flushes.map(|index| Flush {
            index,
            after_places,
        }));
    }

    pub(super) fn is_settled(&self) -> bool {
        self.waiting() == (0, 0)
            && self.expected_places.is_empty()
            && self.expected_reads.is_empty()
            && self.early_reads.is_empty()
            && self.expected_replies.is_empty()
            && self.expected_failures.is_empty()
            && self.expected_answers.is_empty()
            && self.expected_limits.is_empty()
            && self
                .expected_flushes
                .iter()
                .all(std::collections::VecDeque::is_empty)
    }

    #[track_caller]
    pub(super) fn compare(&mut self) {
        while let Some((cycle, item)) = self.places.pop() {
            let flush = item.get("complete") == 1 && item.get("status") == 5;
            let problem = if flush || item.get("last_wqe") == 1 {
                self.flushed(&item)
            } else {
                self.placed += 1;
                match self.expected_places.pop_front() {
                    Some((Place(fields), read)) => {
                        assert_eq!(item.get("needs.wqe") == 1, read.is_some(), "{item:?}");
                        self.expected_reads.extend(read);
                        difference(&item, &fields)
                    }
                    None => Some(format!("placement not expected: {item:?}")),
                }
            };
            if let Some(problem) = problem {
                panic!("{}", self.bench.failure(problem));
            }
            self.seen.push((cycle, item));
        }
        while let Some((_, item)) = self.reads.pop() {
            self.early_reads.push_back(item);
        }
        while let Some(fields) = self.expected_reads.front() {
            let Some(item) = self.early_reads.pop_front() else {
                break;
            };
            if let Some(problem) = difference(&item, fields) {
                panic!("{}", self.bench.failure(problem));
            }
            self.expected_reads.pop_front();
            self.fetched.push(item);
        }
        while let Some((_, item)) = self.replies.pop() {
            let fields = self.expected_replies.pop_front().expect("one a request");
            if let Some(problem) = difference(&item, &fields) {
                panic!("{}", self.bench.failure(problem));
            }
            self.asked.push(item);
        }
        while let Some((_, item)) = self.failures.pop() {
            let fields = ["qpn", "event", "detail"].map(|field| item.get(field));
            let got = (fields[0] as u32, fields[1] as u8, fields[2] as u8);
            assert_eq!(Some(got), self.expected_failures.pop_front(), "failure");
        }
        while let Some((_, item)) = self.limits.pop() {
            let got = (item.get("srqn") as u16, item.get("eqn") as u8);
            assert_eq!(Some(got), self.expected_limits.pop_front(), "limit");
            self.limits_seen += 1;
        }
        while let Some(answer) = self.watch.answers.pop_front() {
            // the flush runs in the background: the index is compared when it is done
            let expected = self.expected_answers.pop_front().expect("one a command");
            let Some(expected) = expected else { continue };
            assert_eq!(answer[..3], expected[..3], "state, PSN, MSN");
            if answer[0] != 6 {
                assert_eq!(answer[3], expected[3], "receive WQE index");
            }
        }
    }

    fn flushed(&mut self, item: &Item) -> Option<String> {
        let qpn = item.get("qpn") as usize;
        let Some(Flush {
            index,
            after_places,
        }) = self.expected_flushes[qpn].pop_front()
        else {
            return Some(format!("flush not expected: {item:?}"));
        };
        if self.placed < after_places {
            return Some(format!("flush overtook a placement: {item:?}"));
        }
        let fields = [
            ("kind", 0),
            ("beats", 0),
            ("ack", 0),
            ("reset", 0),
            ("rsp_flush", 0),
            ("unreliable", 0),
            ("reply", 0),
            ("complete", index.is_some().into()),
            ("last_wqe", index.is_none().into()),
        ];
        let Some(index) = index else {
            return difference(item, &fields);
        };
        let qp = &self.qps[qpn];
        if qp.ctx.srq_valid {
            let read = qp.wqe_read(index, [false, false, true]);
            self.expected_reads.push_back(read);
        }
        let completion = [
            ("cqn", self.qps[qpn].ctx.cqn.into()),
            ("cqe_opcode", 0x80),
            ("wqe_index", index.into()),
            ("numbered", self.qps[qpn].ctx.srq_valid.into()),
            ("byte_len", 0),
            ("with_imm", 0),
            ("with_inv", 0),
            ("src_qpn", 0),
            ("pkey", 0),
            ("grh", 0),
            ("solicited", 0),
        ];
        difference(item, &[&fields[..], &completion].concat())
    }
}
