//! Segmenter: turns granted messages into packets.
//!
//! Every checked WQE asks `sq_state` with a Start event, several ahead; grants come back in order. A granted part of a
//! message becomes one [`TxDesc`] a packet and a [`GatherCmd`] for each gather entry that the packet touches, a piece a
//! cycle; a packet without payload takes one cycle. The walk over the entries overlaps with the packets of the message
//! before. A flushed WQE becomes a completion, an incomplete one the event Refetch.
//!
//! A READ or atomic is one packet, which asks for what of the message is not there yet; before its first packet
//! [`ReadIssue`] tells of it. The last packet of a message on UC or UD has `notify`.
//!
//! When a send queue goes back ([`Recall`]), what it was granted before is dropped at the next end of a packet, a run of
//! bytes a cycle; a READ or atomic still goes out, so that its issue is told once.
//!
//! ```text
//!  CheckedWqe ─► Start ─► FIFO ┐
//!                grant ─► FIFO ┴► list_walk ─► packets
//! ```
use super::event::{CheckedWqe, SendCompletion, SqEvent, SqEventKind, StartGrant};
use super::list_walk::ListWalk;
use super::packet_form::PacketForm;
use super::send_types::{SendEntry, SendRun};
use crate::bus::types::{Activity, GatherCmd, ReadIssue, Recall, TxDesc};
use crate::prelude::*;

/// The segmenter for 2^Q queue pairs; the same for every width of the data path.
#[derive(LogicBlock, Default)]
pub struct Segmenter<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Checked WQEs.
    pub s: StreamIn<CheckedWqe>,
    /// Writes `entry` into the entry table.
    pub entry_we: Signal<In, Bit>,
    /// Where: 16 * `tag` + number.
    pub entry_at: Signal<In, Bits<9>>,
    /// The entry.
    pub entry: Signal<In, SendEntry>,
    /// Start and Refetch events.
    pub start: StreamOut<SqEvent>,
    /// A grant arrives.
    pub grant_valid: Signal<In, Bit>,
    /// The grant.
    pub grant: Signal<In, StartGrant>,
    /// A send queue goes back: packets of another round are not to be sent any more.
    pub recall_valid: Signal<In, Bit>,
    /// Which, and its round.
    pub recall: Signal<In, Recall>,
    /// READs and atomics, before their first packet.
    pub issue: StreamOut<ReadIssue>,
    /// Packets.
    pub desc: StreamOut<TxDesc>,
    /// Pieces of payload.
    pub gather: StreamOut<GatherCmd>,
    /// Completions of flushed WQEs.
    pub flushed: StreamOut<SendCompletion>,
    /// A piece of payload leaves.
    pub piece_cut: Signal<Out, Bit>,
    /// A part that was granted is cut to its end, or dropped; not before its last `piece_cut`.
    pub part_cut: Signal<Out, Bit>,
    /// A packet leaves that was sent before.
    pub retransmission: Signal<Out, Bit>,
    /// WQEs that are not sent as far as they were granted.
    pub activity: Signal<Out, Activity>,

    ask: SkidRam<CheckedWqe>,
    started: Fifo<CheckedWqe, 3>,
    grants: Bypass<StartGrant, 4>,
    flush: SkidRam<CheckedWqe>,
    walk: ListWalk,
    rounds: Ram<Bits<2>, Q>,
    form: PacketForm,
    descs: SkidRam<TxDesc>,
    pieces: SkidRam<GatherCmd>,

    no_event: Zero<SqEvent>,
    no_completion: Zero<SendCompletion>,
    asks: Signal<Local, Bit>,
    w: Signal<Local, CheckedWqe>,
    g: Signal<Local, StartGrant>,
    both: Signal<Local, Bit>,
    runs: Signal<Local, Bit>,
    flushes: Signal<Local, Bit>,
    accept: Signal<Local, Bit>,

    // the part being sent
    /// A run of bytes is there.
    have: Reg<Bit>,
    /// It is the last of its part.
    last_run: Dff<Bit>,
    piece_out: Reg<Bit>,
    part_out: Reg<Bit>,
    wqe: Dff<CheckedWqe>,
    final_part: Dff<Bit>,
    count: Dff<Bits<8>>,
    again: Dff<Bits<8>>,
    retransmits: Reg<Bit>,
    psn: Dff<Bits<24>>,
    round: Dff<Bits<2>>,
    first: Dff<Bit>,
    left: Dff<Bits<32>>,
    plen: Dff<Bits<13>>,
    want: Dff<Bits<13>>,
    at_start: Reg<Bit>,
    addr: Dff<Bits<64>>,
    run_left: Dff<Bits<32>>,
    issue_valid: Reg<Bit>,
    issued: Dff<ReadIssue>,
    /// The part is of another round.
    stale: Reg<Bit>,
    /// A recall, until every part that looked its round up before is the one being sent.
    recall_1: Reg<Bit>,
    recall_2: Reg<Bit>,
    recalled_1: Dff<Recall>,
    recalled_2: Dff<Recall>,
    skip: Signal<Local, Bit>,
    run: Signal<Local, SendRun>,
    next_wqe: Signal<Local, CheckedWqe>,
    next_grant: Signal<Local, StartGrant>,
    load: Signal<Local, Bit>,
    begins: Signal<Local, Bit>,
    mtu: Signal<Local, Bits<32>>,
    /// The run has more than 8191 bytes; its bytes if not.
    beyond: Signal<Local, Bit>,
    low: Signal<Local, Bits<13>>,
    one_piece: Signal<Local, Bit>,
    /// The run without the bytes that the packet wants; bit 32: it has fewer.
    behind: Signal<Local, Bits<33>>,
    /// A short run has more bytes than the packet wants.
    longer: Carry<13>,
    /// The run ends with the piece.
    spends: Signal<Local, Bit>,
    piece: Signal<Local, Bits<13>>,
    /// It has bytes.
    some: Signal<Local, Bit>,
    step: Signal<Local, Bit>,
    spent: Signal<Local, Bit>,
    packet_end: Signal<Local, Bit>,
    rest: Signal<Local, Bits<32>>,
    last: Signal<Local, Bit>,
}

