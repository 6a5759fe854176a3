//! Retire: takes finished messages off the outstanding table and completes them.
//!
//! A FIFO of queue pairs with something to retire (each stands in it at most once). For the one at its head a Retire
//! event fetches the state. Then the block walks the ring from the oldest message, one a cycle, and reads one message
//! ahead:
//!
//! * acknowledged messages complete with success, if a CQE was asked for;
//! * a WQE that could not run completes with its status;
//! * in error everything completes; in ERR a last entry behind them says that the failure is complete: then the
//!   responder of the queue pair may fail.
//!
//! The Retired event reports how far the walk came, where the oldest message now starts, and whether the packet whose
//! payload could not be read is of that one.
//!
//! The completion of a READ or atomic waits for the payload writes issued when the latest data was placed. One that
//! asks for no completion hands that to the next completion of its queue pair, which says that it is done too.
use ferroce_proto::abi::cq::status::WR_FLUSH_ERR;

use super::event::{SqEvent, SqEventKind};
use super::grant::{Outstanding, RetireGrant, RetireReport, SendCompletion};
use crate::bus::types::{Activity, if_there};
use crate::prelude::*;

/// What the walk is doing.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum RetireState {
    /// Waits for a queue pair.
    Idle,
    /// Waits for its state.
    Ask,
    /// The oldest message is being read.
    Seek,
    /// The one behind it.
    Read,
    /// An entry a cycle.
    Walk,
    /// The failure is complete.
    Tell,
    /// Reports.
    Report,
}

/// Retirement for 2^Q queue pairs over a pool of 2^O entries.
#[derive(Block)]
pub struct Retire<const Q: usize, const O: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A queue pair has something to retire.
    pub push: Signal<In, Bit>,
    /// Which.
    pub push_qpn: Signal<In, Bits<16>>,
    /// Retire and Retired events.
    pub event: StreamOut<SqEvent>,
    /// The state arrives.
    pub grant_valid: Signal<In, Bit>,
    /// The state.
    pub grant: Signal<In, RetireGrant>,
    /// A new entry of the outstanding table.
    pub entry_valid: Signal<In, Bit>,
    /// Its place in the pool.
    pub entry_addr: Signal<In, Bits<24>>,
    /// The entry.
    pub entry: Signal<In, Outstanding>,
    /// Completions, and failures that are complete.
    pub done: StreamOut<SendCompletion>,
    /// The walk under way: its report may be of a queue pair that a command resets, and so may its completions.
    pub activity: Signal<Out, Activity>,

    list: Fifo<Bits<16>, Q>,
    pool: Ram<Outstanding, O>,
    out: SkidRam<RetireReport>,
    no_event: Zero<SqEvent>,
    no_completion: Zero<SendCompletion>,
    state: Reg<RetireState>,
    g: Dff<RetireGrant>,
    place: Dff<Bits<16>>,
    count: Dff<Bits<16>>,
    index: Dff<Bits<16>>,
    flush: Dff<Bit>,
    first_error: Dff<Bit>,
    local_status: Dff<Bits<8>>,
    head_psn: Dff<Bits<24>>,
    reads: Dff<Bits<5>>,
    /// The packet whose payload could not be read is of the new head.
    stalled: Dff<Bit>,
    /// A READ or atomic was taken off, and no completion since.
    unfenced: Dff<Bit>,

    /// The entry under the walk, and whether its message is acknowledged.
    o: Dff<Outstanding>,
    acked: Dff<Bit>,
}

/// Status of a message: the first that fails in error has that of its queue pair, those behind it are flushed.
#[kernel_fn]
fn status_of(message: Outstanding, grant: RetireGrant, flushed: Bit, first_error: Bit) -> Bits<8> {
    let status: Bits<8> = if flushed & first_error & grant.status.any() {
        grant.status
    } else if flushed {
        WR_FLUSH_ERR
    } else if message.bad {
        message.rest.low::<8>()
    } else {
        0
    };
    status
}

/// That status is the one with which the queue pair failed.
#[kernel_fn]
fn is_cause(message: Outstanding, grant: RetireGrant, flushed: Bit) -> Bit {
    let is = if flushed {
        grant.status.any()
    } else if message.bad {
        message.rest.low::<8>() == grant.status
    } else {
        false
    };
    is
}

/// Bytes of a READ: of the packets from its first PSN to its last, and the rest in the last.
#[kernel_fn]
fn bytes_of(message: Outstanding, grant: RetireGrant) -> Bits<32> {
    let span = message.last_psn - message.first_psn;
    let whole = (span.resize::<32>() << 7) << grant.mtu;
    whole + message.rest.resize::<32>()
}

impl<const Q: usize, const O: usize> Logic for Retire<Q, O> {
    describe!(
        "retire",
        format!("q{Q}_o{O}"),
        "Retires acknowledged and failed messages in order."
    );

