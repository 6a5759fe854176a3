//! Packed types of the streams between blocks. First field = lowest bits.
//!
//! Numbers are plain binary. `qpn` of 16 bits is the local queue pair index; GIDs have their first byte
//! in the lowest bits.

// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

use super::payload::payload;
use rust_hdl_core::prelude::*;

macro_rules! ty {
    (bool $w:literal) => { Bit };
    ($t:tt $w:literal) => { Bits<$w> };
}

/// Declares the packed type of a structure of `ferroce_proto::abi`.
macro_rules! image {
    ($name:ident { $( $(#[$m:meta])* $f:ident : $t:tt [$w:literal] ),* }) => {
        #[doc = concat!("Packed form of `ferroce_proto::abi` ", stringify!($name), ".")]
        #[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
        pub struct $name { $( $(#[$m])* pub $f: ty!($t $w) ),* }
    };
}

/// Images of the host contract.
#[allow(rustdoc::broken_intra_doc_links)]
pub mod image {
    use super::*;
    ferroce_proto::with_sq_ctx!(image);
    ferroce_proto::with_av_ctx!(image);
    ferroce_proto::with_rq_ctx!(image);
    ferroce_proto::with_mr_ctx!(image);
    ferroce_proto::with_cq_ctx!(image);
    ferroce_proto::with_cmd_head!(image);
    ferroce_proto::with_cmd_cpl!(image);
    ferroce_proto::with_gid_entry!(image);
    ferroce_proto::with_port_config!(image);
    ferroce_proto::with_send_wqe!(image);
    ferroce_proto::with_recv_wqe!(image);
    ferroce_proto::with_sge!(image);
    ferroce_proto::with_cqe!(image);
    ferroce_proto::with_eq_ctx!(image);
    ferroce_proto::with_eqe!(image);
    ferroce_proto::with_srq_ctx!(image);
    ferroce_proto::with_qp_state!(image);
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
    }

    /// What becomes of one packet's payload beats, and what follows (responder to `scatter`), in the order of the packets;
    /// packets with nothing to do have none.
    ///
    /// Every receive WQE that the responder takes completes by exactly one placement with `complete`: that of the last
    /// packet of its message, or one with `status` WR_FLUSH_ERR when the message ends otherwise. So a placement that
    /// fails only *poisons* its queue pair: from it on placements discard their beats, their `ack` is void, and their
    /// `complete` gives a CQE in error: the first (the failed placement's included) with the status of the failure if
    /// `kind` was 2, all others with WR_FLUSH_ERR. `reset` ends that. The NAK of a failure has `psn`, and `msn` less
    /// `end`; a [`PlaceError`] tells the responder.
    Place {
        /// Queue pair.
        qpn: Bits<16>,
        /// 0 discard the beats, 1 write to `addr` under `key` (rkey), 2 scatter by the receive WQE at `addr`, 3 by the list of the send WQE that asked for the data. The slots of 2 and 3 come from `rq_fetch`.
        kind: Bits<2>,
        /// Host address: target (kind 1) or receive WQE (kind 2).
        addr: Bits<64>,
        /// rkey (kind 1).
        key: Bits<32>,
        /// Protection domain for the check.
        pd: Bits<24>,
        /// Byte offset of this payload in its message (kinds 2 and 3).
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
        halt: Bit,
        /// Incarnation of the queue pair, for [`PlaceError`].
        incarnation: Bits<2>,
        /// The packet ends its message: `msn` counts it.
        end: Bit,
        /// An acknowledgement is due afterwards.
        ack: Bit,
        /// Of a UC or UD queue pair: nothing is answered, failures neither. A WRITE that fails poisons nothing: it is dropped with the rest of its message, unless it is the packet with `complete`.
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
        /// A response to the own requester: an [`Answer`] is due afterwards, with `psn`, `syndrome`, `status`, and `msn` as `missing`.
        answer: Bit,
        /// With `answer`: see [`Answer`].
        implied: Bit,
        /// With `answer`: see [`Answer`].
        data: Bit,
        /// With `answer`: see [`Answer`].
        closed: Bit,
    }

    /// An acknowledgement that is due (`scatter` to `ack`).
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
        halt: Bit,
        /// The payload writes issued before this count (modulo 2^16) must have their B response before memory is read for the reply.
        fence: Bits<16>,
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

    /// A response as the send queue is told of it, in the order of the packets (`scatter` to requester).
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
        /// No response: after the send queue went into error nothing of it is on its way to memory any more.
        closed: Bit,
        /// The payload writes issued before this count (modulo 2^16) must have their B response before a READ completes.
        fence: Bits<16>,
    }

    /// A placement that failed (`scatter` to `responder`): the queue pair is poisoned or, if `spared`, its message dropped, see [`Place`].
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

    /// A WQE to read (responder and `track` to `place_order` to `rq_fetch`), one for each [`Place`] of kind 2 or 3, in order.
    RqRead {
        /// Host address of its first slot.
        addr: Bits<64>,
        /// Its slots, 1 to 8.
        slots: Bits<4>,
        /// Of these, slots read at `addr`; the ring wraps behind them.
        head: Bits<4>,
        /// Address of the ring, where the others are read.
        base: Bits<64>,
    }

    /// A completion to write (`scatter`, `retire`, flush to `cq_write`).
    CqToken {
        /// Completion queue.
        cqn: Bits<16>,
        /// The payload writes issued before this count (modulo 2^16) must have their B response first.
        fence: Bits<16>,
        /// Fields of the CQE.
        qpn: Bits<16>,
        /// CQE opcode.
        opcode: Bits<8>,
        /// WQE index.
        wqe_index: Bits<16>,
        /// Bytes.
        byte_len: Bits<32>,
        /// Immediate data or invalidated rkey.
        imm: Bits<32>,
        /// CQE status.
        status: Bits<8>,
        /// AETH syndrome behind a remote error.
        vendor_err: Bits<8>,
        /// `imm` is immediate data.
        with_imm: Bit,
        /// `imm` is an invalidated rkey.
        with_inv: Bit,
        /// Solicited.
        solicited: Bit,
        /// Receive queue.
        recv: Bit,
        /// Source queue pair (UD).
        src_qpn: Bits<24>,
        /// P_Key of the packet (UD).
        pkey: Bits<16>,
        /// The buffer begins with a GRH (UD).
        grh: Bit,
        /// `fence` counts; else the completion stands for no payload.
        fenced: Bit,
    }

    /// A packet to send (requester, `ack` to `header_tx`).
    TxDesc {
        /// Queue pair: selects the address vector.
        qpn: Bits<16>,
        /// BTH opcode.
        opcode: Bits<8>,
        /// BTH PSN.
        psn: Bits<24>,
        /// BTH solicited event.
        solicited: Bit,
        /// BTH acknowledge request.
        ack_req: Bit,
        /// Payload bytes, 0 to 4096.
        plen: Bits<13>,
        /// RETH and AtomicETH address; result in an AtomicAckETH; of UD the address handle in 31:0, the remote queue pair in 55:32.
        va: Bits<64>,
        /// RETH and AtomicETH rkey; Q_Key of a DETH.
        rkey: Bits<32>,
        /// RETH length.
        dma_len: Bits<32>,
        /// Swap value, or the value to add.
        swap_add: Bits<64>,
        /// Value to compare with.
        compare: Bits<64>,
        /// Immediate data or rkey to invalidate.
        imm: Bits<32>,
        /// AETH syndrome.
        syndrome: Bits<8>,
        /// AETH MSN.
        msn: Bits<24>,
        /// The requester is to be told when the packet has all of its payload: the last of a message that nobody acknowledges.
        notify: Bit,
        /// Of a request: round of its queue pair, see [`Recall`].
        round: Bits<2>,
    }

    /// A send queue went back: what it granted in another round is not to be sent any more. Told before the first grant of
    /// the round.
    Recall {
        /// Queue pair.
        qpn: Bits<16>,
        /// The round that begins.
        round: Bits<2>,
    }

    /// A piece of a packet's payload to fetch (requester to `gather`), in order; the pieces of a packet add up to its `plen`. A packet without payload has none.
    GatherCmd {
        /// Host address.
        addr: Bits<64>,
        /// Bytes, 1 to 4096.
        len: Bits<13>,
        /// First piece of its packet.
        first: Bit,
        /// Last piece of its packet.
        last: Bit,
        /// With `first`: header length modulo 64; modulo K it is the lane at which the payload starts.
        lane: Bits<6>,
    }

    /// A read for `dma_read`: any address, any length; the client has room for the answer, which is the beats that hold a byte of the range.
    ReadReq {
        /// Host address.
        addr: Bits<64>,
        /// Bytes, 1 to 8191; the range may cross 4 KiB boundaries.
        len: Bits<13>,
    }

    /// A write burst for `dma_write`; its beats follow on the client's beat stream, already at their lanes, strobes set.
    WriteCmd {
        /// Host address of the first byte.
        addr: Bits<64>,
        /// Beats less one; the burst does not cross a multiple of `bus::axi::burst_bytes`.
        len: Bits<8>,
    }

    /// All payload of a packet is there (`gather` to the assembler), one a packet with payload, in order.
    PayloadToken {
        /// A read of it failed: the packet must not be sent.
        error: Bit,
    }

    /// A slot of a WQE (`rq_fetch` to `scatter`): the slots of one WQE for every [`Place`] of kind 2 or 3, in order.
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

    /// A send WQE slot on its way to the requester.
    FetchedWqe {
        /// Queue pair.
        qpn: Bits<16>,
        /// Epoch of the fetch.
        epoch: Bits<4>,
        /// Producer index of the slot.
        index: Bits<16>,
        /// First slot of its grant.
        first: Bit,
        /// Last slot of its grant: slots of another queue pair may follow.
        last: Bit,
        /// The read failed.
        error: Bit,
        /// The slot's 64 bytes.
        slot: Bits<512>,
    }

    /// What stirs in a section of the engine, for `control/drain`.
    Activity {
        /// Something is in the section, or waits in front of it.
        busy: Bit,
        /// Something left the section in this cycle; things leave in the order in which they came.
        moved: Bit,
    }

    /// Memory region check (`scatter`, requester, responder to `mr_table`).
    MrReq {
        /// lkey or rkey.
        key: Bits<32>,
        /// Protection domain of the queue pair.
        pd: Bits<24>,
        /// First byte.
        addr: Bits<64>,
        /// Bytes; 0 always passes.
        len: Bits<32>,
        /// Queue pair that accesses.
        qpn: Bits<16>,
        /// Right needed: 0 local read, 1 local write, 2 remote write, 3 remote read, 4 remote atomic.
        right: Bits<3>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(t: TypeDescriptor) -> Vec<(String, usize, usize)> {
        let TypeKind::Composite(fields) = t.kind else {
            panic!("not a structure")
        };
        let mut lsb = 0;
        fields
            .into_iter()
            .map(|f| {
                let width = match f.kind.kind {
                    TypeKind::Bits(n) => n,
                    other => panic!("{}: {other:?}", f.fieldname),
                };
                lsb += width;
                (f.fieldname, lsb - width, width)
            })
            .collect()
    }

    #[test]
    fn images_have_the_fields_of_the_contract() {
        use ferroce_proto::abi::{cq::Cqe, qpc};
        for (hw, sw) in [
            (image::SqCtx::descriptor(), qpc::SqCtx::FIELDS),
            (image::AvCtx::descriptor(), qpc::AvCtx::FIELDS),
            (image::RqCtx::descriptor(), qpc::RqCtx::FIELDS),
            (image::Cqe::descriptor(), Cqe::FIELDS),
        ] {
            let sw: Vec<_> = sw
                .iter()
                .map(|f| (f.name.to_string(), f.lsb, f.width))
                .collect();
            assert_eq!(offsets(hw), sw);
        }
    }
}
