//! Requester: acknowledgements, READ responses and atomic responses.

use ferroce_proto::abi::cq::status;
use ferroce_proto::wire::{AethRepr, NakCode, Operation, Psn, Syndrome};

use super::access::scatter;
use super::qp::QueuePair;
use super::requester::Message;
use super::rx::Received;
use super::wqe::Payload;
use super::{Env, stats};

/// What an AETH asks the requester to do.
enum Answer {
    /// The data or acknowledgement counts.
    Good,
    /// Wait, then send again.
    NotReady { timer: u8 },
    /// Send again.
    Resend,
    /// The oldest message failed with this status.
    Failed(u8),
}

/// Most bytes of one event.
const BYTES_MAX: u64 = (1 << 24) - 1;

/// A response as congestion control takes it.
#[derive(Default)]
struct Feedback {
    /// It makes the queue pair send again.
    goes_back: bool,
    /// Its round trip in cycles, if it was measured.
    rtt: Option<u64>,
}

impl QueuePair {
    /// A response arrived: what it does, and its event of congestion control.
    pub(super) fn response(&mut self, env: &mut Env, packet: &Received) {
        let before = self.sq.una;
        let feedback = self.take_response(env, packet);
        let acknowledged = self.sq.una.since(before) as u64;
        if feedback.goes_back {
            self.sq.pacing.on_nak(env);
        } else if acknowledged > 0 {
            let bytes = (acknowledged << self.sq.mtu().log2()).min(BYTES_MAX);
            self.sq.pacing.on_ack(env, bytes as u32, feedback.rtt);
        }
    }

    fn take_response(&mut self, env: &mut Env, packet: &Received) -> Feedback {
        let mut feedback = Feedback::default();
        let psn = packet.bth.psn;
        // Neither what has not left nor what is acknowledged already can be answered.
        if psn.since(self.sq.left) >= 0 || psn.since(self.sq.una) < 0 {
            env.stats.count(stats::RX_GHOST_ACKS);
            return feedback;
        }
        let answer = answer(packet.ext.aeth);
        count(env, packet, &answer);
        let good = matches!(answer, Answer::Good);
        let data = packet.bth.opcode.operation() != Operation::Ack && good;

        // A response acknowledges everything before it, but no READ or atomic whose data is missing.
        if let Some(missing) = self.unanswered() {
            let past_missing = psn.since(missing);
            if past_missing > 0 || (past_missing == 0 && good && !data) {
                feedback.goes_back = self.implied_nak(env, missing);
                return feedback;
            }
        }
        if data {
            self.answer(env, packet);
            return feedback;
        }
        let (to, syndrome) = (if good { psn.next() } else { psn }, packet.ext.aeth);
        let syndrome = syndrome.map_or(0, |aeth| aeth.syndrome.bits());
        if good {
            feedback.rtt = self.sq.trip.sample(env, to);
        }
        self.advance(env, to);
        match answer {
            Answer::Good => {}
            // A NAK for a later packet of the same flight does not shorten the wait.
            Answer::Resend if self.sq.retry.is_waiting() => {}
            Answer::Resend => feedback.goes_back = self.retry(env),
            Answer::NotReady { timer } => self.retry_later(env, timer, syndrome),
            Answer::Failed(status) => self.fail_oldest(env, status, syndrome),
        }
        feedback
    }

    /// The first PSN that only a READ or atomic response acknowledges.
    fn unanswered(&self) -> Option<Psn> {
        let message = self.sq.messages.iter().find(|m| m.request.is_answered())?;
        Some(if message.contains(self.sq.una) {
            self.sq.una
        } else {
            message.first
        })
    }

    /// A response shows that an earlier READ or atomic response was lost (IB1 9.7.5.1.4). Whether that sends again.
    fn implied_nak(&mut self, env: &mut Env, missing: Psn) -> bool {
        self.advance(env, missing);
        if !self.sq.retry.implied && !self.sq.retry.is_waiting() {
            env.stats.count(stats::IMPLIED_NAK_SEQ_ERR);
            let goes_back = self.retry(env);
            self.sq.retry.implied = true;
            return goes_back;
        }
        false
    }