    #[kernel]
    fn update(&mut self) {
        list.s.valid = push;
        list.s.payload = push_qpn;
        list.m.ready = false;
        pool.we = entry_valid;
        pool.waddr = entry_addr.low::<O>();
        pool.wdata = entry;

        // the entry under the walk
        let at_end = count == g.used;
        let takes = !at_end & (acked | flush);
        // Fails whatever its own status is.
        let flushed = flush & (!acked | local_status.any());
        // Its status is not success.
        let fails = flushed | (o.bad & o.rest.low::<8>().any());
        let completes = takes & (o.signaled | fails);
        let walks = state == RetireState::Walk;
        let advance = walks & takes & (done.ready | !completes);
        done.valid = walks & completes;
        done.payload = no_completion;
        copy!(done.payload <= g; cqn, qpn, unread);
        done.payload.opcode = o.cqe_opcode;
        done.payload.wqe_index = index;
        done.payload.status = status_of(o, g, flushed, first_error);
        done.payload.byte_len = bytes_of(o, g);
        done.payload.answered = o.answered;
        done.payload.fenced = o.answered | unfenced;
        done.payload.fence = g.writes;
        if first_error & is_cause(o, g, flushed) {
            done.payload.vendor_err = g.syndrome;
        }

        if advance {
            count = count + 1;
            index = index + o.slots.resize::<16>();
            if fails {
                first_error = false;
            }
            if !flush & o.bad {
                flush = true;
                local_status = o.rest.low::<8>();
            }
            if o.answered {
                reads = reads + 1;
            }
            unfenced = !completes & (o.answered | unfenced);
        }
        // the next entry is read, and the one read before comes under the walk
        let moves = advance | (state == RetireState::Read);
        let mut read_place = place;
        if state == RetireState::Seek {
            read_place = g.head;
        }
        pool.re = moves | (state == RetireState::Seek);
        let ring = !(bits::<16>(0xffff) << g.ot_log);
        pool.raddr = g.ot_base.low::<O>() | (read_place & ring).resize::<O>();
        let following = pool.rdata;
        let una_distance = following.last_psn - g.una_psn;
        if moves {
            place = place + 1;
            o = following;
            // what is behind one that is not acknowledged is not either, were it 2^23 packets further
            acked = una_distance.bit(23) & (acked | (state == RetireState::Read));
        }

        out.s.valid = false;
        out.s.payload.done = false;
        out.s.payload.qpn = list.m.payload;
        out.s.payload.index = index;
        out.s.payload.psn = head_psn;
        copy!(out.s.payload <= g; una_psn, incarnation);
        copy!(out.s.payload <= self; reads, unfenced, stalled, count);
        // of a packet that is found out meanwhile the next look tells
        out.s.payload.passed = g.stall & (g.stall_psn - g.una_psn).bit(23);
        out.s.payload.status = local_status;
        event.valid = out.m.valid;
        out.m.ready = event.ready;
        event.payload = no_event;
        event.payload.kind = SqEventKind::Retire;
        if out.m.payload.done {
            event.payload.kind = SqEventKind::Retired;
        }
        copy!(event.payload <= out.m.payload; qpn, index, psn, una_psn, reads, unfenced, stalled, passed, count, status);
        event.payload.generation = out.m.payload.incarnation;

        let there = state != RetireState::Idle;
        activity.busy = there;
        activity.moved = (state == RetireState::Report) & out.s.ready;
        activity.level = if_there(there, bits::<16>(1));

        match state {
            RetireState::Idle => {
                out.s.valid = list.m.valid;
                if list.m.valid & out.s.ready {
                    list.m.ready = true;
                    state = RetireState::Ask;
                }
            }
            RetireState::Ask => {
                if grant_valid {
                    g = grant;
                    state = RetireState::Seek;
                }
            }
            RetireState::Seek => {
                place = g.head + 1;
                count = bits::<16>(0);
                index = g.head_index;
                flush = g.error;
                first_error = g.error;
                local_status = bits::<8>(0);
                reads = bits::<5>(0);
                unfenced = g.unfenced;
                state = RetireState::Read;
            }
            RetireState::Read => {
                state = RetireState::Walk;
            }
            RetireState::Walk => {
                if !takes {
                    let from_first = g.stall_psn - o.first_psn;
                    let to_last = o.last_psn - g.stall_psn;
                    stalled = g.stall & !at_end & !from_first.bit(23) & !to_last.bit(23);
                    head_psn = if at_end { g.una_psn } else { o.first_psn };
                    state = RetireState::Report;
                    if g.fatal {
                        state = RetireState::Tell;
                    }
                }
            }
            RetireState::Tell => {
                done.valid = true;
                done.payload.failed = true;
                if done.ready {
                    state = RetireState::Report;
                }
            }
            RetireState::Report => {
                out.s.valid = true;
                out.s.payload.done = true;
                out.s.payload.qpn = g.qpn;
                if out.s.ready {
                    state = RetireState::Idle;
                }
            }
            _ => {
                state = RetireState::Idle;
            }
        }
    }
}
