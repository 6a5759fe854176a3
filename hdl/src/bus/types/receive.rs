//! From the port to memory, and back to the responder and the send queue.
// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

use crate::bus::payload::payload;
use crate::prelude::kernel_fn;
use rust_hdl_core::prelude::*;

/// Where the payload of a packet goes.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum PlaceKind {
    /// Nowhere: its beats are discarded.
    Discard,
    /// To an address under an rkey.
    Write,
    /// By the scatter list of a receive WQE.
    Recv,
    /// By the list of the send WQE that asked for the data.
    Response,
}

/// It goes by a list, whose WQE `rq_fetch` reads.
#[kernel_fn]
pub fn has_list(kind: PlaceKind) -> Bit {
    (kind == PlaceKind::Recv) | (kind == PlaceKind::Response)
}

payload! {
    /// A RoCEv2 packet in the packet buffer, its ICRC known good (receive front to `rx_check`).
    RxMeta {
        /// BTH opcode.
        opcode: Bits<8>,
        /// BTH solicited event.
        solicited: Bit,
        /// BTH acknowledge request.
        ack_req: Bit,
        /// BTH backward congestion mark.
        becn: Bit,
        /// The IP header carries congestion experienced (ECN = 3).
        ce: Bit,
        /// IPv6; else IPv4.
        ipv6: Bit,
        /// VLAN identifier; 0 without a tag.
        vid: Bits<12>,
        /// BTH P_Key.
        pkey: Bits<16>,
        /// BTH destination queue pair.
        qpn: Bits<24>,
        /// BTH PSN.
        psn: Bits<24>,
        /// Source address as a GID.
        src_gid: Bits<128>,
        /// GID table entry that equals the destination address.
        gid_index: Bits<8>,
        /// Bytes 0..8 behind the BTH, big-endian: address of RETH and AtomicETH; AETH in bits 63:32; Q_Key in 63:32 and source queue pair in 23:0 of a DETH.
        ext: Bits<64>,
        /// Bytes 8..12: rkey of RETH and AtomicETH. (The result in an AtomicAckETH is the packet's payload: 8 bytes in host order.)
        rkey: Bits<32>,
        /// Bytes 12..16: length of a RETH.
        dma_len: Bits<32>,
        /// Bytes 16..28: with `dma_len` the two operands of an AtomicETH.
        operands: Bits<96>,
        /// Immediate data or the rkey to invalidate, wherever the opcode puts it.
        imm: Bits<32>,
        /// Payload bytes without padding, 0 to 4096.
        plen: Bits<13>,
        /// Lane of the first payload byte in the packet's first buffered beat.
        lane: Bits<6>,
        /// Buffered beats of the packet, 0 without payload.
        beats: Bits<10>,
        /// A UD packet: before these beats come ceil(40 / K) beats with its IP header as a GRH of 40 bytes, from lane 0 on.
        grh: Bit,
        /// Traffic class.
        packet_class: Bits<2>,
    }

    /// What leaves `place_order` with a placement.
    PlaceNeeds {
        /// An [`RqRead`]: it goes by a list, or its completion names a number that is to be read.
        wqe: Bit,
        /// A bit of `order`: it has beats.
        beats: Bit,
    }

    /// Handling of one packet's payload beats, and what follows it (responder to `scatter`), in the order of the
    /// packets; packets with nothing to do have none.
    ///
    /// Every receive WQE that the responder takes completes by exactly one placement with `complete`: that of the last
    /// packet of its message, or one with `status` WR_FLUSH_ERR when the message ends otherwise. So a placement that
    /// fails only *poisons* its queue pair: from it on placements discard their beats, their `ack` is void, and their
    /// `complete` gives a CQE in error: the first (the failed placement's included) with the status of the failure if
    /// `kind` was Recv, all others with WR_FLUSH_ERR. `reset` ends that. The NAK of a failure has `psn`, and `msn` less
    /// `end`; a [`PlaceError`] tells the responder.
    Place {
        /// Queue pair.
        qpn: Bits<16>,
        /// Where the payload goes.
        kind: PlaceKind,
        /// Host address of the target (Write).
        addr: Bits<64>,
        /// rkey (Write), or the protection domain of the queue pair, for a key to invalidate (Recv).
        key: Bits<32>,
        /// Protection domain for the check: of a shared receive queue (Recv), or of the queue pair.
        pd: Bits<24>,
        /// Byte offset of this payload in its message (Recv, Response).
        offset: Bits<32>,
        /// Payload bytes.
        plen: Bits<13>,
        /// Lane of the first payload byte.
        lane: Bits<6>,
        /// Beats to take from the packet buffer.
        beats: Bits<10>,
        /// The queue pair starts afresh: it is no longer poisoned. Nothing else happens.
        reset: Bit,
        /// The queue pair went into error other than by a request: what it has to answer is void. Nothing else happens.
        rsp_flush: Bit,
        /// The queue pair is in error and has completed its last receive WQE of a shared receive queue: that is reported. Nothing else happens.
        last_wqe: Bit,
        /// Incarnation of the queue pair, for [`PlaceError`].
        incarnation: Bits<2>,
        /// The packet ends its message: `msn` counts it.
        end: Bit,
        /// An acknowledgement is due afterwards.
        ack: Bit,
        /// Of a UC or UD queue pair: nothing is answered, failures neither. A WRITE that fails, and a message longer than its receive buffer poison nothing: the rest of the message is dropped.
        unreliable: Bit,
        /// PSN of the acknowledgement; that of the packet if its payload is placed.
        psn: Bits<24>,
        /// MSN of the acknowledgement.
        msn: Bits<24>,
        /// AETH syndrome of the acknowledgement.
        syndrome: Bits<8>,
        /// A receive CQE is due afterwards.
        complete: Bit,
        /// Completion queue.
        cqn: Bits<16>,
        /// CQE opcode.
        cqe_opcode: Bits<8>,
        /// CQE status decided by the responder, 0 = success unless scatter finds an error.
        status: Bits<8>,
        /// Ordinal of the receive WQE.
        wqe_index: Bits<16>,
        /// `complete`, of a receive WQE of a shared receive queue: its number comes from `rq_fetch`.
        numbered: Bit,
        /// Bytes of the whole message (CQE).
        byte_len: Bits<32>,
        /// Immediate data or invalidated rkey.
        imm: Bits<32>,
        /// The CQE carries immediate data.
        with_imm: Bit,
        /// The CQE carries an invalidated rkey.
        with_inv: Bit,
        /// Solicited event.
        solicited: Bit,
        /// Source queue pair (UD).
        src_qpn: Bits<24>,
        /// P_Key of the packet (UD).
        pkey: Bits<16>,
        /// The buffer begins with a GRH (UD).
        grh: Bit,
        /// A READ or atomic request: its [`Reply`] waits in `reply` for the token of this placement.
        reply: Bit,
        /// With `reply`: an atomic that is no duplicate.
        runs: Bit,
        /// A response to the own requester: an [`Answer`] is due afterwards, with `psn`, `syndrome`, `status`, and `msn` as `missing`.
        answer: Bit,
        /// With `answer`: see [`Answer`].
        implied: Bit,
        /// With `answer`: see [`Answer`].
        data: Bit,
        /// With `answer`: see [`Answer`].
        closed: Bit,
        /// What it takes along, from `place_queue` to `place_order`.
        needs: PlaceNeeds,
    }

    /// An acknowledgement that is due (`scatter` to `ack_hold` to `reply`).
    AckToken {
        /// Queue pair.
        qpn: Bits<16>,
        /// PSN.
        psn: Bits<24>,
        /// MSN.
        msn: Bits<24>,
        /// AETH syndrome.
        syndrome: Bits<8>,
        /// No acknowledgement: the turn of the next [`Reply`].
        reply: Bit,
        /// With `reply`: it is void, its queue pair failed before.
        void: Bit,
        /// The queue pair starts afresh: all that waits for it is void. Nothing else happens.
        reset: Bit,
        /// The queue pair answers nothing until it starts afresh: all that waits for it is void. Nothing else happens.
        rsp_flush: Bit,
        /// The payload writes issued before this count (modulo 2^16) must have their B response before memory is read for the reply.
        fence: Bits<16>,
        /// It is due when its completion, a `CqToken` with `judged`, is there.
        completes: Bit,
        /// With `completes`: none was asked for. It is due only if the completion is lost.
        unanswered: Bit,
        /// Incarnation of the queue pair, for [`PlaceError`].
        incarnation: Bits<2>,
    }

    /// What became of a completion with `judged`.
    CqOutcome {
        /// It was lost, or its payload was; else it is on its way to the ring.
        lost: Bit,
    }

    /// A placement that has handed its last burst to `dma_write` (`scatter` to `write_faults`).
    WriteOwner {
        /// Queue pair.
        qpn: Bits<16>,
        /// Data of a READ or atomic; else of a request.
        response: Bit,
        /// Of a request: see [`Place`].
        incarnation: Bits<2>,
        /// Of a request: see [`Place`].
        unreliable: Bit,
        /// Payload bursts up to its end, modulo 2^16.
        end: Bits<16>,
    }

    /// Since when payload of a queue pair was refused by host memory.
    WriteMark {
        /// It was.
        failed: Bit,
        /// Payload bursts up to the end of the first placement that failed, modulo 2^16.
        end: Bits<16>,
        /// Every completion from now on stands behind it: the count may have come round.
        old: Bit,
    }

    /// Marks of a queue pair (`write_faults` to `cq_write`).
    WriteMarks {
        /// Requests.
        recv: WriteMark,
        /// Data of READs and atomics.
        send: WriteMark,
    }

    /// A READ or atomic to execute (responder to `reply`), one for each [`Place`] with `reply`, in order.
    Reply {
        /// Queue pair.
        qpn: Bits<16>,
        /// Incarnation of the queue pair, for the event `Replied`.
        incarnation: Bits<2>,
        /// An atomic; else a READ.
        atomic: Bit,
        /// Fetch and add; else compare and swap.
        add: Bit,
        /// It was executed before.
        duplicate: Bit,
        /// PSN of the request.
        psn: Bits<24>,
        /// MSN of the response.
        msn: Bits<24>,
        /// Path MTU, IB code.
        mtu: Bits<3>,
        /// Protection domain.
        pd: Bits<24>,
        /// Address.
        va: Bits<64>,
        /// rkey.
        rkey: Bits<32>,
        /// Bytes of a READ.
        len: Bits<32>,
        /// Swap value, or the value to add.
        swap_add: Bits<64>,
        /// Value to compare with.
        compare: Bits<64>,
    }

    /// A response from the wire, its queue pair, transport and addresses checked (`rx_check` to `track`).
    Response {
        /// Queue pair.
        qpn: Bits<16>,
        /// BTH PSN.
        psn: Bits<24>,
        /// AETH syndrome; 0 if there is none.
        syndrome: Bits<8>,
        /// A READ response.
        read: Bit,
        /// An atomic response.
        atomic: Bit,
        /// LAST or ONLY.
        last: Bit,
        /// Payload bytes, of an atomic response 8.
        plen: Bits<13>,
        /// Lane of the first payload byte.
        lane: Bits<6>,
        /// Buffered beats.
        beats: Bits<10>,
    }

    /// A READ or atomic whose first packet is about to be sent (segmenter to `track`), once a message.
    ReadIssue {
        /// Queue pair.
        qpn: Bits<16>,
        /// First PSN.
        psn: Bits<24>,
        /// PSNs: of a READ those of its responses.
        packets: Bits<24>,
        /// An atomic; else a READ.
        atomic: Bit,
        /// Bytes.
        length: Bits<32>,
        /// First slot of its WQE.
        index: Bits<16>,
        /// Slots of the WQE.
        slots: Bits<3>,
    }

    /// A response as the send queue receives it, in the order of the packets (`scatter` to requester).
    Answer {
        /// Queue pair.
        qpn: Bits<16>,
        /// BTH PSN.
        psn: Bits<24>,
        /// AETH syndrome.
        syndrome: Bits<8>,
        /// A READ or atomic response: that which was due next, its data is written, or with `implied` a later one, which is dropped. Else an ACK or NAK, or one of these that is not taken.
        data: Bit,
        /// It shows that the response `missing` of a READ or atomic was lost.
        implied: Bit,
        /// With `implied`: the PSN of that response. All before it is acknowledged.
        missing: Bits<24>,
        /// Not 0: the oldest message fails with it (a response that cannot be, a scatter list that cannot be written).
        status: Bits<8>,
        /// No response: the send queue entered error, and no write of its queue pair is pending.
        closed: Bit,
        /// The payload writes issued before this count (modulo 2^16) must have their B response before a READ completes.
        fence: Bits<16>,
    }

    /// A placement that failed, or lost its completion (`scatter`, `ack_hold` to `responder`): the queue pair is poisoned or, if `spared`, its message dropped, see [`Place`].
    PlaceError {
        /// Queue pair.
        qpn: Bits<16>,
        /// Incarnation in the placement.
        incarnation: Bits<2>,
        /// The queue pair goes on.
        spared: Bit,
        /// AETH syndrome of the NAK sent: 0x61 invalid request, 0x62 access, 0x63 operational.
        syndrome: Bits<8>,
        /// CQE status of the receive WQE that failed (`ferroce_proto::abi::cq::status`); GENERAL_ERR if none is concerned.
        status: Bits<8>,
    }

    /// A WQE to read (responder and `track` to `place_order` to `rq_fetch`), one for each [`Place`] with a list or a number,
    /// in order.
    RqRead {
        /// Host address of its first slot; of a shared receive queue, with `takes`, that of its number.
        addr: Bits<64>,
        /// Its slots, 1 to 8.
        slots: Bits<4>,
        /// Of these, slots read at `addr`; the ring wraps behind them.
        head: Bits<4>,
        /// It does: these are fewer.
        wraps: Bit,
        /// Address of the ring, where the others are read; of a shared receive queue, that of its WQEs.
        base: Bits<64>,
        /// Its slots are wanted; else its number alone.
        list: Bit,
        /// It is of a shared receive queue.
        shared: Bit,
        /// Of a shared receive queue: queue pair.
        qpn: Bits<16>,
        /// Log2 of the WQEs of that queue.
        log: Bits<4>,
        /// The queue pair takes it; else it is the one that it took last.
        takes: Bit,
        /// The [`Place`] is `numbered`.
        numbered: Bit,
    }

    /// A slot of a WQE (`rq_fetch` to `scatter`): the slots of one WQE for every [`Place`] with a list, in order.
    RqSlot {
        /// The slot's 64 bytes.
        slot: Bits<512>,
        /// Last slot of this WQE.
        last: Bit,
        /// Slots of this WQE, 1 to 8.
        slots: Bits<4>,
        /// The read of this slot failed.
        error: Bit,
    }
}
