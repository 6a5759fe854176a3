//! The rules of a send queue: what an event makes of its state. No state of its own.
//!
//! | event | if | then | rule |
//! |---|---|---|---|
//! | Doorbell, Fetch | slots are posted | up to 8 of them are fetched; the rest waits in the ready FIFO | [`SqStart`] |
//! | Start | the WQE is not the one to run | dropped: a fetch of an earlier epoch | [`SqStart`] |
//! | Start | in ERR or SQE | completes as flushed, after what is in the outstanding ring (IB1 10.3.1) | [`SqStart`] |
//! | Start | it differs from what was sent of it | the queue pair fails, after the messages in front of it | [`SqStart`] |
//! | Start | there is room in ring and PSN window | packets are granted: up to a quantum, a READ whole | [`SqStart`] |
//! | Start | there is none, or a fence stands | waits for Retired | [`SqStart`] |
//! | Start | its class is closed, or READ data that its fence waits for is not in host memory | refused: read again later | [`SqStart`] |
//! | Refetch | the WQE ends behind its grant | read again, with what follows it | [`SqStart`] |
//! | Start | it sends nothing, and nothing is outstanding | the card executes it; Executed makes its entry | [`SqStart`] |
//! | Answer | ACK or response in the window | what it acknowledges retires; retries start afresh (IB1 9.7.5.1) | [`SqAnswer`] |
//! | Answer | NAK sequence error, implied NAK | **retry** from the oldest PSN not acknowledged (IB1 9.7.5.1.1) | [`SqAnswer`] |
//! | Answer | RNR NAK | waits for the timer, then sends again, `rnr_retry` times; 7 is for ever (IB1 9.7.5.2.8) | [`SqAnswer`] |
//! | Answer | any other NAK | the oldest message fails (IB1 9.9.2) | [`SqAnswer`] |
//! | Timeout | it waits for a receiver | sends again; that costs no retry | [`SqRetired`] |
//! | Timeout | packets have not left yet, or the latest left less than a timeout ago | the timer starts anew; for the latter once | [`SqRetired`] |
//! | Timeout | else | **retry** (IB1 9.7.6.1.3) | [`SqRetired`] |
//! | Retire | | `retire` walks the outstanding ring | [`SqRetired`] |
//! | Retired | going back | execution goes on at the oldest message | [`SqRetired`] |
//! | Retired | the WQE that was to be sent again had arrived, and others are outstanding | they are read again from host memory | [`SqRetired`] |
//! | Retired | a message failed | the queue pair fails with its status | [`SqRetired`] |
//! | Command | RTS in SQE, and WQEs are posted behind the failed one | they are flushed first; SQD meanwhile is kept until then (IB1 10.3.1) | [`SqCommand`] |
//! | Command | SQE of an RC queue pair | ERR (IB1 10.3.1) | [`SqCommand`] |
//! | Command | else, unless it failed while the command was on its way | state, PSNs and retries are set | [`SqCommand`] |
//! | Failed | the responder failed, or a completion was lost | the queue pair fails | [`SqCommand`] |
//! | Unread | the packet is outstanding | nothing more is sent; its message fails when it is the oldest | [`SqCommand`], [`SqRetired`] |
//!
//! **Retry** with `retry_cnt` used up fails the queue pair (RETRY_EXC_ERR). A queue pair that **fails** goes to ERR, an
//! unreliable one whose own request failed to SQE; nothing more of it is sent, and what it has posted is flushed.
use ferroce_proto::abi::cq::status;

use super::decision::*;
use super::event::*;
use super::sq_answer::SqAnswer;
use super::sq_command::{SqCommand, without_outstanding};
use super::sq_retired::SqRetired;
use super::sq_start::SqStart;
use crate::bus::qp_state::{ERR, RTS, SQD, SQE};
use crate::bus::types::image::SqCtx;
use crate::prelude::*;

const RETRY_EXC_ERR: u64 = status::RETRY_EXC_ERR as u64;

