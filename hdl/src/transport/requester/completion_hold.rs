//! Completions of send queues wait here, in order, for the last read of their payload.
//!
//! A packet that is sent again may be acknowledged before its payload is read again: the acknowledgement is that of the
//! first time. Its message completes when no grant that is of it has payload to be read, as host memory belongs to the
//! host again then. The same holds for a message that is flushed. Grants are numbered in the order in which they are cut
//! and read; a completion names the last one that counts ([`SendCompletion::unread`], not looked at once it is through).
//!
//! Which grants are read is found in rounds: the pieces cut so far are read, so are the grants cut by then. A round is a
//! cycle if no read is under way.
//!
//! A failure that is complete ([`SendCompletion::failed`]) leaves by `failed` once the completions in front of it were taken,
//! so the responder of the queue pair flushes its receive queue behind the request that failed.
//!
//! A send queue that drained becomes a marker behind its completions, flushed ones too: `cq_write` makes the event of it. Each command to SQD of a
//! send queue that has drained makes one. While half as many wait as there are queue pairs commands are held up
//! (`drains_wait`), so there is room for one of each queue pair then.
//!
//! Flushed WQEs hold the segmenter up if they find no room, and with it the very grants that are waited for: no flush is
//! granted without `room`, and there is always room for those that are.
//!
//! A completion is compared on its way into the register that it leaves from, and again while it stands there.
//!
//! Latency: 2 cycles for what need not wait. Throughput: a completion a cycle.
use super::grant::{DrainedQueue, SendAction, SendCompletion};
use crate::bus::types::{Activity, CqToken, if_there};
use crate::prelude::*;

/// Log2 of the completions held: `room` for 16, and as many again on their way, of which the segmenter has 13 at most.
const HELD: usize = 5;

/// The completions held of 2^Q queue pairs.
#[derive(Block)]
pub struct CompletionHold<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Completions of what was started.
    pub retired: StreamIn<SendCompletion>,
    /// Completions of WQEs that were not.
    pub flushed: StreamIn<SendCompletion>,
    /// A send queue drained, in this cycle; the last of `retired` was taken before.
    pub drained: Signal<In, Bit>,
    /// Its queue pair.
    pub drained_qpn: Signal<In, Bits<16>>,
    /// A WQE is started.
    pub start_valid: Signal<In, Bit>,
    /// With `start_valid`: what is done with it.
    pub action: Signal<In, SendAction>,
    /// Grants so far, modulo 2^16.
    pub granted: Signal<In, Bits<16>>,
    /// A grant is cut to its end, or dropped.
    pub part_cut: Signal<In, Bit>,
    /// A piece of payload is to be read.
    pub piece_cut: Signal<In, Bit>,
    /// A piece of payload was read; in their order.
    pub piece_read: Signal<In, Bit>,
    /// Completions and markers.
    pub cq: StreamOut<CqToken>,
    /// Queue pairs whose failure is complete.
    pub failed: StreamOut<Bits<16>>,
    /// A WQE may be flushed.
    pub room: Signal<Out, Bit>,
    /// Commands are to wait.
    pub drains_wait: Signal<Out, Bit>,
    /// Completions that wait.
    pub activity: Signal<Out, Activity>,

    list: Fifo<SendCompletion, HELD>,
    /// Send queues that drained; `late` holds what `drains` has no room for.
    drains: Fifo<DrainedQueue, Q>,
    late: Fifo<DrainedQueue, Q>,
    /// Flushes granted, and those taken, modulo 2^16.
    flushes_granted: Reg<Bits<16>>,
    flushes_taken: Reg<Bits<16>>,
    /// What the first of `drains` follows is taken.
    is_flushed: Reg<Bit>,
    waits: Reg<Bit>,
    has_room: Reg<Bit>,
    /// The turn of `retired`; else that of `flushed`, every second cycle if both have something.
    turn: Reg<Bit>,
    no_token: Zero<CqToken>,
    no_completion: Zero<SendCompletion>,
    /// The first one, its grants are through, and it does not leave.
    first: Dff<SendCompletion>,
    there: Reg<Bit>,
    is_read: Reg<Bit>,

    parts: Reg<Bits<16>>,
    cut: Reg<Bits<16>>,
    read: Reg<Bits<16>>,
    // the round: `through` becomes `parts_due` when `cut_due` pieces are read
    parts_due: Reg<Bits<16>>,
    cut_due: Reg<Bits<16>>,
    through: Reg<Bits<16>>,
    // grants, and how many of these are not through, of one cycle
    latest: Reg<Bits<16>>,
    open: Reg<Bits<16>>,
    /// At most so many were at the inputs in the cycle before.
    entering: Dff<Bits<16>>,
}

