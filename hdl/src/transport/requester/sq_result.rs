//! What leaves the table of send queues: entries for lists, grants, orders, made of an event, the state it met and the
//! verdict of the rules.
//!
//! Latency: a cycle; two for what takes an address (`fetch`, `entry`).
use ferroce_proto::abi::qpc::state;

use super::event::*;
use super::timer_types::TimerSet;
use super::verdict::*;
use crate::bus::types::Recall;
use crate::bus::types::image::{QpState, SqCtx};
use crate::prelude::*;

const SQE: u64 = state::SQE as u64;
const ERR: u64 = state::ERR as u64;

/// Results of events, one a cycle.
#[derive(LogicBlock, Default)]
pub struct SqResults {
    /// Clock and reset.
    pub clock: ClkRst,
    /// An event was judged.
    pub valid: Signal<In, Bit>,
    /// The event.
    pub sq_event: Signal<In, SqEvent>,
    /// Static image of its queue pair.
    pub image: Signal<In, SqCtx>,
    /// State before the event.
    pub state: Signal<In, SqState>,
    /// Its terms.
    pub terms: Signal<In, SqTerms>,
    /// The verdict.
    pub verdict: Signal<In, SqVerdict>,
    /// The queue pair has something to fetch.
    pub ready_valid: Signal<Out, Bit>,
    /// The queue pair has something to retire.
    pub list_valid: Signal<Out, Bit>,
    /// Queue pair of the two lists.
    pub list_qpn: Signal<Out, Bits<16>>,
    /// Answer to Fetch.
    pub fetch_valid: Signal<Out, Bit>,
    /// Answer to Fetch.
    pub fetch: Signal<Out, FetchGrant>,
    /// Answer to Start.
    pub start_valid: Signal<Out, Bit>,
    /// Answer to Start.
    pub start: Signal<Out, StartGrant>,
    /// Answer to Retire.
    pub retire_valid: Signal<Out, Bit>,
    /// Answer to Retire.
    pub retire: Signal<Out, RetireGrant>,
    /// Entry for the outstanding table.
    pub entry_valid: Signal<Out, Bit>,
    /// Its place in the pool.
    pub entry_addr: Signal<Out, Bits<24>>,
    /// The entry.
    pub entry: Signal<Out, Outstanding>,
    /// Packets of another round are not to be sent any more.
    pub recall_valid: Signal<Out, Bit>,
    /// The round.
    pub recall: Signal<Out, Recall>,
    /// Order to the timer.
    pub timer_valid: Signal<Out, Bit>,
    /// Order to the timer.
    pub timer: Signal<Out, TimerSet>,
    /// Answer to Command: requester's part of the state.
    pub query_valid: Signal<Out, Bit>,
    /// Answer to Command.
    pub query: Signal<Out, QpState>,
    /// A send queue went into error.
    pub failed_valid: Signal<Out, Bit>,
    /// Its queue pair.
    pub failed_qpn: Signal<Out, Bits<16>>,
    /// Status behind it; 0 if the cause is not in the send queue.
    pub failed_status: Signal<Out, Bits<8>>,
    /// A send queue went into error, or was sent there: once nothing of it is on its way to memory a `closed` answer is due.
    pub close_valid: Signal<Out, Bit>,
    /// Its queue pair.
    pub close_qpn: Signal<Out, Bits<16>>,
    /// In SQD nothing of the send queue is outstanding any more.
    pub drained_valid: Signal<Out, Bit>,
    /// Its queue pair.
    pub drained_qpn: Signal<Out, Bits<16>>,
    /// Counter pulses, from bit 0: packet_seq_err, rnr_nak_received, remote_errors, rx_acks (positive, in the window),
    /// rx_ghost_acks (outside of it), local_ack_timeout_err, retry_exceeded_err, rnr_nak_retry_err, implied_nak_seq_err,
    /// a second rx_acks, a second rx_ghost_acks.
    pub counts: Signal<Out, Bits<11>>,

    e: Signal<Local, SqEvent>,
    k: Signal<Local, SqCtx>,
    c: Signal<Local, SqState>,
    t: Signal<Local, SqTerms>,
    v: Signal<Local, SqVerdict>,

