//! Replies: acknowledgements, READ responses and atomics, in the order of the requests of a queue pair.
//!
//! ```text
//!  tokens, replies ─► admit ─► state ─┬─► acknowledgements ────────────────────────────────┐
//!                       ▲             ├─► fences ─► admit                                  ├─► desc
//!                       │             ├─► runs: queue pairs ─► admit                       │
//!                       │             ├─► runs ─► region check ─► atomic: read, write      │
//!                       │             │                            └─► results ──┐         │
//!                       │             ├─► pace, held: queue pairs ─► admit       ▼         │
//!                       │             └─► turns ─► part ─► region check ─► exit ═══════════╡──► gather
//!                       └── atomics over, ends of turns ◄───────────────────┘
//! ```
//!
//! [`state`] keeps of every queue pair a ring of 32 replies and the latest acknowledgement. Replies run in the order of
//! their requests, a turn of a queue pair at a time, the queue pairs round robin. The acknowledgement waits until the ring is
//! empty; acknowledgements coalesce exactly while something keeps them from leaving (they are cumulative, IBA vol. 1,
//! 9.7.5.1.2). A reply executed for the first time makes a waiting acknowledgement superfluous: its response says more.
//!
//! * **READ**: packets of the path MTU, the rkey checked for each before its memory is read; the response packets that a
//!   turn may have are in [`part`]. One is cut when there is room for its payload: between check and access nothing waits
//!   for the wire, and `accesses` counts both. Memory is read when the payload writes of the packets before the request are done
//!   ([`fence`]) and the atomics before it are answered.
//! * **Class**: while its class is closed the turn of a queue pair, or its acknowledgement, waits
//!   ([`held`]). A turn under way ends with its next packet, which is not sent.
//! * **Rate**: the turn of a queue pair with a rate waits until it may start ([`pace`]); an acknowledgement alone does not.
//! * **Atomic**: runs when the payload writes before it are done, whatever is to be answered before it ([`runs`],
//!   [`atomic`]). Its result is kept, and looked up when its turn comes or for duplicates ([`results`]).
//! * **Duplicate**: at most 16 of a queue pair wait; one whose answer is due already is dropped. A READ
//!   whose rest a duplicate asks for ends after the turn under way: the requester waits for the duplicate.
//! * **Failure**: an rkey that is no good any more, or memory that cannot be read, ends the queue pair: NAK, a
//!   [`PlaceError`] to the responder, and nothing more runs or is answered until the token with `reset`. A READ response
//!   that was lost on its way to the wire is such a failure too; its NAK leaves after later responses.
//!
//! * **End of the queue pair** by command or by its send queue (token with `rsp_flush`): what waits is dropped; what is on its
//!   way, at most a turn, leaves.
//!
//! `events` has a `Replied` of every reply that is no duplicate and was answered, with its incarnation, so that the
//! responder can tell it from one of an earlier life of the queue pair.
//!
//! Assumes: at most 16 replies that are no duplicates wait of a queue pair; one `replies` for each token with `reply`, in
//! order. Rates: a token a cycle; an acknowledgement a cycle; a response packet a cycle within a turn, a turn in 4 cycles.
//! Latency: an
//! acknowledgement 6 cycles; from the end of a turn to the first packet of the next of that queue pair 26.

pub mod accesses;
pub mod admit;
pub mod atomic;
pub mod atomic_types;
pub mod cut_gate;
pub mod exit;
pub mod fence;
pub mod held;
pub mod order;
pub mod over_count;
pub mod pace;
pub mod packets;
pub mod part;
pub mod results;
pub mod rules;
pub mod run_rules;
pub mod runs;
pub mod state;
pub mod turn_bytes;
pub mod types;

