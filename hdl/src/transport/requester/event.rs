//! Events and state of the send side.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::bus::qp_state::RESET;
use crate::prelude::*;

/// What an event is.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum SqEventKind {
    /// Nothing.
    None,
    /// The producer index of the send queue is `index`; with `fetches` what it posts is fetched at once, as Fetch does.
    Doorbell,
    /// The scheduler asks which slots to fetch.
    Fetch,
    /// A checked WQE is at the head of the segmenter.
    Start,
    /// A response arrived, or (`sent`) the last packet of a UC or UD message was sent.
    Answer,
    /// The timer of generation `gen` ran out.
    Timeout,
    /// `retire` asks what to take off.
    Retire,
    /// `retire` took `count` messages off.
    Retired,
    /// A command sets the state, or asks for it.
    Command,
    /// The queue pair failed elsewhere: all is flushed.
    Failed,
    /// The packet `psn` was not sent: its payload could not be read.
    Unread,
    /// The WQE at `index` is not whole in its grant: it is to be fetched again, as the first of a grant.
    Refetch,
    /// The WQE that was granted as [`Execute`](super::grant::SendAction::Execute) is done.
    Executed,
}

payload! {
    /// One event for one queue pair. Fields that a kind does not name are ignored.
    SqEvent {
        /// What it is.
        kind: SqEventKind,
        /// Queue pair.
        qpn: Bits<16>,
        /// Doorbell: producer index. Start, Refetch: WQE index. Retired: slot behind the last message taken off.
        index: Bits<16>,
        /// Answer: PSN. Retired: first PSN of the new head. Command: first PSN. Unread: PSN.
        psn: Bits<24>,
        /// Retired: `una_psn` that `retire` saw. Answer: the PSN `missing`, see [`Answer`](crate::bus::types::Answer).
        una_psn: Bits<24>,
        /// Start: PSNs of the message.
        packets: Bits<24>,
        /// Start: bytes of a READ or atomic.
        length: Bits<32>,
        /// Start: a READ or atomic.
        answered: Bit,
        /// Start: its class is closed.
        held: Bit,
        /// With `held`: that class.
        packet_class: Bits<2>,
        /// With `held`: its part is short.
        is_short: Bit,
        /// Start: waits until no READ or atomic is outstanding.
        fence: Bit,
        /// Retired: READs and atomics taken off.
        reads: Bits<5>,
        /// Retired: the latest of these had no completion that waits for its data.
        unfenced: Bit,
        /// Answer: see [`Answer`](crate::bus::types::Answer).
        data: Bit,
        /// Answer: likewise.
        implied: Bit,
        /// Answer: likewise.
        closed: Bit,
        /// Answer: likewise.
        writes: Bits<16>,
        /// Answer: two plain acknowledgements, the earlier one of `una_psn`, the later one of `psn`.
        merged: Bit,
        /// Answer: none came; the packet `psn`, the last of a UC or UD message, was sent.
        sent: Bit,
        /// Retired: the packet `stall_psn` of the state is of the new head.
        stalled: Bit,
        /// Retired: it is acknowledged.
        passed: Bit,
        /// Retired: messages taken off.
        count: Bits<16>,
        /// Answer: AETH syndrome.
        syndrome: Bits<8>,
        /// Start, Executed: status of a WQE that cannot run, else 0. Retired: status of the message that failed, else 0. Answer: see there. Else 0.
        status: Bits<8>,
        /// Start, Refetch: epoch of the fetch.
        epoch: Bits<4>,
        /// Start, Executed: slots of the WQE.
        slots: Bits<3>,
        /// Start, Executed: CQE opcode.
        cqe_opcode: Bits<3>,
        /// Start, Executed: a CQE is due on success.
        signaled: Bit,
        /// Timeout: generation of the timer. Retired, Unread, Executed, Answer with `sent`: incarnation of the queue pair.
        generation: Bits<2>,
        /// Doorbell: slots are reserved for it.
        fetches: Bit,
        /// Command: new state.
        state: Bits<3>,
        /// Command: set the state.
        set: Bit,
        /// Command: start afresh.
        reset: Bit,
        /// Command: the static image was written.
        image: Bit,
    }

    /// Dynamic state of a send queue.
    SqState {
        /// State, see `ferroce_proto::abi::qpc::state`.
        state: Bits<3>,
        /// The static image was written since RESET; else it is that of a former owner of the number.
        known: Bit,
        /// Fetches of another epoch are stale.
        epoch: Bits<4>,
        /// Stands in the ready FIFO.
        queued: Bit,
        /// Stands in the retire FIFO.
        listed: Bit,
        /// Its latest message took a whole quantum: what is fetched beyond the next one would be fetched again.
        lengthy: Bit,
        /// It is paced, and its latest message, of one slot, filled its turn: so will the next one, and what is fetched beyond it
        /// would be fetched again.
        single: Bit,
        /// Middling messages of its turn, since the Fetch that began it.
        middling: Bits<2>,
        /// Waits for messages to retire.
        blocked: Bit,
        /// Of these, for a READ or atomic.
        read_blocked: Bit,
        /// READs and atomics in the outstanding ring.
        reads: Bits<5>,
        /// Payload writes issued when the latest data of a READ or atomic was placed, modulo 2^16.
        writes: Bits<16>,
        /// No completion yet waits for these: a READ or atomic was taken off without one.
        unfenced: Bit,
        /// An implied NAK was acted upon, and nothing acknowledged since.
        implied: Bit,
        /// In error; responses may still be on their way to memory, so nothing is flushed yet.
        closing: Bit,
        /// In SQE, and to RTS or SQD once what was posted before `flush_end` is flushed.
        resumes: Bit,
        /// With `resumes`: to SQD.
        resumes_to_sqd: Bit,
        /// See `resumes`.
        flush_end: Bits<16>,
        /// SQ_DRAINED was reported in this SQD.
        drained: Bit,
        /// Waits for the RNR timer.
        rnr_wait: Bit,
        /// A WQE that cannot run was met: nothing behind it is sent.
        broken: Bit,
        /// The WQE at `exec_index` is being executed in the card: nothing stands in front of it, nothing behind it is fetched.
        executing: Bit,
        /// The payload of packet `stall_psn` could not be read: nothing more is sent, and its message fails when it is the oldest.
        stall: Bit,
        /// See `stall`.
        stall_psn: Bits<24>,
        /// Execution goes back to the oldest message when `retire` reports.
        rewind: Bit,
        /// Raised when execution goes back: packets of another round are not sent any more, and the timer does not count those that
        /// left.
        round: Bits<2>,
        /// A timer runs.
        timer_on: Bit,
        /// It was extended, as packets had waited for the wire.
        extended: Bit,
        /// Its generation; timeouts of another are stale.
        timer_generation: Bits<2>,
        /// Raised at every reset by command; reports of `retire` from before are stale.
        incarnation: Bits<2>,
        /// Producer index, in slots.
        producer: Bits<16>,
        /// Next slot to fetch.
        fetch_index: Bits<16>,
        /// First slot of the WQE being executed.
        exec_index: Bits<16>,
        /// Packets of that WQE already sent.
        exec_offset: Bits<24>,
        /// Next PSN to send.
        next_psn: Bits<24>,
        /// Oldest PSN not acknowledged.
        una_psn: Bits<24>,
        /// PSNs sent at least once and not acknowledged.
        inflight: Bits<24>,
        /// Of those, PSNs at or behind `next_psn`: to be sent again.
        resend: Bits<24>,
        /// Ordinal of the next message, modulo 2^16.
        tail: Bits<16>,
        /// Messages in the outstanding ring.
        used: Bits<16>,
        /// Of those, messages at or behind the one being executed: to be executed again.
        msgs_to_resend: Bits<16>,
        /// First slot of the oldest message in the ring.
        head_index: Bits<16>,
        /// Number of the latest grant whose payload may still be to be read when its message completes.
        unread: Bits<16>,
        /// Retries left.
        retry: Bits<3>,
        /// RNR retries left.
        rnr_retry: Bits<3>,
        /// Status of the oldest message, in error; 0 = flushed.
        error_status: Bits<8>,
        /// AETH syndrome behind it.
        error_syndrome: Bits<8>,
    }

    /// The last packet of a UC or UD message is sent.
    SentPacket {
        /// Queue pair.
        qpn: Bits<16>,
        /// PSN.
        psn: Bits<24>,
        /// Incarnation of the queue pair.
        incarnation: Bits<2>,
    }

    /// A packet that was not sent because its payload could not be read.
    UnreadPacket {
        /// Queue pair.
        qpn: Bits<16>,
        /// PSN.
        psn: Bits<24>,
        /// Incarnation of the queue pair.
        incarnation: Bits<2>,
    }

    /// What of a queue pair has left the card.
    Departed {
        /// In which incarnation.
        incarnation: Bits<2>,
        /// Round of the latest packet.
        round: Bits<2>,
        /// The PSN behind it.
        latest: Bits<24>,
        /// The PSN behind the furthest one.
        furthest: Bits<24>,
    }
}

/// The command has a send queue start afresh: a RESET ends it.
#[kernel_fn]
pub fn starts_afresh(command: SqEvent) -> Bit {
    command.reset & !(command.set & (command.state == RESET))
}
