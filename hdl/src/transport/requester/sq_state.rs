//! The dynamic state of all send queues and the rules that change it.
//!
//! One [`SqEvent`] a cycle enters at `s`, one of the same queue pair every second cycle; four cycles later its results
//! leave, registered: at most one entry for each list, one grant and one order for timer and outstanding table. Consumers have room by
//! construction: each queue pair stands at most once in a list (`queued`, `listed`), and grants answer requests whose
//! origin reserved a place. Grants come in the order of their events.
//!
//! Stage X, two cycles after the entry, sees the state after all earlier events ([`Rmw`]) and compares; stage Y applies
//! the rules; what is not part of the state's feedback (addresses, outstanding entry) is finished behind it.
//!
//! Rules and their sources: docs/architecture.md 3.3; IBA vol. 1, 9.7.5 to 9.7.8 (requester).
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::qpc::state;
use ferroce_proto::wire::{NakCode, Syndrome};

use super::event::*;
use crate::bus::types::image::{QpState, SqCtx};
use crate::prelude::*;

const RESET: u64 = state::RESET as u64;
const RTS: u64 = state::RTS as u64;
const SQD: u64 = state::SQD as u64;
const ERR: u64 = state::ERR as u64;
const RNR_RETRY_EXC_ERR: u64 = status::RNR_RETRY_EXC_ERR as u64;
const RETRY_EXC_ERR: u64 = status::RETRY_EXC_ERR as u64;
const REM_INV_REQ_ERR: u64 = status::REM_INV_REQ_ERR as u64;
const REM_ACCESS_ERR: u64 = status::REM_ACCESS_ERR as u64;
const REM_OP_ERR: u64 = status::REM_OP_ERR as u64;
const BAD_RESP_ERR: u64 = status::BAD_RESP_ERR as u64;
const NAK_SEQUENCE: u64 = Syndrome::Nak(NakCode::PsnSequence).bits() as u64;
const NAK_INVALID: u64 = Syndrome::Nak(NakCode::InvalidRequest).bits() as u64;
const NAK_ACCESS: u64 = Syndrome::Nak(NakCode::RemoteAccess).bits() as u64;
const NAK_OPERATIONAL: u64 = Syndrome::Nak(NakCode::RemoteOperational).bits() as u64;

/// State of 2^Q send queues.
#[derive(LogicBlock, Default)]
pub struct SqStateTable<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Events.
    pub s: StreamIn<SqEvent>,
    /// A command writes the static image of queue pair `image_qpn`.
    pub image_we: Signal<In, Bit>,
    /// Queue pair of that image.
    pub image_qpn: Signal<In, Bits<Q>>,
    /// The image.
    pub image: Signal<In, SqCtx>,
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
    /// Counter pulses, from bit 0: packet_seq_err, rnr_nak_received, remote_errors, rx_acks (positive, in the window),
    /// rx_ghost_acks (outside of it), local_ack_timeout_err, retry_exceeded_err, rnr_nak_retry_err.
    pub counts: Signal<Out, Bits<8>>,
    /// The table is swept after reset.
    pub ready: Signal<Out, Bit>,

    table: Rmw<SqState, Q, 2>,
    images: Ram<SqCtx, Q>,
    e1: Dff<SqEvent>,
    e2: Dff<SqEvent>,
    e3: Dff<SqEvent>,
    k2: Dff<SqCtx>,
    k3: Dff<SqCtx>,
    c3: Dff<SqState>,
    t3: Dff<SqTerms>,
    valid_3: Reg<Bit>,

    // stage X: the event, the static image and the state
    ex: Signal<Local, SqEvent>,
    kx: Signal<Local, SqCtx>,
    cx: Signal<Local, SqState>,
    available: Signal<Local, Bits<16>>,
    to_boundary: Signal<Local, Bits<16>>,
    quantum: Signal<Local, Bits<24>>,
    left: Signal<Local, Bits<24>>,
    is_running: Signal<Local, Bit>,
    distance: Signal<Local, Bits<24>>,

    // stage Y: the rules
    e: Signal<Local, SqEvent>,
    k: Signal<Local, SqCtx>,
    c: Signal<Local, SqState>,
    t: Signal<Local, SqTerms>,
    n: Signal<Local, SqState>,
    kind: Signal<Local, SqEventKind>,
    write: Signal<Local, Bit>,
    push_ready: Signal<Local, Bit>,
    push_list: Signal<Local, Bit>,
    stop: Signal<Local, Bit>,
    fail: Signal<Local, Bit>,
    verdict: Signal<Local, Bits<3>>,
    acked: Signal<Local, Bit>,
    /// Responses are heard.
    open: Signal<Local, Bit>,
    start_timer: Signal<Local, Bit>,
    rnr_timer: Signal<Local, Bit>,
    stop_timer: Signal<Local, Bit>,

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
    w_timer: Reg<Bit>,
    w_timer_set: Dff<TimerSet>,
    w_query: Reg<Bit>,
    w_state: Dff<QpState>,
    w_failed: Reg<Bit>,
    w_counts: Reg<Bits<8>>,
    count: Signal<Local, Bits<8>>,

    // stage V: addresses
    slot_mask: Signal<Local, Bits<16>>,
    entry_mask: Signal<Local, Bits<16>>,
    v_fetch: Reg<Bit>,
    v_fetch_grant: Dff<FetchGrant>,
    v_entry: Reg<Bit>,
    v_entry_addr: Dff<Bits<24>>,
    v_outstanding: Dff<Outstanding>,
}