/// The rules, combinational.
#[derive(Block)]
pub struct SqRules {
    /// The event.
    pub sq_event: Signal<In, SqEvent>,
    /// Static image of its queue pair.
    pub image: Signal<In, SqCtx>,
    /// State of its queue pair.
    pub state: Signal<In, SqState>,
    /// What the event means for that state.
    pub terms: Signal<In, SqTerms>,
    /// Grants so far, modulo 2^16.
    pub granted: Signal<In, Bits<16>>,
    /// There is room for completions of flushed WQEs.
    pub room: Signal<In, Bit>,
    /// The state changes.
    pub write: Signal<Out, Bit>,
    /// The state afterwards.
    pub next_state: Signal<Out, SqState>,
    /// What follows from the event.
    pub decision: Signal<Out, SqDecision>,

    starts: SqStart,
    answers: SqAnswer,
    retires: SqRetired,
    commands: SqCommand,
}

impl Logic for SqRules {
    describe!(
        "sq_rules",
        "What an event makes of the state of its send queue."
    );

    #[kernel]
    fn update(&mut self) {
        starts.sq_event = sq_event;
        starts.state = state;
        starts.terms = terms;
        starts.granted = granted;
        starts.room = room;
        answers.sq_event = sq_event;
        answers.state = state;
        answers.terms = terms;
        retires.sq_event = sq_event;
        retires.state = state;
        retires.terms = terms;
        commands.sq_event = sq_event;
        commands.state = state;
        commands.terms = terms;
        commands.image = image;
        let kind = sq_event.kind;
        let mut next = starts.next_state;
        let mut out = starts.decision;
        match kind {
            SqEventKind::Answer => {
                next = answers.next_state;
                out = answers.decision;
            }
            SqEventKind::Timeout | SqEventKind::Retire | SqEventKind::Retired => {
                next = retires.next_state;
                out = retires.decision;
            }
            SqEventKind::Command | SqEventKind::Failed | SqEventKind::Unread => {
                next = commands.next_state;
                out = commands.decision;
            }
            _ => {}
        }

        if out.retries {
            if terms.retry == 0 {
                out.fail = true;
                next.error_status = RETRY_EXC_ERR;
                next.error_syndrome = bits::<8>(0);
                out.counts.retry_exceeded_err = true;
            } else {
                next.retry = terms.retry - 1;
                next.rewind = true;
                out.stop = true;
                out.push_list = true;
                out.start_timer = true;
            }
        }
        if out.fail {
            next.state = ERR;
            out.status = next.error_status;
            if (kind == SqEventKind::Retired) & sq_event.status.any() {
                out.status = sq_event.status;
            }
            // a local error of an unreliable queue pair is that of its send queue alone
            if !terms.reliable & (out.local | sq_event.status.any()) {
                next.state = SQE;
            }
            out.enters_error = true;
        }
        if out.enters_error {
            // what waits for the wire is not sent any more: the host learns that it is flushed
            out.recall = true;
            next.round = state.round + 1;
            out.close = true;
            next.closing = true;
            next.resumes = false;
            next.resumes_to_sqd = false;
            // nothing of it is granted any more; what was may not be read yet
            next.unread = granted;
            next.rewind = false;
            next.rnr_wait = false;
            next.blocked = false;
            next.read_blocked = false;
            next.broken = false;
            next.stall = false;
            next.lengthy = false;
            next.single = false;
            out.stop = true;
            out.push_list = false;
            out.stop_timer = true;
            out.start_timer = false;
        }
        if terms.resumed & !out.enters_error & !((kind == SqEventKind::Command) & sq_event.set) {
            next.state = RTS;
            if state.resumes_to_sqd {
                next.state = SQD;
                next.drained = true;
                out.drained = true;
            }
            next.resumes = false;
            next.resumes_to_sqd = false;
            next = without_outstanding(next, state.next_psn);
            out.stop = true;
            out.push_ready = true;
        }
        if out.stop {
            next.epoch = state.epoch + 1;
            next.fetch_index = next.exec_index;
        }
        if out.stop_timer {
            next.timer_on = false;
            next.timer_generation = state.timer_generation + 1;
        } else if out.start_timer {
            next.timer_on = true;
            next.timer_generation = state.timer_generation + 1;
        }
        if out.push_ready {
            next.queued = true;
        }
        if out.push_list {
            next.listed = true;
        }
        out.queued = next.queued;
        out.round = next.round;
        write = !(kind == SqEventKind::None);
        next_state = next;
        decision = out;
    }
}
