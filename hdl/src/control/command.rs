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
//! * WRITE_AH waits for the same before it writes: a datagram that was begun leaves for the address of then.
//!
//! Assumes: every event of kind Command is answered once by `sq_query` or `rq_query`, no earlier than the cycle behind
//! its transfer. Images and their numbers stand from the write enable to the next command.
//!
//! The order of the steps: [`command_steps`](super::command_steps).
//!
//! Latency, with no one waiting: 11 cycles from `cmd_pi` to the first beat of a NOP's completion, and the read.
//! A command begins while `enable` is 1; one that has begun ends.
use ferroce_proto::abi::cmd::opcode::MODIFY_QP;

use super::command_check::CommandCheck;
use super::command_events::CommandEvents;
use super::command_images::CommandImages;
use super::command_ring::CommandRing;
use super::command_steps::CommandSteps;
use super::command_types::CommandState;
use crate::bus::types::image::{AvCtx, MrCtx, QpState, RqCtx, SqCtx, SrqCtx};
use crate::bus::types::{ReadReq, WriteCmd};
use crate::eth::gid_table::GidWrite;
use crate::prelude::*;
use crate::queue::cq_write::CqCommand;
use crate::queue::eq_write::EqCommand;
use crate::transport::requester::event::SqEvent;
use crate::transport::responder::event::RqEvent;

