//! Types between the blocks of [`send`](super::send).
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use super::grant::StartGrant;
use crate::bus::payload::payload;
use crate::bus::types::image::SqCtx;
use crate::bus::types::{FetchedWqe, KeyChange};
use crate::egress::types::PathMark;
use crate::prelude::*;

payload! {
    /// Entry of the gather list of a WQE.
    SendEntry {
        /// Address.
        addr: Bits<64>,
        /// Bytes.
        len: Bits<32>,
    }

    /// A run of payload of the part of a message that is sent (`list_walk` to `segmenter`).
    SendRun {
        /// Address.
        addr: Bits<64>,
        /// Bytes; 0 only of a part without payload.
        len: Bits<32>,
        /// First of its part.
        first: Bit,
        /// Last of its part.
        last: Bit,
        /// Bytes of the message from the part on.
        left: Bits<32>,
        /// Payload of the part's first packet.
        plen: Bits<13>,
    }

    /// What an address handle is checked for.
    Handle {
        /// Somebody wrote it since reset.
        there: Bit,
        /// Kind of its path, see [`lane_of`](crate::bus::path::lane_of).
        path: Bits<2>,
        /// Its protection domain.
        pd: Bits<24>,
    }

    /// A slot of a send WQE and what belongs to it (`wqe_context` to `wqe_check`).
    SlotContext {
        /// The slot.
        fetched: FetchedWqe,
        /// Requester image of its queue pair.
        image: SqCtx,
        /// Kind of the queue pair's path, see [`lane_of`](crate::bus::path::lane_of).
        path: Bits<2>,
        /// Kind of the path of the address handle that it names.
        handle: Bits<2>,
        /// The handle is of the protection domain of the queue pair.
        handle_is_own: Bit,
        /// What of both paths says the class.
        path_mark: PathMark,
        /// See `path_mark`.
        handle_mark: PathMark,
    }

    /// What of a send WQE the checks behind the slot need (`wqe_head` to `wqe_check`).
    WqeShape {
        /// It cannot be read, or has no number of slots that can be.
        bad_slot_count: Bit,
        /// Its queue pair has no such operation, or it sends nothing and has payload.
        bad_opcode: Bit,
        /// More entries or inline bytes than its slots hold.
        too_many_sges: Bit,
        /// More bytes than its transport sends in a message.
        too_long: Bit,
        /// The payload stands in the WQE.
        is_inline: Bit,
        /// Sends nothing.
        is_local: Bit,
        /// An atomic.
        atomic: Bit,
        /// Length and the mask of the MTU added.
        rounded: Bits<34>,
        /// Protection domain.
        pd: Bits<24>,
        /// Address of the inline payload.
        inline_addr: Bits<64>,
        /// Bytes from there to the end of the ring.
        to_end: Bits<24>,
        /// Address of the ring.
        ring: Bits<64>,
        /// Priority of its packets.
        prio: Bits<3>,
        /// They go to the port itself.
        own: Bit,
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
        /// It ends outside of its grant: it is to be fetched again, nothing else of it counts.
        incomplete: Bit,
        /// Transport (`abi::qpc::qp_type`).
        class: Bits<2>,
        /// Operation (`abi::wqe::opcode`).
        opcode: Bits<3>,
        /// A READ or atomic.
        answered: Bit,
        /// Waits until no READ or atomic is outstanding.
        fence: Bit,
        /// Opcode of its CQE.
        cqe_opcode: Bits<3>,
        /// A CQE is due on success.
        signaled: Bit,
        /// Solicited event.
        solicited: Bit,
        /// Path MTU code.
        mtu: Bits<3>,
        /// Kind of its path, see [`lane_of`](crate::bus::path::lane_of).
        path: Bits<2>,
        /// Its class, a bit of each; none if it is not to start, or goes to the port itself.
        of_class: Bits<4>,
        /// Its parts are short, or long, not longer ([`ClosedClasses`](crate::egress::types::ClosedClasses)).
        is_short: Bit,
        /// See there.
        is_long: Bit,
        /// Its class is closed: nothing of it is to start.
        held: Bit,
        /// Completion queue.
        cqn: Bits<16>,
        /// PSNs of the message.
        packets: Bits<24>,
        /// Bytes of the message.
        length: Bits<32>,
        /// Immediate data, or key to invalidate, or of the window to bind.
        imm: Bits<32>,
        /// Remote address; of UD the address handle in 31:0, the remote queue pair in 55:32.
        remote_addr: Bits<64>,
        /// rkey; Q_Key of UD; of what sends nothing the protection domain.
        rkey: Bits<32>,
        /// Entries of the payload less one, of a READ or atomic 0; from the third on they stand in the entry table, at 16 * `tag` + number.
        entries: Bits<4>,
        /// See `entries`.
        tag: Bits<5>,
        /// First entry: address; of a bind that of the window.
        addr_0: Bits<64>,
        /// First entry: bytes.
        len_0: Bits<32>,
        /// Second entry: address; of an atomic the swap value, or the value to add; of a bind in 31:0 the lkey, in 34:32 the rights.
        addr_1: Bits<64>,
        /// Second entry: bytes in 31:0; of an atomic the value to compare with; of a bind the bytes.
        word_1: Bits<64>,
    }

    /// A WQE that is executed in the card (`wqe_start` to `key_work`).
    KeyRequest {
        /// What it changes.
        change: KeyChange,
        /// How it completes, but for its status.
        done: KeyDone,
    }

    /// What [`Executed`](super::event::SqEventKind::Executed) says, see [`SqEvent`](super::event::SqEvent).
    KeyDone {
        /// Queue pair.
        qpn: Bits<16>,
        /// Slots.
        slots: Bits<3>,
        /// CQE opcode.
        cqe_opcode: Bits<3>,
        /// A CQE is due on success.
        signaled: Bit,
        /// A rule forbids it.
        refused: Bit,
        /// Incarnation of the queue pair.
        incarnation: Bits<2>,
    }

    /// A WQE of which a part is to be sent.
    GrantedWqe {
        /// The WQE.
        wqe: CheckedWqe,
        /// The part.
        grant: StartGrant,
    }
}