    // stage W
    w_ready: Reg<Bit>,
    w_list: Reg<Bit>,
    w_qpn: Dff<Bits<16>>,
    w_fetch: Reg<Bit>,
    w_fetch_index: Dff<Bits<16>>,
    w_fetch_count: Dff<Bits<4>>,
    w_epoch: Dff<Bits<4>>,
    w_start: Reg<Bit>,
    w_grant: Dff<StartGrant>,
    w_retire: Reg<Bit>,
    w_retire_grant: Dff<RetireGrant>,
    w_entry: Reg<Bit>,
    w_tail: Dff<Bits<16>>,
    w_packets: Dff<Bits<24>>,
    w_outstanding: Dff<Outstanding>,
    w_image: Dff<SqCtx>,
    w_recall: Reg<Bit>,
    w_round: Dff<Bits<2>>,
    w_timer: Reg<Bit>,
    w_timer_set: Dff<TimerSet>,
    w_query: Reg<Bit>,
    w_state: Dff<QpState>,
    w_failed: Reg<Bit>,
    w_status: Dff<Bits<8>>,
    w_close: Reg<Bit>,
    w_drained: Reg<Bit>,
    w_length: Dff<Bits<32>>,
    w_counts: Reg<Bits<11>>,

    // stage V: addresses
    slot_mask: Signal<Local, Bits<16>>,
    entry_mask: Signal<Local, Bits<16>>,
    /// Slots from the first one granted to the last of the ring.
    to_last: Signal<Local, Bits<16>>,
    mtu_mask: Signal<Local, Bits<13>>,
    v_fetch: Reg<Bit>,
    v_fetch_grant: Dff<FetchGrant>,
    v_entry: Reg<Bit>,
    v_entry_addr: Dff<Bits<24>>,
    v_outstanding: Dff<Outstanding>,
}