impl<const Q: usize> Logic for SqStateTable<Q> {
    describe!(
        "sq_state",
        format!("q{Q}"),
        "Dynamic state of all send queues: one event a cycle.";
        RESET, RTS, SQD, ERR, RNR_RETRY_EXC_ERR, RETRY_EXC_ERR, REM_INV_REQ_ERR, REM_ACCESS_ERR, REM_OP_ERR, BAD_RESP_ERR,
        NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS, NAK_OPERATIONAL
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, table, images);
        dff_setup!(
            self,
            clock,
            e1,
            e2,
            e3,
            k3,
            c3,
            t3,
            valid_3,
            k2,
            w_ready,
            w_list,
            w_qpn,
            w_fetch,
            w_fetch_index,
            w_fetch_count,
            w_epoch
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

        // entry and stage 1
        self.ready.next = self.table.ready.val();
        self.table.addr.next = self.s.payload.val().qpn.get_bits::<Q>(0);
        self.s.ready.next = self.table.ready.val() & !self.table.clash.val();
        self.table.valid.next =
            self.s.valid.val() & self.table.ready.val() & !self.table.clash.val();
        self.images.we.next = self.image_we.val();
        self.images.waddr.next = self.image_qpn.val();
        self.images.wdata.next = self.image.val();
        self.images.re.next = true;
        self.images.raddr.next = self.s.payload.val().qpn.get_bits::<Q>(0);
        self.e1.d.next = self.s.payload.val();
        self.e2.d.next = self.e1.q.val();
        self.k2.d.next = self.images.rdata.val();

        // stage X
        self.ex.next = self.e2.q.val();
        self.kx.next = self.k2.q.val();
        self.cx.next = self.table.current.val();
        // in SQD what was started goes on, and nothing else starts
        self.is_running.next = ((self.cx.val().state == RTS)
            | ((self.cx.val().state == SQD) & self.cx.val().behind.any()))
            & !self.cx.val().rewind
            & !self.cx.val().rnr_wait
            & !self.cx.val().broken;
        self.t3.d.next.running = self.is_running.val();
        self.t3.d.next.may_fetch = (self.is_running.val() & !self.cx.val().blocked)
            | ((self.cx.val().state == ERR) & (self.cx.val().used == 0));
        // Fetch: up to the next multiple of 8 slots, or of the slots of a smaller ring, so that no read wraps around it
        self.available.next = self.cx.val().producer - self.cx.val().fetch_index;
        self.to_boundary.next =
            bits::<16>(8) - bit_cast::<16, 3>(self.cx.val().fetch_index.get_bits::<3>(0));
        if self.kx.val().sq_log == 2 {
            self.to_boundary.next =
                bits::<16>(4) - bit_cast::<16, 2>(self.cx.val().fetch_index.get_bits::<2>(0));
        } else if self.kx.val().sq_log == 1 {
            self.to_boundary.next =
                bits::<16>(2) - bit_cast::<16, 1>(self.cx.val().fetch_index.get_bits::<1>(0));
        } else if self.kx.val().sq_log == 0 {
            self.to_boundary.next = bits::<16>(1);
        }
        self.t3.d.next.more = self.available.val() > self.to_boundary.val();
        self.t3.d.next.fetched = self.to_boundary.val().get_bits::<4>(0);
        if self.available.val() < self.to_boundary.val() {
            self.t3.d.next.fetched = self.available.val().get_bits::<4>(0);
        }
        // Start: how much of the message may go now
        self.quantum.next = bits::<24>(128);
        if self.kx.val().mtu == 3 {
            self.quantum.next = bits::<24>(64);
        }
        if self.kx.val().mtu == 4 {
            self.quantum.next = bits::<24>(32);
        }
        if self.kx.val().mtu == 5 {
            self.quantum.next = bits::<24>(16);
        }
        self.left.next = self.ex.val().packets - self.cx.val().exec_offset;
        self.t3.d.next.ends = self.left.val() <= self.quantum.val();
        self.t3.d.next.part = self.quantum.val();
        if self.left.val() <= self.quantum.val() {
            self.t3.d.next.part = self.left.val();
        }
        self.t3.d.next.fits = (self.ex.val().epoch == self.cx.val().epoch)
            & (self.ex.val().index == self.cx.val().exec_index);
        self.t3.d.next.fresh = self.cx.val().behind == 0;
        self.t3.d.next.room = !((self.cx.val().behind == 0)
            & self.cx.val().used.get_bit(self.kx.val().ot_log.index()))
            & !self.cx.val().inflight.get_bits::<11>(13).any();
        // Ack
        self.distance.next = self.ex.val().psn - self.cx.val().una_psn;
        self.t3.d.next.in_window = self.distance.val() < self.cx.val().inflight;
        self.t3.d.next.progress = self.distance.val();
        if self.ex.val().syndrome.get_bits::<3>(5) == 0 {
            self.t3.d.next.progress = self.distance.val() + 1;
        }
        self.t3.d.next.retry = self.cx.val().retry;
        self.t3.d.next.rnr_retry = self.cx.val().rnr_retry;
        if (self.ex.val().syndrome.get_bits::<2>(5) == 0)
            | (self.ex.val().psn != self.cx.val().una_psn)
        {
            self.t3.d.next.retry = self.kx.val().retry_cnt;
            self.t3.d.next.rnr_retry = self.kx.val().rnr_retry;
        }
        self.t3.d.next.ahead = self.cx.val().inflight - self.cx.val().resend;
        // Retired, Timeout
        self.t3.d.next.used_after = self.cx.val().used - self.ex.val().count;
        self.t3.d.next.same_una = self.ex.val().una_psn == self.cx.val().una_psn;
        self.t3.d.next.current = self.ex.val().generation == self.cx.val().incarnation;
        self.t3.d.next.timed_out =
            self.cx.val().timer_on & (self.ex.val().generation == self.cx.val().timer_generation);
        self.e3.d.next = self.e2.q.val();
        self.k3.d.next = self.k2.q.val();
        self.c3.d.next = self.table.current.val();
        self.valid_3.d.next = self.table.x_valid.val();

        // stage Y
        self.e.next = self.e3.q.val();
        self.k.next = self.k3.q.val();
        self.c.next = self.c3.q.val();
        self.t.next = self.t3.q.val();
        self.n.next = self.c3.q.val();
        self.kind.next = self.e3.q.val().kind;
        self.write.next = true;
        self.push_ready.next = false;
        self.push_list.next = false;
        self.stop.next = false;
        self.fail.next = false;
        self.start_timer.next = false;
        self.rnr_timer.next = false;
        self.stop_timer.next = false;
        self.count.next = bits::<8>(0);
        self.open.next = (self.c.val().state == RTS) | (self.c.val().state == SQD);
        // 0 acknowledge, 1 RNR, 3 NAK, else reserved
        self.verdict.next = self.e.val().syndrome.get_bits::<3>(5);
        self.acked.next = self.verdict.val() == 0;

        self.w_grant.d.next.action = bits::<2>(0);
        self.w_grant.d.next.psn = self.c.val().next_psn;
        self.w_grant.d.next.offset = self.c.val().exec_offset;
        self.w_grant.d.next.count = self.t.val().part.get_bits::<8>(0);
        self.w_grant.d.next.again = self.c.val().resend.get_bits::<8>(0);
        if self.c.val().resend >= self.t.val().part {
            self.w_grant.d.next.again = self.t.val().part.get_bits::<8>(0);
        }
        self.w_grant.d.next.final_part = self.t.val().ends;
        self.w_entry.d.next = false;

        match self.kind.val() {
            SqEventKind::Doorbell => {
                self.n.next.producer = self.e.val().index;
                self.push_ready.next = (self.c.val().state != RESET)
                    & (self.e.val().index != self.c.val().fetch_index);
            }
            SqEventKind::Fetch => {
                self.n.next.queued = false;
                if self.t.val().may_fetch & (self.t.val().fetched != 0) {
                    self.n.next.fetch_index =
                        self.c.val().fetch_index + bit_cast::<16, 4>(self.t.val().fetched);
                    // still in the FIFO's care: goes to its tail at once
                    self.n.next.queued = self.t.val().more;
                }
            }
            SqEventKind::Start => {
                if self.t.val().fits {
                    if self.c.val().state == ERR {
                        if self.c.val().used == 0 {
                            self.w_grant.d.next.action = bits::<2>(2);
                            self.n.next.exec_index =
                                self.c.val().exec_index + bit_cast::<16, 3>(self.e.val().slots);
                        } else {
                            self.stop.next = true;
                        }
                    } else if self.t.val().running & self.t.val().room {
                        self.w_grant.d.next.action = bits::<2>(1);
                        self.n.next.next_psn = self.c.val().next_psn + self.t.val().part;
                        if self.c.val().resend >= self.t.val().part {
                            self.n.next.resend = self.c.val().resend - self.t.val().part;
                        } else {
                            self.n.next.resend = bits::<24>(0);
                            self.n.next.inflight = self.t.val().ahead + self.t.val().part;
                        }
                        if self.t.val().fresh {
                            self.w_entry.d.next = self.valid_3.q.val();
                            self.n.next.tail = self.c.val().tail + 1;
                            self.n.next.used = self.c.val().used + 1;
                            if !self.t.val().ends {
                                self.n.next.behind = bits::<16>(1);
                            }
                        } else if self.t.val().ends {
                            self.n.next.behind = self.c.val().behind - 1;
                        }
                        if self.t.val().ends {
                            self.n.next.exec_offset = bits::<24>(0);
                            self.n.next.exec_index =
                                self.c.val().exec_index + bit_cast::<16, 3>(self.e.val().slots);
                        } else {
                            self.n.next.exec_offset = self.c.val().exec_offset + self.t.val().part;
                            self.stop.next = true;
                            self.push_ready.next = true;
                        }
                        self.start_timer.next = !self.c.val().timer_on & (self.t.val().part != 0);
                        // a WQE that cannot run is retired like any other, in its turn
                        if self.e.val().status != 0 {
                            self.push_list.next = true;
                            self.n.next.broken = true;
                            self.stop.next = true;
                        }
                    } else {
                        self.stop.next = true;
                        self.n.next.blocked = self.t.val().running;
                    }
                }
            }
            SqEventKind::Ack => {
                if self.t.val().in_window & self.open.val() {
                    self.n.next.una_psn = self.c.val().una_psn + self.t.val().progress;
                    self.n.next.inflight = self.c.val().inflight - self.t.val().progress;
                    if self.t.val().progress > self.t.val().ahead {
                        // what was to be sent again has arrived after all
                        self.n.next.next_psn = self.c.val().una_psn + self.t.val().progress;
                        self.n.next.resend = self.c.val().inflight - self.t.val().progress;
                        self.n.next.rewind = true;
                        self.stop.next = true;
                    }
                    if self.t.val().progress != 0 {
                        self.n.next.retry = self.t.val().retry;
                        self.n.next.rnr_retry = self.t.val().rnr_retry;
                        self.push_list.next = true;
                        if self.t.val().progress == self.c.val().inflight {
                            self.stop_timer.next = true;
                        } else {
                            self.start_timer.next = true;
                        }
                    }
                    self.n.next.error_syndrome = self.e.val().syndrome;
                    if self.acked.val() {
                        self.count.next = bits::<8>(8);
                        self.n.next.rnr_wait = self.c.val().rnr_wait & (self.t.val().progress == 0);
                    } else if self.verdict.val() == 1 {
                        self.count.next = bits::<8>(2);
                        // a second one for the same packet does not make the wait longer
                        if !self.c.val().rnr_wait | (self.t.val().progress != 0) {
                            if self.t.val().rnr_retry == 0 {
                                self.fail.next = true;
                                self.n.next.error_status = RNR_RETRY_EXC_ERR.into();
                                self.count.next = bits::<8>(0x82);
                            } else {
                                if self.t.val().rnr_retry != 7 {
                                    self.n.next.rnr_retry = self.t.val().rnr_retry - 1;
                                }
                                self.n.next.rnr_wait = true;
                                self.n.next.rewind = true;
                                self.stop.next = true;
                                self.push_list.next = true;
                                self.start_timer.next = true;
                                self.rnr_timer.next = true;
                                self.stop_timer.next = false;
                            }
                        }
                    } else if self.e.val().syndrome == NAK_SEQUENCE {
                        self.count.next = bits::<8>(1);
                        // the NAK that some responders send after an RNR NAK must not cut the wait short
                        if !self.c.val().rnr_wait & !self.c.val().rewind {
                            if self.t.val().retry == 0 {
                                self.fail.next = true;
                                self.n.next.error_status = RETRY_EXC_ERR.into();
                                self.n.next.error_syndrome = bits::<8>(0);
                                self.count.next = bits::<8>(0x41);
                            } else {
                                self.n.next.retry = self.t.val().retry - 1;
                                self.n.next.rewind = true;
                                self.stop.next = true;
                                self.push_list.next = true;
                                self.start_timer.next = true;
                            }
                        }
                    } else {
                        self.count.next = bits::<8>(4);
                        self.fail.next = true;
                        self.n.next.error_status = BAD_RESP_ERR.into();
                        if self.e.val().syndrome == NAK_INVALID {
                            self.n.next.error_status = REM_INV_REQ_ERR.into();
                        }
                        if self.e.val().syndrome == NAK_ACCESS {
                            self.n.next.error_status = REM_ACCESS_ERR.into();
                        }
                        if self.e.val().syndrome == NAK_OPERATIONAL {
                            self.n.next.error_status = REM_OP_ERR.into();
                        }
                    }
                } else {
                    self.count.next = bits::<8>(16);
                }
            }
            SqEventKind::Timeout => {
                if self.t.val().timed_out {
                    self.n.next.timer_on = false;
                    if self.c.val().rnr_wait {
                        self.n.next.rnr_wait = false;
                        self.push_ready.next = true;
                    } else if self.c.val().inflight != 0 {
                        self.count.next = bits::<8>(32);
                        if self.c.val().retry == 0 {
                            self.fail.next = true;
                            self.n.next.error_status = RETRY_EXC_ERR.into();
                            self.n.next.error_syndrome = bits::<8>(0);
                            self.count.next = bits::<8>(0x60);
                        } else {
                            self.n.next.retry = self.c.val().retry - 1;
                            self.n.next.rewind = true;
                            self.stop.next = true;
                            self.push_list.next = true;
                            self.start_timer.next = true;
                        }
                    }
                }
            }
            SqEventKind::Retire => {
                self.n.next.listed = false;
                self.n.next.error_status = bits::<8>(0);
            }
            SqEventKind::Retired => {
                if self.t.val().current {
                    self.n.next.used = self.t.val().used_after;
                    self.n.next.head_index = self.e.val().index;
                    self.n.next.blocked = false;
                    if self.c.val().rewind {
                        if self.t.val().same_una {
                            self.n.next.rewind = false;
                            // a WQE that cannot run is met again behind what is sent again
                            self.n.next.broken = false;
                            self.n.next.behind = self.t.val().used_after;
                            self.n.next.exec_index = self.e.val().index;
                            self.n.next.exec_offset = self.c.val().una_psn - self.e.val().psn;
                            self.n.next.next_psn = self.c.val().una_psn;
                            self.n.next.resend = self.c.val().inflight;
                            self.stop.next = true;
                        } else {
                            self.push_list.next = true;
                        }
                    }
                    if (self.e.val().status != 0) & self.open.val() {
                        self.fail.next = true;
                        self.n.next.error_status = bits::<8>(0);
                    } else if self.c.val().state == ERR {
                        self.push_list.next = self.t.val().used_after.any();
                    }
                    self.push_ready.next = true;
                }
            }
            SqEventKind::Command => {
                if self.e.val().set {
                    self.n.next.state = self.e.val().state;
                    self.stop.next = true;
                    self.push_ready.next = self.e.val().state != RESET;
                    self.push_list.next = self.e.val().state == ERR;
                    self.n.next.error_status = bits::<8>(0);
                }
                if self.e.val().reset {
                    self.n.next.incarnation = self.c.val().incarnation + 1;
                    self.n.next.blocked = false;
                    self.n.next.rnr_wait = false;
                    self.n.next.rewind = false;
                    self.n.next.broken = false;
                    self.n.next.exec_index = bits::<16>(0);
                    self.n.next.exec_offset = bits::<24>(0);
                    self.n.next.next_psn = self.e.val().psn;
                    self.n.next.una_psn = self.e.val().psn;
                    self.n.next.inflight = bits::<24>(0);
                    self.n.next.resend = bits::<24>(0);
                    self.n.next.used = bits::<16>(0);
                    self.n.next.behind = bits::<16>(0);
                    self.n.next.head_index = bits::<16>(0);
                    self.n.next.retry = self.k.val().retry_cnt;
                    self.n.next.rnr_retry = self.k.val().rnr_retry;
                    self.stop_timer.next = true;
                }
            }
            SqEventKind::Failed => {
                // neither in RESET nor failed before
                if (self.c.val().state != RESET) & (self.c.val().state != ERR) {
                    self.fail.next = true;
                    self.n.next.error_status = self.e.val().status;
                    self.n.next.error_syndrome = bits::<8>(0);
                }
            }
            _ => {
                self.write.next = false;
            }
        }

        if self.fail.val() {
            self.n.next.state = ERR.into();
            self.n.next.rewind = false;
            self.n.next.rnr_wait = false;
            self.stop.next = true;
            self.push_list.next = true;
            self.stop_timer.next = true;
            self.start_timer.next = false;
        }
        if self.stop.val() {
            self.n.next.epoch = self.c.val().epoch + 1;
            self.n.next.fetch_index = self.n.val().exec_index;
        }
        if self.stop_timer.val() {
            self.n.next.timer_on = false;
            self.n.next.timer_generation = self.c.val().timer_generation + 1;
        } else if self.start_timer.val() {
            self.n.next.timer_on = true;
            self.n.next.timer_generation = self.c.val().timer_generation + 1;
        }
        if self.push_ready.val() {
            self.n.next.queued = true;
        }
        if self.push_list.val() {
            self.n.next.listed = true;
        }
        self.table.write.next = self.write.val();
        self.table.result.next = self.n.val();

        // stage W
        self.w_ready.d.next = self.valid_3.q.val()
            & ((self.push_ready.val() & !self.c.val().queued)
                | ((self.kind.val() == SqEventKind::Fetch) & self.n.val().queued));
        self.w_list.d.next = self.valid_3.q.val()
            & self.push_list.val()
            & (!self.c.val().listed | (self.kind.val() == SqEventKind::Retire));
        self.w_qpn.d.next = self.e.val().qpn;
        self.w_fetch.d.next = self.valid_3.q.val() & (self.kind.val() == SqEventKind::Fetch);
        self.w_fetch_index.d.next = self.c.val().fetch_index;
        self.w_fetch_count.d.next = bits::<4>(0);
        if self.t.val().may_fetch {
            self.w_fetch_count.d.next = self.t.val().fetched;
        }
        self.w_epoch.d.next = self.c.val().epoch;
        self.w_start.d.next = self.valid_3.q.val() & (self.kind.val() == SqEventKind::Start);
        self.w_retire.d.next = self.valid_3.q.val() & (self.kind.val() == SqEventKind::Retire);
        self.w_retire_grant.d.next.qpn = self.e.val().qpn;
        self.w_retire_grant.d.next.head = self.c.val().tail - self.c.val().used;
        self.w_retire_grant.d.next.used = self.c.val().used;
        self.w_retire_grant.d.next.head_index = self.c.val().head_index;
        self.w_retire_grant.d.next.una_psn = self.c.val().una_psn;
        self.w_retire_grant.d.next.error = self.c.val().state == ERR;
        self.w_retire_grant.d.next.status = self.c.val().error_status;
        self.w_retire_grant.d.next.syndrome = self.c.val().error_syndrome;
        self.w_retire_grant.d.next.incarnation = self.c.val().incarnation;
        self.w_retire_grant.d.next.cqn = self.k.val().cqn;
        self.w_retire_grant.d.next.ot_base = self.k.val().ot_base;
        self.w_retire_grant.d.next.ot_log = self.k.val().ot_log;
        self.w_tail.d.next = self.c.val().tail;
        self.w_packets.d.next = self.e.val().packets;
        self.w_outstanding.d.next.first_psn = self.c.val().next_psn;
        self.w_outstanding.d.next.slots = self.e.val().slots;
        self.w_outstanding.d.next.cqe_opcode = self.e.val().cqe_opcode;
        self.w_outstanding.d.next.signaled = self.e.val().signaled;
        self.w_outstanding.d.next.status = self.e.val().status.get_bits::<5>(0);
        self.w_image.d.next = self.k.val();
        self.w_timer.d.next =
            self.valid_3.q.val() & (self.start_timer.val() | self.stop_timer.val());
        self.w_timer_set.d.next.qpn = self.e.val().qpn;
        self.w_timer_set.d.next.on =
            !self.stop_timer.val() & (self.rnr_timer.val() | self.k.val().timeout.any());
        self.w_timer_set.d.next.generation = self.c.val().timer_generation + 1;
        self.w_timer_set.d.next.rnr = self.rnr_timer.val();
        self.w_timer_set.d.next.code = self.k.val().timeout;
        if self.rnr_timer.val() {
            self.w_timer_set.d.next.code = self.e.val().syndrome.get_bits::<5>(0);
        }
        self.w_query.d.next = self.valid_3.q.val() & (self.kind.val() == SqEventKind::Command);
        self.w_state.d.next.sq_state = bit_cast::<4, 3>(self.c.val().state);
        self.w_state.d.next.sq_psn = self.c.val().next_psn;
        self.w_state.d.next.una_psn = self.c.val().una_psn;
        self.w_failed.d.next = self.valid_3.q.val() & self.fail.val();
        self.w_counts.d.next = bits::<8>(0);
        if self.valid_3.q.val() {
            self.w_counts.d.next = self.count.val();
        }

        // stage V
        self.slot_mask.next = (bits::<16>(1) << self.w_image.q.val().sq_log) - 1;
        self.entry_mask.next = (bits::<16>(1) << self.w_image.q.val().ot_log) - 1;
        self.v_fetch.d.next = self.w_fetch.q.val();
        self.v_fetch_grant.d.next.qpn = self.w_qpn.q.val();
        self.v_fetch_grant.d.next.epoch = self.w_epoch.q.val();
        self.v_fetch_grant.d.next.index = self.w_fetch_index.q.val();
        self.v_fetch_grant.d.next.count = self.w_fetch_count.q.val();
        self.v_fetch_grant.d.next.addr = self.w_image.q.val().sq_base
            + (bit_cast::<64, 16>(self.w_fetch_index.q.val() & self.slot_mask.val()) << 6);
        self.v_entry.d.next = self.w_entry.q.val();
        self.v_entry_addr.d.next = self.w_image.q.val().ot_base
            | bit_cast::<24, 16>(self.w_tail.q.val() & self.entry_mask.val());
        self.v_outstanding.d.next = self.w_outstanding.q.val();
        self.v_outstanding.d.next.last_psn =
            self.w_outstanding.q.val().first_psn + self.w_packets.q.val() - 1;

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
        self.timer_valid.next = self.w_timer.q.val();
        self.timer.next = self.w_timer_set.q.val();
        self.query_valid.next = self.w_query.q.val();
        self.query.next = self.w_state.q.val();
        self.failed_valid.next = self.w_failed.q.val();
        self.failed_qpn.next = self.w_qpn.q.val();
        self.counts.next = self.w_counts.q.val();
    }
}
