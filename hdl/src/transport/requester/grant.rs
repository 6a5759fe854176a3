//! What the table of send queues grants: slots to fetch, packets to send, messages to retire; and what comes of it.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::prelude::*;

/// What is to be done with a WQE that asked to start.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum SendAction {
    /// Nothing: the queue pair fetches it again where it is still to run.
    Drop,
    /// Packets are granted.
    Send,
    /// It completes as flushed.
    Flush,
    /// It sends nothing: it is executed in the card, and its entry is made when that is done.
    Execute,
}

payload! {
    /// Answer to Fetch: slots to read.
    FetchGrant {
        /// Queue pair.
        qpn: Bits<16>,
        /// Epoch.
        epoch: Bits<4>,
        /// First slot.
        index: Bits<16>,
        /// Slots, 0 to 8.
        count: Bits<4>,
        /// Fewer than it could be: a WQE that ends behind them is fetched again, also the first one.
        partial: Bit,
        /// Address of the first slot.
        addr: Bits<64>,
        /// Slots up to the end of the ring, if these are less than `count`, else `count`.
        head: Bits<4>,
        /// The other slots: `count` - `head`.
        tail: Bits<4>,
        /// Address of the ring, where they are.
        base: Bits<64>,
    }

    /// Answer to Start.
    StartGrant {
        /// What is to be done.
        action: SendAction,
        /// PSN of the first packet granted.
        psn: Bits<24>,
        /// Its place in the message.
        offset: Bits<24>,
        /// Packets granted.
        count: Bits<8>,
        /// `count` is not 0.
        some: Bit,
        /// Of these, packets that were sent before: the first ones.
        again: Bits<8>,
        /// The last packet granted ends the message.
        final_part: Bit,
        /// The message was not started before. (A READ or atomic is granted whole, as one packet: its PSNs from `psn` on
        /// are those of the responses not yet here, `offset` counts the others.)
        fresh: Bit,
        /// Round of the queue pair, see [`Recall`](crate::bus::types::Recall).
        round: Bits<2>,
        /// Its incarnation.
        incarnation: Bits<2>,
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
        /// A READ or atomic.
        answered: Bit,
        /// A WQE that cannot run.
        bad: Bit,
        /// Status of a WQE that cannot run; of a READ or atomic the bytes of its last packet.
        rest: Bits<13>,
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
        /// Its responder fails with it (not SQE).
        fatal: Bit,
        /// Status of the oldest unacknowledged message, 0 = flushed.
        status: Bits<8>,
        /// AETH syndrome behind it.
        syndrome: Bits<8>,
        /// Incarnation.
        incarnation: Bits<2>,
        /// Completion queue.
        cqn: Bits<16>,
        /// Payload writes that must have their response before a READ or atomic completes, or what stands behind it.
        writes: Bits<16>,
        /// See [`SqState`](super::event::SqState).
        unfenced: Bit,
        /// Path MTU, IB code.
        mtu: Bits<3>,
        /// First entry of the ring in the pool.
        ot_base: Bits<24>,
        /// Log2 of its entries.
        ot_log: Bits<4>,
        /// Completions wait until the payload of this grant is read.
        unread: Bits<16>,
        /// See [`SqState`](super::event::SqState).
        stall: Bit,
        /// Likewise.
        stall_psn: Bits<24>,
    }

    /// What `retire` asks for or reports: the fields of its two events.
    RetireReport {
        /// Retired; else Retire, and only `qpn` counts.
        done: Bit,
        /// Queue pair.
        qpn: Bits<16>,
        /// Slot behind the last message taken off.
        index: Bits<16>,
        /// First PSN of the new head.
        psn: Bits<24>,
        /// `una_psn` of the grant.
        una_psn: Bits<24>,
        /// READs and atomics taken off.
        reads: Bits<5>,
        /// See [`SqEvent`](super::event::SqEvent).
        unfenced: Bit,
        /// See [`SqEvent`](super::event::SqEvent).
        stalled: Bit,
        /// Likewise.
        passed: Bit,
        /// Messages taken off.
        count: Bits<16>,
        /// Status of the message that failed, else 0.
        status: Bits<8>,
        /// Incarnation of the queue pair.
        incarnation: Bits<2>,
    }

    /// A completion of a send queue (`retire`, `segmenter` to `completion_hold`).
    SendCompletion {
        /// Completion queue.
        cqn: Bits<16>,
        /// Queue pair.
        qpn: Bits<16>,
        /// CQE opcode.
        opcode: Bits<3>,
        /// WQE index.
        wqe_index: Bits<16>,
        /// Bytes of a READ or atomic; of others not looked at.
        byte_len: Bits<32>,
        /// CQE status.
        status: Bits<8>,
        /// AETH syndrome behind a remote error.
        vendor_err: Bits<8>,
        /// A READ or atomic.
        answered: Bit,
        /// `fence` counts: it is one, or one without completion stands in front of it.
        fenced: Bit,
        /// See [`CqToken`](crate::bus::types::CqToken).
        fence: Bits<16>,
        /// It waits until the payload of this grant is read.
        unread: Bits<16>,
        /// No completion: those of the messages with which the queue pair failed stand in front of it.
        failed: Bit,
        /// No completion: those of the messages with which the send queue drained stand in front of it.
        drained: Bit,
    }

    /// A send queue that drained.
    DrainedQueue {
        /// Queue pair.
        qpn: Bits<16>,
        /// Flushes that were granted before, modulo 2^16.
        flushes: Bits<16>,
    }
}
