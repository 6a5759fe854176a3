//! Packed types of the streams inside `reply`. First field = lowest bits.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::prelude::*;

/// What an operation on the state of a queue pair is.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum OpKind {
    /// Nothing.
    None,
    /// An acknowledgement is due.
    Ack,
    /// A reply enters the ring.
    Reply,
    /// The queue pair starts afresh.
    Reset,
    /// Nothing is answered until it starts afresh.
    Halt,
    /// The oldest reply that was held back for its fence may run.
    Release,
    /// The queue pair is served now.
    Turn,
    /// A turn ends.
    Served,
    /// An atomic is done.
    Atomic,
    /// A packet was lost because its payload could not be read.
    Lost,
}

payload! {
    /// An operation. Fields that a kind does not name are ignored.
    Op {
        /// What it is.
        kind: OpKind,
        /// Queue pair.
        qpn: Bits<16>,
        /// Ack, Lost: PSN. Reply: its first PSN. Served: the PSN to be answered next.
        psn: Bits<24>,
        /// Ack, Lost: MSN.
        msn: Bits<24>,
        /// Ack: AETH syndrome. Served, Atomic, Lost: that of the failure.
        syndrome: Bits<8>,
        /// Reply: fence of its token.
        fence: Bits<16>,
        /// Reply: incarnation of the queue pair.
        incarnation: Bits<2>,
        /// Release, Served, Atomic: generation to which it belongs.
        generation: Bits<2>,
        /// Reply, Served, Atomic: of a duplicate.
        duplicate: Bit,
        /// Served: of an atomic that is under way now.
        atomic: Bit,
        /// Served: packets sent of the reply at the head.
        offset: Bits<24>,
        /// Served: the reply at the head is finished.
        over: Bit,
        /// Turn: log2 of the bytes that it may have.
        log_bytes: Bits<5>,
        /// Turn: of a queue pair with a rate, listed for an acknowledgement alone.
        alone: Bit,
        /// Served: nothing was done.
        waits: Bit,
        /// Served, with `waits`: a READ waits for the atomics before it.
        blocked: Bit,
        /// Served, Atomic: the queue pair fails.
        failed: Bit,
    }

    /// An atomic is over.
    AtomicEnd {
        /// Queue pair.
        qpn: Bits<16>,
        /// Generation to which it belongs.
        generation: Bits<2>,
        /// Of a duplicate.
        duplicate: Bit,
        /// Its rkey was no good.
        denied: Bit,
        /// The queue pair fails.
        failed: Bit,
    }

    /// A reply in its ring.
    RingWord {
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

    /// Replies and acknowledgement of a queue pair.
    ReplyState {
        /// Stands in the list, or is served now.
        listed: Bit,
        /// Failed: nothing is answered until it starts afresh.
        dead: Bit,
        /// The NAK that ends it came: nothing behind that is answered until it starts afresh.
        ended: Bit,
        /// A reply came since it started afresh.
        live: Bit,
        /// Raised whenever it starts afresh.
        generation: Bits<2>,
        /// Incarnation as the responder counts it.
        incarnation: Bits<2>,
        /// Slot of the oldest reply in the ring.
        head: Bits<5>,
        /// Replies in the ring.
        count: Bits<6>,
        /// Of these, the oldest, those whose fence is passed.
        released: Bits<6>,
        /// Of these, duplicates.
        duplicates: Bits<5>,
        /// Packets sent of the oldest.
        offset: Bits<24>,
        /// Atomics under way.
        atomics: Bits<5>,
        /// Where the next result of an atomic is kept.
        save: Bits<4>,
        /// Results that are kept, at most 16.
        saved: Bits<5>,
        /// The PSNs from here on are not answered, if there are replies that are no duplicates.
        due_psn: Bits<24>,
        /// First PSN of the latest run of duplicates that is not answered, if there are duplicates.
        dup_first: Bits<24>,
        /// Its last PSN.
        dup_last: Bits<24>,
        /// An acknowledgement is due.
        ack_due: Bit,
        /// Its PSN.
        psn: Bits<24>,
        /// Its MSN.
        msn: Bits<24>,
        /// Its AETH syndrome.
        syndrome: Bits<8>,
    }

    /// PSNs of the state that an operation changes: all to its own PSN, `dup_last` to its last.
    PsnWrites {
        /// That of the acknowledgement.
        ack: Bit,
        /// `due_psn`.
        due: Bit,
        /// `dup_first`.
        dup_first: Bit,
        /// `dup_last`.
        dup_last: Bit,
    }

    /// Where the PSN of an operation stands to those of the state, modulo 2^24.
    PsnOrder {
        /// Before that of the acknowledgement.
        before_ack: Bit,
        /// Before `due_psn`.
        before_due: Bit,
        /// Before `dup_first`.
        before_dup: Bit,
        /// Behind `dup_last`.
        after_dup: Bit,
    }

    /// What follows from an operation, beside the new state.
    ReplyDecision {
        /// An acknowledgement leaves.
        leaves: Bit,
        /// The queue pair is to be listed.
        lists: Bit,
        /// The oldest reply runs.
        starts: Bit,
        /// The reply enters the ring.
        enters: Bit,
        /// A reply that is no duplicate is finished.
        replies: Bit,
        /// The queue pair fails.
        fails: Bit,
        /// PSNs that change.
        writes: PsnWrites,
    }

    /// A queue pair whose oldest reply is served now.
    Start {
        /// Queue pair.
        qpn: Bits<16>,
        /// Slot of the reply.
        slot: Bits<5>,
        /// Packets sent of it.
        offset: Bits<24>,
        /// Generation.
        generation: Bits<2>,
        /// Atomics are under way.
        blocked: Bit,
        /// Where the next result of an atomic is kept.
        save: Bits<4>,
        /// Results that are kept.
        saved: Bits<5>,
        /// Log2 of the bytes that the turn may have, a packet at least.
        log_bytes: Bits<5>,
    }

    /// A reply that is served now (inside `reply/part`).
    ReplyTurn {
        /// The turn.
        start: Start,
        /// The reply.
        word: RingWord,
        /// Kind of the path.
        path: Bits<2>,
    }

    /// A reply whose fence is not passed.
    Fence {
        /// Queue pair.
        qpn: Bits<16>,
        /// Generation.
        generation: Bits<2>,
        /// Payload writes that must be done.
        fence: Bits<16>,
    }

    /// A packet to send.
    ReplyPacket {
        /// Queue pair.
        qpn: Bits<16>,
        /// BTH opcode.
        opcode: Bits<8>,
        /// BTH PSN.
        psn: Bits<24>,
        /// AETH MSN.
        msn: Bits<24>,
        /// AETH syndrome.
        syndrome: Bits<8>,
        /// Payload bytes.
        plen: Bits<13>,
        /// With payload: kind of its path.
        path: Bits<2>,
        /// Result of an atomic.
        value: Bits<64>,
    }

    /// What is known of a packet that is cut.
    CutPacket {
        /// Queue pair.
        qpn: Bits<16>,
        /// BTH PSN.
        psn: Bits<24>,
        /// AETH MSN.
        msn: Bits<24>,
        /// Payload bytes.
        plen: Bits<13>,
        /// Kind of its path, see [`lane_of`](crate::bus::path::lane_of).
        path: Bits<2>,
        /// Packets sent of the reply when it is sent.
        offset: Bits<24>,
        /// Generation.
        generation: Bits<2>,
        /// First packet of the reply.
        first: Bit,
        /// Its last.
        last: Bit,
        /// Last of the turn.
        ends: Bit,
        /// The reply is an atomic.
        atomic: Bit,
        /// A duplicate.
        duplicate: Bit,
        /// Nothing can be done now.
        waits: Bit,
        /// As atomics are under way.
        blocked: Bit,
    }

    /// A packet that waits for the check of its rkey.
    Cut {
        /// The packet.
        packet: CutPacket,
        /// Address of its payload.
        addr: Bits<64>,
        /// Lane of its first payload byte, modulo 64.
        lane: Bits<6>,
    }

    /// One whose rkey is checked; its payload is being read.
    DecidedCut {
        /// The packet.
        packet: CutPacket,
        /// The rkey was no good, of it or of an earlier packet of the same turn.
        bad: Bit,
        /// A NAK leaves in its place.
        nak: Bit,
    }

    /// An atomic to execute.
    AtomicOp {
        /// Queue pair.
        qpn: Bits<16>,
        /// Generation.
        generation: Bits<2>,
        /// PSN.
        psn: Bits<24>,
        /// MSN of the response.
        msn: Bits<24>,
        /// Address.
        va: Bits<64>,
        /// Fetch and add; else compare and swap.
        add: Bit,
        /// The result is to be looked up.
        duplicate: Bit,
        /// Its rkey was no good; from the verdict on.
        denied: Bit,
        /// Swap value, or the value to add.
        swap_add: Bits<64>,
        /// Value to compare with.
        compare: Bits<64>,
        /// Where the result is kept.
        save: Bits<4>,
        /// Results that are kept.
        saved: Bits<5>,
    }

    /// What the memory held.
    Original {
        /// The value.
        value: Bits<64>,
        /// It could not be read.
        error: Bit,
    }

    /// An atomic whose write is issued, if it has one.
    Written {
        /// Queue pair.
        qpn: Bits<16>,
        /// Generation.
        generation: Bits<2>,
        /// PSN.
        psn: Bits<24>,
        /// MSN of the response.
        msn: Bits<24>,
        /// The result is to be looked up.
        duplicate: Bit,
        /// Where the result is kept.
        save: Bits<4>,
        /// Results that are kept.
        saved: Bits<5>,
        /// Its rkey was no good.
        denied: Bit,
        /// What the memory held.
        original: Bits<64>,
        /// It could not be read.
        error: Bit,
        /// It writes, itself.
        writes: Bit,
        /// Atomic writes that must be done.
        fence: Bits<16>,
    }

    /// Result of an atomic, kept for duplicates.
    Saved {
        /// PSN.
        psn: Bits<24>,
        /// What the memory held.
        original: Bits<64>,
    }

    /// What is written to memory by an atomic.
    NewValue {
        /// The value.
        value: Bits<64>,
        /// Place in its beat, in words of 8 bytes.
        word: Bits<3>,
    }
}
