//! Types between the blocks of [`send`](super::send).
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::bus::types::FetchedWqe;
use crate::bus::types::image::SqCtx;
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
    }

    /// What of a send WQE the checks behind the slot need (`wqe_head` to `wqe_check`).
    WqeShape {
        /// It cannot be read, or has no number of slots that can be.
        bad_slot_count: Bit,
        /// Its queue pair has no such operation, or it sends nothing and has bytes.
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
    }
}
