//! Replies: acknowledgements, READ responses and atomics, in the order of the requests of a queue pair.
//!
//! ```text
//!  tokens, replies ─► admit ─► state ─┬─► acknowledgements ─────────────────────────────┐
//!                       ▲             ├─► fences ─► admit                               ├─► desc
//!                       │             ├─► list of queue pairs ─► admit                  │
//!                       │             └─► turns ─► part ─► region check ─► exit ════════╡──► gather
//!                       └── ends of turns ◄──────────┼──────────────┘                   │
//!                       └── atomics done ◄───────────┴► atomic: read, write, results ───┘
//! ```
//!
//! [`state`] keeps of every queue pair a ring of 32 replies and the latest acknowledgement. Replies run in the order of
//! their requests, a turn of a queue pair at a time, the queue pairs round robin. The acknowledgement waits until the ring is
//! empty; acknowledgements coalesce exactly while something keeps them from leaving (they are cumulative, IBA vol. 1,
//! 9.7.5.1.2). A reply executed for the first time makes a waiting acknowledgement superfluous: its response says more.
//!
//! * **READ**: packets of the path MTU, the rkey checked for each before its memory is read; the response packets that a
//!   turn may have are in [`part`]. Memory is read when the payload writes of the packets before the request are done
//!   ([`fence`]) and the atomics before it.
//! * **Atomic**: executed when the reads before it are on their way; results are kept for duplicates ([`atomic`],
//!   [`results`]).
//! * **Duplicate**: at most 16 of a queue pair wait; one whose answer is due already is dropped.
//! * **Failure**: an rkey that is no good any more, or memory that cannot be read, ends the queue pair: NAK, a
//!   [`PlaceError`] to the responder, and nothing more is answered until the token with `reset`. A READ response
//!   that was lost on its way to the wire is such a failure at its PSN, behind the responses that follow it there.
//!
//! * **End of the queue pair** by command or by its send queue (token with `halt`): what waits is dropped; what is on its
//!   way, at most a turn, leaves.
//!
//! `events` has a `Replied` of every reply that is no duplicate and was answered, with its incarnation, so that the
//! responder can tell it from one of an earlier life of the queue pair.
//!
//! Assumes: at most 16 replies that are no duplicates wait of a queue pair; one `replies` for each token with `reply`, in
//! order. Rates: a token a cycle; an acknowledgement a cycle; a response packet a cycle within a turn, a turn in 4 cycles.
//! Latency: an
//! acknowledgement 6 cycles; from the end of a turn to the first packet of the next of that queue pair 26.

pub mod admit;
pub mod atomic;
pub mod exit;
pub mod fence;
pub mod order;
pub mod packets;
pub mod part;
pub mod results;
pub mod state;
pub mod types;

use crate::bus::types::image::AvCtx;
use crate::bus::types::{
    AckToken, Activity, GatherCmd, PlaceError, ReadReq, Reply, TxDesc, WriteCmd,
};
use crate::prelude::*;
use crate::transport::responder::event::{RqEvent, RqEventKind};
use admit::Admit;
use atomic::AtomicUnit;
use exit::Exit;
use fence::Fences;
use packets::Packets;
use part::Cutter;
use state::ReplyTable;
use types::*;

