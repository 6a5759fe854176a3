//! Packed types of the streams inside `reply`. First field = lowest bits.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use super::atomic_types::RunState;
use crate::bus::payload::payload;
use crate::egress::CLASSES;
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
    /// The next atomic of the queue pair runs now.
    Run,
    /// An atomic is over, its result kept.
    Atomic,
    /// The queue pair is served now.
    Turn,
    /// A turn ends.
    Served,
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
        /// Ack, Lost: PSN. Reply: its first PSN. Served: the PSN to be answered next; of a READ that a duplicate
        /// answers in its place the one behind all duplicates.
        psn: Bits<24>,
        /// Ack, Lost: MSN.
        msn: Bits<24>,
        /// Ack: AETH syndrome. Served, Lost: that of the failure.
        syndrome: Bits<8>,
        /// Reply: fence of its token.
        fence: Bits<16>,
        /// Reply: incarnation of the queue pair.
        incarnation: Bits<2>,
        /// Release, Run, Atomic, Served: generation to which it belongs.
        generation: Bits<2>,
        /// Reply, Served: of a duplicate.
        duplicate: Bit,
        /// Reply, Release: of an atomic that is no duplicate.
        runs: Bit,
        /// Served: packets sent of the reply at the head.
        offset: Bits<24>,
        /// Served: the reply at the head is finished.
        over: Bit,
        /// Turn: log2 of the bytes that it may have.
        log_bytes: Bits<5>,
        /// Turn: of a queue pair with a rate, listed for an acknowledgement alone.
        alone: Bit,
        /// Served: the queue pair fails. Run, Atomic: no atomic behind it runs.
        failed: Bit,
    }

    /// A READ or atomic that enters.
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
        /// Bytes of a READ; 0 of an atomic.
        len: Bits<32>,
        /// Swap value, or the value to add.
        swap_add: Bits<64>,
        /// Value to compare with.
        compare: Bits<64>,
    }

    /// A reply in its ring.
    ReplyWord {
        /// See [`RingWord`].
        atomic: Bit,
        /// See [`RingWord`].
        duplicate: Bit,
        /// See [`RingWord`].
        psn: Bits<24>,
        /// See [`RingWord`].
        msn: Bits<24>,
        /// See [`RingWord`].
        mtu: Bits<3>,
        /// See [`RingWord`].
        pd: Bits<24>,
        /// See [`RingWord`].
        va: Bits<64>,
        /// See [`RingWord`].
        rkey: Bits<32>,
        /// See [`RingWord`].
        len: Bits<32>,
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
        /// Of these, from the oldest on: it is an atomic that is no duplicate.
        runs: Bits<32>,
        /// Of the others, the oldest, those whose fence is passed.
        released: Bits<6>,
        /// Of these, duplicates.
        duplicates: Bits<5>,
        /// Of these, the oldest, those before the latest run.
        earlier: Bits<5>,
        /// Packets sent of the oldest.
        offset: Bits<24>,
        /// Its atomics.
        running: RunState,
        /// Atomics that are over and not answered.
        done: Bits<5>,
        /// Slot of the next atomic that is answered.
        save: Bits<4>,
        /// Results before that one which are kept, at most 16.
        saved: Bits<5>,
        /// A turn of a READ is under way.
        serving: Bit,
        /// The PSNs from here on were not answered before that turn, if there are replies that are no duplicates.
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
        /// The queue pair is to be listed with those that have atomics to run.
        run_lists: Bit,
        /// Its next atomic runs.
        runs: Bit,
        /// So many of its atomics are void.
        voids: Bits<5>,
        /// The queue pair waits for its class.
        holds: Bit,
        /// With an acknowledgement.
        holds_ack: Bit,
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
        /// Slot of its result, if it is an atomic.
        save: Bits<4>,
        /// Results before it that are kept.
        saved: Bits<5>,
        /// Log2 of the bytes that the turn may have, a packet at least.
        log_bytes: Bits<5>,
        /// The class of its packets, a bit of each; none if they go to the port itself.
        of_class: Bits<CLASSES>,
        /// Duplicates wait.
        repeats: Bit,
        /// Of these some before the latest run: the reply is one, if it is a duplicate.
        earlier: Bit,
        /// First PSN of the latest run of these.
        dup_first: Bits<24>,
        /// Its last PSN.
        dup_last: Bits<24>,
    }

    /// A reply that is served now (inside `reply/part`).
    ReplyTurn {
        /// The turn.
        start: Start,
        /// The reply.
        word: ReplyWord,
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
        /// It is an atomic that is no duplicate.
        runs: Bit,
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
        /// Nothing is sent: its class is closed, or a later duplicate answers.
        void: Bit,
        /// The reply is an atomic.
        atomic: Bit,
        /// A duplicate.
        duplicate: Bit,
        /// Slot of the result of an atomic.
        save: Bits<4>,
        /// Results before it that are kept.
        saved: Bits<5>,
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
}
