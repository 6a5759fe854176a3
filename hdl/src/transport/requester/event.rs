//! Events, state and results of the send side.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::prelude::*;

/// What an event is.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum SqEventKind {
    /// Nothing.
    None,
    /// The producer index of the send queue is `index`.
    Doorbell,
    /// The scheduler asks which slots to fetch.
    Fetch,
    /// A checked WQE is at the head of the segmenter.
    Start,
    /// A response header arrived.
    Ack,
    /// The timer of generation `gen` ran out.
    Timeout,
    /// `retire` asks what to take off.
    Retire,
    /// `retire` took `count` messages off.
    Retired,
    /// A command sets the state, or asks for it.
    Command,
    /// The queue pair failed elsewhere; with a `status`, its oldest message fails with it, else all is flushed.
    Failed,
}

payload! {
    /// One event for one queue pair. Fields that a kind does not name are ignored.
    SqEvent {
        /// What it is.
        kind: SqEventKind,
        /// Queue pair.
        qpn: Bits<16>,
        /// Doorbell: producer index. Start: WQE index. Retired: slot behind the last message taken off.
        index: Bits<16>,
        /// Ack: PSN. Retired: first PSN of the new head. Command: first PSN.
        psn: Bits<24>,
        /// Retired: `una_psn` that `retire` saw.
        una_psn: Bits<24>,
        /// Start: packets of the message.
        packets: Bits<24>,
        /// Retired: messages taken off.
        count: Bits<16>,
        /// Ack: AETH syndrome.
        syndrome: Bits<8>,
        /// Start: status of a WQE that cannot run, else 0. Retired: status of the message that failed, else 0. Failed: see there.
        status: Bits<8>,
        /// Start: epoch of the fetch.
        epoch: Bits<4>,
        /// Start: slots of the WQE.
        slots: Bits<3>,
        /// Start: CQE opcode.
        cqe_opcode: Bits<3>,
        /// Start: a CQE is due on success.
        signaled: Bit,
        /// Timeout: generation of the timer. Retired: incarnation of the queue pair.
        generation: Bits<2>,
        /// Command: new state.
        state: Bits<3>,
        /// Command: set the state.
        set: Bit,
        /// Command: start afresh.
        reset: Bit,
    }

    /// Dynamic state of a send queue.
    SqState {
        /// State, see `ferroce_proto::abi::qpc::state`.
        state: Bits<3>,
        /// Fetches of another epoch are stale.
        epoch: Bits<4>,
        /// Stands in the ready FIFO.
        queued: Bit,
        /// Stands in the retire FIFO.
        listed: Bit,
        /// Waits for messages to retire.
        blocked: Bit,
        /// Waits for the RNR timer.
        rnr_wait: Bit,
        /// A WQE that cannot run was met: nothing behind it is sent.
        broken: Bit,
        /// Execution goes back to the oldest message when `retire` reports.
        rewind: Bit,
        /// A timer runs.
        timer_on: Bit,
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
        behind: Bits<16>,
        /// First slot of the oldest message in the ring.
        head_index: Bits<16>,
        /// Retries left.
        retry: Bits<3>,
        /// RNR retries left.
        rnr_retry: Bits<3>,
        /// Status of the oldest message, in error; 0 = flushed.
        error_status: Bits<8>,
        /// AETH syndrome behind it.
        error_syndrome: Bits<8>,
    }

    /// Answer to Fetch: slots to read.
    FetchGrant {
        /// Queue pair.
        qpn: Bits<16>,
        /// Epoch.
        epoch: Bits<4>,
        /// First slot.
        index: Bits<16>,
        /// Slots, 0 to 8; they do not wrap around the ring.
        count: Bits<4>,
        /// Address of the first slot.
        addr: Bits<64>,
    }

    /// Answer to Start.
    StartGrant {
        /// 0 drop the WQE, 1 send `count` packets, 2 complete it as flushed.
        action: Bits<2>,
        /// PSN of the first packet granted.
        psn: Bits<24>,
        /// Its place in the message.
        offset: Bits<24>,
        /// Packets granted.
        count: Bits<8>,
        /// Of these, packets that were sent before: the first ones.
        again: Bits<8>,
        /// The last packet granted ends the message.
        final_part: Bit,
    }

    /// Answer to Retire.
    RetireGrant {
        /// Queue pair.
        qpn: Bits<16>,
        /// Ordinal of the oldest message.
        head: Bits<16>,
        /// Messages in the ring.
        used: Bits<16>,
        /// First slot of the oldest message.
        head_index: Bits<16>,
        /// Oldest PSN not acknowledged.
        una_psn: Bits<24>,
        /// The queue pair is in error: all messages complete.
        error: Bit,
        /// Status of the oldest unacknowledged message, 0 = flushed.
        status: Bits<8>,
        /// AETH syndrome behind it.
        syndrome: Bits<8>,
        /// Incarnation.
        incarnation: Bits<2>,
        /// Completion queue.
        cqn: Bits<16>,
        /// First entry of the ring in the pool.
        ot_base: Bits<24>,
        /// Log2 of its entries.
        ot_log: Bits<4>,
    }

    /// Entry of the outstanding table.
    Outstanding {
        /// First PSN.
        first_psn: Bits<24>,
        /// Last PSN; the one before the first if the message has none.
        last_psn: Bits<24>,
        /// Slots of the WQE.
        slots: Bits<3>,
        /// CQE opcode.
        cqe_opcode: Bits<3>,
        /// A CQE is due on success.
        signaled: Bit,
        /// Status of a WQE that cannot run, as a code of 5 bits; 0 = can run.
        status: Bits<5>,
    }

    /// Order to the timer.
    TimerSet {
        /// Queue pair.
        qpn: Bits<16>,
        /// Run; else stop.
        on: Bit,
        /// Generation.
        generation: Bits<2>,
        /// An RNR timer; else an ACK timeout.
        rnr: Bit,
        /// Timer code.
        code: Bits<5>,
    }

    /// A WQE whose fields and local memory were checked (`wqe_check` to `segmenter`).
    CheckedWqe {
        /// Queue pair.
        qpn: Bits<16>,
        /// Epoch of the fetch.
        epoch: Bits<4>,
        /// Index of its first slot.
        index: Bits<16>,
        /// Slots.
        slots: Bits<3>,
        /// 0, or the status it completes with instead of running.
        status: Bits<8>,
        /// Operation (`abi::wqe::opcode`).
        opcode: Bits<3>,
        /// Opcode of its CQE.
        cqe_opcode: Bits<3>,
        /// A CQE is due on success.
        signaled: Bit,
        /// Solicited event.
        solicited: Bit,
        /// Path MTU code.
        mtu: Bits<3>,
        /// Lane of the first payload byte behind headers without extension, modulo 64.
        lane: Bits<6>,
        /// Completion queue.
        cqn: Bits<16>,
        /// Packets of the message.
        packets: Bits<24>,
        /// Bytes of the message.
        length: Bits<32>,
        /// Immediate data.
        imm: Bits<32>,
        /// Remote address.
        remote_addr: Bits<64>,
        /// rkey.
        rkey: Bits<32>,
        /// First piece of the payload: address.
        addr_0: Bits<64>,
        /// First piece: bytes.
        len_0: Bits<32>,
        /// Second piece: address.
        addr_1: Bits<64>,
    }

    /// Entry of the timer table.
    TimerEntry {
        /// Runs.
        on: Bit,
        /// Generation.
        generation: Bits<2>,
        /// Tick at which it has run out.
        deadline: Bits<36>,
    }

    /// What stage X finds out about event and state for the rules of stage Y.
    SqTerms {
        /// In RTS, or in SQD with a message to go on with, and neither going back, nor waiting for a receiver, nor broken.
        running: Bit,
        /// WQEs may be fetched.
        may_fetch: Bit,
        /// Fetch: slots granted.
        fetched: Bits<4>,
        /// Fetch: more remain than one grant takes.
        more: Bit,
        /// Start: the WQE is the one to run.
        fits: Bit,
        /// Start: there is room in the outstanding ring and in the PSN window.
        room: Bit,
        /// Start: first part of a message not sent before.
        fresh: Bit,
        /// Start: packets granted.
        part: Bits<24>,
        /// Start: the part ends the message.
        ends: Bit,
        /// Ack: the PSN is in the window.
        in_window: Bit,
        /// Ack: PSNs newly acknowledged.
        progress: Bits<24>,
        /// Ack: retries left, all of them again after progress.
        retry: Bits<3>,
        /// Ack: RNR retries left, likewise.
        rnr_retry: Bits<3>,
        /// PSNs sent since the last resumption and not acknowledged.
        ahead: Bits<24>,
        /// Retired: messages left in the ring.
        used_after: Bits<16>,
        /// Retired: the last messages were taken off.
        empties: Bit,
        /// Retired: the report is of this incarnation.
        current: Bit,
        /// Retired: no acknowledgement came since.
        same_una: Bit,
        /// Timeout: the timer is the one that runs.
        timed_out: Bit,
    }

    /// What the rules decide on an event, beside the new state.
    SqVerdict {
        /// The queue pair has something to fetch.
        push_ready: Bit,
        /// The queue pair has something to retire.
        push_list: Bit,
        /// It stands in the ready FIFO afterwards.
        queued: Bit,
        /// It went into error.
        fail: Bit,
        /// Its timer starts anew.
        start_timer: Bit,
        /// Its timer stops.
        stop_timer: Bit,
        /// The timer is that of an RNR NAK.
        rnr_timer: Bit,
        /// Start: `action` of the grant.
        action: Bits<2>,
        /// Start: the message is new in the outstanding table.
        entry: Bit,
        /// Counter pulses.
        counts: Bits<8>,
    }
}