/// Replies of 2^Q queue pairs.
#[derive(LogicBlock, Default)]
pub struct ReplyQueue<const W: usize, const K: usize, const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What placements led to: acknowledgements, turns of replies, ends and fresh starts of queue pairs.
    pub tokens: StreamIn<AckToken>,
    /// READs and atomics.
    pub replies: StreamIn<Reply>,
    /// Payload writes done, modulo 2^16.
    pub done: Signal<In, Bits<16>>,
    /// A command writes the address vector of `image_qpn`.
    pub av_we: Signal<In, Bit>,
    /// Queue pair of the address vector.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// Address vector.
    pub av_image: Signal<In, AvCtx>,
    /// Checks of rkeys.
    pub mr: MrCheckOut,
    /// Packets.
    pub desc: StreamOut<TxDesc>,
    /// Payload of READ responses to fetch.
    pub gather: StreamOut<GatherCmd>,
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
    /// Checked packets and atomics under way.
    pub activity: Signal<Out, Activity>,
    /// The sweep after reset is done.
    pub ready: Signal<Out, Bit>,

    admit: Admit<Q>,
    table: ReplyTable<Q>,
    fences: Fences,
    list: Fifo<Bits<Q>, Q>,
    list_next: Skid<Bits<Q>>,
    acks: Fifo<ReplyPacket, 4>,
    starts: Fifo<Start, 4>,
    replied: Fifo<PlaceError, 4>,
    failed: Fifo<PlaceError, 4>,
    cutter: Cutter<Q>,
    exit: Exit,
    atomic: AtomicUnit<W, K, Q>,
    packets: Packets,
    ack_room: Reg<Bit>,
    turn_room: Reg<Bit>,
    report_room: Reg<Bit>,
    blank: Zero<TxDesc>,
    no_event: Zero<RqEvent>,
}

impl<const W: usize, const K: usize, const Q: usize> Logic for ReplyQueue<W, K, Q> {
    describe!(
        "reply_queue",
        format!("w{W}_q{Q}"),
        "Acknowledgements, READ responses and atomics."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self, clock, admit, table, fences, list, list_next, acks, starts, replied, failed,
            cutter, exit, atomic, packets
        );
        dff_setup!(self, clock, ack_room, turn_room, report_room);

        // operations
        StreamIn::<AckToken>::link(&mut self.tokens, &mut self.admit.tokens);
        StreamIn::<Reply>::link(&mut self.replies, &mut self.admit.replies);
        StreamOut::<Op>::join(&mut self.fences.m, &mut self.admit.releases);
        StreamOut::<Bits<Q>>::join(&mut self.list_next.m, &mut self.admit.list);
        StreamOut::<Op>::join(&mut self.exit.served, &mut self.admit.served);
        StreamOut::<Op>::join(&mut self.atomic.done, &mut self.admit.atomics);
        self.admit.lost.next = self.lost.val();
        self.admit.lost_qpn.next = self.lost_qpn.val();
        self.admit.lost_psn.next = self.lost_psn.val();
        self.admit.lost_msn.next = self.lost_msn.val();
        self.admit.ready.next = self.table.ready.val();
        self.table.valid.next = self.admit.valid.val();
        self.table.op.next = self.admit.op.val();
        self.table.word.next = self.admit.word.val();
        self.ready.next = self.table.ready.val();

        // below 4 of 16: up to 6 operations are on their way through the table
        self.ack_room.d.next = !self.acks.level.val().get_bits::<3>(2).any();
        self.turn_room.d.next = !self.acks.level.val().get_bits::<3>(2).any()
            & !self.starts.level.val().get_bits::<3>(2).any();
        self.report_room.d.next = !self.replied.level.val().get_bits::<3>(2).any()
            & !self.failed.level.val().get_bits::<3>(2).any();
        self.table.room.next = self.ack_room.q.val();
        self.admit.turn_room.next = self.turn_room.q.val();
        self.admit.report_room.next = self.report_room.q.val();
        self.admit.fence_room.next = self.fences.room.val();

