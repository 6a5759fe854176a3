//! The dynamic state of all send queues.
//!
//! One [`SqEvent`] a cycle enters at `s`, one of the same queue pair every second cycle; four cycles later its results
//! leave, registered: at most one entry for each list, one grant and one order for timer and outstanding table. Consumers have room by
//! construction: each queue pair stands at most once in a list (`queued`, `listed`), and grants answer requests whose
//! origin reserved a place. Grants come in the order of their events.
//!
//! Stage X, two cycles after the entry, sees the state after all earlier events ([`Rmw`]) and compares; stage Y applies
//! the rules; what is not part of the state's feedback is finished behind it ([`sq_terms`](super::sq_terms),
//! [`sq_rules`](super::sq_rules), [`sq_answer`](super::sq_answer), [`sq_result`](super::sq_result)).
use super::event::*;
use super::sq_result::SqResults;
use super::sq_rules::SqRules;
use super::sq_terms::SqTermsOf;
use super::timer_types::TimerSet;
use crate::bus::types::Recall;
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
    /// There is room for completions of flushed WQEs.
    pub room: Signal<In, Bit>,
    /// WQEs of another queue pair wait behind those of one.
    pub shared: Signal<In, Bit>,
    /// Grants that let packets out so far, modulo 2^16.
    pub granted: Signal<Out, Bits<16>>,
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
    /// A send queue goes back: packets of another round are not to be sent any more.
    pub recall_valid: Signal<Out, Bit>,
    /// Which, and its round.
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
    /// The table is swept after reset.
    pub ready: Signal<Out, Bit>,

    table: Rmw<SqState, Q, 2>,
    terms: SqTermsOf,
    rules: SqRules,
    results: SqResults,
    images: Ram<SqCtx, Q>,
    e1: Dff<SqEvent>,
    e2: Dff<SqEvent>,
    e3: Dff<SqEvent>,
    k2: Dff<SqCtx>,
    k3: Dff<SqCtx>,
    c3: Dff<SqState>,
    valid_3: Reg<Bit>,
    grants: Reg<Bits<16>>,
}

impl<const Q: usize> Logic for SqStateTable<Q> {
    describe!(
        "sq_state",
        format!("q{Q}"),
        "Dynamic state of all send queues: one event a cycle."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, table, images, terms, results);
        dff_setup!(self, clock, e1, e2, e3, k2, k3, c3, valid_3, grants);

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
        self.terms.sq_event.next = self.e2.q.val();
        self.terms.image.next = self.k2.q.val();
        self.terms.state.next = self.table.current.val();
        self.terms.shared.next = self.shared.val();
        self.e3.d.next = self.e2.q.val();
        self.k3.d.next = self.k2.q.val();
        self.c3.d.next = self.table.current.val();
        self.valid_3.d.next = self.table.x_valid.val();

        // stage Y
        self.rules.sq_event.next = self.e3.q.val();
        self.rules.image.next = self.k3.q.val();
        self.rules.state.next = self.c3.q.val();
        self.rules.terms.next = self.terms.terms.val();
        self.rules.granted.next = self.grants.q.val();
        self.rules.room.next = self.room.val();
        if self.valid_3.q.val()
            & (self.rules.verdict.val().action == 1)
            & self.terms.terms.val().part.any()
        {
            self.grants.d.next = self.grants.q.val() + 1;
        }
        self.granted.next = self.grants.q.val();
        self.table.write.next = self.rules.write.val();
        self.table.result.next = self.rules.next_state.val();

        self.results.valid.next = self.valid_3.q.val();
        self.results.sq_event.next = self.e3.q.val();
        self.results.image.next = self.k3.q.val();
        self.results.state.next = self.c3.q.val();
        self.results.terms.next = self.terms.terms.val();
        self.results.verdict.next = self.rules.verdict.val();
        self.ready_valid.next = self.results.ready_valid.val();
        self.list_valid.next = self.results.list_valid.val();
        self.list_qpn.next = self.results.list_qpn.val();
        self.fetch_valid.next = self.results.fetch_valid.val();
        self.fetch.next = self.results.fetch.val();
        self.start_valid.next = self.results.start_valid.val();
        self.start.next = self.results.start.val();
        self.retire_valid.next = self.results.retire_valid.val();
        self.retire.next = self.results.retire.val();
        self.entry_valid.next = self.results.entry_valid.val();
        self.entry_addr.next = self.results.entry_addr.val();
        self.entry.next = self.results.entry.val();
        self.recall_valid.next = self.results.recall_valid.val();
        self.recall.next = self.results.recall.val();
        self.timer_valid.next = self.results.timer_valid.val();
        self.timer.next = self.results.timer.val();
        self.query_valid.next = self.results.query_valid.val();
        self.query.next = self.results.query.val();
        self.failed_valid.next = self.results.failed_valid.val();
        self.failed_qpn.next = self.results.failed_qpn.val();
        self.failed_status.next = self.results.failed_status.val();
        self.close_valid.next = self.results.close_valid.val();
        self.close_qpn.next = self.results.close_qpn.val();
        self.drained_valid.next = self.results.drained_valid.val();
        self.drained_qpn.next = self.results.drained_qpn.val();
        self.counts.next = self.results.counts.val();
    }
}