impl<const Q: usize> Logic for Segmenter<Q> {
    describe!(
        "segmenter",
        format!("q{Q}"),
        "Turns granted messages into packet descriptors and payload pieces."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self, clock, ask, started, grants, flush, walk, rounds, descs, pieces
        );
        dff_setup!(
            self,
            clock,
            have,
            wqe,
            final_part,
            count,
            again,
            retransmits,
            psn,
            round,
            first
        );
        dff_setup!(
            self,
            clock,
            left,
            plen,
            want,
            at_start,
            addr,
            run_left,
            issue_valid,
            issued
        );
        dff_setup!(
            self, clock, stale, recall_1, recall_2, recalled_1, recalled_2, last_run, piece_out,
            part_out
        );

        // ask
        self.asks.next = self.s.valid.val() & !self.s.payload.val().incomplete;
        self.ask.s.valid.next = self.s.valid.val() & self.started.s.ready.val();
        self.ask.s.payload.next = self.s.payload.val();
        self.ask.m.ready.next = self.start.ready.val();
        self.start.valid.next = self.ask.m.valid.val();
        self.start.payload.next = self.no_event.val();
        self.start.payload.next.kind = SqEventKind::Start;
        if self.ask.m.payload.val().incomplete {
            self.start.payload.next.kind = SqEventKind::Refetch;
        }
        self.start.payload.next.qpn = self.ask.m.payload.val().qpn;
        self.start.payload.next.index = self.ask.m.payload.val().index;
        self.start.payload.next.packets = self.ask.m.payload.val().packets;
        self.start.payload.next.length = self.ask.m.payload.val().length;
        self.start.payload.next.answered = self.ask.m.payload.val().answered;
        self.start.payload.next.fence = self.ask.m.payload.val().fence;
        self.start.payload.next.status = self.ask.m.payload.val().status;
        self.start.payload.next.epoch = self.ask.m.payload.val().epoch;
        self.start.payload.next.slots = self.ask.m.payload.val().slots;
        self.start.payload.next.cqe_opcode = self.ask.m.payload.val().cqe_opcode;
        self.start.payload.next.signaled = self.ask.m.payload.val().signaled;
        self.started.s.valid.next = self.asks.val() & self.ask.s.ready.val();
        self.started.s.payload.next = self.s.payload.val();
        self.s.ready.next = self.started.s.ready.val() & self.ask.s.ready.val();
        self.grants.s.valid.next = self.grant_valid.val();
        self.grants.s.payload.next = self.grant.val();