        // what follows
        self.acks.s.valid.next = self.table.ack_valid.val();
        self.acks.s.payload.next = self.table.ack.val();
        self.list.s.valid.next = self.table.list_valid.val();
        self.list.s.payload.next = self.table.list_qpn.val();
        StreamOut::<Bits<Q>>::join(&mut self.list.m, &mut self.list_next.s);
        self.starts.s.valid.next = self.table.start_valid.val();
        self.starts.s.payload.next = self.table.start.val();
        self.fences.valid.next = self.table.enter.val();
        self.fences.entry.next = self.table.entry.val();
        self.fences.done.next = self.done.val();
        self.replied.s.valid.next = self.table.replied.val();
        self.replied.s.payload.next = self.table.report.val();
        self.failed.s.valid.next = self.table.failed.val();
        self.failed.s.payload.next = self.table.report.val();
        StreamOut::<PlaceError>::link(&mut self.errors, &mut self.failed.m);
        self.events.valid.next = self.replied.m.valid.val();
        self.events.payload.next = self.no_event.val();
        self.events.payload.next.kind = RqEventKind::Replied;
        self.events.payload.next.qpn = self.replied.m.payload.val().qpn;
        self.events.payload.next.incarnation = self.replied.m.payload.val().incarnation;
        self.replied.m.ready.next = self.events.ready.val();

        // turns
        StreamOut::<Start>::join(&mut self.starts.m, &mut self.cutter.s);
        self.cutter.enter.next = self.table.enter.val();
        self.cutter.enter_qpn.next = self.table.entry.val().qpn.get_bits::<Q>(0);
        self.cutter.enter_slot.next = self.table.slot.val();
        self.cutter.entered.next = self.table.entered.val();
        self.cutter.av_we.next = self.av_we.val();
        self.cutter.image_qpn.next = self.image_qpn.val();
        self.cutter.av_image.next = self.av_image.val();
        self.cutter.passed.next = self.exit.passed.val();
        self.cutter.returned.next = self.atomic.returned.val();
        self.mr.valid.next = self.cutter.mr.valid.val();
        self.mr.request.next = self.cutter.mr.request.val();
        self.cutter.mr.done.next = self.mr.done.val();
        self.cutter.mr.ok.next = self.mr.ok.val();
        self.exit.valid.next = self.cutter.valid.val();
        self.exit.cut.next = self.cutter.cut.val();
        self.exit.checked.next = self.mr.done.val();
        self.exit.ok.next = self.mr.ok.val();
        StreamOut::<GatherCmd>::link(&mut self.gather, &mut self.exit.gather);
        self.activity.next.busy = self.cutter.busy.val();
        self.activity.next.moved = self.cutter.moved.val();

        // atomics
        self.atomic.valid.next = self.cutter.atomic_valid.val();
        self.atomic.op.next = self.cutter.atomic.val();
        self.atomic.decided.next = self.exit.atomic_valid.val();
        self.atomic.runs.next = self.exit.atomic_runs.val();
        StreamOut::<ReadReq>::link(&mut self.read, &mut self.atomic.read);
        ReadBeatIn::<W>::link(&mut self.beat, &mut self.atomic.beat);
        StreamOut::<WriteCmd>::link(&mut self.write, &mut self.atomic.write);
        WriteBeatOut::<W, K>::link(&mut self.beats, &mut self.atomic.beats);
        self.atomic.written.next = self.written.val();

        // packets
        StreamOut::<ReplyPacket>::join(&mut self.acks.m, &mut self.packets.acks);
        StreamOut::<ReplyPacket>::join(&mut self.exit.packet, &mut self.packets.reads);
        StreamOut::<ReplyPacket>::join(&mut self.atomic.packet, &mut self.packets.atomics);
        self.packets.m.ready.next = self.desc.ready.val();
        self.desc.valid.next = self.packets.m.valid.val();
        self.desc.payload.next = self.blank.val();
        self.desc.payload.next.qpn = self.packets.m.payload.val().qpn;
        self.desc.payload.next.opcode = self.packets.m.payload.val().opcode;
        self.desc.payload.next.psn = self.packets.m.payload.val().psn;
        self.desc.payload.next.plen = self.packets.m.payload.val().plen;
        self.desc.payload.next.va = self.packets.m.payload.val().value;
        self.desc.payload.next.syndrome = self.packets.m.payload.val().syndrome;
        self.desc.payload.next.msn = self.packets.m.payload.val().msn;
    }
}
