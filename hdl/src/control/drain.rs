//! Drain: tells when everything that was under way is done, while other work goes on.
//!
//! A command may take something away from the engine: a memory region, a queue pair, a completion queue. It first
//! changes the tables, so that nothing new starts, and is answered when what had started is done.
//!
//! The sections of the
//! engine are looked at one after the other, in the order in which work passes them. A section is through when it was
//! empty for 16 cycles on end or when 512 things have left it, more than any section holds: so other queue pairs under
//! full load do not hold a command up. Writes to host memory are counted instead: those issued when the section's turn
//! came have their response; and so are reports of completion queues, of which each armed queue can have one. Events of
//! queue pairs and shared receive queues are waited for to the last: without a command none comes a second time.
//!
//! | section | is |
//! |---|---|
//! | 0 | send WQEs being read |
//! | 1 | send WQEs checked, not yet packets |
//! | 2 | payload being read |
//! | 3 | placements decided |
//! | 4 | placements being checked and moved |
//! | 5 | payload being written |
//! | 6 | completions that wait for payload to be read |
//! | 7 | completions |
//! | 8 | CQEs being written |
//! | 9 | acknowledgements that wait for a completion |
//! | 10 | checked responses and atomics |
//! | 11 | payload of responses being read |
//! | 12 | requests on their way to the wire, until a frame of them starts |
//! | 13 | responses, likewise |
//! | 14 | CNPs, likewise |
//! | 15 | failures on their way to the requester |
//! | 16 | failures on their way to the responder |
//! | 17 | events of queue pairs and shared receive queues |
//! | 18 | reports of completion queues |
//! | 19 | events becoming EQEs |
//! | 20 | EQEs being written |
//!
//! Packets have the address vector read, and their peer chosen, in sections 12 to 14. They wait there for as long as the
//! wire stands, and a command with them.
//!
//! Latency: 357 cycles if nothing is under way. One drain at a time: `start` is accepted when none is under way.
use crate::bus::types::Activity;
use crate::prelude::*;

/// The sections watched by their activity: all but those of writes.
pub mod section {
    /// Send WQEs being read.
    pub const FETCHES: usize = 0;
    /// Send WQEs checked, not yet packets.
    pub const WQES: usize = 1;
    /// Payload being read.
    pub const PAYLOAD: usize = 2;
    /// Placements decided.
    pub const DECIDED: usize = 3;
    /// Placements being checked and moved.
    pub const PLACED: usize = 4;
    /// Completions that wait for payload to be read.
    pub const HELD: usize = 5;
    /// Completions.
    pub const COMPLETIONS: usize = 6;
    /// Acknowledgements that wait for a completion.
    pub const ACKS: usize = 7;
    /// Checked responses and atomics.
    pub const REPLIES: usize = 8;
    /// Payload of responses being read.
    pub const RESPONSE_PAYLOAD: usize = 9;
    /// Requests on their way to the wire.
    pub const REQUESTS: usize = 10;
    /// Responses on their way to the wire.
    pub const RESPONSES: usize = 11;
    /// CNPs on their way to the wire.
    pub const CNPS: usize = 12;
    /// Failures on their way to the requester.
    pub const TO_REQUESTER: usize = 13;
    /// Failures on their way to the responder.
    pub const TO_RESPONDER: usize = 14;
    /// Events of queue pairs and shared receive queues.
    pub const QP_EVENTS: usize = 15;
    /// Events becoming EQEs.
    pub const EVENTS: usize = 16;
}

/// How many are watched.
pub const WATCHED: usize = section::EVENTS + 1;
/// Of these, the first, those that control does not know itself.
pub const ELSEWHERE: usize = section::CNPS + 1;

/// Events of queue pairs, by section: these are not left because many have moved.
const EVENTS: u64 = 17;
/// Reports of completion queues.
const REPORTS: u64 = 18;
/// The last section.
const LAST: u64 = 20;

/// The drain.
#[derive(Block)]
pub struct Drain {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Begin.
    pub start: Signal<In, Bit>,
    /// Everything that was under way at `start` is done; one cycle.
    pub done: Signal<Out, Bit>,
    /// Sections 0 to 4, 6, 7, 9 to 17 and 19.
    pub activity: [Signal<In, Activity>; WATCHED],
    /// Payload bursts issued, modulo 2^16.
    pub payload_issued: Signal<In, Bits<16>>,
    /// Payload bursts done.
    pub payload_done: Signal<In, Bits<16>>,
    /// CQE bursts issued.
    pub cqe_issued: Signal<In, Bits<16>>,
    /// CQE bursts done.
    pub cqe_done: Signal<In, Bits<16>>,
    /// Reports of completion queues that came, modulo 2^16.
    pub report_issued: Signal<In, Bits<16>>,
    /// Reports that are handed over.
    pub report_done: Signal<In, Bits<16>>,
    /// EQE bursts issued.
    pub eqe_issued: Signal<In, Bits<16>>,
    /// EQE bursts done.
    pub eqe_done: Signal<In, Bits<16>>,

    running: Reg<Bit>,
    section: Reg<Bits<5>>,
    settle: Reg<Bits<2>>,
    quiet: Reg<Bits<5>>,
    count: Reg<Bits<10>>,
    mark: Dff<Bits<16>>,
    finished: Reg<Bit>,
    seen: Dff<Activity>,
    issued: Dff<Bits<16>>,
    written: Dff<Bits<16>>,
}

impl Logic for Drain {
    describe!("drain", "Tells when everything that was under way is done.");

    #[kernel]
    fn update(&mut self) {
        seen = match section {
            1 => activity[1],
            2 => activity[2],
            3 => activity[3],
            4 => activity[4],
            6 => activity[5],
            7 => activity[6],
            9 => activity[7],
            10 => activity[8],
            11 => activity[9],
            12 => activity[10],
            13 => activity[11],
            14 => activity[12],
            15 => activity[13],
            16 => activity[14],
            17 => activity[15],
            19 => activity[16],
            _ => activity[0],
        };
        issued = payload_issued;
        written = payload_done;
        if section == 8 {
            issued = cqe_issued;
            written = cqe_done;
        } else if section == REPORTS {
            issued = report_issued;
            written = report_done;
        } else if section == LAST {
            issued = eqe_issued;
            written = eqe_done;
        }
        let counts_writes =
            (section == 5) | (section == 8) | (section == REPORTS) | (section == LAST);

        quiet = quiet + 1;
        if seen.busy & !counts_writes {
            quiet = bits::<5>(0);
        }
        if seen.moved & (section != EVENTS) {
            count = count + 1;
        }
        let age = written - mark;
        let mut through = quiet.bit(4) | count.bit(9);
        if counts_writes {
            through = !age.bit(15);
        }

        finished = false;
        if !running {
            running = start;
            section = bits::<5>(0);
            settle = bits::<2>(0);
        } else if !settle.all() {
            // `seen`, `issued` and `written` still show the section before
            settle = settle + 1;
            quiet = bits::<5>(0);
            count = bits::<10>(0);
            mark = issued;
        } else if through {
            section = section + 1;
            settle = bits::<2>(0);
            if section == LAST {
                running = false;
                finished = true;
            }
        }
        done = finished;
    }
}
