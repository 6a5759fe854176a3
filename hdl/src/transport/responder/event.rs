//! Requests, events, state and results of the receive side.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::bus::types::MrRight;
use crate::prelude::*;

/// What an event is.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum RqEventKind {
    /// Nothing.
    None,
    /// The request beside the event arrived.
    Packet,
    /// The producer index of the receive queue is `index`.
    Doorbell,
    /// A placement failed.
    PlaceError,
    /// The send queue went into error.
    SqFailed,
    /// A command sets the state, or asks for it.
    Command,
    /// The next receive WQE of a queue pair in error is to be flushed.
    Flush,
    /// A READ or atomic, no duplicate, is answered.
    Replied,
    /// The producer index of the shared receive queue is `index`.
    SrqDoorbell,
    /// A command creates or destroys the shared receive queue, or sets its limit.
    SrqCommand,
}

/// Why a packet is not taken as a request (field `reason` of [`RqRequest`]).
pub mod reason {
    /// It is good.
    pub const GOOD: u64 = 0;
    /// There is no such queue pair.
    pub const NO_QP: u64 = 1;
    /// The queue pair is of another transport.
    pub const TRANSPORT: u64 = 2;
    /// P_Key.
    pub const PKEY: u64 = 3;
    /// Source or destination address.
    pub const ADDRESS: u64 = 4;
    /// Nothing is wrong, but it is no request.
    pub const NO_REQUEST: u64 = 5;
    /// Q_Key.
    pub const QKEY: u64 = 6;
}

