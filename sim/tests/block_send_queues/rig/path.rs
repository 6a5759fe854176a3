//! From slots to packets: what `wqe_check` and the segmenter do, without looking at addresses.

use ferroce_hdl::transport::requester::event::SqEventKind;
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::wqe::SendWqe;
use ferroce_sim::bench::Item;

use super::Rig;

const START: u64 = SqEventKind::Start as u64;
const EXECUTED: u64 = SqEventKind::Executed as u64;
const REFETCH: u64 = SqEventKind::Refetch as u64;
/// CQE opcode by [`Kind`](super::Kind).
pub(super) const CQE_OPCODES: [u64; 4] = [0, 2, 3, 5];

/// A WQE of which slots are missing.
pub(super) struct Partial {
    qpn: u64,
    epoch: u64,
    index: u16,
    have: u8,
    slots: u8,
    /// First of its grant.
    leads: bool,
}

impl Rig {
    pub(super) fn take_slot(&mut self, item: &Item) {
        let (qpn, epoch) = (item.get("qpn"), item.get("epoch"));
        let index = item.get("index") as u16;
        let (first, last) = (item.get("first") == 1, item.get("last") == 1);
        assert_eq!(item.get("error"), 0);
        let mut wqe = self.partial.take().unwrap_or_else(|| {
            let words = item.words("slot");
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            let head = SendWqe::parse(bytes.first_chunk().expect("32 bytes"));
            Partial {
                qpn,
                epoch,
                index,
                have: 0,
                slots: head.slots.clamp(1, 5),
                leads: first,
            }
        });
        let at = wqe.index.wrapping_add(wqe.have.into());
        assert_eq!((wqe.qpn, wqe.epoch, at), (qpn, epoch, index));
        assert!(!first || wqe.have == 0, "a WQE goes on in another grant");
        wqe.have += 1;
        if wqe.have == wqe.slots {
            self.ask(&wqe, 0);
        } else if !last {
            self.partial = Some(wqe);
        } else if wqe.leads {
            // as much as was posted
            wqe.slots = wqe.have;
            self.ask(&wqe, status::LOC_QP_OP_ERR);
        } else {
            self.refetches += 1;
            let item = self.start.item().with("kind", REFETCH);
            self.start.push(
                item.with("qpn", qpn)
                    .with("epoch", epoch)
                    .with("index", wqe.index.into()),
            );
        }
    }

    fn ask(&mut self, wqe: &Partial, refused: u8) {
        let held = self.bench.rng().f64() < self.wire.held;
        let qp = &self.qps[wqe.qpn as usize];
        let place = qp.messages.iter().rposition(|m| m.index == wqe.index);
        let item = self.start.item().with("kind", START);
        let mut item = item
            .with("qpn", wqe.qpn)
            .with("epoch", wqe.epoch)
            .with("index", wqe.index.into())
            .with("slots", wqe.slots.into())
            .with("packets", 1);
        // without a place: the middle of a WQE, that must not run
        if let Some(place) = place {
            let m = &qp.messages[place];
            let status = if refused != 0 { refused } else { m.post.bad };
            let packets = if status == 0 { m.packets } else { 0 };
            let opcode = CQE_OPCODES[m.post.kind as usize];
            item = item
                .with("packets", packets.into())
                .with("status", status.into())
                .with("held", u64::from(status == 0 && held))
                .with("length", m.post.length.into())
                .with("answered", m.post.kind.is_answered().into())
                .with("fence", m.post.fence.into())
                .with("cqe_opcode", opcode)
                .with("signaled", (!m.post.quiet).into());
        }
        self.start.push(item);
        self.asked.push_back((wqe.qpn, place.unwrap_or(usize::MAX)));
    }