/// Command block of a build with the features F, on a memory bus of W bits = K bytes.
///
/// The build has 2^Q queue pairs and address handles, 2^M memory regions, 2^C completion queues, a pool of 2^O
/// outstanding messages, 2^E event queues and 2^S shared receive queues.
#[derive(Block)]
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
    images: CommandImages,
    check: CommandCheck<Q, M, C, O, E, F, S>,
    events: CommandEvents,
    /// Queue pairs that had a requester image (bit 0) and a responder image (bit 1) since state RESET.
    configured: Ram<Bits<2>, Q>,
    /// Shared receive queues that exist.
    shared: Ram<Bit, S>,
    /// Completion queues that exist.
    queues: Ram<Bit, C>,
    /// Event queues that exist.
    event_queues: Ram<Bit, E>,
    steps: CommandSteps<Q, S, C, E>,
    mac: Reg<Bits<48>>,
    promiscuous_q: Reg<Bit>,
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
        "Carries out the entries of the command ring."
    );

    #[kernel]
    fn update(&mut self) {
        // ring
        ring.enable = enable & steps.ready;
        ring.cmd_base = cmd_base;
        ring.cpl_base = cpl_base;
        ring.cmd_log_size = cmd_log_size;
        ring.cmd_pi = cmd_pi;
        forward!(read <= ring.read);
        forward!(beat <= ring.beat);
        forward!(write <= ring.write);
        forward!(beats <= ring.beats);
        done = ring.done;
        failed = ring.failed;
        // the entry and what it says
        images.entry = ring.entry;
        let head = images.head;
        let facts = check.facts;
        copy!(check <= images; head, sq, av, rq, cq, mr, eq, ah, srq);
        let of_srq = facts.create_srq | facts.destroy_srq | facts.arm_srq;
        let of_eq = facts.create_eq | facts.destroy_eq;
        // steps
        steps.start = ring.start;
        steps.status = check.status;
        steps.facts = facts;
        copy!(steps <= head; qp_sq, qp_av, qp_rq);
        let queue_ready = if of_eq { eq.ready } else { cq.ready };
        steps.queue_ready = queue_ready;
        steps.cq_refused = cq_refused;
        steps.events_busy = events.busy;
        steps.drain_done = drain_done;
        let applies = steps.state == CommandState::Apply;
        let pulse = steps.pulse;
        // which queue pairs have images
        let index = head.index.low::<Q>();
        configured.re = true;
        configured.raddr = index;
        configured.we = applies & facts.modify;
        configured.waddr = index;
        configured.wdata = bits::<2>(0)
            .replace_bit(0, (configured.rdata.bit(0) | head.qp_sq) & !facts.sq_ends)
            .replace_bit(1, (configured.rdata.bit(1) | head.qp_rq) & !facts.rq_ends);
        check.images = configured.rdata;
        // which shared receive queues exist
        shared.re = true;
        shared.raddr = if head.opcode == MODIFY_QP {
            images.rq.srqn.low::<S>()
        } else {
            head.index.low::<S>()
        };
        shared.we = applies & (facts.create_srq | facts.destroy_srq);
        shared.waddr = head.index.low::<S>();
        shared.wdata = facts.create_srq;
        check.srq_exists = shared.rdata;
        // which completion queues and event queues
        let queued = (steps.state == CommandState::Queue) & queue_ready;
        queues.re = true;
        queues.raddr = head.index.low::<C>();
        queues.we = queued & (facts.create_cq | facts.destroy_cq);
        queues.waddr = head.index.low::<C>();
        queues.wdata = facts.create_cq;
        check.cq_exists = queues.rdata;
        event_queues.re = true;
        event_queues.raddr = head.index.low::<E>();
        event_queues.we = queued & of_eq;
        event_queues.waddr = head.index.low::<E>();
        event_queues.wdata = facts.create_eq;
        check.eq_exists = event_queues.rdata;
        if steps.state == CommandState::Sweep {
            configured.we = true;
            configured.waddr = steps.sweep.low::<Q>();
            configured.wdata = 0;
            shared.we = true;
            shared.waddr = steps.sweep.low::<S>();
            shared.wdata = false;
            queues.we = true;
            queues.waddr = steps.sweep.low::<C>();
            queues.wdata = false;
            event_queues.we = true;
            event_queues.waddr = steps.sweep.low::<E>();
            event_queues.wdata = false;
        }
        if applies & facts.set_port {
            mac = images.port.mac;
            promiscuous_q = images.port.promiscuous;
        }
        // queue pairs
        events.start = steps.state == CommandState::Tell;
        events.head = head;
        events.set = facts.modify;
        events.shared = of_srq;
        events.srq_opens = facts.create_srq;
        events.srq_closes = facts.destroy_srq;
        events.srq_limit = images.srq.limit;
        forward!(sq_event <= events.sq_event);
        forward!(rq_event <= events.rq_event);
        events.sq_query_valid = sq_query_valid;
        events.sq_query = sq_query;
        events.rq_query_valid = rq_query_valid;
        events.rq_query = rq_query;
        // answer
        let mut state_bits: Bits<128> = bits::<128>(0);
        if facts.query & !steps.result.any() {
            state_bits = events.found.into();
        } else if facts.resize_cq & !steps.result.any() {
            state_bits = cq_switched.resize::<128>();
        }
        ring.finish = pulse.finish;
        ring.status = steps.result;
        ring.value = state_bits;
        // what leaves
        image_qpn = index;
        sq_we = pulse.sq_we;
        sq_image = images.sq;
        av_we = pulse.av_we;
        ah_we = pulse.ah_we;
        av_image = images.av;
        if facts.write_ah {
            av_image = images.ah;
        }
        rq_we = pulse.rq_we;
        rq_image = images.rq;
        srq_we = pulse.srq_we;
        srq_srqn = head.index.low::<S>();
        srq_image = images.srq;
        mr_we = pulse.mr_we;
        mr_index = head.index.low::<M>();
        mr_image = images.mr;
        cq.valid = (steps.state == CommandState::Queue) & !of_eq;
        cq.payload.cqn = head.index.low::<16>();
        cq.payload.open = facts.create_cq;
        cq.payload.resize = facts.resize_cq;
        cq.payload.taken = head.cq_taken;
        cq.payload.image = images.cq;
        eq.valid = (steps.state == CommandState::Queue) & of_eq;
        eq.payload.eqn = head.index.low::<8>();
        eq.payload.open = facts.create_eq;
        eq.payload.image = images.eq;
        gid_we = pulse.gid_we;
        gid.index = head.index.low::<8>();
        copy!(gid <= images.gid; gid, valid, ipv6);
        port_mac = mac;
        promiscuous = promiscuous_q;
        drain_start = pulse.drain;
        ready = steps.ready;
    }
}
