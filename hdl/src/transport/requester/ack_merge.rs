//! Responses as events for the table of send queues, two acknowledgements of a queue pair that wait as one.
//!
//! The table takes an event of one queue pair every second cycle. A plain acknowledgement (positive, of no data, with
//! nothing wrong) that waits behind another response takes the next plain one of its queue pair with it, if that one
//! acknowledges more: the event has both PSNs, and the table counts both. What is offered at `m` does not change.
//!
//! They wait in LUT RAM, a ring of four of which three are in use; what the next one is compared with of the last one stands in
//! registers too.
//!
//! Latency: 0 while nothing waits. Throughput: a response a cycle; of one queue pair two in two cycles.
use super::event::{SqEvent, SqEventKind};
use crate::bus::types::Answer;
use crate::cell::fifo_ram::FifoRam;
use crate::prelude::*;

/// Queue of three responses.
#[derive(Block)]
pub struct AckMerge {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Responses.
    pub s: StreamIn<Answer>,
    /// Their events.
    pub m: StreamOut<SqEvent>,
    ring: FifoRam<Answer, 2>,
    /// Where the first one stands, and where the next one is written.
    head: Reg<Bits<2>>,
    write: Reg<Bits<2>>,
    first_valid: Reg<Bit>,
    second_valid: Reg<Bit>,
    third_valid: Reg<Bit>,
    /// Of two acknowledgements; `missing` is the PSN of the earlier one.
    first_merged: Reg<Bit>,
    second_merged: Reg<Bit>,
    last_qpn: Dff<Bits<16>>,
    last_psn: Dff<Bits<24>>,
    /// It may take another one with it.
    last_open: Dff<Bit>,
    no_event: Zero<SqEvent>,
}

impl Logic for AckMerge {
    describe!(
        "ack_merge",
        "Responses as events, two acknowledgements of a queue pair that wait as one."
    );

    #[kernel]
    fn update(&mut self) {
        s.ready = !third_valid;
        let arrives = s.valid & !third_valid;
        let moves = first_valid & m.ready;
        let plain = !s.payload.syndrome.slice::<3>(5).any()
            & !s.payload.status.any()
            & !s.payload.data
            & !s.payload.implied
            & !s.payload.closed;
        // later, and by less than 2^22: a PSN in the window plus that is none before the window
        let distance = s.payload.psn - last_psn;
        let merges = second_valid
            & !m.ready
            & last_open
            & plain
            & (s.payload.qpn == last_qpn)
            & !(s.payload.psn == last_psn)
            & !distance.slice::<2>(22).any();

        // what nothing is in front of passes, if it is taken
        let stores = arrives & (first_valid | !m.ready);
        let mut place = write;
        let mut stored = s.payload;
        if merges {
            place = write - 1;
            stored.missing = last_psn;
        }
        if stores {
            write = place + 1;
            last_qpn = s.payload.qpn;
            last_psn = s.payload.psn;
            last_open = plain & !merges;
        }
        let mut head_next = head;
        if moves {
            head_next = head + 1;
            first_merged = second_merged;
            second_merged = false;
            first_valid = second_valid | arrives;
            second_valid = third_valid | (second_valid & arrives);
            third_valid = false;
        } else if merges & arrives {
            second_merged = true;
        } else if stores {
            first_valid = true;
            second_valid = first_valid;
            third_valid = second_valid;
        }
        head = head_next;
        ring.we = stores;
        ring.waddr = place.resize::<16>();
        ring.wdata = stored;
        ring.re = true;
        ring.pass = false;
        ring.raddr = head_next.resize::<16>();

        let mut shown = s.payload;
        m.valid = s.valid;
        m.payload = no_event;
        if first_valid {
            shown = ring.rdata;
            m.valid = true;
            m.payload.merged = first_merged;
        }
        m.payload.kind = SqEventKind::Answer;
        m.payload.qpn = shown.qpn;
        m.payload.psn = shown.psn;
        m.payload.una_psn = shown.missing;
        copy!(m.payload <= shown; syndrome, status, data, implied, closed);
        m.payload.writes = shown.fence;
    }
}
