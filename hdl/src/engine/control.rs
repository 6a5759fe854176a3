//! Control: commands of the host, its completion and event queues, and what ends things in order. Wiring only.
use ferroce_proto::abi::eq::event::SRQ_LIMIT;

use super::failures::Failures;
use super::{LOG_EQ, LOG_SRQ};
use crate::bus::dma_client::*;
use crate::bus::types::image::QpState;
use crate::bus::types::{
    AccessCounts, Activity, AtomicsOver, CqOutcome, CqToken, ReadReq, WriteCmd, WriteMarks,
};
use crate::bus::valid::Valid;
use crate::control::command::Command;
use crate::control::drain::section::*;
use crate::control::drain::{Drain, ELSEWHERE};
use crate::control::table_writes::TableWrites;
use crate::prelude::*;
use crate::queue::cq_write::{CqArm, CqWrite};
use crate::queue::eq_write::notice::EqNotice;
use crate::queue::eq_write::qp_events::QpEvents;
use crate::queue::eq_write::{EqEvent, EqWrite};
use crate::transport::requester::event::SqEvent;
use crate::transport::responder::event::{RqEvent, RqFailure};
use crate::transport::responder::srq_table::SrqLimit;

/// Features as a parameter of blocks.
const F: usize = super::FEATURES as usize;

/// Control; parameters as in [`super::Engine`].
#[derive(Block)]
pub struct Control<
    const W: usize,
    const K: usize,
    const Q: usize,
    const M: usize,
    const C: usize,
    const O: usize,
> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Commands are carried out.
    pub enable: Signal<In, Bit>,
    /// Address of the command ring.
    pub cmd_base: Signal<In, Bits<64>>,
    /// Address of the ring of command completions.
    pub cpl_base: Signal<In, Bits<64>>,
    /// Log2 of their entries.
    pub cmd_log_size: Signal<In, Bits<4>>,
    /// Command producer index.
    pub cmd_pi: Signal<In, Bits<16>>,
    /// What commands write into tables.
    pub tables: Signal<Out, TableWrites>,
    /// Arm doorbells of completion queues.
    pub cq_doorbell: StreamIn<CqArm>,
    /// Reads of commands.
    pub cmd_read: StreamOut<ReadReq>,
    /// Their answers.
    pub cmd_beat: ReadBeatIn<W>,
    /// Completions of commands.
    pub cpl_write: StreamOut<WriteCmd>,
    /// Their beats.
    pub cpl_beats: WriteBeatOut<W, K>,
    /// Reads of consumer records of completion queues.
    pub cq_read: StreamOut<ReadReq>,
    /// Their answers.
    pub cq_beat: ReadBeatIn<W>,
    /// CQEs.
    pub cqe_write: StreamOut<WriteCmd>,
    /// Their beats.
    pub cqe_beats: WriteBeatOut<W, K>,
    /// Reads of consumer records of event queues.
    pub eq_read: StreamOut<ReadReq>,
    /// Their answers.
    pub eq_beat: ReadBeatIn<W>,
    /// EQEs.
    pub eqe_write: StreamOut<WriteCmd>,
    /// Their beats.
    pub eqe_beats: WriteBeatOut<W, K>,
    /// Writes issued, by client, modulo 2^16.
    pub issued: [Signal<In, Bits<16>>; WRITERS],
    /// Of those, writes done.
    pub written: [Signal<In, Bits<16>>; WRITERS],
    /// Accesses to memory for peers.
    pub accesses: Signal<In, AccessCounts>,
    /// Commands for the requester.
    pub sq_command: StreamOut<SqEvent>,
    /// Answer to one.
    pub sq_query_valid: Signal<In, Bit>,
    /// Requester's part of the state, before the command.
    pub sq_query: Signal<In, QpState>,
    /// Failures elsewhere, for the requester.
    pub sq_failure: StreamOut<SqEvent>,
    /// A send queue went into error.
    pub sq_failed: Signal<In, Bit>,
    /// Its queue pair.
    pub sq_failed_qpn: Signal<In, Bits<16>>,
    /// Status behind it; 0 if the cause is not in the send queue.
    pub sq_failed_status: Signal<In, Bits<8>>,
    /// Queue pairs in error whose completions with the failure have left: their responder is to fail.
    pub sq_down: StreamIn<Bits<16>>,
    /// A packet was not sent because its payload could not be read.
    pub lost: Signal<In, Bit>,
    /// Its queue pair.
    pub lost_qpn: Signal<In, Bits<16>>,
    /// Its PSN.
    pub lost_psn: Signal<In, Bits<24>>,
    /// Incarnation of its queue pair.
    pub lost_incarnation: Signal<In, Bits<2>>,
    /// See [`Failures::lost_hold`](super::failures::Failures::lost_hold).
    pub lost_hold: Signal<Out, Bit>,
    /// Commands, and failures of send queues, for the responder.
    pub rq_events: StreamOut<RqEvent>,
    /// Answer to a command.
    pub rq_query_valid: Signal<In, Bit>,
    /// Responder's part of the state, before the command.
    pub rq_query: Signal<In, QpState>,
    /// Queue pairs that went into error because of a request.
    pub rq_failures: StreamIn<RqFailure>,
    /// Shared receive queues that fell below their limits.
    pub srq_limits: StreamIn<SrqLimit>,
    /// The exception queue has what the host armed it for; one cycle.
    pub exception: Signal<In, Bit>,
    /// Completions of receives.
    pub recv: StreamIn<CqToken>,
    /// Completions of sends.
    pub send: StreamIn<CqToken>,
    /// What became of those of receives that an acknowledgement waits for.
    pub outcome: Signal<Out, Valid<CqOutcome>>,
    /// Payload writes done, of which it is known whether they were refused, modulo 2^16.
    pub judged: Signal<In, Bits<16>>,
    /// Queue pair of a completion.
    pub look: Signal<Out, Bits<16>>,
    /// A cycle later: since when its payload was refused.
    pub refused_since: Signal<In, WriteMarks>,
    /// The queue pair whose atomics a completion waits for.
    pub awaited: Signal<Out, Bits<16>>,
    /// Atomics of a queue pair that are over.
    pub over: Signal<In, Valid<AtomicsOver>>,
    /// MSI-X vector to send.
    pub irq_vector: Signal<Out, Bits<11>>,
    /// `irq_vector` is valid.
    pub irq_valid: Signal<Out, Bit>,
    /// It is taken in this cycle.
    pub irq_ready: Signal<In, Bit>,
    /// What is under way, by [`section`](crate::control::drain::section).
    pub activity: [Signal<In, Activity>; ELSEWHERE],
    /// What comes to the queues of the classes from now on is not waited for.
    pub note: Signal<Out, Bit>,
    /// Of this block: tokens, CQEs and reads of consumer records.
    pub cq_activity: Signal<Out, Activity>,
    /// A completion queue overflowed.
    pub cq_overflow: Signal<Out, Bit>,
    /// A command was answered.
    pub cmd_done: Signal<Out, Bit>,
    /// With `cmd_done`: it failed.
    pub cmd_failed: Signal<Out, Bit>,
    /// Tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    command: Command<W, K, Q, M, C, O, LOG_EQ, F, LOG_SRQ>,
    completions: CqWrite<W, K, C>,
    events: EqWrite<W, K, LOG_EQ>,
    qp_events: QpEvents<Q, C>,
    event_sources: Merge<EqEvent, 4>,
    notice: EqNotice,
    drain: Drain,
    failures: Failures,
    rq_merge: Merge<RqEvent, 2>,
    no_event: Zero<EqEvent>,
}

