//! Segmenter: turns granted messages into packets.
//!
//! Every checked WQE asks `sq_state` with a Start event, several ahead; grants come back in order. A granted part of a
//! message becomes one [`TxDesc`] a packet and a [`GatherCmd`] for each gather entry that the packet touches, a piece a
//! cycle; a packet without payload takes one cycle. The walk over the entries overlaps with the packets of the message
//! before. A flushed WQE becomes a completion, an incomplete one the event Refetch, one that sends nothing goes to `key`.
//!
//! A READ or atomic is one packet, which asks for what of the message is not there yet; before its first packet
//! [`ReadIssue`] tells of it. The last packet of a message on UC or UD has `notify`.
//!
//! When a send queue goes back ([`Recall`]), what it was granted before is dropped at the next end of a packet, a run of
//! bytes a cycle; a READ or atomic still goes out, so that its issue is reported once.
//!
//! ```text
//!  CheckedWqe, grant ─► wqe_start ─► list_walk ─► packets
//! ```
use ferroce_proto::abi::wqe::opcode::READ;

use super::event::SqEvent;
use super::grant::{SendCompletion, StartGrant};
use super::list_walk::ListWalk;
use super::packet_form::PacketForm;
use super::round_watch::RoundWatch;
use super::send_types::{CheckedWqe, KeyDone, KeyRequest, SendEntry};
use super::wqe_start::WqeStart;
use crate::bus::types::{Activity, GatherCmd, ReadIssue, Recall, TxDesc};
use crate::cell::count::one_less;
use crate::egress::types::{ClosedClasses, RequestsAhead};
use crate::prelude::*;