use crate::bus::types::image::AvCtx;
use crate::bus::types::{
    AccessCounts, AckToken, Activity, AtomicsOver, GatherCmd, PayloadSize, PlaceError, ReadReq,
    Reply, TxDesc, WriteCmd, if_there,
};
use crate::bus::valid::Valid;
use crate::egress::CLASSES;
use crate::egress::types::ClassSetup;
use crate::prelude::*;
use crate::transport::congestion::pace_types::{PaceGrant, PaceRate};
use crate::transport::responder::event::{RqEvent, RqEventKind};
use accesses::AccessCount;
use admit::Admit;
use atomic::AtomicUnit;
use exit::Exit;
use fence::Fences;
use held::HeldReplies;
use over_count::OverCount;
use pace::ReplyPace;
use packets::Packets;
use part::Cutter;
use runs::AtomicRuns;
use state::ReplyTable;
use turn_bytes::TurnBytes;
use types::*;

/// Replies of 2^Q queue pairs.
#[derive(Block)]
pub struct ReplyQueue<const W: usize, const K: usize, const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What placements led to: acknowledgements, turns of replies, ends and fresh starts of queue pairs.
    pub tokens: StreamIn<AckToken>,
    /// READs and atomics.
    pub replies: StreamIn<Reply>,
    /// Payload writes issued, modulo 2^16.
    pub issued: Signal<In, Bits<16>>,
    /// Of these, those that are done.
    pub done: Signal<In, Bits<16>>,
    /// The rate of a queue pair changes.
    pub rate: Signal<In, Valid<PaceRate>>,
    /// Responses of a queue pair leave; one cycle.
    pub sent: Signal<Out, Valid<PaceGrant>>,
    /// A command writes the address vector of `image_qpn`.
    pub av_we: Signal<In, Bit>,
    /// Queue pair of the address vector.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// Address vector.
    pub av_image: Signal<In, AvCtx>,
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// What the host says of classes.
    pub classes: Signal<In, ClassSetup>,
    /// Classes of which no turn is to start.
    pub closed: Signal<In, Bits<CLASSES>>,
    /// Classes of which no acknowledgement is to leave.
    pub acks_wait: Signal<In, Bits<CLASSES>>,
    /// Checks of rkeys.
    pub mr: MrCheckOut,
    /// Packets.
    pub desc: StreamOut<TxDesc>,
    /// Payload of READ responses to fetch.
    pub gather: StreamOut<GatherCmd>,
    /// There is room for payload, see [`part`].
    pub payload_room: Signal<In, Bit>,
    /// Payload for which room is taken, ahead of `gather`.
    pub reserve: Signal<Out, Valid<PayloadSize>>,
    /// Payload whose room is given back: it is not asked for.
    pub give_back: Signal<Out, Valid<PayloadSize>>,
    /// The oldest payload asked for was read.
    pub payload_read: Signal<In, Bit>,
    /// Reads of atomics.
    pub read: StreamOut<ReadReq>,
    /// Their answers.
    pub beat: ReadBeatIn<W>,
    /// Writes of atomics.
    pub write: StreamOut<WriteCmd>,
    /// Their beats.
    pub beats: WriteBeatOut<W, K>,
    /// Writes of atomics done, modulo 2^16.
    pub written: Signal<In, Bits<16>>,
    /// The last one done was refused.
    pub refused: Signal<In, Bit>,
    /// A READ response was not sent because its payload could not be read.
    pub lost: Signal<In, Bit>,
    /// Its queue pair.
    pub lost_qpn: Signal<In, Bits<16>>,
    /// Its PSN.
    pub lost_psn: Signal<In, Bits<24>>,
    /// Its MSN.
    pub lost_msn: Signal<In, Bits<24>>,
    /// `Replied`, for the responder.
    pub events: StreamOut<RqEvent>,
    /// Queue pairs that failed.
    pub errors: StreamOut<PlaceError>,
    /// Replies that wait for payload to be written.
    pub fenced: Signal<Out, Activity>,
    /// Turns of replies, until their last packet has left.
    pub turns: Signal<Out, Activity>,
    /// Queue pairs whose atomics are to run, and atomics that run.
    pub atomics: Signal<Out, Activity>,
    /// Accesses to memory that were checked, and those over; they do not wait for the wire.
    pub accesses: Signal<Out, AccessCounts>,
    /// The queue pair whose atomics a completion waits for.
    pub awaited: Signal<In, Bits<16>>,
    /// Atomics of a queue pair that are over, see [`over_count`].
    pub over: Signal<Out, Valid<AtomicsOver>>,
    /// No fewer acknowledgements and packets wait for `desc`.
    pub waiting: Signal<Out, Bits<16>>,
    /// A lost response waits to end its queue pair.
    pub losing: Signal<Out, Bit>,
    /// The sweep after reset is done.
    pub ready: Signal<Out, Bit>,

    admit: Admit,
    table: ReplyTable<Q>,
    fences: Fences,
    pace: ReplyPace<Q>,
    turn_bytes: TurnBytes,
    held: HeldReplies<Q>,
    acks: Fifo<ReplyPacket, 4>,
    starts: Fifo<Start, 4>,
    replied: Fifo<PlaceError, 4>,
    failed: Fifo<PlaceError, 4>,
    cutter: Cutter<Q>,
    exit: Exit,
    reads: AccessCount<8>,
    runs: AtomicRuns<Q>,
    overs: OverCount<Q>,
    atomic: AtomicUnit<W, K, Q>,
    packets: Packets,
    ack_room: Reg<Bit>,
    turn_room: Reg<Bit>,
    report_room: Reg<Bit>,
    /// Turns under way.
    open: Reg<Bits<6>>,
    blank: Zero<TxDesc>,
    no_event: Zero<RqEvent>,
}

