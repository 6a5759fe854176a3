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
//! bytes a cycle; a READ or atomic still goes out, so that its issue is reported once.
//!
//! ```text
//!  CheckedWqe ─► Start ─► FIFO ┐
//!                grant ─► FIFO ┴► list_walk ─► packets
//! ```
use super::event::{CheckedWqe, SendCompletion, SqEvent, SqEventKind, StartGrant};
use super::list_walk::ListWalk;
use super::packet_form::PacketForm;
use super::send_types::SendEntry;
use crate::bus::types::{Activity, GatherCmd, ReadIssue, Recall, TxDesc};
use crate::prelude::*;

/// The segmenter for 2^Q queue pairs; the same for every width of the data path.
#[derive(Block)]
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
    incarnation: Dff<Bits<2>>,
    /// PSNs that a packet takes.
    span: Dff<Bits<24>>,
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
    /// A short run has more bytes than the packet wants.
    longer: Carry<13>,
}

impl<const Q: usize> Logic for Segmenter<Q> {
    describe!(
        "segmenter",
        format!("q{Q}"),
        "Turns granted messages into packet descriptors and payload pieces."
    );

    #[kernel]
    fn update(&mut self) {
        // ask
        let asks = s.valid & !s.payload.incomplete;
        ask.s.valid = s.valid & started.s.ready;
        ask.s.payload = s.payload;
        ask.m.ready = start.ready;
        start.valid = ask.m.valid;
        start.payload = no_event;
        start.payload.kind = SqEventKind::Start;
        if ask.m.payload.incomplete {
            start.payload.kind = SqEventKind::Refetch;
        }
        copy!(start.payload <= ask.m.payload;
            qpn, index, packets, length, answered, fence, status, epoch, slots, cqe_opcode,
            signaled);
        started.s.valid = asks & ask.s.ready;
        started.s.payload = s.payload;
        s.ready = started.s.ready & ask.s.ready;
        grants.s.valid = grant_valid;
        grants.s.payload = grant;

        // a WQE and its grant
        let w = started.m.payload;
        let g = grants.m.payload;
        let both = started.m.valid & grants.m.valid;
        let runs = (g.action == 1) & g.count.any();
        let flushes = g.action == 2;
        walk.s_valid = both & runs;
        walk.s_wqe = w;
        walk.s_grant = g;
        walk.entry_we = entry_we;
        walk.entry_at = entry_at;
        walk.entry = entry;
        let accept =
            both & ((!runs & !flushes) | (flushes & flush.s.ready) | (runs & walk.s_ready));
        started.m.ready = accept;
        grants.m.ready = accept;
        flush.s.valid = both & flushes;
        flush.s.payload = w;
        flush.m.ready = flushed.ready;
        flushed.valid = flush.m.valid;
        flushed.payload = no_completion;
        flushed.payload.cqn = flush.m.payload.cqn;
        flushed.payload.qpn = flush.m.payload.qpn;
        flushed.payload.opcode = flush.m.payload.cqe_opcode;
        flushed.payload.wqe_index = flush.m.payload.index;
        flushed.payload.status = bits::<8>(5);

        activity.busy = s.valid | started.m.valid | walk.busy | have;
        activity.moved = accept;

        // the packet being cut
        let mtu = bits::<32>(128) << wqe.mtu;
        // The run has more than 8191 bytes; its bytes if not.
        let over_8191 = run_left.slice::<19>(13).any();
        let low = run_left.low::<13>();
        // The run without the bytes that the packet wants; bit 32: it has fewer.
        let len_after_chunk = run_left.resize::<33>() - want.resize::<33>();
        let one_piece = !len_after_chunk.bit(32);
        longer.a = low;
        longer.b = !want;
        // The run ends with the piece.
        let spends = !over_8191 & !longer.carry;
        let mut piece = low;
        if one_piece {
            piece = want;
        }
        // It has bytes.
        let some = run_left.any() & want.any();
        let skip = have & stale & at_start;
        let step = have & !(stale & at_start) & !issue_valid & descs.s.ready & pieces.s.ready;
        let spent = skip | (step & spends);
        let packet_end = step & one_piece;
        let last = final_part & (count == 1);
        let rest = left - plen.resize::<32>();
        let run = walk.m.payload;
        let next_wqe = walk.m_wqe;
        let next_grant = walk.m_grant;
        // the last run of a part is spent with its last packet
        walk.m.ready = !have | spent;
        let load = walk.m.valid & (!have | spent);
        let begins = load & run.first;

        // rounds: looked up for the run that waits, then listened for
        rounds.we = recall_valid;
        rounds.waddr = recall.qpn.low::<Q>();
        rounds.wdata = recall.round;
        rounds.re = true;
        rounds.raddr = walk.next_qpn.low::<Q>();
        recall_1 = recall_valid;
        recalled_1 = recall;
        recall_2 = recall_1;
        recalled_2 = recalled_1;
        if recall_2 & (recalled_2.qpn == wqe.qpn) & (recalled_2.round != round) {
            stale = !wqe.answered;
        }

        // a piece a cycle
        if step {
            at_start = at_start & !some;
            // the packet wants more behind a run that is spent, and a run goes on behind a packet
            want = want - low;
            addr = addr + want.resize::<64>();
            run_left = len_after_chunk.resize::<32>();
        }
        if spent {
            have = false;
        }
        if packet_end {
            at_start = true;
            first = false;
            psn = psn + 1;
            count = count - 1;
            if again.any() {
                again = again - 1;
            }
            left = rest;
            plen = mtu.low::<13>();
            want = mtu.low::<13>();
            if rest < mtu {
                plen = rest.low::<13>();
                want = rest.low::<13>();
            }
        }
        if load {
            have = true;
            addr = run.addr;
            run_left = run.len;
            last_run = run.last;
        }
        if begins {
            at_start = true;
            wqe = next_wqe;
            stale = (rounds.rdata != next_grant.round) & !next_wqe.answered;
            round = next_grant.round;
            incarnation = next_grant.incarnation;
            span = bits::<24>(1);
            final_part = next_grant.final_part;
            count = next_grant.count;
            again = next_grant.again;
            psn = next_grant.psn;
            first = !next_grant.offset.any();
            left = run.left;
            plen = run.plen;
            want = run.plen;
            if next_wqe.answered {
                span = next_wqe.packets - next_grant.offset;
                final_part = true;
                count = bits::<8>(1);
                first = true;
            }
        }
        retransmits = packet_end & again.any();
        retransmission = retransmits;

        // a READ or atomic is known to the other side of the queue pair before its packet can be answered
        if issue.ready {
            issue_valid = false;
        }
        if begins {
            issue_valid = next_wqe.answered & next_grant.fresh;
            issued.qpn = next_wqe.qpn;
            issued.psn = next_grant.psn;
            issued.packets = next_wqe.packets;
            issued.atomic = next_wqe.opcode != 5;
            copy!(issued <= next_wqe; length, index, slots);
        }
        issue.valid = issue_valid;
        issue.payload = issued;

        // out
        form.wqe = wqe;
        form.first = first;
        form.last = last;
        form.part_last = count == 1;
        form.psn = psn;
        form.plen = plen;
        form.left = left;
        descs.s.valid = packet_end;
        descs.s.payload = form.desc;
        descs.s.payload.round = round;
        descs.s.payload.incarnation = incarnation;
        descs.s.payload.next_psn = psn + span;
        pieces.s.valid = step & some;
        pieces.s.payload.addr = addr;
        pieces.s.payload.len = piece;
        pieces.s.payload.first = at_start;
        pieces.s.payload.last = one_piece;
        pieces.s.payload.lane = form.lane;
        forward!(desc <= descs.m);
        forward!(gather <= pieces.m);
        piece_out = step & some;
        part_out = spent & last_run;
        piece_cut = piece_out;
        part_cut = part_out;
    }
}