impl Logic for SqResults {
    describe!("sq_result", "What leaves the table of send queues."; SQE, ERR);

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            w_ready,
            w_list,
            w_qpn,
            w_fetch,
            w_fetch_index,
            w_fetch_count,
            w_epoch,
            w_recall,
            w_round
        );
        dff_setup!(
            self,
            clock,
            w_start,
            w_grant,
            w_retire,
            w_retire_grant,
            w_entry,
            w_tail,
            w_packets,
            w_outstanding
        );
        dff_setup!(
            self,
            clock,
            w_image,
            w_timer,
            w_timer_set,
            w_query,
            w_state,
            w_failed,
            w_status,
            w_close,
            w_drained,
            w_length,
            w_counts
        );
        dff_setup!(
            self,
            clock,
            v_fetch,
            v_fetch_grant,
            v_entry,
            v_entry_addr,
            v_outstanding
        );

        self.e.next = self.sq_event.val();
        self.k.next = self.image.val();
        self.c.next = self.state.val();
        self.t.next = self.terms.val();
        self.v.next = self.verdict.val();

        // stage W
        self.w_grant.d.next.action = self.v.val().action;
        self.w_grant.d.next.psn = self.c.val().next_psn;
        self.w_grant.d.next.offset = self.c.val().exec_offset;
        self.w_grant.d.next.count = self.t.val().part.get_bits::<8>(0);
        self.w_grant.d.next.again = self.c.val().resend.get_bits::<8>(0);
        if self.c.val().resend >= self.t.val().part {
            self.w_grant.d.next.again = self.t.val().part.get_bits::<8>(0);
        }
        if self.t.val().answered {
            // a READ is one packet, however many PSNs it takes
            self.w_grant.d.next.count = bits::<8>(1);
            self.w_grant.d.next.again = bits::<8>(0);
            if self.c.val().resend.any() {
                self.w_grant.d.next.again = bits::<8>(1);
            }
        }
        self.w_grant.d.next.final_part = self.t.val().ends;
        self.w_grant.d.next.fresh = self.t.val().fresh;
        self.w_grant.d.next.round = self.c.val().round;
        self.w_recall.d.next = self.valid.val() & self.v.val().recall;
        self.w_round.d.next = self.v.val().round;
        self.w_entry.d.next = self.valid.val() & self.v.val().entry;
        self.w_ready.d.next = self.valid.val()
            & ((self.v.val().push_ready & !self.c.val().queued)
                | ((self.e.val().kind == SqEventKind::Fetch) & self.v.val().queued));
        self.w_list.d.next = self.valid.val()
            & self.v.val().push_list
            & (!self.c.val().listed | (self.e.val().kind == SqEventKind::Retire));
        self.w_qpn.d.next = self.e.val().qpn;
        self.w_fetch.d.next = self.valid.val()
            & ((self.e.val().kind == SqEventKind::Fetch)
                | ((self.e.val().kind == SqEventKind::Doorbell) & self.e.val().fetches));
        self.w_fetch_index.d.next = self.c.val().fetch_index;
        self.w_fetch_count.d.next = bits::<4>(0);
        if self.t.val().may_fetch
            & ((self.e.val().kind == SqEventKind::Fetch) | !self.c.val().queued)
        {
            self.w_fetch_count.d.next = self.t.val().fetched;
        }
        self.w_epoch.d.next = self.c.val().epoch;
        self.w_start.d.next = self.valid.val() & (self.e.val().kind == SqEventKind::Start);
        self.w_retire.d.next = self.valid.val() & (self.e.val().kind == SqEventKind::Retire);
        self.w_retire_grant.d.next.qpn = self.e.val().qpn;
        self.w_retire_grant.d.next.head = self.c.val().tail - self.c.val().used;
        self.w_retire_grant.d.next.used = self.c.val().used;
        self.w_retire_grant.d.next.head_index = self.c.val().head_index;
        self.w_retire_grant.d.next.una_psn = self.c.val().una_psn;
        self.w_retire_grant.d.next.error =
            ((self.c.val().state == ERR) | (self.c.val().state == SQE)) & !self.c.val().closing;
        self.w_retire_grant.d.next.fatal = (self.c.val().state == ERR) & !self.c.val().closing;
        self.w_retire_grant.d.next.writes = self.c.val().writes;
        self.w_retire_grant.d.next.mtu = self.k.val().mtu;
        self.w_retire_grant.d.next.status = self.c.val().error_status;
        self.w_retire_grant.d.next.syndrome = self.c.val().error_syndrome;
        self.w_retire_grant.d.next.incarnation = self.c.val().incarnation;
        self.w_retire_grant.d.next.cqn = self.k.val().cqn;
        self.w_retire_grant.d.next.ot_base = self.k.val().ot_base;
        self.w_retire_grant.d.next.ot_log = self.k.val().ot_log;
        self.w_retire_grant.d.next.unread = self.c.val().unread;
        self.w_tail.d.next = self.c.val().tail;
        self.w_packets.d.next = self.e.val().packets;
        self.w_outstanding.d.next.first_psn = self.c.val().next_psn;
        self.w_outstanding.d.next.slots = self.e.val().slots;
        self.w_outstanding.d.next.cqe_opcode = self.e.val().cqe_opcode;
        self.w_outstanding.d.next.signaled = self.e.val().signaled;
        self.w_outstanding.d.next.answered = self.t.val().answered;
        self.w_outstanding.d.next.bad = self.e.val().status.any();
        self.w_outstanding.d.next.rest = bit_cast::<13, 8>(self.e.val().status);
        self.w_length.d.next = self.e.val().length;
        self.w_image.d.next = self.k.val();
        self.w_timer.d.next =
            self.valid.val() & (self.v.val().start_timer | self.v.val().stop_timer);
        self.w_timer_set.d.next.qpn = self.e.val().qpn;
        self.w_timer_set.d.next.on = !self.v.val().stop_timer
            & self.t.val().reliable
            & (self.v.val().rnr_timer | self.k.val().timeout.any());
        self.w_timer_set.d.next.generation = self.c.val().timer_generation + 1;
        self.w_timer_set.d.next.rnr = self.v.val().rnr_timer;
        self.w_timer_set.d.next.code = self.k.val().timeout;
        if self.v.val().rnr_timer {
            self.w_timer_set.d.next.code = self.e.val().syndrome.get_bits::<5>(0);
        }
        self.w_query.d.next = self.valid.val() & (self.e.val().kind == SqEventKind::Command);
        self.w_state.d.next.sq_state = bit_cast::<4, 3>(self.c.val().state);
        self.w_state.d.next.sq_psn = self.c.val().next_psn;
        self.w_state.d.next.una_psn = self.c.val().una_psn;
        self.w_failed.d.next = self.valid.val() & self.v.val().fail;
        self.w_status.d.next = self.v.val().status;
        self.w_close.d.next = self.valid.val() & self.v.val().close;
        self.w_drained.d.next = self.valid.val() & self.v.val().drained;
        self.w_counts.d.next = bits::<11>(0);
        if self.valid.val() {
            self.w_counts.d.next = self.v.val().counts;
        }

        // stage V
        self.slot_mask.next = !(bits::<16>(0xffff) << self.w_image.q.val().sq_log);
        self.entry_mask.next = !(bits::<16>(0xffff) << self.w_image.q.val().ot_log);
        self.v_fetch.d.next = self.w_fetch.q.val();
        self.v_fetch_grant.d.next.qpn = self.w_qpn.q.val();
        self.v_fetch_grant.d.next.epoch = self.w_epoch.q.val();
        self.v_fetch_grant.d.next.index = self.w_fetch_index.q.val();
        self.v_fetch_grant.d.next.count = self.w_fetch_count.q.val();
        self.v_fetch_grant.d.next.addr = self.w_image.q.val().sq_base
            + (bit_cast::<64, 16>(self.w_fetch_index.q.val() & self.slot_mask.val()) << 6);
        self.to_last.next = !self.w_fetch_index.q.val() & self.slot_mask.val();
        self.v_fetch_grant.d.next.head = self.w_fetch_count.q.val();
        self.v_fetch_grant.d.next.tail = bits::<4>(0);
        if !self.to_last.val().get_bits::<13>(3).any()
            & (self.to_last.val().get_bits::<4>(0) < self.w_fetch_count.q.val())
        {
            self.v_fetch_grant.d.next.head = self.to_last.val().get_bits::<4>(0) + 1;
            self.v_fetch_grant.d.next.tail =
                self.w_fetch_count.q.val() + !self.to_last.val().get_bits::<4>(0);
        }
        self.v_fetch_grant.d.next.base = self.w_image.q.val().sq_base;
        self.v_entry.d.next = self.w_entry.q.val();
        self.v_entry_addr.d.next = self.w_image.q.val().ot_base
            | bit_cast::<24, 16>(self.w_tail.q.val() & self.entry_mask.val());
        self.v_outstanding.d.next = self.w_outstanding.q.val();
        self.v_outstanding.d.next.last_psn =
            self.w_outstanding.q.val().first_psn + self.w_packets.q.val() - 1;
        // MTU code c is 128 << c bytes; the last packet has at least one byte, unless the message has none
        self.mtu_mask.next = !(bits::<13>(0x1f80) << self.w_image.q.val().mtu);
        if self.w_outstanding.q.val().answered {
            self.v_outstanding.d.next.rest =
                self.w_length.q.val().get_bits::<13>(0) & self.mtu_mask.val();
            if self.w_length.q.val().any()
                & ((self.w_length.q.val().get_bits::<13>(0) & self.mtu_mask.val()) == 0)
            {
                self.v_outstanding.d.next.rest = bits::<13>(128) << self.w_image.q.val().mtu;
            }
        }

        self.ready_valid.next = self.w_ready.q.val();
        self.list_valid.next = self.w_list.q.val();
        self.list_qpn.next = self.w_qpn.q.val();
        self.fetch_valid.next = self.v_fetch.q.val();
        self.fetch.next = self.v_fetch_grant.q.val();
        self.start_valid.next = self.w_start.q.val();
        self.start.next = self.w_grant.q.val();
        self.retire_valid.next = self.w_retire.q.val();
        self.retire.next = self.w_retire_grant.q.val();
        self.entry_valid.next = self.v_entry.q.val();
        self.entry_addr.next = self.v_entry_addr.q.val();
        self.entry.next = self.v_outstanding.q.val();
        self.recall_valid.next = self.w_recall.q.val();
        self.recall.next.qpn = self.w_qpn.q.val();
        self.recall.next.round = self.w_round.q.val();
        self.timer_valid.next = self.w_timer.q.val();
        self.timer.next = self.w_timer_set.q.val();
        self.query_valid.next = self.w_query.q.val();
        self.query.next = self.w_state.q.val();
        self.failed_valid.next = self.w_failed.q.val();
        self.failed_qpn.next = self.w_qpn.q.val();
        self.failed_status.next = self.w_status.q.val();
        self.close_valid.next = self.w_close.q.val();
        self.close_qpn.next = self.w_qpn.q.val();
        self.drained_valid.next = self.w_drained.q.val();
        self.drained_qpn.next = self.w_qpn.q.val();
        self.counts.next = self.w_counts.q.val();
    }
}