/// The segmenter for 2^Q queue pairs; the same for every width of the data path.
#[derive(Block)]
pub struct Segmenter<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Checked WQEs.
    pub s: StreamIn<CheckedWqe>,
    /// Classes of which nothing is to start.
    pub closed: Signal<In, ClosedClasses>,
    /// No more payload is to be added to what is under way.
    pub crowded: Signal<In, Bit>,
    /// Requests that are granted and not cut into packets, and those that were refused.
    pub ahead: Signal<Out, RequestsAhead>,
    /// Writes `entry` into the entry table.
    pub entry_we: Signal<In, Bit>,
    /// Where: 16 * `tag` + number.
    pub entry_at: Signal<In, Bits<9>>,
    /// The entry.
    pub entry: Signal<In, SendEntry>,
    /// A part has entries that are still to be read.
    pub unread_valid: Signal<Out, Bit>,
    /// Its tag.
    pub unread: Signal<Out, Bits<5>>,
    /// Start, Refetch and Executed events.
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
    /// WQEs that send nothing.
    pub key: StreamOut<KeyRequest>,
    /// Those that are executed.
    pub key_done: StreamIn<KeyDone>,
    /// Completions of flushed WQEs.
    pub flushed: StreamOut<SendCompletion>,
    /// A piece of payload leaves.
    pub piece_cut: Signal<Out, Bit>,
    /// A part that was granted is cut to its end, or dropped; not before its last `piece_cut`.
    pub part_cut: Signal<Out, Bit>,
    /// A packet leaves that was sent before.
    pub retransmission: Signal<Out, Bit>,
    /// WQEs that wait for their grant.
    pub activity: Signal<Out, Activity>,
    /// Parts that were granted and are not cut to their end.
    pub parts: Signal<Out, Activity>,

    starts: WqeStart,
    walk: ListWalk,
    rounds: RoundWatch<Q>,
    form: PacketForm,
    descs: SkidRam<TxDesc>,
    pieces: SkidRam<GatherCmd>,

    // the part being sent
    /// A run of bytes is there.
    have: Reg<Bit>,
    /// It is the last of its part.
    last_run: Dff<Bit>,
    piece_cut_q: Reg<Bit>,
    part_cut_q: Reg<Bit>,
    /// Parts in the walk, and the one being sent.
    open: Reg<Bits<3>>,
    wqe: Dff<CheckedWqe>,
    final_part: Dff<Bit>,
    count: Dff<Bits<8>>,
    again: Dff<Bits<8>>,
    retransmission_q: Reg<Bit>,
    psn: Dff<Bits<24>>,
    round: Dff<Bits<2>>,
    incarnation: Dff<Bits<2>>,
    /// PSNs that a packet takes.
    span: Dff<Bits<24>>,
    first: Dff<Bit>,
    /// Bytes of the message from the packet on.
    left: Dff<Bits<32>>,
    /// Payload of the packet.
    plen: Dff<Bits<13>>,
    /// Of these, bytes that no piece has brought yet.
    packet_left: Dff<Bits<13>>,
    at_start: Reg<Bit>,
    addr: Dff<Bits<64>>,
    run_left: Dff<Bits<32>>,
    issue_valid: Reg<Bit>,
    issued: Dff<ReadIssue>,
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
        forward!(s <= starts.s);
        forward!(start <= starts.start);
        copy!(starts <= self; grant_valid, grant, closed, crowded);
        forward!(key <= starts.key);
        forward!(key_done <= starts.key_done);
        forward!(flushed <= starts.flushed);
        forward!(walk.s <= starts.m);
        copy!(walk <= self; entry_we, entry_at, entry);
        copy!(self <= walk; unread_valid, unread);
        copy!(self <= starts; ahead, activity);

        // the packet being cut
        let mtu = bits::<32>(128) << wqe.mtu;
        // The run has more than 8191 bytes; its bytes if not.
        let over_8191 = run_left.slice::<19>(13).any();
        let low = run_left.low::<13>();
        // The run without the bytes that the packet wants; bit 32: it has fewer.
        let len_after_piece = run_left.resize::<33>() - packet_left.resize::<33>();
        let is_filled = !len_after_piece.bit(32);
        longer.a = low;
        longer.b = !packet_left;
        // The run ends with the piece.
        let spends = !over_8191 & !longer.carry;
        let has_bytes = run_left.any() & packet_left.any();
        // a recall takes effect between two packets
        let drops = rounds.stale & at_start;
        let step = have & !drops & !issue_valid & descs.s.ready & pieces.s.ready;
        let spent = (have & drops) | (step & spends);
        let packet_end = step & is_filled;
        let last = final_part & (count == 1);
        let rest = left - plen.resize::<32>();
        let run = walk.m.payload;
        let next_wqe = walk.m_part.wqe;
        let next_grant = walk.m_part.grant;
        // the last run of a part is spent with its last packet
        let free = !have | spent;
        walk.m.ready = free;
        let load = walk.m.valid & free;
        let begins = load & run.first;

        copy!(rounds <= self; recall_valid, recall, round);
        rounds.next_qpn = walk.next_qpn;
        rounds.begins = begins;
        rounds.begins_part = walk.m_part;
        copy!(rounds <= wqe; qpn, answered);

        // a piece a cycle
        if step {
            at_start = at_start & !has_bytes;
            // the packet wants more behind a run that is spent, and a run goes on behind a packet
            packet_left -= low;
            addr += packet_left.resize::<64>();
            run_left = len_after_piece.resize::<32>();
        }
        if spent {
            have = false;
        }
        if packet_end {
            at_start = true;
            first = false;
            psn += 1;
            count -= 1;
            if again.any() {
                again -= 1;
            }
            let plen_next = if rest < mtu { rest } else { mtu };
            left = rest;
            plen = plen_next.low::<13>();
            packet_left = plen_next.low::<13>();
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
            copy!(self <= next_grant; round, incarnation, again, psn);
            copy!(self <= run; left, plen);
            packet_left = run.plen;
            // a READ or atomic is a packet for all its PSNs
            if next_wqe.answered {
                span = next_wqe.packets - next_grant.offset;
                final_part = true;
                count = 1;
                first = true;
            } else {
                span = 1;
                final_part = next_grant.final_part;
                count = next_grant.count;
                first = !next_grant.offset.any();
            }
        }
        retransmission_q = packet_end & again.any();
        retransmission = retransmission_q;

        // a READ or atomic is known to the other side of the queue pair before its packet can be answered
        if issue.ready {
            issue_valid = false;
        }
        if begins {
            issue_valid = next_wqe.answered & next_grant.fresh;
            issued.psn = next_grant.psn;
            issued.atomic = next_wqe.opcode != READ;
            copy!(issued <= next_wqe; qpn, packets, length, index, slots);
        }
        issue.valid = issue_valid;
        issue.payload = issued;

        // out
        copy!(form <= self; wqe, first, psn, plen, left);
        form.last = last;
        form.part_last = count == 1;
        descs.s.valid = packet_end;
        descs.s.payload = form.desc;
        copy!(descs.s.payload <= self; round, incarnation);
        descs.s.payload.next_psn = psn + span;
        pieces.s.valid = step & has_bytes;
        pieces.s.payload = GatherCmd {
            addr: addr,
            len: if is_filled { packet_left } else { low },
            first: at_start,
            last: is_filled,
            lane: form.lane,
        };
        forward!(desc <= descs.m);
        forward!(gather <= pieces.m);
        piece_cut_q = step & has_bytes;
        let cut = spent & last_run;
        starts.cut = cut;
        starts.cut_wqe = wqe;
        let enters = starts.m.valid & walk.s.ready;
        assert!(open.any() | !cut, "a part ends that has begun");
        if enters & !cut {
            open += 1;
        } else if cut & !enters {
            open = one_less(open);
        }
        parts = Activity {
            busy: open.any(),
            moved: cut,
            level: open.resize::<16>(),
        };
        part_cut_q = cut;
        piece_cut = piece_cut_q;
        part_cut = part_cut_q;
    }
}
