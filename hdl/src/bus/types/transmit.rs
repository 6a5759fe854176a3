//! From the send queue and the responses to the port.
// The accessors that the derive generates have no documentation.
#![allow(missing_docs)]

use crate::bus::payload::payload;
use rust_hdl_core::prelude::*;

payload! {
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
        /// With payload: the kind of path that it is aligned for, see [`lane_of`](crate::bus::path::lane_of).
        path: Bits<2>,
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
        /// The last packet of a message that is not acknowledged: its departure completes the message.
        notify: Bit,
        /// Of a request: round of its queue pair, see [`Recall`].
        round: Bits<2>,
        /// Of a request: incarnation of its send queue.
        incarnation: Bits<2>,
        /// Of a request: the PSN behind it, and behind the responses of a READ.
        next_psn: Bits<24>,
    }

    /// A request that has left the card.
    Departure {
        /// Queue pair.
        qpn: Bits<16>,
        /// As in [`TxDesc`].
        round: Bits<2>,
        /// As in [`TxDesc`].
        incarnation: Bits<2>,
        /// As in [`TxDesc`].
        next_psn: Bits<24>,
        /// As in [`TxDesc`].
        notify: Bit,
        /// As in [`TxDesc`].
        ack_req: Bit,
    }

    /// A send queue went back: grants of another round are not sent any more. It comes before the first grant of the
    /// round.
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

    /// All payload of a packet is there (`gather` to the assembler), one a packet with payload, in order.
    PayloadToken {
        /// A read of it failed: the packet must not be sent.
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
        /// First slot of its grant, of which nothing more is to come.
        first: Bit,
        /// Last slot of its grant: slots of another queue pair may follow.
        last: Bit,
        /// The read failed.
        error: Bit,
        /// The slot's 64 bytes.
        slot: Bits<512>,
    }
}
