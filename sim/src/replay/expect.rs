//! What the recorded answers make of the messages of a requester.
//!
//! A requester of its own, without anything of the golden model (IB1 9.7.5.1, 9.7.7).

use ferroce_proto::abi::cq::status;
use ferroce_proto::wire::{NakCode, Operation, Syndrome};

use super::input::Frame;
use super::messages::Plan;

/// The state of the requester.
pub(super) struct Expect<'a, 'p> {
    plan: &'p Plan<'a>,
    /// Everything before this number is acknowledged.
    reached: i64,
    /// Messages that are complete.
    done: usize,
    /// Status of the message behind them, if it failed.
    failed: Option<u8>,
    /// What each message brought.
    pub(super) brought: Vec<Vec<u8>>,
    /// An answer was lost, or something has to be sent once more.
    pub(super) lossy: bool,
}

impl<'a, 'p> Expect<'a, 'p> {
    pub(super) fn new(plan: &'p Plan<'a>) -> Self {
        let fill = |brings| vec![super::FILL; brings];
        Self {
            plan,
            reached: plan.messages.first().map_or(0, |m| m.first),
            done: 0,
            failed: None,
            brought: plan.messages.iter().map(|m| fill(m.brings)).collect(),
            lossy: false,
        }
    }

    /// The answer `frame` for number `place` came, when the messages before `posted` were sent.
    pub(super) fn answer(&mut self, frame: &Frame, place: i64, posted: usize) {
        let sent = posted
            .checked_sub(1)
            .map(|last| self.plan.messages[last].end());
        if self.failed.is_some() || place < self.reached || sent.is_none_or(|sent| place >= sent) {
            return;
        }
        let waiting = self.plan.messages[self.done..]
            .iter()
            .find(|m| m.is_answered());
        let operation = frame.opcode().operation();
        let syndrome = frame.syndrome();
        let is_good = matches!(syndrome, None | Some(Syndrome::Ack { .. }));
        let is_data = is_good && operation != Operation::Ack;
        if let Some(message) = waiting {
            let missing = message.first.max(self.reached);
            if place > missing || (place == missing && is_good && !is_data) {
                // Data that is due was lost.
                self.lossy = true;
                return self.reach(missing);
            }
        }
        if is_data {
            return self.bring(frame, place);
        }
        self.reach(if is_good { place + 1 } else { place });
        self.failed = match syndrome {
            Some(Syndrome::Nak(NakCode::InvalidRequest)) => Some(status::REM_INV_REQ_ERR),
            Some(Syndrome::Nak(NakCode::RemoteAccess)) => Some(status::REM_ACCESS_ERR),
            Some(Syndrome::Nak(NakCode::RemoteOperational)) => Some(status::REM_OP_ERR),
            _ => None,
        };
        self.lossy |= !is_good && self.failed.is_none();
    }

    /// Everything was sent, and there is no answer.
    pub(super) fn sent(&mut self) {
        self.reach(self.plan.end());
    }

    fn bring(&mut self, frame: &Frame, place: i64) {
        let messages = &self.plan.messages;
        let Some(at) = messages
            .iter()
            .position(|m| (m.first..m.end()).contains(&place))
        else {
            return;
        };
        let (message, mtu) = (&messages[at], self.plan.mtu.bytes());
        let offset = (place - message.first) as usize * mtu;
        let atomic = frame.packet.headers.ext.atomic_ack;
        let data = match atomic {
            Some(ack) => ack.original.to_le_bytes().to_vec(),
            None => frame.payload().to_vec(),
        };
        let len = message.brings.saturating_sub(offset).min(mtu);
        if message.is_answered() && data.len() == len {
            self.brought[at][offset..offset + len].copy_from_slice(&data);
            self.reach(place + 1);
        } else {
            self.reach(place);
            self.failed = Some(match (message.is_answered(), atomic) {
                (true, None) => status::LOC_LEN_ERR,
                _ => status::BAD_RESP_ERR,
            });
        }
    }

    fn reach(&mut self, place: i64) {
        self.reached = self.reached.max(place);
        let rest = self.plan.messages[self.done..].iter();
        self.done += rest.take_while(|m| m.end() <= self.reached).count();
    }

    /// Messages that completed well.
    pub(super) fn done(&self) -> usize {
        self.done
    }

    /// Index and status of the completions due.
    pub(super) fn completions(&self) -> Vec<(u16, u8)> {
        let ok = std::iter::repeat_n(status::SUCCESS, self.done);
        let rest = self.plan.messages.len() - self.done;
        let failed = self.failed.map(|failed| {
            std::iter::once(failed)
                .chain(std::iter::repeat(status::WR_FLUSH_ERR))
                .take(rest)
        });
        let statuses = ok.chain(failed.into_iter().flatten());
        statuses
            .enumerate()
            .map(|(index, status)| (index as u16, status))
            .collect()
    }
}
