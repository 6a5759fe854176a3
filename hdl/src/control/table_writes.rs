//! What commands write into the tables of the engine, for all of them.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::bus::types::image::{AvCtx, MrCtx, RqCtx, SqCtx, SrqCtx};
use crate::eth::gid_table::GidWrite;
use crate::prelude::*;

payload! {
    /// Images and their numbers stand from a write enable to the next command.
    TableWrites {
        /// Queue pair or address handle of `sq`, `av` and `rq`.
        qpn: Bits<16>,
        /// Write the requester image.
        sq_we: Bit,
        /// Requester image.
        sq: SqCtx,
        /// Write the address vector of the queue pair.
        av_we: Bit,
        /// Write the address handle.
        ah_we: Bit,
        /// Address vector, or address handle.
        av: AvCtx,
        /// Write the responder image.
        rq_we: Bit,
        /// Responder image.
        rq: RqCtx,
        /// Write the image of shared receive queue `srqn`.
        srq_we: Bit,
        /// Shared receive queue.
        srqn: Bits<16>,
        /// Its image.
        srq: SrqCtx,
        /// Write memory region `mr_index`.
        mr_we: Bit,
        /// Its place in the table.
        mr_index: Bits<16>,
        /// Memory region.
        mr: MrCtx,
        /// Write the entry of the GID table.
        gid_we: Bit,
        /// Entry of the GID table.
        gid: GidWrite,
        /// MAC address of the port, first byte in the lowest bits.
        mac: Bits<48>,
        /// Every destination MAC address is accepted.
        promiscuous: Bit,
    }
}
