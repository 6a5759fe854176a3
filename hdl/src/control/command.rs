//! Command: carries out the entries of the command ring, one after the other.
//!
//! An entry is read ([`CommandRing`]), checked as a whole before any of it takes effect ([`CommandCheck`]), carried out,
//! and answered. What `ferroce_proto::abi::cmd` says holds; besides:
//!
//! * A transport that this build does not have is BAD_PARAM. The operations on event queues, address handles and shared
//!   receive queues are BAD_OPCODE in a build without these.
//! * MODIFY_QP writes the images of a queue before the event that sets its state. A queue that goes to RESET first ends,
//!   and has its images written when everything of it is done; they do not count as images for a state to come.
//! * WRITE_MR, DESTROY_CQ, RESIZE_CQ, DESTROY_EQ, DESTROY_SRQ and MODIFY_QP to RESET are answered when everything that
//!   began before them is done: one cycle of `drain_start`, then `drain_done`, looked at from the next cycle on.
//!
//! Assumes: every event of kind Command is answered once by `sq_query` or `rq_query`, no earlier than the cycle behind
//! its transfer. Images and their numbers stand from the write enable to the next command.
//!
//! ```text
//!  Idle ─► Check ─► Judge ─┬─► Apply ─┬─► Tell ─► Wait ───┬─► Finish
//!                          │          ├───────────────────┼─► Finish
//!                          │          └─► Drain ─► Settle ┼─► Finish
//!                          │                ▲             └─► Apply (images of queues that ended) ─► Finish
//!                          ├─► Queue ───────┼─────────────► Finish
//!                          │     └► Switch ─┴─────────────► Finish
//!                          └──────────────────────────────► Finish
//! ```
//!
//! Latency, with no one waiting: 11 cycles from `cmd_pi` to the first beat of a NOP's completion, and the read.
//! A command begins while `enable` is 1; one that has begun ends.
use ferroce_proto::abi::cmd::{opcode, status};

use super::command_check::CommandCheck;
use super::command_events::CommandEvents;
use super::command_ring::CommandRing;
use super::command_types::{CommandPulses, CommandState};
use super::unpack::Unpack;
use crate::bus::types::image::{
    AvCtx, CmdHead, CqCtx, EqCtx, GidEntry, MrCtx, PortConfig, QpState, RqCtx, SqCtx, SrqCtx,
};
use crate::bus::types::{ReadReq, WriteCmd};
use crate::eth::gid_table::GidWrite;
use crate::prelude::*;
use crate::queue::cq_write::CqCommand;
use crate::queue::eq_write::EqCommand;
use crate::transport::requester::event::SqEvent;
use crate::transport::responder::event::RqEvent;

const MODIFY_QP: u64 = opcode::MODIFY_QP as u64;
const BAD_STATE: u64 = status::BAD_STATE as u64;

/// Command block of a build of 2^Q queue pairs and address handles, 2^M memory regions, 2^C completion queues, a pool of
/// 2^O outstanding messages, 2^E event queues, the features F and 2^S shared receive queues, on a memory bus of W bits = K bytes.
#[derive(LogicBlock, Default)]
pub struct Command<
    const W: usize,
    const K: usize,
    const Q: usize,
    const M: usize,
    const C: usize,
    const O: usize,
    const E: usize,
    const F: usize,
    const S: usize,
> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Commands are carried out.
    pub enable: Signal<In, Bit>,
    /// Address of the command ring.
    pub cmd_base: Signal<In, Bits<64>>,
    /// Address of the completion ring.
    pub cpl_base: Signal<In, Bits<64>>,
    /// Log2 of the entries of both, 0 to 8.
    pub cmd_log_size: Signal<In, Bits<4>>,
    /// Producer index.
    pub cmd_pi: Signal<In, Bits<16>>,
    /// Commands answered, modulo 2^16.
    pub cmd_ci: Signal<Out, Bits<16>>,
    /// Read of an entry.
    pub read: StreamOut<ReadReq>,
    /// Its answer.
    pub beat: ReadBeatIn<W>,
    /// Queue pair or address handle of the images.
    pub image_qpn: Signal<Out, Bits<Q>>,
    /// Write the requester image.
    pub sq_we: Signal<Out, Bit>,
    /// Requester image.
    pub sq_image: Signal<Out, SqCtx>,
    /// Write the address vector.
    pub av_we: Signal<Out, Bit>,
    /// Write the address handle.
    pub ah_we: Signal<Out, Bit>,
    /// Address vector, or address handle.
    pub av_image: Signal<Out, AvCtx>,
    /// Write the responder image.
    pub rq_we: Signal<Out, Bit>,
    /// Responder image.
    pub rq_image: Signal<Out, RqCtx>,
    /// Write the image of a shared receive queue.
    pub srq_we: Signal<Out, Bit>,
    /// Its number.
    pub srq_srqn: Signal<Out, Bits<S>>,
    /// Image of a shared receive queue.
    pub srq_image: Signal<Out, SrqCtx>,
    /// Write the memory region.
    pub mr_we: Signal<Out, Bit>,
    /// Its place in the table.
    pub mr_index: Signal<Out, Bits<M>>,
    /// Memory region.
    pub mr_image: Signal<Out, MrCtx>,
    /// Completion queues opened, closed and resized.
    pub cq: StreamOut<CqCommand>,
    /// From the cycle behind its transfer: the queue was not resized.
    pub cq_refused: Signal<In, Bit>,
    /// From then, too: the first entry of its new ring, modulo 2^24.
    pub cq_switched: Signal<In, Bits<24>>,
    /// Event queues opened and closed.
    pub eq: StreamOut<EqCommand>,
    /// Write the GID table entry.
    pub gid_we: Signal<Out, Bit>,
    /// GID table entry.
    pub gid: Signal<Out, GidWrite>,
    /// MAC address of the port, first byte in the lowest bits.
    pub port_mac: Signal<Out, Bits<48>>,
    /// Every destination MAC address is accepted.
    pub promiscuous: Signal<Out, Bit>,
    /// Events for the requester.
    pub sq_event: StreamOut<SqEvent>,
    /// Answer to one.
    pub sq_query_valid: Signal<In, Bit>,
    /// Requester's part of the state.
    pub sq_query: Signal<In, QpState>,
    /// Events for the responder.
    pub rq_event: StreamOut<RqEvent>,
    /// Answer to one.
    pub rq_query_valid: Signal<In, Bit>,
    /// Responder's part of the state.
    pub rq_query: Signal<In, QpState>,
    /// What is under way now is to be waited for.
    pub drain_start: Signal<Out, Bit>,
    /// It is done.
    pub drain_done: Signal<In, Bit>,
    /// Burst of a completion.
    pub write: StreamOut<WriteCmd>,
    /// Its beats.
    pub beats: WriteBeatOut<W, K>,
    /// A command was answered.
    pub done: Signal<Out, Bit>,
    /// With `done`: it failed.
    pub failed: Signal<Out, Bit>,
    /// The sweep after reset is done.
    pub ready: Signal<Out, Bit>,

    ring: CommandRing<W, K>,
    as_head: Unpack<CmdHead>,
    as_sq: Unpack<SqCtx>,
    as_av: Unpack<AvCtx>,
    as_rq: Unpack<RqCtx>,
    as_mr: Unpack<MrCtx>,
    as_cq: Unpack<CqCtx>,
    as_eq: Unpack<EqCtx>,
    as_ah: Unpack<AvCtx>,
    as_srq: Unpack<SrqCtx>,
    as_gid: Unpack<GidEntry>,
    as_port: Unpack<PortConfig>,
    check: CommandCheck<Q, M, C, O, E, F, S>,
    events: CommandEvents,
    /// Queue pairs that had a requester image (bit 0) and a responder image (bit 1) since state RESET.
    configured: Ram<Bits<2>, Q>,
    /// Shared receive queues that exist.
    shared: Ram<Bit, S>,
    srqn: Signal<Local, Bits<S>>,
    sweep: Reg<Bits<16>>,
    state: Reg<CommandState>,
    swept: Reg<Bit>,
    verdict: Dff<Bits<8>>,
    /// The queues that end are done with: their images are left to write.
    ended: Reg<Bit>,
    pulse: Reg<CommandPulses>,
    mac: Reg<Bits<48>>,
    everything: Reg<Bit>,

    h: Signal<Local, CmdHead>,
    index: Signal<Local, Bits<Q>>,
    drains: Signal<Local, Bit>,
    of_eq: Signal<Local, Bit>,
    of_srq: Signal<Local, Bit>,
    state_bits: Signal<Local, Bits<128>>,
    no_pulse: Zero<CommandPulses>,
}

impl<
    const W: usize,
    const K: usize,
    const Q: usize,
    const M: usize,
    const C: usize,
    const O: usize,
    const E: usize,
    const F: usize,
    const S: usize,