impl<const Q: usize> CompletionHold<Q> {
    /// Log2 of half as many as there are queue pairs.
    const HALF: u64 = Q as u64 - 1;
}

impl<const Q: usize> Logic for CompletionHold<Q> {
    describe!(
        "completion_hold",
        format!("q{Q}"),
        "Holds completions until the payload of what was granted is read."
    );

    #[kernel]
    fn update(&mut self) {
        // in
        let few = !list.level.slice::<2>(4).any();
        has_room = few;
        turn = few & !(flushed.valid & turn);
        list.s.valid = retired.valid;
        list.s.payload = retired.payload;
        if !turn {
            list.s.valid = flushed.valid;
            list.s.payload = flushed.payload;
            // no READ or atomic: not looked at
            list.s.payload.byte_len = retired.payload.byte_len;
            list.s.payload.fence = retired.payload.fence;
        }
        if start_valid & (action == SendAction::Flush) {
            flushes_granted += 1;
        }
        // a marker takes a turn of `retired`; nothing has to be read for it
        late.s.valid = drained;
        late.s.payload.qpn = drained_qpn;
        late.s.payload.flushes = flushes_granted;
        assert!(!drained | late.s.ready, "an SQ_DRAINED is lost");
        forward!(drains.s <= late.m);
        waits = (drains.level >> Self::HALF).any();
        drains_wait = waits;
        let marks = turn & is_flushed;
        let reached = !(flushes_taken - drains.m.payload.flushes).bit(15);
        is_flushed = drains.m.valid & reached & !marks;
        drains.m.ready = marks;
        if marks {
            list.s.valid = true;
            list.s.payload = no_completion;
            list.s.payload.qpn = drains.m.payload.qpn;
            list.s.payload.drained = true;
            list.s.payload.unread = through;
        }
        retired.ready = turn & !marks;
        flushed.ready = !turn & list.s.ready;
        if flushed.valid & flushed.ready {
            flushes_taken += 1;
        }
        room = has_room;

        // which grants are through
        if part_cut {
            parts = parts + 1;
        }
        if piece_cut {
            cut = cut + 1;
        }
        if piece_read {
            read = read + 1;
        }
        if read == cut_due {
            through = parts_due;
            parts_due = parts;
            cut_due = cut;
        }
        latest = granted;
        open = granted - through;

        // out
        let head = first;
        let mut stays = there & !(is_read & cq.ready);
        if head.failed {
            stays = there & !(is_read & failed.ready);
        }
        // Of the one that is compared.
        let mut unread = head.unread;
        if !stays {
            unread = list.m.payload.unread;
            there = list.m.valid;
            first = list.m.payload;
        }
        list.m.ready = !stays;
        // (latest - unread) modulo 2^16 >= open: two sums side by side, as one behind the other would be too deep
        // `latest` - `unread` is not negative, and less `open`, modulo 2^17.
        let ahead = latest >= unread;
        let spare = latest.resize::<17>() - unread.resize::<17>() - open.resize::<17>();
        is_read = (ahead ^ spare.bit(16)) | (stays & is_read);
        cq.valid = there & is_read & !head.failed;
        failed.valid = there & is_read & head.failed;
        failed.payload = head.qpn;
        cq.payload = no_token;
        cq.payload.cqn = head.cqn;
        cq.payload.qpn = head.qpn;
        cq.payload.opcode = head.opcode.resize::<8>();
        cq.payload.wqe_index = head.wqe_index;
        cq.payload.status = head.status;
        if head.answered & !head.status.any() {
            cq.payload.byte_len = head.byte_len;
        }
        cq.payload.vendor_err = head.vendor_err;
        cq.payload.fenced = head.fenced;
        cq.payload.fence = head.fence;
        cq.payload.marker = head.drained;

        let markers = drains.level + late.level;
        activity.busy = list.m.valid | there | markers.any();
        activity.moved = (cq.valid & cq.ready) | (failed.valid & failed.ready);
        // a marker may wait for the turn of one that is flushed
        let marks_left = markers << 1;
        // two of each side may wait at the inputs, which take turns
        entering = if_there(retired.valid, bits::<16>(4)) + if_there(flushed.valid, bits::<16>(4));
        activity.level = list.level + if_there(there, bits::<16>(1)) + entering + marks_left;
    }
}
