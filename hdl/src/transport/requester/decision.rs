//! What the stages behind the table of send queues tell each other of an event.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use super::grant::SendAction;
use crate::bus::payload::payload;
use crate::prelude::*;

payload! {
    /// What stage X finds out about event and state for the rules of stage Y.
    SqTerms {
        /// In RTS, or in SQD with a message to go on with, and neither going back, nor waiting for a receiver, nor broken.
        running: Bit,
        /// WQEs may be fetched.
        may_fetch: Bit,
        /// Fetch, Doorbell: slots granted.
        fetched: Bits<4>,
        /// Fetch, Doorbell: more remain than one grant takes.
        more: Bit,
        /// Start: the WQE is the one to run.
        fits: Bit,
        /// Start: there is room in the outstanding ring and in the PSN window, and no READ or atomic stands in the way.
        room: Bit,
        /// Start: a READ or atomic stands in the way, or of a WQE that sends nothing any message.
        read_bound: Bit,
        /// Start: not now: its class is closed, or it has a fence and data of READs and atomics in front of it is not in
        /// host memory.
        later: Bit,
        /// Start: it sends nothing.
        is_local: Bit,
        /// Start: a READ or atomic that can run.
        answered: Bit,
        /// Reliable: acknowledged by the peer, timed.
        reliable: Bit,
        /// Start: first part of a message not sent before.
        fresh: Bit,
        /// Start: the WQE of a message that was started is not what it was: it cannot run, or has no packet left to send.
        differs: Bit,
        /// Start: no message stands in front of it in the outstanding ring.
        oldest: Bit,
        /// Start: PSNs granted.
        part: Bits<24>,
        /// Start: the part ends the message.
        ends: Bit,
        /// Start: the part is a whole quantum, and the message goes on or another queue pair has fetched WQEs; or it is paced, and
        /// the message fills the turn, or is the fourth middling one.
        turn_ends: Bit,
        /// Start: the part fills a turn by itself; of a paced one, with half of what the rate sends in it.
        fills: Bit,
        /// Start: of an eighth of what the rate of its paced queue pair sends in a turn, or more.
        middling: Bit,
        /// It is paced, and not in error.
        paced: Bit,
        /// Answer: the PSN is in the window; of two acknowledgements one of them.
        in_window: Bit,
        /// Answer: it counts in this state, and no packet before it could not be read if it is `sent`.
        counts: Bit,
        /// Answer: both are.
        both: Bit,
        /// Answer: PSNs newly acknowledged, unless `earlier`.
        progress: Bits<24>,
        /// Answer: of two acknowledgements the later one is outside.
        earlier: Bit,
        /// Answer: PSNs newly acknowledged then.
        earlier_progress: Bits<24>,
        /// Answer: these are not 0.
        progresses: Bit,
        /// Answer, Timeout: retries left, all of them again after progress.
        retry: Bits<3>,
        /// Answer: RNR retries left, likewise.
        rnr_retry: Bits<3>,
        /// PSNs sent since the last resumption and not acknowledged.
        ahead: Bits<24>,
        /// Retired: messages left in the ring.
        used_after: Bits<16>,
        /// Likewise READs and atomics.
        reads_after: Bits<5>,
        /// Retired, Command: the ring is empty afterwards.
        idle: Bit,
        /// Retired: the last messages were taken off.
        empties: Bit,
        /// Retired, Executed: the report is of this incarnation.
        current: Bit,
        /// Command: the incarnation that a reset begins, not that of what is noted to have left: the note stays until a packet leaves.
        next_incarnation: Bits<2>,
        /// Retired: no acknowledgement came since.
        same_una: Bit,
        /// Unread: the packet is outstanding, and none before it could not be read.
        unread: Bit,
        /// Answer: of the packet that could not be read.
        at_stall: Bit,
        /// Retired: the packet that could not be read is acknowledged.
        passed: Bit,
        /// Retired: its message is the oldest, and fails.
        stalled: Bit,
        /// It goes on in RTS: nothing of what is to be flushed is left.
        resumed: Bit,
        /// Command: something of what was posted is not flushed yet.
        unflushed: Bit,
        /// Timeout: the timer is the one that runs.
        timed_out: Bit,
        /// Timeout: packets that were granted have not left yet, or all that is outstanding is still to be sent again.
        waits: Bit,
        /// Timeout: the latest packet left less than a timeout ago.
        recent: Bit,
    }

    /// Counter pulses of the send queues, named as in `ferroce_proto::abi::regs::STATS`.
    SqCounts {
        /// A NAK for a PSN sequence error.
        packet_seq_err: Bit,
        /// An RNR NAK.
        rnr_nak_received: Bit,
        /// A NAK that ends the queue pair.
        remote_errors: Bit,
        /// A positive acknowledgement in the window.
        rx_acks: Bit,
        /// The earlier one of two merged acknowledgements, in the window too.
        rx_acks_earlier: Bit,
        /// A response outside of the window.
        rx_ghost_acks: Bit,
        /// Two merged acknowledgements outside of it: the earlier one.
        rx_ghost_acks_earlier: Bit,
        /// The ACK timer ran out.
        local_ack_timeout_err: Bit,
        /// No retry was left.
        retry_exceeded_err: Bit,
        /// No RNR retry was left.
        rnr_nak_retry_err: Bit,
        /// A response that shows the loss of an earlier READ or atomic response.
        implied_nak_seq_err: Bit,
    }

    /// What the rules decide on an event, beside the new state.
    SqDecision {
        /// The queue pair has something to fetch.
        push_ready: Bit,
        /// The queue pair has something to retire.
        push_list: Bit,
        /// With `push_ready`: not before its class is open.
        held: Bit,
        /// Retired: what follows a packet that arrived is read again.
        rereads: Bit,
        /// It stands in the ready FIFO afterwards.
        queued: Bit,
        /// It went into error.
        fail: Bit,
        /// It went into error, or was sent there: nothing shall be written to memory for it any more.
        close: Bit,
        /// Status behind that.
        status: Bits<8>,
        /// In SQD nothing is outstanding any more.
        drained: Bit,
        /// Its timer starts anew.
        start_timer: Bit,
        /// Its timer stops.
        stop_timer: Bit,
        /// The timer is that of an RNR NAK.
        rnr_timer: Bit,
        /// Start: `action` of the grant.
        action: SendAction,
        /// Start: the message is new in the outstanding table.
        entry: Bit,
        /// What was granted before is not to be sent any more.
        recall: Bit,
        /// The round afterwards.
        round: Bits<2>,
        /// What was fetched is void: fetches of the next epoch begin at the WQE to run.
        stop: Bit,
        /// Sends again from the oldest PSN not acknowledged, or fails if no retry is left.
        retries: Bit,
        /// Goes to ERR or SQE, by failure or by command.
        enters_error: Bit,
        /// With `fail`: by a request of its own, so that an unreliable queue pair goes to SQE.
        local: Bit,
        /// Counter pulses.
        counts: SqCounts,
    }
}