payload! {
    /// What the responder keeps of an `RqCtx`.
    RqImage {
        /// Remote address as a GID.
        remote_gid: Bits<128>,
        /// Address of the receive queue.
        rq_base: Bits<64>,
        /// Transport.
        qp_type: Bits<2>,
        /// Path MTU, IB code.
        mtu: Bits<3>,
        /// Log2 of the entries of the receive queue.
        rq_log: Bits<4>,
        /// Log2 of the slots of a receive WQE.
        rq_stride: Bits<2>,
        /// RNR NAK timer code.
        min_rnr_timer: Bits<5>,
        /// A peer may write.
        remote_write: Bit,
        /// A peer may read.
        remote_read: Bit,
        /// A peer may use atomics.
        remote_atomic: Bit,
        /// READs and atomics a peer may have outstanding.
        max_dest_rd_atomic: Bits<5>,
        /// P_Key.
        pkey: Bits<16>,
        /// Local GID table entry.
        sgid_index: Bits<8>,
        /// Packets must come in the VLAN `vlan`.
        check_vlan: Bit,
        /// See `check_vlan`.
        vlan: Bits<12>,
        /// Q_Key.
        qkey: Bits<32>,
        /// Protection domain.
        pd: Bits<24>,
        /// Completion queue.
        cqn: Bits<16>,
        /// Receives from the shared receive queue.
        srq_valid: Bit,
        /// Shared receive queue.
        srqn: Bits<16>,
    }

    /// A packet for the responder: a request, or beats to discard. A datagram comes as a SEND of two: its GRH, its payload.
    RqRequest {
        /// Queue pair.
        qpn: Bits<16>,
        /// Why the packet is to be discarded, see [`reason`].
        reason: Bits<3>,
        /// The queue pair is UC or UD.
        unreliable: Bit,
        /// It is UD.
        datagram: Bit,
        /// The GRH of a datagram, its payload comes next.
        grh: Bit,
        /// A SEND of any form.
        send: Bit,
        /// A WRITE of any form.
        write: Bit,
        /// A READ.
        read: Bit,
        /// An atomic.
        atomic: Bit,
        /// Fetch and add.
        add: Bit,
        /// The rkey is to be looked up.
        checked: Bit,
        /// For this right.
        right: MrRight,
        /// Starts its message.
        first: Bit,
        /// Ends its message.
        last: Bit,
        /// Carries immediate data.
        with_imm: Bit,
        /// Carries an rkey to invalidate.
        with_inv: Bit,
        /// Invalid whatever the state: opcode, right or length.
        invalid: Bit,
        /// BTH acknowledge request.
        ack_req: Bit,
        /// BTH solicited event.
        solicited: Bit,
        /// BTH PSN.
        psn: Bits<24>,
        /// Address of RETH or AtomicETH; of a SEND, once it passed the state, that of the WQEs of a shared receive queue.
        va: Bits<64>,
        /// Its rkey; of a SEND, once it passed the state, the protection domain of the queue pair.
        rkey: Bits<32>,
        /// RETH length; 8 of an atomic.
        length: Bits<32>,
        /// Packets of the WRITE, or of the response to the READ, behind the first.
        more: Bits<23>,
        /// Bytes less one: in the first packet of a WRITE those that its last will have, else of the payload.
        tail: Bits<12>,
        /// Swap value, or the value to add.
        swap_add: Bits<64>,
        /// Value to compare with.
        compare: Bits<64>,
        /// Immediate data, or the rkey to invalidate.
        imm: Bits<32>,
        /// Source queue pair of a datagram, else 0.
        src_qpn: Bits<24>,
        /// P_Key of a datagram, else 0.
        pkey: Bits<16>,
        /// Payload bytes.
        plen: Bits<13>,
        /// Lane of the first payload byte.
        lane: Bits<6>,
        /// Buffered beats.
        beats: Bits<10>,
        /// Path MTU, IB code.
        mtu: Bits<3>,
        /// READs and atomics a peer may have outstanding.
        max_dest_rd_atomic: Bits<5>,
        /// Address of the receive queue; once it passed the state, that of the numbers of a shared one.
        rq_base: Bits<64>,
        /// Log2 of its entries.
        rq_log: Bits<4>,
        /// Log2 of the slots of a receive WQE.
        rq_stride: Bits<2>,
        /// RNR NAK timer code.
        min_rnr_timer: Bits<5>,
        /// Protection domain.
        pd: Bits<24>,
        /// Completion queue.
        cqn: Bits<16>,
        /// The receive WQEs are those of the shared receive queue.
        srq_valid: Bit,
        /// Shared receive queue.
        srqn: Bits<16>,
    }

    /// One event for one queue pair. Fields that a kind does not name are ignored.
    RqEvent {
        /// What it is.
        kind: RqEventKind,
        /// Queue pair.
        qpn: Bits<16>,
        /// Packet, SrqDoorbell, SrqCommand: shared receive queue.
        srqn: Bits<16>,
        /// Doorbell, SrqDoorbell: producer index, in WQEs. SrqCommand: limit.
        index: Bits<16>,
        /// Command: first PSN expected.
        psn: Bits<24>,
        /// Command: new state.
        state: Bits<3>,
        /// Command: set the state. SrqCommand: the queue begins or ends to exist, as `image` says.
        set: Bit,
        /// Command, with `set`: start afresh.
        reset: Bit,
        /// Command, SrqCommand: the static image was written.
        image: Bit,
        /// PlaceError: incarnation of the placement. Replied: that of the [`Reply`](crate::bus::types::Reply).
        incarnation: Bits<2>,
        /// PlaceError: syndrome of its NAK.
        syndrome: Bits<8>,
        /// PlaceError: CQE status of the receive WQE.
        status: Bits<8>,
        /// PlaceError: the queue pair goes on.
        spared: Bit,
        /// PlaceError: its NAK has not been made.
        late: Bit,
    }

    /// Dynamic state of a receive queue.
    RqState {
        /// State, see `ferroce_proto::abi::qpc::state`.
        state: Bits<3>,
        /// The static image was written since the state was RESET: the queue pair exists.
        known: Bit,
        /// Raised at every reset by command; placements from before are stale.
        incarnation: Bits<2>,
        /// Stands in the flush FIFO.
        queued: Bit,
        /// LAST_WQE_REACHED was reported since the queue pair went into error.
        last_reported: Bit,
        /// A NAK for the expected PSN was sent: no further one is due.
        nak_sent: Bit,
        /// A message is under way.
        open: Bit,
        /// It is a WRITE; else a SEND.
        write: Bit,
        /// A receive WQE was taken and not completed: that of the SEND under way, or one for the next message.
        held: Bit,
        /// Its ordinal.
        own: Bits<16>,
        /// Producer index, in WQEs.
        producer: Bits<16>,
        /// Receive WQEs taken.
        index: Bits<16>,
        /// PSN expected.
        psn: Bits<24>,
        /// A request was accepted.
        established: Bit,
        /// A READ or atomic was executed.
        asked: Bit,
        /// PSN of the latest.
        asked_psn: Bits<24>,
        /// Messages completed.
        msn: Bits<24>,
        /// READs and atomics accepted and not answered.
        replies: Bits<5>,
        /// Bytes of the message so far.
        done: Bits<32>,
        /// Packets of the WRITE still to come.
        more: Bits<23>,
        /// The next packet is its last.
        ends: Bit,
        /// Bytes of that one, less one.
        tail: Bits<12>,
        /// Address of the WRITE.
        va: Bits<64>,
        /// rkey of the WRITE.
        rkey: Bits<32>,
    }

    /// A receive queue as seen by the flush.
    RqFlush {
        /// Completion queue.
        cqn: Bits<16>,
        /// Its WQEs are those of a shared receive queue.
        shared: Bit,
    }

    /// What was decided on an event, with the state before it. At most one of the six fates of a packet is set; UC and UD
    /// know only `accepted`, and as counts `invalid` and `denied`.
    RqDecision {
        /// Queue pair.
        qpn: Bits<16>,
        /// Of a packet.
        packet: Bit,
        /// The queue pair exists.
        known: Bit,
        /// It receives.
        usable: Bit,
        /// A gap was answered already.
        nak_sent: Bit,
        /// The packet is executed.
        accepted: Bit,
        /// It was executed before.
        duplicate: Bit,
        /// PSNs before it are missing.
        gap: Bit,
        /// So they are, of UC: it is taken nevertheless if it starts a message.
        skipped: Bit,
        /// A READ or atomic to be answered, for the first time or again.
        reply: Bit,
        /// RNR NAK.
        rnr: Bit,
        /// NAK invalid request.
        invalid: Bit,
        /// NAK remote access error.
        denied: Bit,
        /// A placement failed and ends the queue pair, if it is not spared.
        misplaced: Bit,
        /// With `misplaced`: the queue pair goes on.
        spared: Bit,
        /// With `misplaced`: a NAK is due at the PSN expected.
        late: Bit,
        /// Syndrome of its NAK.
        syndrome: Bits<8>,
        /// CQE status of its receive WQE.
        status: Bits<8>,
        /// The packet is the first that a connected queue pair accepts, in RTR.
        establishes: Bit,
        /// The receive WQE `index` is flushed.
        flush: Bit,
        /// There is none of a shared receive queue left to flush.
        last_wqe: Bit,
        /// The queue pair starts afresh.
        reset: Bit,
        /// The queue pair went into error by command or with its send queue: nothing is answered any more.
        rsp_flush: Bit,
        /// Incarnation.
        incarnation: Bits<2>,
        /// Receive WQE: that of the message, or the next.
        index: Bits<16>,
        /// Its place in the ring.
        slot: Bits<16>,
        /// The packet takes it now.
        takes: Bit,
        /// It is shared.
        shared: Bit,
        /// PSN expected.
        psn: Bits<24>,
        /// A READ or atomic was executed.
        asked: Bit,
        /// PSN of the latest.
        asked_psn: Bits<24>,
        /// Messages completed.
        msn: Bits<24>,
        /// Bytes of the message so far.
        done: Bits<32>,
        /// Address of the WRITE under way.
        va: Bits<64>,
        /// rkey of the WRITE under way.
        rkey: Bits<32>,
        /// Completion queue of the flush.
        cqn: Bits<16>,
    }

    /// A queue pair went into error because of a request, and the requester is to follow; or, with event COMM_EST, it
    /// accepted its first one.
    RqFailure {
        /// Queue pair.
        qpn: Bits<16>,
        /// Event to report, see `ferroce_proto::abi::eq::event`.
        event: Bits<8>,
        /// Its detail: a completion status.
        detail: Bits<8>,
    }

    /// Counter pulses, named as in `ferroce_proto::abi::regs::STATS`.
    RqCounts {
        /// No such queue pair.
        rx_unknown_qp: Bit,
        /// The queue pair does not receive.
        rx_qp_state: Bit,
        /// Opcode class.
        rx_wrong_transport: Bit,
        /// P_Key.
        rx_pkey_violations: Bit,
        /// Q_Key of a datagram.
        rx_qkey_violations: Bit,
        /// Source or destination address.
        rx_wrong_address: Bit,
        /// WRITE accepted, counted at its first packet.
        rx_write_requests: Bit,
        /// SEND accepted, counted at its first packet.
        rx_send_requests: Bit,
        /// READ accepted.
        rx_read_requests: Bit,
        /// Atomic accepted.
        rx_atomic_requests: Bit,
        /// A gap in the PSNs.
        out_of_sequence: Bit,
        /// A PSN seen before.
        duplicate_request: Bit,
        /// RNR NAK.
        rnr_nak_sent: Bit,
        /// NAK invalid request, also of `scatter`.
        invalid_request_errors: Bit,
        /// NAK remote access error, also of `scatter`.
        access_errors: Bit,
        /// NAK remote operational error, of `scatter`.
        operational_errors: Bit,
    }
}