impl<const W: usize, const K: usize, const Q: usize, const M: usize, const C: usize, const O: usize>
    Logic for Control<W, K, Q, M, C, O>
{
    describe!(
        "control",
        format!("w{W}_q{Q}_m{M}_c{C}_o{O}"),
        "Commands, completion and event queues, and what ends things in order."
    );

    #[kernel]
    fn update(&mut self) {
        // commands
        command.enable = enable;
        command.cmd_base = cmd_base;
        command.cpl_base = cpl_base;
        command.cmd_log_size = cmd_log_size;
        command.cmd_pi = cmd_pi;
        forward!(cmd_read <= command.read);
        forward!(cmd_beat <= command.beat);
        forward!(cpl_write <= command.write);
        forward!(cpl_beats <= command.beats);
        tables = TableWrites {
            qpn: command.image_qpn.resize::<16>(),
            sq_we: command.sq_we,
            sq: command.sq_image,
            av_we: command.av_we,
            ah_we: command.ah_we,
            av: command.av_image,
            rq_we: command.rq_we,
            rq: command.rq_image,
            srq_we: command.srq_we,
            srqn: command.srq_srqn.resize::<16>(),
            srq: command.srq_image,
            mr_we: command.mr_we,
            mr_index: command.mr_index.resize::<16>(),
            mr: command.mr_image,
            gid_we: command.gid_we,
            gid: command.gid,
            mac: command.port_mac,
            promiscuous: command.promiscuous,
        };
        forward!(sq_command <= command.sq_event);
        command.sq_query_valid = sq_query_valid;
        command.sq_query = sq_query;
        command.rq_query_valid = rq_query_valid;
        command.rq_query = rq_query;
        cmd_done = command.done;
        cmd_failed = command.failed;

        // completions
        forward!(completions.command <= command.cq);
        command.cq_refused = completions.refused;
        command.cq_switched = completions.switched;
        forward!(recv <= completions.recv);
        forward!(send <= completions.send);
        forward!(cq_doorbell <= completions.arm);
        forward!(cq_read <= completions.read);
        forward!(cq_beat <= completions.beat);
        forward!(cqe_write <= completions.write);
        forward!(cqe_beats <= completions.beats);
        cq_overflow = completions.overflow;
        outcome = completions.outcome;
        look = completions.look;
        completions.refused_since = refused_since;
        awaited = completions.awaited;
        completions.over = over;

        // failures
        forward!(rq_merge.s[0] <= command.rq_event);
        forward!(rq_merge.s[1] <= failures.rq);
        forward!(rq_events <= rq_merge.m);
        forward!(sq_down <= failures.sq_down);
        failures.lost = lost;
        failures.lost_qpn = lost_qpn;
        failures.lost_psn = lost_psn;
        failures.lost_incarnation = lost_incarnation;
        lost_hold = failures.lost_hold;
        forward!(rq_failures <= failures.responder);
        forward!(failures.lost_cqe <= completions.lost);
        forward!(sq_failure <= failures.sq);

        // events
        forward!(events.command <= command.eq);
        forward!(event_sources.s[0] <= completions.events);
        forward!(event_sources.s[1] <= qp_events.events);
        notice.notify = exception;
        forward!(event_sources.s[2] <= notice.events);
        event_sources.s[3].valid = srq_limits.valid;
        event_sources.s[3].payload = no_event;
        event_sources.s[3].payload.event = SRQ_LIMIT;
        event_sources.s[3].payload.eqn = srq_limits.payload.eqn;
        event_sources.s[3].payload.object = srq_limits.payload.srqn;
        srq_limits.ready = event_sources.s[3].ready;
        forward!(events.events <= event_sources.m);
        forward!(eq_read <= events.read);
        forward!(eq_beat <= events.beat);
        forward!(eqe_write <= events.write);
        forward!(eqe_beats <= events.beats);
        irq_vector = events.irq_vector;
        irq_valid = events.irq_valid;
        events.irq_ready = irq_ready;
        qp_events.sq_we = command.sq_we;
        qp_events.sq_qpn = command.image_qpn;
        qp_events.sq_cqn = command.sq_image.cqn;
        qp_events.cq = completions.changed;
        qp_events.answered = sq_query_valid;
        qp_events.command_qpn = command.sq_event.payload.qpn;
        qp_events.command_set = command.sq_event.payload.set;
        qp_events.command_state = command.sq_event.payload.state;
        qp_events.sq_failed = sq_failed;
        qp_events.sq_failed_qpn = sq_failed_qpn;
        qp_events.sq_failed_status = sq_failed_status;
        forward!(qp_events.marks <= completions.marks);
        forward!(qp_events.responder <= failures.err_report);

        // what is under way
        drain.start = command.drain_start;
        command.drain_done = drain.done;
        note = drain.note;
        for i in 0..ELSEWHERE {
            drain.activity[i] = activity[i];
        }
        cq_activity = completions.activity;
        drain.activity[TO_REQUESTER] = failures.to_sq;
        drain.activity[TO_RESPONDER] = failures.to_rq;
        drain.activity[QP_EVENTS].busy = completions.marking | qp_events.busy | srq_limits.valid;
        // waited for to the last
        drain.activity[QP_EVENTS].moved = false;
        drain.activity[QP_EVENTS].level = 1;
        drain.activity[EVENTS] = events.activity;
        drain.report_issued = completions.reported;
        drain.report_done = completions.handed;
        completions.issued = issued[WRITE_PAYLOAD];
        completions.accesses = accesses;
        completions.done = judged;
        completions.cqe_done = written[WRITE_CQE];
        events.done = written[WRITE_EQE];
        drain.payload_issued = issued[WRITE_PAYLOAD];
        drain.payload_done = written[WRITE_PAYLOAD];
        drain.cqe_issued = issued[WRITE_CQE];
        drain.cqe_done = written[WRITE_CQE];
        drain.eqe_issued = issued[WRITE_EQE];
        drain.eqe_done = written[WRITE_EQE];
        ready = command.ready & completions.ready & events.ready & qp_events.ready;
    }
}
