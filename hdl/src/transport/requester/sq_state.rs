//! The dynamic state of all send queues and the rules that change it.
//!
//! One [`SqEvent`] a cycle enters at `s` (always ready once `ready`); three cycles later its results leave, registered:
//! at most one entry for each list, one grant and one order for timer and outstanding table. Consumers have room by
//! construction: each queue pair stands at most once in a list (`queued`, `listed`), and grants answer requests whose
//! origin reserved a place. Grants come in the order of their events.
//!
//! Stage X, two cycles after the entry, sees the state after all earlier events ([`Rmw`]); everything that is not part
//! of the state's feedback (addresses, outstanding entry) is finished in the stage behind it.
//!
//! Rules and their sources: docs/architecture.md 3.3; IBA vol. 1, 9.7.5 to 9.7.8 (requester).
use super::event::*;
use crate::bus::types::image::{QpState, SqCtx};
use crate::prelude::*;

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

    table: Rmw<SqState, Q>,
    images: Ram<SqCtx, Q>,
    e1: Dff<SqEvent>,
    e2: Dff<SqEvent>,
    k2: Dff<SqCtx>,

    // stage X
    e: Signal<Local, SqEvent>,
    k: Signal<Local, SqCtx>,
    c: Signal<Local, SqState>,
    n: Signal<Local, SqState>,
    kind: Signal<Local, SqEventKind>,
    write: Signal<Local, Bit>,
    push_ready: Signal<Local, Bit>,
    push_list: Signal<Local, Bit>,
    stop: Signal<Local, Bit>,
    fail: Signal<Local, Bit>,
    running: Signal<Local, Bit>,
    available: Signal<Local, Bits<16>>,
    room: Signal<Local, Bits<16>>,
    fetched: Signal<Local, Bits<16>>,
    may_fetch: Signal<Local, Bit>,
    fits: Signal<Local, Bit>,
    ring_full: Signal<Local, Bit>,
    quantum: Signal<Local, Bits<24>>,
    left: Signal<Local, Bits<24>>,
    part: Signal<Local, Bits<24>>,
    ends: Signal<Local, Bit>,
    fresh: Signal<Local, Bit>,
    verdict: Signal<Local, Bits<2>>,
    distance: Signal<Local, Bits<24>>,
    in_window: Signal<Local, Bit>,
    progress: Signal<Local, Bits<24>>,
    ahead: Signal<Local, Bits<24>>,
    acked: Signal<Local, Bit>,
    used_after: Signal<Local, Bits<16>>,
    same_una: Signal<Local, Bit>,
    is_same: Signal<Local, Bit>,
    timed_out: Signal<Local, Bit>,
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
        "Dynamic state of all send queues: one event a cycle."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, table, images);
        dff_setup!(
            self,
            clock,
            e1,
            e2,
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
        self.s.ready.next = self.table.ready.val();
        self.table.valid.next = self.s.valid.val() & self.table.ready.val();
        self.table.addr.next = self.s.payload.val().qpn.get_bits::<Q>(0);
        self.images.we.next = self.image_we.val();
        self.images.waddr.next = self.image_qpn.val();
        self.images.wdata.next = self.image.val();
        self.images.re.next = true;
        self.images.raddr.next = self.s.payload.val().qpn.get_bits::<Q>(0);
        self.e1.d.next = self.s.payload.val();
        self.e2.d.next = self.e1.q.val();
        self.k2.d.next = self.images.rdata.val();

        // stage X
        self.e.next = self.e2.q.val();
        self.k.next = self.k2.q.val();
        self.c.next = self.table.current.val();
        self.n.next = self.table.current.val();
        self.kind.next = self.e.val().kind;
        self.write.next = true;
        self.push_ready.next = false;
        self.push_list.next = false;
        self.stop.next = false;
        self.fail.next = false;
        self.start_timer.next = false;
        self.rnr_timer.next = false;
        self.stop_timer.next = false;
        self.count.next = bits::<8>(0);
        self.running.next =
            (self.c.val().state == 3) & !self.c.val().rewind & !self.c.val().rnr_wait;

        // Fetch: up to the next multiple of 8 slots, so that no read wraps around the ring
        self.available.next = self.c.val().producer - self.c.val().fetch_index;
        self.room.next =
            bits::<16>(8) - bit_cast::<16, 3>(self.c.val().fetch_index.get_bits::<3>(0));
        self.fetched.next = self.room.val();
        if self.available.val() < self.room.val() {
            self.fetched.next = self.available.val();
        }
        self.may_fetch.next = (self.running.val() & !self.c.val().blocked)
            | ((self.c.val().state == 6) & (self.c.val().used == 0));

        // Start: how much of the message may go now
        self.quantum.next = bits::<24>(64);
        if self.k.val().mtu == 4 {
            self.quantum.next = bits::<24>(32);
        }
        if self.k.val().mtu == 5 {
            self.quantum.next = bits::<24>(16);
        }
        self.left.next = self.e.val().packets - self.c.val().exec_offset;
        self.ends.next = self.left.val() <= self.quantum.val();
        self.part.next = self.quantum.val();
        if self.ends.val() {
            self.part.next = self.left.val();
        }
        self.fits.next = (self.e.val().epoch == self.c.val().epoch)
            & (self.e.val().index == self.c.val().exec_index);
        self.ring_full.next = self.c.val().used.get_bit(self.k.val().ot_log.index());
        self.fresh.next = self.c.val().behind == 0;

        // Ack: 0 acknowledge, 1 RNR, 3 NAK
        self.verdict.next = self.e.val().syndrome.get_bits::<2>(5);
        self.acked.next = self.verdict.val() == 0;
        self.distance.next = self.e.val().psn - self.c.val().una_psn;
        self.in_window.next = self.distance.val() < self.c.val().inflight;
        self.progress.next = self.distance.val();
        if self.acked.val() {
            self.progress.next = self.distance.val() + 1;
        }
        self.ahead.next = self.c.val().inflight - self.c.val().resend;

        // Retired
        self.used_after.next = self.c.val().used - self.e.val().count;
        self.same_una.next = self.e.val().una_psn == self.c.val().una_psn;
        self.is_same.next = self.e.val().generation == self.c.val().incarnation;
        self.timed_out.next =
            self.c.val().timer_on & (self.e.val().generation == self.c.val().timer_generation);

        self.w_grant.d.next.action = bits::<2>(0);
        self.w_grant.d.next.psn = self.c.val().next_psn;
        self.w_grant.d.next.offset = self.c.val().exec_offset;
        self.w_grant.d.next.count = self.part.val().get_bits::<8>(0);
        self.w_grant.d.next.final_part = self.ends.val();
        self.w_entry.d.next = false;

        match self.kind.val() {
            SqEventKind::Doorbell => {
                self.n.next.producer = self.e.val().index;
                self.push_ready.next =
                    (self.c.val().state != 0) & (self.e.val().index != self.c.val().fetch_index);
            }
            SqEventKind::Fetch => {
                self.n.next.queued = false;
                if self.may_fetch.val() & (self.available.val() != 0) {
                    self.n.next.fetch_index = self.c.val().fetch_index + self.fetched.val();
                    // still in the FIFO's care: goes to its tail at once
                    self.n.next.queued = self.available.val() > self.room.val();
                }
            }
            SqEventKind::Start => {
                if self.fits.val() {
                    if self.c.val().state == 6 {
                        if self.c.val().used == 0 {
                            self.w_grant.d.next.action = bits::<2>(2);
                            self.n.next.exec_index =
                                self.c.val().exec_index + bit_cast::<16, 3>(self.e.val().slots);
                        } else {
                            self.stop.next = true;
                        }
                    } else if self.running.val()
                        & !(self.fresh.val() & self.ring_full.val())
                        & !self.c.val().inflight.get_bits::<11>(13).any()
                    {
                        self.w_grant.d.next.action = bits::<2>(1);
                        self.n.next.next_psn = self.c.val().next_psn + self.part.val();
                        if self.c.val().resend >= self.part.val() {
                            self.n.next.resend = self.c.val().resend - self.part.val();
                        } else {
                            self.n.next.resend = bits::<24>(0);
                            self.n.next.inflight = self.ahead.val() + self.part.val();
                        }
                        if self.fresh.val() {
                            self.w_entry.d.next = self.table.x_valid.val();
                            self.n.next.tail = self.c.val().tail + 1;
                            self.n.next.used = self.c.val().used + 1;
                            if !self.ends.val() {
                                self.n.next.behind = bits::<16>(1);
                            }
                        } else if self.ends.val() {
                            self.n.next.behind = self.c.val().behind - 1;
                        }
                        if self.ends.val() {
                            self.n.next.exec_offset = bits::<24>(0);
                            self.n.next.exec_index =
                                self.c.val().exec_index + bit_cast::<16, 3>(self.e.val().slots);
                        } else {
                            self.n.next.exec_offset = self.c.val().exec_offset + self.part.val();
                            self.stop.next = true;
                            self.push_ready.next = true;
                        }
                        self.start_timer.next = !self.c.val().timer_on & (self.part.val() != 0);
                        // a WQE that cannot run is retired like any other, in its turn
                        self.push_list.next = self.e.val().status != 0;
                    } else {
                        self.stop.next = true;
                        self.n.next.blocked = self.running.val();
                    }
                }
            }
            SqEventKind::Ack => {
                if self.in_window.val() & (self.c.val().state == 3) {
                    self.n.next.una_psn = self.c.val().una_psn + self.progress.val();
                    self.n.next.inflight = self.c.val().inflight - self.progress.val();
                    if self.progress.val() > self.ahead.val() {
                        // what was to be sent again has arrived after all
                        self.n.next.next_psn = self.c.val().una_psn + self.progress.val();
                        self.n.next.resend = self.c.val().inflight - self.progress.val();
                        self.n.next.rewind = true;
                        self.stop.next = true;
                    }
                    if self.progress.val() != 0 {
                        self.n.next.retry = self.k.val().retry_cnt;
                        self.n.next.rnr_retry = self.k.val().rnr_retry;
                        self.push_list.next = true;
                        if self.progress.val() == self.c.val().inflight {
                            self.stop_timer.next = true;
                        } else {
                            self.start_timer.next = true;
                        }
                    }
                    if self.acked.val() {
                        self.count.next = bits::<8>(8);
                        self.n.next.rnr_wait = self.c.val().rnr_wait & (self.progress.val() == 0);
                    } else if self.verdict.val() == 1 {
                        self.count.next = bits::<8>(2);
                        if self.c.val().rnr_retry == 0 {
                            self.fail.next = true;
                            self.n.next.error_status = bits::<8>(13);
                            self.count.next = bits::<8>(0x82);
                        } else {
                            if self.c.val().rnr_retry != 7 {
                                self.n.next.rnr_retry = self.c.val().rnr_retry - 1;
                            }
                            self.n.next.rnr_wait = true;
                            self.n.next.rewind = true;
                            self.stop.next = true;
                            self.push_list.next = true;
                            self.start_timer.next = true;
                            self.rnr_timer.next = true;
                            self.stop_timer.next = false;
                        }
                    } else if self.e.val().syndrome.get_bits::<5>(0) == 0 {
                        self.count.next = bits::<8>(1);
                        // the NAK that some responders send after an RNR NAK must not cut the wait short
                        if !self.c.val().rnr_wait & !self.c.val().rewind {
                            if self.c.val().retry == 0 {
                                self.fail.next = true;
                                self.n.next.error_status = bits::<8>(12);
                                self.count.next = bits::<8>(0x41);
                            } else {
                                self.n.next.retry = self.c.val().retry - 1;
                                self.n.next.rewind = true;
                                self.stop.next = true;
                                self.push_list.next = true;
                                self.start_timer.next = true;
                            }
                        }
                    } else {
                        self.count.next = bits::<8>(4);
                        self.fail.next = true;
                        // NAK codes 1, 2, 3 are completion status 9, 10, 11
                        self.n.next.error_status =
                            bit_cast::<8, 2>(self.e.val().syndrome.get_bits::<2>(0)) + 8;
                    }
                    self.n.next.error_syndrome = self.e.val().syndrome;
                } else {
                    self.count.next = bits::<8>(16);
                }
            }
            SqEventKind::Timeout => {
                if self.timed_out.val() {
                    self.n.next.timer_on = false;
                    if self.c.val().rnr_wait {
                        self.n.next.rnr_wait = false;
                        self.push_ready.next = true;
                    } else if self.c.val().inflight != 0 {
                        self.count.next = bits::<8>(32);
                        if self.c.val().retry == 0 {
                            self.fail.next = true;
                            self.n.next.error_status = bits::<8>(12);
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
                if self.is_same.val() {
                    self.n.next.used = self.used_after.val();
                    self.n.next.head_index = self.e.val().index;
                    self.n.next.blocked = false;
                    if self.c.val().rewind {
                        if self.same_una.val() {
                            self.n.next.rewind = false;
                            self.n.next.behind = self.used_after.val();
                            self.n.next.exec_index = self.e.val().index;
                            self.n.next.exec_offset = self.c.val().una_psn - self.e.val().psn;
                            self.n.next.next_psn = self.c.val().una_psn;
                            self.n.next.resend = self.c.val().inflight;
                            self.stop.next = true;
                        } else {
                            self.push_list.next = true;
                        }
                    }
                    if (self.e.val().status != 0) & (self.c.val().state == 3) {
                        self.fail.next = true;
                        self.n.next.error_status = bits::<8>(0);
                    } else if self.c.val().state == 6 {
                        self.push_list.next = self.used_after.val().any();
                    }
                    self.push_ready.next = true;
                }
            }
            SqEventKind::Command => {
                if self.e.val().set {
                    self.n.next.state = self.e.val().state;
                    self.stop.next = true;
                    self.push_ready.next = self.e.val().state != 0;
                    self.push_list.next = self.e.val().state == 6;
                    self.n.next.error_status = bits::<8>(0);
                }
                if self.e.val().reset {
                    self.n.next.incarnation = self.c.val().incarnation + 1;
                    self.n.next.blocked = false;
                    self.n.next.rnr_wait = false;
                    self.n.next.rewind = false;
                    self.n.next.producer = bits::<16>(0);
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
            _ => {
                self.write.next = false;
            }
        }

        if self.fail.val() {
            self.n.next.state = bits::<3>(6);
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
        self.w_ready.d.next = self.table.x_valid.val()
            & ((self.push_ready.val() & !self.c.val().queued)
                | ((self.kind.val() == SqEventKind::Fetch) & self.n.val().queued));
        self.w_list.d.next = self.table.x_valid.val()
            & self.push_list.val()
            & (!self.c.val().listed | (self.kind.val() == SqEventKind::Retire));
        self.w_qpn.d.next = self.e.val().qpn;
        self.w_fetch.d.next = self.table.x_valid.val() & (self.kind.val() == SqEventKind::Fetch);
        self.w_fetch_index.d.next = self.c.val().fetch_index;
        self.w_fetch_count.d.next = bits::<4>(0);
        if self.may_fetch.val() {
            self.w_fetch_count.d.next = self.fetched.val().get_bits::<4>(0);
        }
        self.w_epoch.d.next = self.c.val().epoch;
        self.w_start.d.next = self.table.x_valid.val() & (self.kind.val() == SqEventKind::Start);
        self.w_retire.d.next = self.table.x_valid.val() & (self.kind.val() == SqEventKind::Retire);
        self.w_retire_grant.d.next.qpn = self.e.val().qpn;
        self.w_retire_grant.d.next.head = self.c.val().tail - self.c.val().used;
        self.w_retire_grant.d.next.used = self.c.val().used;
        self.w_retire_grant.d.next.head_index = self.c.val().head_index;
        self.w_retire_grant.d.next.una_psn = self.c.val().una_psn;
        self.w_retire_grant.d.next.error = self.c.val().state == 6;
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
            self.table.x_valid.val() & (self.start_timer.val() | self.stop_timer.val());
        self.w_timer_set.d.next.qpn = self.e.val().qpn;
        self.w_timer_set.d.next.on =
            !self.stop_timer.val() & (self.rnr_timer.val() | self.k.val().timeout.any());
        self.w_timer_set.d.next.generation = self.c.val().timer_generation + 1;
        self.w_timer_set.d.next.rnr = self.rnr_timer.val();
        self.w_timer_set.d.next.code = self.k.val().timeout;
        if self.rnr_timer.val() {
            self.w_timer_set.d.next.code = self.e.val().syndrome.get_bits::<5>(0);
        }
        self.w_query.d.next = self.table.x_valid.val() & (self.kind.val() == SqEventKind::Command);
        self.w_state.d.next.sq_state = bit_cast::<4, 3>(self.c.val().state);
        self.w_state.d.next.sq_psn = self.c.val().next_psn;
        self.w_state.d.next.una_psn = self.c.val().una_psn;
        self.w_failed.d.next = self.table.x_valid.val() & self.fail.val();
        self.w_counts.d.next = bits::<8>(0);
        if self.table.x_valid.val() {
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
