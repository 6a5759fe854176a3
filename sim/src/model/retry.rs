//! Requester: acknowledgement timer, RNR timer, retry counters, go-back-N.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::wire::aeth::RNR_TIMER_NS;
use ferroce_proto::wire::timeout::ack_timeout_ns;

use super::egress::Departure;
use super::qp::QueuePair;
use super::requester::Sq;
use super::round_trip::RoundTrip;
use super::{Env, stats};
use crate::nic::NS_PER_CYCLE;

/// Value of `rnr_retry` that never runs out (IB1 9.7.5.2.8).
const RNR_RETRY_FOR_EVER: u8 = 7;

/// Counters and timers, in cycles since reset.
#[derive(Clone, Default)]
pub(super) struct Retry {
    /// Retries left after a timeout, a PSN-error NAK or an implied NAK.
    left: u8,
    /// Retries left after an RNR NAK.
    rnr_left: u8,
    /// When the oldest outstanding packet is given up.
    ack_deadline: Option<u64>,
    /// When the wait that an RNR NAK asked for is over.
    rnr_deadline: Option<u64>,
    /// An implied NAK was acted upon; the responses to what was sent before are no further one.
    pub(super) implied: bool,
}

impl Retry {
    pub(super) fn stop(&mut self) {
        self.ack_deadline = None;
        self.rnr_deadline = None;
    }

    /// In the wait that an RNR NAK asked for.
    pub(super) fn is_waiting(&self) -> bool {
        self.rnr_deadline.is_some()
    }
}

impl Sq {
    /// Forward progress: the retry counters start again, and what an RNR NAK refused was taken after all.
    pub(super) fn reload(&mut self) {
        self.retry.rnr_deadline = None;
        self.retry.left = self.ctx.retry_cnt;
        self.retry.rnr_left = self.ctx.rnr_retry;
        self.retry.implied = false;
    }
}

impl QueuePair {
    /// Cycle at which [`expire`](Self::expire) is due.
    pub(super) fn deadline(&self) -> Option<u64> {
        let Retry {
            ack_deadline,
            rnr_deadline,
            ..
        } = self.sq.retry;
        rnr_deadline.or(ack_deadline)
    }

    /// Starts the acknowledgement timer unless it runs.
    pub(super) fn start_timer(&mut self, now: u64) {
        if self.sq.retry.ack_deadline.is_none() {
            let period = ack_timeout_ns(self.sq.ctx.timeout);
            self.sq.retry.ack_deadline = period.map(|ns| now + ns / NS_PER_CYCLE);
        }
    }

    /// Starts the acknowledgement timer anew if an answer was asked for and is not there.
    pub(super) fn restart_timer(&mut self, now: u64) {
        self.sq.retry.ack_deadline = None;
        if self.sq.asked.since(self.sq.una) > 0 && !self.sq.retry.is_waiting() {
            self.start_timer(now);
        }
    }

    /// A packet has left. The time of the acknowledgement that it asks for counts from now on (IB1 9.7.6.1.3), and a message
    /// without one is complete.
    pub(super) fn departed(&mut self, env: &mut Env, departure: Departure) {
        let Departure {
            after, asks, made, ..
        } = departure;
        self.sq.queued = self.sq.queued.saturating_sub(1);
        if after.since(self.sq.una) <= 0 || after.since(self.sq.max) > 0 {
            return;
        }
        if after.since(self.sq.left) > 0 {
            self.sq.left = after;
        }
        if self.sq.ctx.qp_type != qp_type::RC {
            self.advance(env, after);
        } else if asks {
            self.sq.asked = after;
            self.sq.trip.departed(env.now, after);
            if made == env.now {
                self.start_timer(env.now);
            } else {
                // it waited in a queue
                self.restart_timer(env.now);
            }
        }
    }

    /// A timer ran out.
    pub(super) fn expire(&mut self, env: &mut Env) {
        if self
            .sq
            .retry
            .rnr_deadline
            .take_if(|deadline| *deadline <= env.now)
            .is_some()
        {
            return;
        }
        if self
            .sq
            .retry
            .ack_deadline
            .take_if(|deadline| *deadline <= env.now)
            .is_some()
        {
            if self.sq.queued > 0 {
                return self.start_timer(env.now);
            }
            env.stats.count(stats::LOCAL_ACK_TIMEOUT_ERR);
            if self.retry(env) {
                self.sq.pacing.on_timeout(env);
            }
        }
    }

    /// Sends again from the oldest PSN not acknowledged, or gives up; `false` then.
    pub(super) fn retry(&mut self, env: &mut Env) -> bool {
        let Some(left) = self.sq.retry.left.checked_sub(1) else {
            env.stats.count(stats::RETRY_EXCEEDED_ERR);
            self.fail_oldest(env, status::RETRY_EXC_ERR, 0);
            return false;
        };
        self.sq.retry.left = left;
        self.go_back();
        true
    }

    /// An RNR NAK for the oldest PSN not acknowledged.
    pub(super) fn retry_later(&mut self, env: &mut Env, timer: u8, syndrome: u8) {
        if self.sq.retry.is_waiting() {
            return;
        }
        if self.sq.ctx.rnr_retry != RNR_RETRY_FOR_EVER {
            let Some(left) = self.sq.retry.rnr_left.checked_sub(1) else {
                env.stats.count(stats::RNR_NAK_RETRY_ERR);
                return self.fail_oldest(env, status::RNR_RETRY_EXC_ERR, syndrome);
            };
            self.sq.retry.rnr_left = left;
        }
        self.go_back();
        let wait = u64::from(RNR_TIMER_NS[usize::from(timer & 31)]).div_ceil(NS_PER_CYCLE);
        self.sq.retry.rnr_deadline = Some(env.now + wait);
    }

    /// The timer starts again with the first packet sent again that asks for an answer.
    fn go_back(&mut self) {
        self.sq.next = self.sq.una;
        self.sq.asked = self.sq.una;
        self.sq.trip = RoundTrip::from(self.sq.max);
        self.sq.retry.ack_deadline = None;
    }
}
