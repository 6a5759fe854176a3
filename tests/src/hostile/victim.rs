//! A queue pair of an owner, and what its completions must be.

use std::cell::Cell;
use std::rc::Rc;

use ferroce_proto::abi::cq::{Cqe, status};
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_proto::abi::wqe::{SLOT_BYTES, SendWqe};

use super::tenant::send_state;
use crate::scene::kernel::{Kernel, ok};

/// A queue pair of the owner.
pub(super) struct Victim {
    pub(super) qpn: u32,
    pub(super) kind: u8,
    pub(super) sq: u64,
    pub(super) rq: u64,
    pub(super) producer: u16,
    pub(super) rq_producer: u16,
    /// Each doorbell went forward, within the ring.
    pub(super) sane: bool,
    /// A WQE of it may want more slots than are posted.
    pub(super) wants_more: bool,
    /// PSN that a peer sends next.
    pub(super) psn: u32,
    /// Index of the latest WQE of a message that may take several turns.
    pub(super) long: Option<u16>,
    /// Index of the last completion of either queue.
    pub(super) last: [Option<u16>; 2],
    /// A send failed since the kernel last had the send queue go on.
    failed: bool,
    /// The kernel had it go on since the last look; producer index of then, before which failures are of before.
    resumed: Rc<Cell<bool>>,
    since: u16,
    /// Producer index when the kernel had it go on: what stood before it behind a failed send was to be flushed.
    flushed: Rc<Cell<Option<u16>>>,
    /// Its end was answered; and before the last look.
    pub(super) ended: Rc<Cell<bool>>,
    pub(super) closed: bool,
}

impl Victim {
    /// With nothing posted to the rings `[sq, rq]`.
    pub(super) fn new(qpn: u32, kind: u8, [sq, rq]: [u64; 2], psn: u32) -> Self {
        Self {
            qpn,
            kind,
            sq,
            rq,
            producer: 0,
            rq_producer: 0,
            sane: true,
            wants_more: false,
            psn,
            long: None,
            last: [None, None],
            failed: false,
            resumed: Rc::default(),
            since: 0,
            flushed: Rc::default(),
            ended: Rc::default(),
            closed: false,
        }
    }

    /// A WQE of these slots is posted.
    pub(super) fn holds(&mut self, slots: &[[u8; SLOT_BYTES]]) {
        let head = SendWqe::parse(slots[0].first_chunk().expect("64 bytes"));
        self.wants_more |= usize::from(head.slots) > slots.len();
        if head.length > 512 {
            self.long = Some(self.producer);
        }
    }

    /// A send failed, behind which the send queue may go on.
    pub(super) fn may_go_on(&self) -> bool {
        // One of RC stays in error.
        self.failed && self.kind != qp_type::RC
    }

    /// Its completions are about to be looked at.
    pub(super) fn look(&mut self) {
        if self.resumed.take() {
            self.since = self.producer;
            self.failed &= self.kind == qp_type::RC;
        }
    }

    /// A completion came: of a WQE that was posted and had none, and no success where none can be.
    pub(super) fn completed(&mut self, number: u32, cqe: &Cqe) {
        let producer = if cqe.recv {
            self.rq_producer
        } else {
            self.producer
        };
        let before = self.last[usize::from(cqe.recv)].map_or(0, |last| last.wrapping_add(1));
        // Posted are those from the one behind the last that completed to the producer index.
        let posted = producer.wrapping_sub(before);
        assert!(
            cqe.wqe_index.wrapping_sub(before) < posted,
            "tenant {number}: {cqe:?}: a WQE that was not posted, or completed before; {before} to {producer} are posted"
        );
        self.last[usize::from(cqe.recv)] = Some(cqe.wqe_index);
        if cqe.recv {
            return;
        }
        let is_rc = self.kind == qp_type::RC;
        let succeeds = cqe.status == status::SUCCESS;
        assert!(
            !(self.failed && is_rc && succeeds),
            "tenant {number}: {cqe:?} in the error state"
        );
        let since = |index: u16| cqe.wqe_index.wrapping_sub(index) as i16;
        let was_flushed = self.flushed.get().is_some_and(|end| since(end) < 0);
        assert!(
            !(succeeds && was_flushed),
            "tenant {number}: {cqe:?} stood behind a send that failed"
        );
        // What fails by itself and was posted since the send queue went on fails anew.
        let anew = cqe.status != status::WR_FLUSH_ERR && since(self.since) >= 0;
        self.failed |= !succeeds && (is_rc || anew);
    }

    /// The kernel has its send queue go on.
    pub(super) fn resume(&self, kernel: &mut Kernel) {
        let (fails, producer) = (self.may_go_on(), self.producer);
        let (flushed, resumed) = (Rc::clone(&self.flushed), Rc::clone(&self.resumed));
        kernel.order(
            send_state(self.qpn, state::RTS),
            &[],
            move |host, answer| {
                ok(host, answer);
                resumed.set(true);
                if fails {
                    flushed.set(Some(producer));
                }
            },
        );
    }
}