        // a WQE and its grant
        self.w.next = self.started.m.payload.val();
        self.g.next = self.grants.m.payload.val();
        self.both.next = self.started.m.valid.val() & self.grants.m.valid.val();
        self.runs.next = (self.g.val().action == 1) & self.g.val().count.any();
        self.flushes.next = self.g.val().action == 2;
        self.walk.s_valid.next = self.both.val() & self.runs.val();
        self.walk.s_wqe.next = self.w.val();
        self.walk.s_grant.next = self.g.val();
        self.walk.entry_we.next = self.entry_we.val();
        self.walk.entry_at.next = self.entry_at.val();
        self.walk.entry.next = self.entry.val();
        self.accept.next = self.both.val()
            & ((!self.runs.val() & !self.flushes.val())
                | (self.flushes.val() & self.flush.s.ready.val())
                | (self.runs.val() & self.walk.s_ready.val()));
        self.started.m.ready.next = self.accept.val();
        self.grants.m.ready.next = self.accept.val();
        self.flush.s.valid.next = self.both.val() & self.flushes.val();
        self.flush.s.payload.next = self.w.val();
        self.flush.m.ready.next = self.flushed.ready.val();
        self.flushed.valid.next = self.flush.m.valid.val();
        self.flushed.payload.next = self.no_completion.val();
        self.flushed.payload.next.cqn = self.flush.m.payload.val().cqn;
        self.flushed.payload.next.qpn = self.flush.m.payload.val().qpn;
        self.flushed.payload.next.opcode = self.flush.m.payload.val().cqe_opcode;
        self.flushed.payload.next.wqe_index = self.flush.m.payload.val().index;
        self.flushed.payload.next.status = bits::<8>(5);

        self.activity.next.busy = self.s.valid.val()
            | self.started.m.valid.val()
            | self.walk.busy.val()
            | self.have.q.val();
        self.activity.next.moved = self.accept.val();

        // the packet being cut
        self.mtu.next = bits::<32>(128) << self.wqe.q.val().mtu;
        self.beyond.next = self.run_left.q.val().get_bits::<19>(13).any();
        self.low.next = self.run_left.q.val().get_bits::<13>(0);
        self.behind.next =
            bit_cast::<33, 32>(self.run_left.q.val()) - bit_cast::<33, 13>(self.want.q.val());
        self.one_piece.next = !self.behind.val().get_bit(32);
        self.longer.a.next = self.low.val();
        self.longer.b.next = !self.want.q.val();
        self.spends.next = !self.beyond.val() & !self.longer.carry.val();
        self.piece.next = self.low.val();
        if self.one_piece.val() {
            self.piece.next = self.want.q.val();
        }
        self.some.next = self.run_left.q.val().any() & self.want.q.val().any();
        self.skip.next = self.have.q.val() & self.stale.q.val() & self.at_start.q.val();
        self.step.next = self.have.q.val()
            & !(self.stale.q.val() & self.at_start.q.val())
            & !self.issue_valid.q.val()
            & self.descs.s.ready.val()
            & self.pieces.s.ready.val();
        self.spent.next = self.skip.val() | (self.step.val() & self.spends.val());
        self.packet_end.next = self.step.val() & self.one_piece.val();
        self.last.next = self.final_part.q.val() & (self.count.q.val() == 1);
        self.rest.next = self.left.q.val() - bit_cast::<32, 13>(self.plen.q.val());
        self.run.next = self.walk.m.payload.val();
        self.next_wqe.next = self.walk.m_wqe.val();
        self.next_grant.next = self.walk.m_grant.val();
        // the last run of a part is spent with its last packet
        self.walk.m.ready.next = !self.have.q.val() | self.spent.val();
        self.load.next = self.walk.m.valid.val() & (!self.have.q.val() | self.spent.val());
        self.begins.next = self.load.val() & self.run.val().first;

        // rounds: looked up for the run that waits, then listened for
        self.rounds.we.next = self.recall_valid.val();
        self.rounds.waddr.next = self.recall.val().qpn.get_bits::<Q>(0);
        self.rounds.wdata.next = self.recall.val().round;
        self.rounds.re.next = true;
        self.rounds.raddr.next = self.walk.coming_qpn.val().get_bits::<Q>(0);
        self.recall_1.d.next = self.recall_valid.val();
        self.recalled_1.d.next = self.recall.val();
        self.recall_2.d.next = self.recall_1.q.val();
        self.recalled_2.d.next = self.recalled_1.q.val();
        if self.recall_2.q.val()
            & (self.recalled_2.q.val().qpn == self.wqe.q.val().qpn)
            & (self.recalled_2.q.val().round != self.round.q.val())
        {
            self.stale.d.next = !self.wqe.q.val().answered;
        }

