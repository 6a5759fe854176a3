//! A queue pair as its host sees it: what is to be posted, what is outstanding.

use std::collections::VecDeque;

use ferroce_proto::abi::cq::Cqe;
use ferroce_proto::abi::wqe::{RecvWqe, SLOT_BYTES, SendWqe, Sge};
use ferroce_sim::testhost::Host;

/// A queue pair.
#[derive(Default)]
pub(super) struct Port {
    /// WQEs to be posted, slot by slot.
    sends: VecDeque<(usize, Vec<[u8; SLOT_BYTES]>)>,
    /// Index, slots and message of WQEs posted and not known to have completed.
    under_way: VecDeque<(u16, u16, usize)>,
    /// Slots posted behind the last WQE that asks for a CQE.
    unsignaled: u16,
    recvs: VecDeque<Buffer>,
    /// Messages that the receive WQEs under way are for.
    takers: VecDeque<Option<usize>>,
    sq: Ring,
    rq: Ring,
}

/// A receive WQE to be posted.
pub(super) struct Buffer {
    /// Its head.
    pub(super) head: RecvWqe,
    /// Its scatter list.
    pub(super) list: Vec<Sge>,
    /// Cycles after the messages.
    pub(super) late: u64,
    /// The message that takes it.
    pub(super) message: Option<usize>,
}

/// Indices of a ring, modulo 2^16.
#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    posted: u16,
    /// Behind the last WQE known to have completed.
    done: u16,
}

impl Ring {
    fn outstanding(self) -> u16 {
        self.posted.wrapping_sub(self.done)
    }
}

impl Port {
    /// Has the send WQE of a message posted when there is room.
    pub(super) fn send(&mut self, message: usize, slots: Vec<[u8; SLOT_BYTES]>) {
        self.sends.push_back((message, slots));
    }

    /// Has a receive WQE posted when it is due and there is room.
    pub(super) fn recv(&mut self, buffer: Buffer) {
        self.recvs.push_back(buffer);
    }

    /// All send WQEs have completed.
    pub(super) fn is_done(&self) -> bool {
        self.sends.is_empty() && self.sq.outstanding() == 0
    }

    /// Where the send queue stands, in words.
    pub(super) fn state(&self) -> String {
        let Ring { posted, done } = self.sq;
        let left = self.sends.len();
        format!("send WQEs done up to {done} of {posted} posted, {left} to post")
    }

    /// Posts the receive WQEs that are due, as far as a ring of 2^`log_size` has room. Whether there were any.
    pub(super) fn post_recvs(
        &mut self,
        host: &mut Host,
        qpn: u32,
        log_size: u8,
        elapsed: u64,
    ) -> bool {
        let before = self.rq.posted;
        while self.rq.outstanding() < 1 << log_size
            && self
                .recvs
                .front()
                .is_some_and(|buffer| buffer.late <= elapsed)
            && let Some(buffer) = self.recvs.pop_front()
        {
            host.post_recv_wqe(qpn, buffer.head, &buffer.list);
            self.takers.push_back(buffer.message);
            self.rq.posted = self.rq.posted.wrapping_add(1);
        }
        self.rq.posted != before
    }

    /// Posts the send WQEs for which a ring of 2^`log_size` has room. The last of all, and at least one in every ring
    /// full, asks for a CQE.
    pub(super) fn post_sends(&mut self, host: &mut Host, qpn: u32, log_size: u8) {
        let size = 1 << log_size;
        let fits = |sq: &Ring, slots: &Vec<_>| sq.outstanding() + slots.len() as u16 <= size;
        while self
            .sends
            .front()
            .is_some_and(|(_, slots)| fits(&self.sq, slots))
            && let Some((message, mut slots)) = self.sends.pop_front()
        {
            let len = slots.len() as u16;
            let next = self.sends.front();
            let next = next.map_or(size, |(_, slots)| slots.len() as u16);
            self.unsignaled += len;
            if self.unsignaled + next > size {
                self.unsignaled = 0;
                let head = slots[0].first_chunk_mut().expect("a slot has 64 bytes");
                let wqe = SendWqe::parse(head);
                *head = SendWqe {
                    signaled: true,
                    ..wqe
                }
                .emit();
            }
            host.post_slots(qpn, &slots);
            self.under_way.push_back((self.sq.posted, len, message));
            self.sq.posted = self.sq.posted.wrapping_add(len);
        }
    }

    /// Takes note of a completion; the messages that it completes, the one it is of last.
    ///
    /// # Errors
    /// In words, if it is not of a WQE that is outstanding, or out of order: only send WQEs that ask for no CQE may be
    /// left out.
    pub(super) fn complete(&mut self, cqe: &Cqe) -> Result<Vec<usize>, String> {
        let ring = if cqe.recv { &mut self.rq } else { &mut self.sq };
        let ahead = cqe.wqe_index.wrapping_sub(ring.done);
        if ahead >= ring.outstanding() || (cqe.recv && ahead != 0) {
            return Err(format!("{cqe:?} completes what is not due: {ring:?}"));
        }
        let mut slots = 1;
        let mut done = Vec::new();
        if cqe.recv {
            done.extend(self.takers.pop_front().flatten());
        } else {
            loop {
                match self.under_way.pop_front() {
                    Some((index, len, message)) => {
                        done.push(message);
                        if index == cqe.wqe_index {
                            break slots = len;
                        }
                    }
                    None => return Err(format!("{cqe:?} completes no first slot")),
                }
            }
        }
        ring.done = cqe.wqe_index.wrapping_add(slots);
        Ok(done)
    }
}
