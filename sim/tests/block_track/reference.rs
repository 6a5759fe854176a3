//! Handling of responses: the rules of IBA vol. 1, 9.7.5.1, in plain Rust.

use std::collections::VecDeque;

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::SqCtx;

pub(crate) const PSN: u32 = 0xff_ffff;
const SLOT: u64 = 64;

/// A READ or atomic that is sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Issue {
    pub(crate) psn: u32,
    pub(crate) packets: u32,
    pub(crate) atomic: bool,
    pub(crate) length: u32,
    pub(crate) index: u16,
    pub(crate) slots: u8,
}

/// A response from the wire.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Response {
    pub(crate) psn: u32,
    pub(crate) syndrome: u8,
    pub(crate) read: bool,
    pub(crate) atomic: bool,
    pub(crate) last: bool,
    pub(crate) plen: u16,
    pub(crate) lane: u8,
    pub(crate) beats: u16,
}

/// A WQE to read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) addr: u64,
    pub(crate) slots: u64,
    pub(crate) head: u64,
    pub(crate) base: u64,
}

/// What follows from a response.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) answer: bool,
    /// A READ or atomic response that is written, or dropped as one before it is missing.
    pub(crate) is_data: bool,
    /// Written from this offset on.
    pub(crate) data: Option<u32>,
    /// The PSN that is missing.
    pub(crate) implied: Option<u32>,
    pub(crate) status: u8,
    pub(crate) read: Option<Read>,
}

/// A queue pair.
#[derive(Default)]
pub(crate) struct QueuePair {
    pub(crate) ctx: SqCtx,
    pub(crate) closed: bool,
    pub(crate) under_way: VecDeque<Issue>,
    /// Responses of the oldest that were taken.
    pub(crate) taken: u32,
}

impl QueuePair {
    pub(crate) fn mtu(&self) -> u32 {
        128 << self.ctx.mtu
    }

    /// The PSN that only a response with data acknowledges.
    pub(crate) fn due(&self) -> Option<u32> {
        let oldest = self.under_way.front()?;
        Some((oldest.psn + self.taken) & PSN)
    }

    pub(crate) fn issue(&mut self, issue: Issue) {
        if !self.closed {
            self.under_way.push_back(issue);
        }
    }

    pub(crate) fn close(&mut self, closed: bool) {
        self.closed = closed;
        self.under_way.clear();
        self.taken = 0;
    }

    /// Where the WQE of `issue` stands.
    fn wqe(&self, issue: &Issue) -> Read {
        let size = 1 << self.ctx.sq_log;
        let first = u64::from(issue.index) % size;
        let slots = u64::from(issue.slots);
        Read {
            addr: self.ctx.sq_base + first * SLOT,
            slots,
            head: slots.min(size - first),
            base: self.ctx.sq_base,
        }
    }

    pub(crate) fn respond(&mut self, r: &Response) -> Outcome {
        if self.closed {
            return Outcome::default();
        }
        let mut outcome = Outcome {
            answer: true,
            ..Outcome::default()
        };
        let acknowledges = r.syndrome >> 5 == 0;
        let data = (r.read || r.atomic) && acknowledges;
        let distance = self.due().map(|due| r.psn.wrapping_sub(due) & PSN);
        match distance {
            Some(d) if (d > 0 && d < 1 << 23) || (d == 0 && acknowledges && !data) => {
                outcome.implied = self.due();
                outcome.is_data = data;
            }
            Some(0) if data => {
                let oldest = self.under_way[0];
                let offset = self.taken * self.mtu();
                let ends = self.taken + 1 == oldest.packets;
                let form = if oldest.atomic {
                    r.atomic
                } else {
                    let due = (oldest.length - offset).min(self.mtu());
                    r.read && u32::from(r.plen) == due && r.last == ends
                };
                if !form {
                    outcome.status = match r.read && !oldest.atomic {
                        true => status::LOC_LEN_ERR,
                        false => status::BAD_RESP_ERR,
                    };
                    return outcome;
                }
                outcome.data = Some(offset);
                outcome.is_data = true;
                outcome.read = (r.plen > 0).then(|| self.wqe(&oldest));
                self.taken += 1;
                if ends {
                    self.under_way.pop_front();
                    self.taken = 0;
                }
            }
            _ if data => outcome.status = status::BAD_RESP_ERR,
            _ => {}
        }
        outcome
    }
}