> Command<W, K, Q, M, C, O, E, F, S>
{
    /// The last step of the sweep, which covers the larger of its tables.
    const LAST: u64 = (1 << if Q > S { Q } else { S }) - 1;
}

impl<
    const W: usize,
    const K: usize,
    const Q: usize,
    const M: usize,
    const C: usize,
    const O: usize,
    const E: usize,
    const F: usize,
    const S: usize,
> Logic for Command<W, K, Q, M, C, O, E, F, S>
{
    describe!(
        "command",
        format!("w{W}_q{Q}_m{M}_c{C}_o{O}_e{E}_f{F:x}_s{S}"),
        "Carries out the entries of the command ring.";
        MODIFY_QP, BAD_STATE, Self::LAST
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, ring, check, events, configured, shared);
        dff_setup!(
            self, clock, sweep, state, swept, verdict, ended, pulse, mac, everything
        );
        self.pulse.d.next = self.no_pulse.val();
        // ring
        self.ring.enable.next = self.enable.val() & self.swept.q.val();
        self.ring.cmd_base.next = self.cmd_base.val();
        self.ring.cpl_base.next = self.cpl_base.val();
        self.ring.cmd_log_size.next = self.cmd_log_size.val();
        self.ring.cmd_pi.next = self.cmd_pi.val();
        self.cmd_ci.next = self.ring.cmd_ci.val();
        StreamOut::<ReadReq>::link(&mut self.read, &mut self.ring.read);
        ReadBeatIn::<W>::link(&mut self.beat, &mut self.ring.beat);
        StreamOut::<WriteCmd>::link(&mut self.write, &mut self.ring.write);
        WriteBeatOut::<W, K>::link(&mut self.beats, &mut self.ring.beats);
        self.done.next = self.ring.done.val();
        self.failed.next = self.ring.failed.val();
        // the entry and what it says
        self.as_head.word.next = self.ring.entry.val().get_bits::<512>(0);
        self.as_sq.word.next = self.ring.entry.val().get_bits::<512>(512);
        self.as_mr.word.next = self.ring.entry.val().get_bits::<512>(512);
        self.as_cq.word.next = self.ring.entry.val().get_bits::<512>(512);
        self.as_eq.word.next = self.ring.entry.val().get_bits::<512>(512);
        self.as_ah.word.next = self.ring.entry.val().get_bits::<512>(512);
        self.as_srq.word.next = self.ring.entry.val().get_bits::<512>(512);
        self.as_gid.word.next = self.ring.entry.val().get_bits::<512>(512);
        self.as_port.word.next = self.ring.entry.val().get_bits::<512>(512);
        self.as_av.word.next = self.ring.entry.val().get_bits::<512>(1024);
        self.as_rq.word.next = self.ring.entry.val().get_bits::<512>(1536);
        self.h.next = self.as_head.image.val();
        self.check.head.next = self.as_head.image.val();
        self.check.sq.next = self.as_sq.image.val();
        self.check.av.next = self.as_av.image.val();
        self.check.rq.next = self.as_rq.image.val();
        self.check.cq.next = self.as_cq.image.val();
        self.check.mr.next = self.as_mr.image.val();
        self.check.eq.next = self.as_eq.image.val();
        self.check.ah.next = self.as_ah.image.val();
        self.check.srq.next = self.as_srq.image.val();
        // judgement
        self.index.next = self.h.val().index.get_bits::<Q>(0);
        self.configured.re.next = true;
        self.configured.raddr.next = self.index.val();
        self.configured.we.next = false;
        self.configured.waddr.next = self.index.val();
        self.configured.wdata.next = bits::<2>(0)
            .replace_bit(
                0,
                (self.configured.rdata.val().get_bit(0) | self.h.val().qp_sq)
                    & !self.check.facts.val().sq_ends,
            )
            .replace_bit(
                1,
                (self.configured.rdata.val().get_bit(1) | self.h.val().qp_rq)
                    & !self.check.facts.val().rq_ends,
            );
        self.check.images.next = self.configured.rdata.val();
        self.srqn.next = self.h.val().index.get_bits::<S>(0);
        if self.h.val().opcode == MODIFY_QP {
            self.srqn.next = self.as_rq.image.val().srqn.get_bits::<S>(0);
        }
        self.shared.re.next = true;
        self.shared.raddr.next = self.srqn.val();
        self.shared.we.next = false;
        self.shared.waddr.next = self.h.val().index.get_bits::<S>(0);
        self.shared.wdata.next = self.check.facts.val().create_srq;
        self.check.srq_exists.next = self.shared.rdata.val();
        self.of_srq.next = self.check.facts.val().create_srq
            | self.check.facts.val().destroy_srq
            | self.check.facts.val().arm_srq;
        self.drains.next = self.check.facts.val().modify
            & (self.check.facts.val().sq_ends | self.check.facts.val().rq_ends);
        self.of_eq.next = self.check.facts.val().create_eq | self.check.facts.val().destroy_eq;
        // queue pairs
        self.events.start.next = self.state.q.val() == CommandState::Tell;
        self.events.head.next = self.as_head.image.val();
        self.events.set.next = self.check.facts.val().modify;
        self.events.shared.next = self.of_srq.val();
        self.events.srq_opens.next = self.check.facts.val().create_srq;
        self.events.srq_closes.next = self.check.facts.val().destroy_srq;
        self.events.srq_limit.next = self.as_srq.image.val().limit;
        StreamOut::<SqEvent>::link(&mut self.sq_event, &mut self.events.sq_event);
        StreamOut::<RqEvent>::link(&mut self.rq_event, &mut self.events.rq_event);
        self.events.sq_query_valid.next = self.sq_query_valid.val();
        self.events.sq_query.next = self.sq_query.val();
        self.events.rq_query_valid.next = self.rq_query_valid.val();
        self.events.rq_query.next = self.rq_query.val();
        match self.state.q.val() {
            CommandState::Sweep => {
                self.configured.we.next = true;
                self.configured.waddr.next = self.sweep.q.val().get_bits::<Q>(0);
                self.configured.wdata.next = bits::<2>(0);
                self.shared.we.next = true;
                self.shared.waddr.next = self.sweep.q.val().get_bits::<S>(0);
                self.shared.wdata.next = false;
                self.sweep.d.next = self.sweep.q.val() + 1;
                if self.sweep.q.val() == Self::LAST {
                    self.swept.d.next = true;
                    self.state.d.next = CommandState::Idle;
                }
            }
            CommandState::Idle => {
                self.ended.d.next = false;
                if self.ring.start.val() {
                    self.state.d.next = CommandState::Check;
                }
            }
            CommandState::Check => {
                self.state.d.next = CommandState::Judge;
            }
            CommandState::Judge => {
                self.verdict.d.next = self.check.status.val();
                if self.check.status.val().any() {
                    self.state.d.next = CommandState::Finish;
                } else if self.check.facts.val().query {
                    self.state.d.next = CommandState::Tell;
                } else if self.check.facts.val().create_cq
                    | self.check.facts.val().destroy_cq
                    | self.check.facts.val().resize_cq
                    | self.of_eq.val()
                {
                    self.state.d.next = CommandState::Queue;
                } else {
                    self.state.d.next = CommandState::Apply;
                }
            }
            CommandState::Apply => {
                self.configured.we.next = self.check.facts.val().modify;
                self.pulse.d.next.sq_we = self.check.facts.val().modify
                    & self.h.val().qp_sq
                    & (self.check.facts.val().sq_ends == self.ended.q.val());
                self.pulse.d.next.av_we = self.check.facts.val().modify
                    & self.h.val().qp_av
                    & (self.check.facts.val().sq_ends == self.ended.q.val());
                self.pulse.d.next.rq_we = self.check.facts.val().modify
                    & self.h.val().qp_rq
                    & (self.check.facts.val().rq_ends == self.ended.q.val());
                self.pulse.d.next.ah_we = self.check.facts.val().write_ah;
                self.pulse.d.next.srq_we = self.check.facts.val().create_srq;
                self.shared.we.next =
                    self.check.facts.val().create_srq | self.check.facts.val().destroy_srq;
                self.pulse.d.next.mr_we = self.check.facts.val().write_mr;
                self.pulse.d.next.gid_we = self.check.facts.val().set_gid;
                if self.check.facts.val().set_port {
                    self.mac.d.next = self.as_port.image.val().mac;
                    self.everything.d.next = self.as_port.image.val().promiscuous;
                }
                self.state.d.next = CommandState::Finish;
                if self.check.facts.val().write_mr {
                    self.state.d.next = CommandState::Drain;
                } else if (self.check.facts.val().modify | self.of_srq.val()) & !self.ended.q.val()
                {
                    self.state.d.next = CommandState::Tell;
                }
            }
            CommandState::Queue => {
                if (self.cq.ready.val() & !self.of_eq.val())
                    | (self.eq.ready.val() & self.of_eq.val())
                {
                    self.state.d.next = CommandState::Finish;
                    if self.check.facts.val().destroy_cq | self.check.facts.val().destroy_eq {
                        self.state.d.next = CommandState::Drain;
                    }
                    if self.check.facts.val().resize_cq {
                        self.state.d.next = CommandState::Switch;
                    }
                }
            }
            CommandState::Switch => {
                self.state.d.next = CommandState::Drain;
                if self.cq_refused.val() {
                    self.verdict.d.next = bits::<8>(BAD_STATE);
                    self.state.d.next = CommandState::Finish;
                }
            }
            CommandState::Tell => {
                self.state.d.next = CommandState::Wait;
            }
            CommandState::Wait => {
                if !self.events.busy.val() {
                    self.state.d.next = CommandState::Finish;
                    if self.drains.val() | self.check.facts.val().destroy_srq {
                        self.state.d.next = CommandState::Drain;
                    }
                }
            }
            CommandState::Drain => {
                self.pulse.d.next.drain = true;
                self.state.d.next = CommandState::Settle;
            }
            CommandState::Settle => {
                if self.drain_done.val() & !self.pulse.q.val().drain {
                    self.ended.d.next = true;
                    self.state.d.next = CommandState::Finish;
                    if self.check.facts.val().modify {
                        self.state.d.next = CommandState::Apply;
                    }
                }
            }
            CommandState::Finish => {
                self.pulse.d.next.finish = true;
                self.state.d.next = CommandState::Idle;
            }
            _ => {
                self.state.d.next = CommandState::Idle;
            }
        }
        // answer
        self.state_bits.next = bits::<128>(0);
        if self.check.facts.val().query & !self.verdict.q.val().any() {
            self.state_bits.next = self.events.found.val().into();
        } else if self.check.facts.val().resize_cq & !self.verdict.q.val().any() {
            self.state_bits.next = bit_cast::<128, 24>(self.cq_switched.val());
        }
        self.ring.finish.next = self.pulse.q.val().finish;
        self.ring.status.next = self.verdict.q.val();
        self.ring.value.next = self.state_bits.val();
        // what leaves
        self.image_qpn.next = self.index.val();
        self.sq_we.next = self.pulse.q.val().sq_we;
        self.sq_image.next = self.as_sq.image.val();
        self.av_we.next = self.pulse.q.val().av_we;
        self.ah_we.next = self.pulse.q.val().ah_we;
        self.av_image.next = self.as_av.image.val();
        if self.check.facts.val().write_ah {
            self.av_image.next = self.as_ah.image.val();
        }
        self.rq_we.next = self.pulse.q.val().rq_we;
        self.rq_image.next = self.as_rq.image.val();
        self.srq_we.next = self.pulse.q.val().srq_we;
        self.srq_srqn.next = self.h.val().index.get_bits::<S>(0);
        self.srq_image.next = self.as_srq.image.val();
        self.mr_we.next = self.pulse.q.val().mr_we;
        self.mr_index.next = self.h.val().index.get_bits::<M>(0);
        self.mr_image.next = self.as_mr.image.val();
        self.cq.valid.next = (self.state.q.val() == CommandState::Queue) & !self.of_eq.val();
        self.cq.payload.next.cqn = self.h.val().index.get_bits::<16>(0);
        self.cq.payload.next.open = self.check.facts.val().create_cq;
        self.cq.payload.next.resize = self.check.facts.val().resize_cq;
        self.cq.payload.next.taken = self.h.val().cq_taken;
        self.cq.payload.next.image = self.as_cq.image.val();
        self.eq.valid.next = (self.state.q.val() == CommandState::Queue) & self.of_eq.val();
        self.eq.payload.next.eqn = self.h.val().index.get_bits::<8>(0);
        self.eq.payload.next.open = self.check.facts.val().create_eq;
        self.eq.payload.next.image = self.as_eq.image.val();
        self.gid_we.next = self.pulse.q.val().gid_we;
        self.gid.next.index = self.h.val().index.get_bits::<8>(0);
        self.gid.next.gid = self.as_gid.image.val().gid;
        self.gid.next.valid = self.as_gid.image.val().valid;
        self.gid.next.ipv6 = self.as_gid.image.val().ipv6;
        self.port_mac.next = self.mac.q.val();
        self.promiscuous.next = self.everything.q.val();
        self.drain_start.next = self.pulse.q.val().drain;
        self.ready.next = self.swept.q.val();
    }
}