impl<const W: usize, const K: usize, const Q: usize> Logic for ReplyQueue<W, K, Q> {
    describe!(
        "reply_queue",
        format!("w{W}_q{Q}"),
        "Acknowledgements, READ responses and atomics."
    );

    #[kernel]
    fn update(&mut self) {
        // operations
        forward!(tokens <= admit.tokens);
        forward!(replies <= admit.replies);
        forward!(admit.releases <= fences.m);
        forward!(admit.list <= held.m);
        forward!(admit.served <= exit.served);
        forward!(admit.runs <= runs.m);
        forward!(admit.atomics <= atomic.ends);
        admit.lost = lost;
        admit.lost_qpn = lost_qpn;
        admit.lost_psn = lost_psn;
        admit.lost_msn = lost_msn;
        losing = admit.losing;
        let swept = table.ready & pace.ready & overs.ready;
        admit.ready = swept;
        copy!(table <= admit; valid, op, word);
        ready = swept;

        // below 4 of 16: up to 6 operations are on their way through the table
        ack_room = !acks.level.slice::<3>(2).any();
        turn_room = !acks.level.slice::<3>(2).any() & !starts.level.slice::<3>(2).any();
        report_room = !replied.level.slice::<3>(2).any() & !failed.level.slice::<3>(2).any();
        table.room = ack_room;
        copy!(table <= self; av_we, image_qpn, av_image, mac, classes, closed, acks_wait);
        copy!(admit <= self; ack_room, turn_room, report_room);
        admit.fence_room = fences.room;

        // what follows
        acks.s.valid = table.ack_valid;
        acks.s.payload = table.ack;
        pace.listed = table.list_valid;
        pace.qpn = table.list_qpn;
        pace.runs = table.list_runs;
        pace.ahead_qpn = table.ahead_qpn;
        pace.rate = rate;
        turn_bytes.valid = cutter.valid;
        turn_bytes.packet = cutter.cut.packet;
        pace.sent = turn_bytes.sent;
        sent = turn_bytes.sent;
        forward!(held.s <= pace.m);
        copy!(held <= table; holds, holds_qpn, holds_class, holds_ack);
        copy!(held <= self; closed, acks_wait);
        starts.s.valid = table.start_valid;
        starts.s.payload = table.start;
        fences.valid = table.enter;
        fences.entry = table.entry;
        copy!(fences <= self; issued, done);
        fenced = fences.activity;
        replied.s.valid = table.replied;
        replied.s.payload = table.report;
        failed.s.valid = table.failed;
        failed.s.payload = table.report;
        forward!(errors <= failed.m);
        events.valid = replied.m.valid;
        events.payload = no_event;
        events.payload.kind = RqEventKind::Replied;
        events.payload.qpn = replied.m.payload.qpn;
        events.payload.incarnation = replied.m.payload.incarnation;
        replied.m.ready = events.ready;

        // turns
        forward!(cutter.s <= starts.m);
        cutter.enter = table.enter;
        cutter.enter_qpn = table.entry.qpn.low::<Q>();
        cutter.enter_slot = table.slot;
        cutter.entered = table.entered;
        copy!(cutter <= self; av_we, image_qpn, av_image, closed);
        cutter.passed = exit.passed;
        cutter.yields = runs.ahead;
        mr.valid = cutter.mr.valid | runs.valid;
        mr.request = cutter.mr.request;
        if runs.valid {
            mr.request = runs.request;
        }
        cutter.mr.done = mr.done;
        cutter.mr.ok = mr.ok;
        exit.valid = cutter.valid;
        exit.cut = cutter.cut;
        exit.checked = mr.done & !runs.decided;
        exit.ok = mr.ok;
        forward!(gather <= exit.gather);
        cutter.roomy = payload_room;
        reserve = cutter.reserve;
        give_back = exit.dropped;
        reads.checked = cutter.reserve.valid;
        exit.countable = reads.ready;
        reads.asked = exit.asked;
        reads.dropped = exit.dropped.valid;
        reads.answered = payload_read;
        accesses = AccessCounts {
            reads_begun: reads.begun,
            reads_over: reads.over,
            atomics_begun: atomic.begun,
            atomics_over: atomic.over,
        };
        assert!(open.any() | !exit.ended, "a turn ends that has begun");
        if table.start_valid & !exit.ended {
            open += 1;
        } else if exit.ended & !table.start_valid {
            open -= 1;
        }
        turns = Activity {
            busy: open.any(),
            moved: exit.ended,
            level: open.resize::<16>(),
        };

        // atomics
        runs.enter = table.run_slot;
        runs.enter_qpn = table.entry.qpn.low::<Q>();
        runs.entered = table.run_word;
        runs.list = table.run_list;
        runs.start = table.run;
        runs.none = table.runs_none;
        runs.checked = mr.done;
        runs.ok = mr.ok;
        runs.over = atomic.returned;
        overs.change = table.change;
        overs.look = awaited;
        over = overs.over;
        atomics = runs.activity;
        atomic.valid = runs.valid;
        atomic.op = runs.op;
        atomic.decided = runs.decided;
        atomic.runs = mr.ok;
        atomic.asked = exit.asks;
        atomic.packet = exit.look;
        atomic.taken = exit.takes;
        copy!(exit <= atomic; found, missing, result);
        forward!(read <= atomic.read);
        forward!(beat <= atomic.beat);
        forward!(write <= atomic.write);
        forward!(beats <= atomic.beats);
        copy!(atomic <= self; written, refused);

        // packets
        forward!(packets.acks <= acks.m);
        packets.level = acks.level;
        forward!(packets.responses <= exit.packet);
        packets.m.ready = desc.ready;
        desc.valid = packets.m.valid;
        waiting = acks.level + if_there(packets.m.valid, bits::<16>(2));
        desc.payload = blank;
        copy!(desc.payload <= packets.m.payload; qpn, opcode, psn, plen, path);
        desc.payload.va = packets.m.payload.value;
        desc.payload.syndrome = packets.m.payload.syndrome;
        desc.payload.msn = packets.m.payload.msn;
    }
}