        // a piece a cycle
        if self.step.val() {
            self.at_start.d.next = self.at_start.q.val() & !self.some.val();
            // the packet wants more behind a run that is spent, and a run goes on behind a packet
            self.want.d.next = self.want.q.val() - self.low.val();
            self.addr.d.next = self.addr.q.val() + bit_cast::<64, 13>(self.want.q.val());
            self.run_left.d.next = bit_cast::<32, 33>(self.behind.val());
        }
        if self.spent.val() {
            self.have.d.next = false;
        }
        if self.packet_end.val() {
            self.at_start.d.next = true;
            self.first.d.next = false;
            self.psn.d.next = self.psn.q.val() + 1;
            self.count.d.next = self.count.q.val() - 1;
            if self.again.q.val().any() {
                self.again.d.next = self.again.q.val() - 1;
            }
            self.left.d.next = self.rest.val();
            self.plen.d.next = self.mtu.val().get_bits::<13>(0);
            self.want.d.next = self.mtu.val().get_bits::<13>(0);
            if self.rest.val() < self.mtu.val() {
                self.plen.d.next = self.rest.val().get_bits::<13>(0);
                self.want.d.next = self.rest.val().get_bits::<13>(0);
            }
        }
        if self.load.val() {
            self.have.d.next = true;
            self.addr.d.next = self.run.val().addr;
            self.run_left.d.next = self.run.val().len;
            self.last_run.d.next = self.run.val().last;
        }
        if self.begins.val() {
            self.at_start.d.next = true;
            self.wqe.d.next = self.next_wqe.val();
            self.stale.d.next = (self.rounds.rdata.val() != self.next_grant.val().round)
                & !self.next_wqe.val().answered;
            self.round.d.next = self.next_grant.val().round;
            self.final_part.d.next = self.next_grant.val().final_part;
            self.count.d.next = self.next_grant.val().count;
            self.again.d.next = self.next_grant.val().again;
            self.psn.d.next = self.next_grant.val().psn;
            self.first.d.next = !self.next_grant.val().offset.any();
            self.left.d.next = self.run.val().left;
            self.plen.d.next = self.run.val().plen;
            self.want.d.next = self.run.val().plen;
            if self.next_wqe.val().answered {
                self.final_part.d.next = true;
                self.count.d.next = bits::<8>(1);
                self.first.d.next = true;
            }
        }
        self.retransmits.d.next = self.packet_end.val() & self.again.q.val().any();
        self.retransmission.next = self.retransmits.q.val();

        // a READ or atomic is known to the other side of the queue pair before its packet can be answered
        if self.issue.ready.val() {
            self.issue_valid.d.next = false;
        }
        if self.begins.val() {
            self.issue_valid.d.next = self.next_wqe.val().answered & self.next_grant.val().fresh;
            self.issued.d.next.qpn = self.next_wqe.val().qpn;
            self.issued.d.next.psn = self.next_grant.val().psn;
            self.issued.d.next.packets = self.next_wqe.val().packets;
            self.issued.d.next.atomic = self.next_wqe.val().opcode != 5;
            self.issued.d.next.length = self.next_wqe.val().length;
            self.issued.d.next.index = self.next_wqe.val().index;
            self.issued.d.next.slots = self.next_wqe.val().slots;
        }
        self.issue.valid.next = self.issue_valid.q.val();
        self.issue.payload.next = self.issued.q.val();

        // out
        self.form.wqe.next = self.wqe.q.val();
        self.form.first.next = self.first.q.val();
        self.form.last.next = self.last.val();
        self.form.part_last.next = self.count.q.val() == 1;
        self.form.psn.next = self.psn.q.val();
        self.form.plen.next = self.plen.q.val();
        self.form.left.next = self.left.q.val();
        self.descs.s.valid.next = self.packet_end.val();
        self.descs.s.payload.next = self.form.desc.val();
        self.descs.s.payload.next.round = self.round.q.val();
        self.pieces.s.valid.next = self.step.val() & self.some.val();
        self.pieces.s.payload.next.addr = self.addr.q.val();
        self.pieces.s.payload.next.len = self.piece.val();
        self.pieces.s.payload.next.first = self.at_start.q.val();
        self.pieces.s.payload.next.last = self.one_piece.val();
        self.pieces.s.payload.next.lane = self.form.lane.val();
        StreamOut::<TxDesc>::link(&mut self.desc, &mut self.descs.m);
        StreamOut::<GatherCmd>::link(&mut self.gather, &mut self.pieces.m);
        self.piece_out.d.next = self.step.val() & self.some.val();
        self.part_out.d.next = self.spent.val() & self.last_run.q.val();
        self.piece_cut.next = self.piece_out.q.val();
        self.part_cut.next = self.part_out.q.val();
    }
}