    /// The oldest bind was executed, in the first incarnation of its queue pair.
    pub(crate) fn executed(&mut self) {
        let (qpn, place) = self.executing.remove(0);
        let m = &self.qps[qpn as usize].messages[place];
        let item = self.start.item().with("kind", EXECUTED).with("qpn", qpn);
        self.start.push(
            item.with("slots", m.slots.into())
                .with("generation", 1)
                .with("cqe_opcode", CQE_OPCODES[m.post.kind as usize])
                .with("signaled", (!m.post.quiet).into()),
        );
    }

    /// A grant answers the oldest question.
    pub(super) fn granted(&mut self) {
        let (qpn, place) = self.asked.pop_front().expect("a grant for a Start");
        let grant = |field: &str| self.output(&format!("grant.{field}"));
        let (action, psn) = (grant("action"), grant("psn") as u32);
        let (offset, count) = (grant("offset") as u32, grant("count") as u32);
        assert_eq!(grant("some"), u64::from(count > 0));
        let (again, ends) = (grant("again") as u32, grant("final_part") == 1);
        let fresh = grant("fresh") == 1;
        let (incarnation, round) = (grant("incarnation"), grant("round"));
        if action == 0 {
            self.drops += 1;
            return;
        }
        let qp = &mut self.qps[qpn as usize];
        let open = qp.messages.iter().filter(|m| m.is_open()).count();
        let (before, rest) = qp.messages.split_at_mut(place);
        let m = &mut rest[0];
        if action == 3 {
            assert_eq!(incarnation, 1);
            self.executing.push((qpn, place));
            return;
        }
        if action == 2 {
            let opcode = CQE_OPCODES[m.post.kind as usize];
            let item = self.flushed.item().with("qpn", qpn).with("cqn", 5);
            self.flushed.push(
                item.with("opcode", opcode)
                    .with("wqe_index", m.index.into())
                    .with("status", status::WR_FLUSH_ERR.into()),
            );
            return;
        }
        assert_eq!(fresh, !m.started, "{m:?}");
        if fresh {
            let limit = usize::from(qp.ctx.max_rd_atomic);
            assert!(!m.post.fence || open == 0 || m.post.bad != 0, "{m:?}");
            let is_fenced = m.post.fence && m.post.bad == 0;
            assert!(!m.post.kind.is_answered() || open < limit, "{m:?}");
            m.started = true;
            let before = before.iter().rev().take(64);
            let read = before
                .filter(|m| is_fenced && m.post.kind.is_answered())
                .find(|m| m.writes.wrapping_sub(self.written) as i16 > 0);
            assert!(
                read.is_none(),
                "a fenced message starts before the data of {read:?}"
            );
        }
        if count == 0 {
            return;
        }
        self.uncut += 1;
        let at = m.first.wrapping_add(offset);
        assert_eq!(psn, qp.psn.wrapping_add(at) & 0xff_ffff, "{m:?}");
        let mut psns = count;
        if m.post.kind.is_answered() {
            assert!(count == 1 && ends && offset <= m.answered, "{m:?}");
            psns = m.packets - offset;
            if fresh {
                qp.reads.push_back(place);
                qp.most_open = qp.most_open.max(open + 1);
            }
            assert_eq!(again == 1, at < qp.sent, "{m:?}");
        } else {
            assert_eq!(ends, offset + count == m.packets, "{m:?}");
            assert_eq!(again, qp.sent.saturating_sub(at).min(count), "{m:?}");
        }
        qp.sent = qp.sent.max(at + psns);
        qp.parts.push((place, offset, count, psns));
        let reliable = qp.ctx.qp_type == qp_type::RC;
        let next = (psn + psns) & 0xff_ffff;
        if reliable {
            self.left.push_back((qpn, incarnation, round, next));
        }
        for i in 0..count {
            if reliable {
                self.arrive(qpn, place, at + i, i + 1 == count);
            } else if ends && i + 1 == count {
                let due = self.bench.cycle() + self.wire.delay;
                self.sent.push_back((due, (qpn, incarnation, round, next)));
            }
        }
    }
}
