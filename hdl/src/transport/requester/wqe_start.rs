//! Asks for every checked WQE to start, several ahead, and puts each together with its grant.
//!
//! ```text
//!  CheckedWqe ─► Start ─► FIFO ┐    ┌─► Send    ─► m
//!                grant ─► FIFO ┴────┼─► Flush   ─► completion
//!                                   ├─► Execute ─► key
//!                                   └─► Drop
//!  done ─► Executed
//! ```
//!
//! Grants come in the order of the questions. An incomplete WQE gives the event Refetch, which has no grant.
//!
//! While enough is granted and not cut into packets, or enough payload is under way, the next waits ([`PartCount`]). One whose class is closed
//! ([`class_gate`](crate::egress::class_gate)) waits for 64 cycles, the next ones of that class no more. Then it asks with `held`: if
//! it is to send, its send queue fetches it again when the class is open.
use ferroce_proto::abi::cq::opcode::BIND_MW;
use ferroce_proto::abi::cq::status::{MW_BIND_ERR, WR_FLUSH_ERR};

use super::event::*;
use super::grant::{SendAction, SendCompletion, StartGrant};
use super::part_count::PartCount;
use super::send_types::{CheckedWqe, GrantedWqe, KeyDone, KeyRequest};
use crate::bus::types::{Activity, KeyChange};
use crate::egress::CLASSES;
use crate::egress::class_of::class_number;
use crate::egress::types::{ClosedClasses, RefusedClasses, RequestsAhead};
use crate::prelude::*;

/// The block.
#[derive(Block)]
pub struct WqeStart {
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
    /// A part is cut to its end.
    pub cut: Signal<In, Bit>,
    /// Its WQE.
    pub cut_wqe: Signal<In, CheckedWqe>,
    /// Start, Refetch and Executed events.
    pub start: StreamOut<SqEvent>,
    /// A grant arrives.
    pub grant_valid: Signal<In, Bit>,
    /// The grant.
    pub grant: Signal<In, StartGrant>,
    /// WQEs of which a part is to be sent.
    pub m: StreamOut<GrantedWqe>,
    /// WQEs that send nothing.
    pub key: StreamOut<KeyRequest>,
    /// Those that are executed.
    pub key_done: StreamIn<KeyDone>,
    /// Completions of flushed WQEs.
    pub flushed: StreamOut<SendCompletion>,
    /// WQEs that wait for their grant, or behind it.
    pub activity: Signal<Out, Activity>,

    asked: SkidRam<CheckedWqe>,
    started: Fifo<CheckedWqe, 3>,
    grants: Bypass<StartGrant, 4>,
    flush: SkidRam<CheckedWqe>,
    count: PartCount,
    /// Classes that were waited for, and are closed still.
    slow: Reg<Bits<CLASSES>>,
    waited: Reg<Bits<7>>,
    ahead_q: Reg<RequestsAhead>,
    /// The turn of `key_done`.
    executed: Reg<Bit>,
    none_refused: Zero<RefusedClasses>,
    no_event: Zero<SqEvent>,
    no_completion: Zero<SendCompletion>,
}

impl Logic for WqeStart {
    describe!("wqe_start", "Puts checked WQEs together with their grants.");

