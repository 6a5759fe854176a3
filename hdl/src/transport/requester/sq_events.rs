//! Merges the events of the send queues from all sources, one a cycle, round robin.
//!
//! As [`Merge`], but a field is chosen among those only whose events name it; where one alone names it, it is not chosen
//! at all: others ignore it.
//!
//! Latency: a cycle. Throughput: an event a cycle.
use super::event::{SentPacket, SqEvent, SqEventKind};
use crate::prelude::*;

/// Merge of the events.
#[derive(Block)]
pub struct SqEvents {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Command.
    pub command: StreamIn<SqEvent>,
    /// What commands before did is not done: the next one waits.
    pub command_waits: Signal<In, Bit>,
    /// Answer.
    pub answer: StreamIn<SqEvent>,
    /// Retire and Retired.
    pub retire: StreamIn<SqEvent>,
    /// Timeout.
    pub timeout: StreamIn<SqEvent>,
    /// Start, Refetch and Executed.
    pub start: StreamIn<SqEvent>,
    /// Fetch.
    pub fetch: StreamIn<SqEvent>,
    /// Doorbell.
    pub doorbell: StreamIn<SqEvent>,
    /// Failed and Unread.
    pub failure: StreamIn<SqEvent>,
    /// Last packets of UC and UD messages, as Answer.
    pub sent: StreamIn<SentPacket>,
    /// Events.
    pub m: StreamOut<SqEvent>,
    arbiter: Arbiter<9>,
    kinds: Pick<SqEventKind, 9>,
    qpns: Pick<Bits<16>, 9>,
    skid: SkidRam<SqEvent>,
}

impl Logic for SqEvents {
    describe!("sq_events", "Merges the events of the send queues.");

    #[kernel]
    fn update(&mut self) {
        let requests = bits::<9>(0)
            .replace_bit(0, command.valid & !command_waits)
            .replace_bit(1, answer.valid)
            .replace_bit(2, retire.valid)
            .replace_bit(3, timeout.valid)
            .replace_bit(4, start.valid)
            .replace_bit(5, fetch.valid)
            .replace_bit(6, doorbell.valid)
            .replace_bit(7, failure.valid)
            // behind the packets of its message that were not sent
            .replace_bit(8, sent.valid & !failure.valid);
        arbiter.request = requests;
        arbiter.take = skid.s.ready;
        let turn = arbiter.grant;
        command.ready = skid.s.ready & turn.bit(0);
        answer.ready = skid.s.ready & turn.bit(1);
        retire.ready = skid.s.ready & turn.bit(2);
        timeout.ready = skid.s.ready & turn.bit(3);
        start.ready = skid.s.ready & turn.bit(4);
        fetch.ready = skid.s.ready & turn.bit(5);
        doorbell.ready = skid.s.ready & turn.bit(6);
        failure.ready = skid.s.ready & turn.bit(7);
        sent.ready = skid.s.ready & turn.bit(8);

        // named by all
        kinds.choice = turn;
        kinds.item[0] = SqEventKind::Command;
        kinds.item[1] = SqEventKind::Answer;
        kinds.item[2] = retire.payload.kind;
        kinds.item[3] = SqEventKind::Timeout;
        kinds.item[4] = start.payload.kind;
        kinds.item[5] = SqEventKind::Fetch;
        kinds.item[6] = SqEventKind::Doorbell;
        kinds.item[7] = failure.payload.kind;
        kinds.item[8] = SqEventKind::Answer;
        qpns.choice = turn;
        qpns.item[0] = command.payload.qpn;
        qpns.item[1] = answer.payload.qpn;
        qpns.item[2] = retire.payload.qpn;
        qpns.item[3] = timeout.payload.qpn;
        qpns.item[4] = start.payload.qpn;
        qpns.item[5] = fetch.payload.qpn;
        qpns.item[6] = doorbell.payload.qpn;
        qpns.item[7] = failure.payload.qpn;
        qpns.item[8] = sent.payload.qpn;

        skid.s.valid = requests.any();
        // named by one
        skid.s.payload = start.payload;
        skid.s.payload.writes = answer.payload.writes;
        copy!(skid.s.payload <= retire.payload; reads, unfenced, stalled, passed, count);
        skid.s.payload.fetches = doorbell.payload.fetches;
        copy!(skid.s.payload <= command.payload; state, set, reset, image);
        skid.s.payload.kind = kinds.picked;
        skid.s.payload.qpn = qpns.picked;
        // named by some
        if turn.bit(2) {
            skid.s.payload.index = retire.payload.index;
        } else if turn.bit(6) {
            skid.s.payload.index = doorbell.payload.index;
        }
        skid.s.payload.psn = answer.payload.psn;
        skid.s.payload.una_psn = answer.payload.una_psn;
        if turn.bit(0) {
            skid.s.payload.psn = command.payload.psn;
        } else if turn.bit(2) {
            skid.s.payload.psn = retire.payload.psn;
            skid.s.payload.una_psn = retire.payload.una_psn;
        } else if turn.bit(7) {
            skid.s.payload.psn = failure.payload.psn;
        } else if turn.bit(8) {
            skid.s.payload.psn = sent.payload.psn;
        }
        skid.s.payload.generation = timeout.payload.generation;
        if turn.bit(2) {
            skid.s.payload.generation = retire.payload.generation;
        } else if turn.bit(4) {
            skid.s.payload.generation = start.payload.generation;
        } else if turn.bit(7) {
            skid.s.payload.generation = failure.payload.generation;
        } else if turn.bit(8) {
            skid.s.payload.generation = sent.payload.incarnation;
        }
        // a packet that was sent is as a positive answer
        copy!(skid.s.payload <= answer.payload; data, implied, closed, merged, syndrome);
        skid.s.payload.sent = turn.bit(8);
        if turn.bit(8) {
            skid.s.payload.data = false;
            skid.s.payload.implied = false;
            skid.s.payload.closed = false;
            skid.s.payload.merged = false;
            skid.s.payload.syndrome = bits::<8>(0);
        }
        // of others, a timeout too, no failure
        skid.s.payload.status = bits::<8>(0);
        if turn.bit(1) {
            skid.s.payload.status = answer.payload.status;
        } else if turn.bit(2) {
            skid.s.payload.status = retire.payload.status;
        } else if turn.bit(4) {
            skid.s.payload.status = start.payload.status;
        }
        forward!(m <= skid.m);
    }
}