    /// A READ or atomic response whose data is due next, or that cannot be.
    fn answer(&mut self, env: &mut Env, packet: &Received) {
        let psn = packet.bth.psn;
        let Some(message) = self.sq.messages.iter().find(|m| m.contains(psn)) else {
            return;
        };
        let Some((offset, data)) = self.answer_data(message, packet) else {
            // A READ response is of wrong length (IB1 9.9.2, class B), anything else has no place here.
            let asked = message.request.operation == Operation::ReadRequest;
            let brought = packet.bth.opcode.operation() == Operation::ReadResponse;
            let cause = match asked && brought {
                true => status::LOC_LEN_ERR,
                false => status::BAD_RESP_ERR,
            };
            self.advance(env, psn);
            return self.fail_oldest(env, cause, 0);
        };
        let Payload::List(list) = &message.request.payload else {
            unreachable!("READs and atomics have a scatter list")
        };
        let placed = scatter(
            &mut env.dma,
            &env.regions,
            (self.sq.ctx.pd, self.qpn),
            list,
            offset,
            &data,
        );
        self.advance(env, psn);
        match placed {
            Ok(()) => self.advance(env, psn.next()),
            Err(status) => self.fail_oldest(env, status, 0),
        }
    }

    /// The byte offset in the message and the bytes of a response; `None` if the response does not
    /// belong to its request. A response to a READ that went on from the middle may be First or
    /// Middle, so only its length and its end count.
    fn answer_data(&self, message: &Message, packet: &Received) -> Option<(u32, Vec<u8>)> {
        match (message.request.operation, packet.bth.opcode.operation()) {
            (Operation::ReadRequest, Operation::ReadResponse) => {
                let number = packet.bth.psn.since(message.first) as u32;
                let offset = number << self.sq.mtu().log2();
                let left = message.request.head.length - offset;
                let expected = left.min(self.sq.mtu().bytes() as u32) as usize;
                let is_last = number + 1 == message.packets;
                (packet.payload.len() == expected && packet.bth.opcode.is_end() == is_last)
                    .then(|| (offset, packet.payload.to_vec()))
            }
            (Operation::CmpSwap | Operation::FetchAdd, Operation::AtomicAck) => {
                let original = packet.ext.atomic_ack?.original;
                Some((0, original.to_le_bytes().to_vec()))
            }
            _ => None,
        }
    }
}

fn answer(aeth: Option<AethRepr>) -> Answer {
    match aeth.map(|aeth| aeth.syndrome) {
        None | Some(Syndrome::Ack { .. }) => Answer::Good,
        Some(Syndrome::RnrNak { timer }) => Answer::NotReady { timer },
        Some(Syndrome::Nak(NakCode::PsnSequence)) => Answer::Resend,
        Some(Syndrome::Nak(NakCode::InvalidRequest)) => Answer::Failed(status::REM_INV_REQ_ERR),
        Some(Syndrome::Nak(NakCode::RemoteAccess)) => Answer::Failed(status::REM_ACCESS_ERR),
        Some(Syndrome::Nak(NakCode::RemoteOperational)) => Answer::Failed(status::REM_OP_ERR),
        Some(Syndrome::Nak(_) | Syndrome::Reserved(_)) => Answer::Failed(status::BAD_RESP_ERR),
    }
}

fn count(env: &mut Env, packet: &Received, answer: &Answer) {
    match answer {
        Answer::Good if packet.bth.opcode.operation() == Operation::Ack => {
            env.stats.count(stats::RX_ACKS);
        }
        Answer::Good => {}
        Answer::NotReady { .. } => env.stats.count(stats::RNR_NAK_RECEIVED),
        Answer::Resend => env.stats.count(stats::PACKET_SEQ_ERR),
        Answer::Failed(_) => env.stats.count(stats::REMOTE_ERRORS),
    }
}