    #[kernel]
    fn update(&mut self) {
        // ask
        let of = s.payload.of_class;
        let shut = if s.payload.is_short {
            closed.short
        } else if s.payload.is_long {
            closed.long
        } else {
            closed.any
        };
        let closes = (of & shut).any();
        // a queue that is full for a moment is waited for
        let waits = closes & !(of & slow).any();
        let goes = count.ample & !waits;
        slow = slow & closed.any;
        waited = bits::<7>(0);
        if s.valid & waits {
            waited = waited + 1;
            if waited.bit(6) {
                slow = (slow | of) & closed.any;
            }
        }
        let enters = s.valid & started.s.ready & asked.s.ready & goes;
        let held: Bits<CLASSES> = if enters { of & shut } else { 0 };
        let mut refused = none_refused;
        if s.payload.is_short {
            refused.short = held;
        } else if s.payload.is_long {
            refused.long = held;
        } else {
            refused.any = held;
        }
        asked.s.valid = enters;
        asked.s.payload = s.payload;
        asked.s.payload.held = closes;
        asked.m.ready = start.ready & !executed;
        key_done.ready = start.ready & executed;
        let offers = if executed {
            key_done.valid
        } else {
            asked.m.valid
        };
        start.valid = offers;
        start.payload = no_event;
        if executed {
            start.payload.kind = SqEventKind::Executed;
            if key_done.payload.refused {
                start.payload.status = MW_BIND_ERR;
            }
            copy!(start.payload <= key_done.payload; qpn, slots, cqe_opcode, signaled);
            start.payload.generation = key_done.payload.incarnation;
        } else {
            start.payload.kind = SqEventKind::Start;
            if asked.m.payload.incomplete {
                start.payload.kind = SqEventKind::Refetch;
            }
            copy!(start.payload <= asked.m.payload;
                qpn, index, packets, length, answered, fence, status, epoch, slots, cqe_opcode,
                signaled, held, is_short);
            start.payload.packet_class = class_number(asked.m.payload.of_class);
        }
        // what is offered stands until it is taken
        if !offers | start.ready {
            executed = key_done.valid & !executed;
        }
        started.s.valid = enters & !s.payload.incomplete;
        started.s.payload = s.payload;
        s.ready = started.s.ready & asked.s.ready & goes;
        grants.s.valid = grant_valid;
        grants.s.payload = grant;

        // a WQE and its grant
        let both = started.m.valid & grants.m.valid;
        let sends = (grants.m.payload.action == SendAction::Send) & grants.m.payload.some;
        let flushes = grants.m.payload.action == SendAction::Flush;
        let executes = grants.m.payload.action == SendAction::Execute;
        m.valid = both & sends;
        m.payload.wqe = started.m.payload;
        m.payload.grant = grants.m.payload;
        flush.s.valid = both & flushes;
        flush.s.payload = started.m.payload;
        let wqe = started.m.payload;
        key.valid = both & executes;
        key.payload.change = KeyChange {
            binds: wqe.cqe_opcode == BIND_MW,
            key: wqe.imm,
            pd: wqe.rkey.low::<24>(),
            qpn: wqe.qpn,
            lkey: wqe.addr_1.low::<32>(),
            addr: wqe.addr_0,
            length: wqe.word_1,
            remote_write: wqe.addr_1.bit(32),
            remote_read: wqe.addr_1.bit(33),
            remote_atomic: wqe.addr_1.bit(34),
        };
        key.payload.done = KeyDone {
            qpn: wqe.qpn,
            slots: wqe.slots,
            cqe_opcode: wqe.cqe_opcode,
            signaled: wqe.signaled,
            refused: false,
            incarnation: grants.m.payload.incarnation,
        };
        let accept = both
            & ((!sends & !flushes & !executes)
                | (flushes & flush.s.ready)
                | (executes & key.ready)
                | (sends & m.ready));
        count.crowded = crowded;
        ahead_q = RequestsAhead {
            units: count.ahead,
            refused: refused,
        };
        ahead = ahead_q;
        count.enters = enters & !s.payload.incomplete;
        count.entering = s.payload;
        count.drops = accept & !sends;
        count.dropping = wqe;
        count.ends = cut;
        count.ending = cut_wqe;
        started.m.ready = accept;
        grants.m.ready = accept;
        activity.busy = s.valid | started.m.valid;
        activity.moved = accept;
        activity.level = started.level;

        flush.m.ready = flushed.ready;
        flushed.valid = flush.m.valid;
        flushed.payload = no_completion;
        copy!(flushed.payload <= flush.m.payload; cqn, qpn);
        flushed.payload.opcode = flush.m.payload.cqe_opcode;
        flushed.payload.wqe_index = flush.m.payload.index;
        flushed.payload.status = WR_FLUSH_ERR;
    }
}
