//! Drain: tells when everything that was under way is done, while other work goes on.
//!
//! A command may take something away from the engine: a memory region, a queue pair, a completion queue. It first
//! changes the tables, so that nothing new starts, and is answered when what had started is done.
//!
//! The sections of the engine are looked at one after the other, in the order in which work passes them. A section is
//! through when as many things have left it as stood in it when its turn came, or when it was empty for 16 cycles on
//! end: so other queue pairs under full load do not hold a command up longer than what stood in front takes. Its turn
//! comes 16 cycles behind the end of the one before, in which what was between the two arrives.
//!
//! Writes to host memory are counted: those issued when the section's turn came have their response; and so are reports
//! of completion queues, of which each armed queue can have one. Events of queue pairs and shared receive queues are
//! waited for to the last: without a command none comes a second time.
//!
//! | section | is |
//! |---|---|
//! | 0 | send WQEs being read |
//! | 1 | send WQEs that wait for their checks or their grant |
//! | 2 | keys being changed for send WQEs |
//! | 3 | granted parts of messages that become packets |
//! | 4 | payload being read |
//! | 5 | placements of requests |
//! | 6 | placements of responses |
//! | 7 | placements in the order of the packets |
//! | 8 | placements being checked and moved |
//! | 9 | payload being written |
//! | 10 | messages being taken off the outstanding table |
//! | 11 | completions that wait for payload to be read |
//! | 12 | completions |
//! | 13 | CQEs being written |
//! | 14 | acknowledgements that wait for a completion |
//! | 15 | replies that wait for payload to be written |
//! | 16 | turns of READs and atomics to be answered |
//! | 17 | atomics |
//! | 18 | payload of responses being read |
//! | 19 | requests on their way to the wire, until a frame of them starts |
//! | 20 | responses, likewise |
//! | 21 | CNPs, likewise |
//! | 22 | packets on their way to the queue of their class |
//! | 23 | frames in the queues of the classes, until the wire has taken them |
//! | 24 | queue pairs whose received data was refused, on their way to the responder |
//! | 25 | UC and UD messages that left, on their way to the requester |
//! | 26 | failures on their way to the requester |
//! | 27 | failures on their way to the responder |
//! | 28 | events of queue pairs and shared receive queues |
//! | 29 | reports of completion queues |
//! | 30 | events becoming EQEs |
//! | 31 | EQEs being written |
//!
//! Packets have the address vector read, and their peer chosen, in sections 19 to 21. They wait there for as long as the
//! wire stands, and a command with them. Frames of several classes do not leave section 23 in their order: `note` says that its
//! turn has come, and it is through when what was there then has left.
//!
//! Latency: 609 cycles if nothing is under way. One drain at a time: `start` is accepted when none is under way.
//!
//! Assumes: things leave a section in their order, and no more are in it than [`Activity`] says.
use crate::bus::types::{Activity, if_there};
use crate::prelude::*;

/// The sections watched by their activity: all but those of writes.
pub mod section {
    /// Send WQEs being read.
    pub const FETCHES: usize = 0;
    /// Send WQEs that wait for their checks or their grant.
    pub const WQES: usize = 1;
    /// Keys being changed for send WQEs.
    pub const KEYS: usize = 2;
    /// Granted parts of messages that become packets.
    pub const GRANTED: usize = 3;
    /// Payload being read.
    pub const PAYLOAD: usize = 4;
    /// Placements of requests.
    pub const REQUESTED: usize = 5;
    /// Placements of responses.
    pub const TRACKED: usize = 6;
    /// Placements in the order of the packets.
    pub const DECIDED: usize = 7;
    /// Placements being checked and moved.
    pub const PLACED: usize = 8;
    /// Messages being taken off the outstanding table.
    pub const RETIRED: usize = 9;
    /// Completions that wait for payload to be read.
    pub const HELD: usize = 10;
    /// Completions.
    pub const COMPLETIONS: usize = 11;
    /// Acknowledgements that wait for a completion.
    pub const ACKS: usize = 12;
    /// Replies that wait for payload to be written.
    pub const FENCED: usize = 13;
    /// Turns of READs and atomics to be answered.
    pub const TURNS: usize = 14;
    /// Atomics.
    pub const ATOMICS: usize = 15;
    /// Payload of responses being read.
    pub const RESPONSE_PAYLOAD: usize = 16;
    /// Requests on their way to the wire, until a frame of them starts.
    pub const REQUESTS: usize = 17;
    /// Responses, likewise.
    pub const RESPONSES: usize = 18;
    /// CNPs, likewise.
    pub const CNPS: usize = 19;
    /// Packets on their way to the queue of their class.
    pub const PASSAGE: usize = 20;
    /// Frames in the queues of the classes, until the wire has taken them.
    pub const CLASS_QUEUES: usize = 21;
    /// Queue pairs whose received data was refused, on their way to the responder.
    pub const FAULTED: usize = 22;
    /// UC and UD messages that left, on their way to the requester.
    pub const DEPARTED: usize = 23;
    /// Failures on their way to the requester.
    pub const TO_REQUESTER: usize = 24;
    /// Failures on their way to the responder.
    pub const TO_RESPONDER: usize = 25;
    /// Events of queue pairs and shared receive queues.
    pub const QP_EVENTS: usize = 26;
    /// Events becoming EQEs.
    pub const EVENTS: usize = 27;
}

/// How many are watched.
pub const WATCHED: usize = section::EVENTS + 1;
/// Of these, the first, those that control does not know itself.
pub const ELSEWHERE: usize = section::DEPARTED + 1;

/// Sections of writes, by number.
const PAYLOAD_WRITES: u64 = 9;
const CQE_WRITES: u64 = 13;
/// Reports of completion queues.
const REPORTS: u64 = 29;
/// EQEs being written, the last section.
const LAST: u64 = 31;
/// Frames in the queues of the classes.
const CLASS_QUEUES: u64 = 23;
/// Cycles from the end of a section to the turn of the next.
const TURN: u64 = 20;

/// The drain.
#[derive(Block)]
pub struct Drain {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Begin.
    pub start: Signal<In, Bit>,
    /// Everything that was under way at `start` is done; one cycle.
    pub done: Signal<Out, Bit>,
    /// The sections but for those of writes, in their order.
    pub activity: [Signal<In, Activity>; WATCHED],
    /// What comes to the queues of the classes from now on is not waited for.
    pub note: Signal<Out, Bit>,
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
    /// Cycles since the section before was through, up to that of the turn.
    age: Reg<Bits<5>>,
    quiet: Reg<Bits<5>>,
    /// From the turn on: things that stood in the section and are there.
    due: Reg<Bits<16>>,
    mark: Dff<Bits<16>>,
    finished: Reg<Bit>,
    noted: Reg<Bit>,
    /// `activity`, which ends deep logic all over the engine.
    stirs: [Dff<Activity>; WATCHED],
    seen: Dff<Activity>,
    issued: Dff<Bits<16>>,
    written: Dff<Bits<16>>,
}

impl Logic for Drain {
    describe!("drain", "Tells when everything that was under way is done.");

    #[kernel]
    fn update(&mut self) {
        for i in 0..WATCHED {
            stirs[i] = activity[i];
        }
        seen = match section {
            1 => stirs[1],
            2 => stirs[2],
            3 => stirs[3],
            4 => stirs[4],
            5 => stirs[5],
            6 => stirs[6],
            7 => stirs[7],
            8 => stirs[8],
            10 => stirs[9],
            11 => stirs[10],
            12 => stirs[11],
            14 => stirs[12],
            15 => stirs[13],
            16 => stirs[14],
            17 => stirs[15],
            18 => stirs[16],
            19 => stirs[17],
            20 => stirs[18],
            21 => stirs[19],
            22 => stirs[20],
            23 => stirs[21],
            24 => stirs[22],
            25 => stirs[23],
            26 => stirs[24],
            27 => stirs[25],
            28 => stirs[26],
            30 => stirs[27],
            _ => stirs[0],
        };
        issued = payload_issued;
        written = payload_done;
        if section == CQE_WRITES {
            issued = cqe_issued;
            written = cqe_done;
        } else if section == REPORTS {
            issued = report_issued;
            written = report_done;
        } else if section == LAST {
            issued = eqe_issued;
            written = eqe_done;
        }
        let counts_writes = (section == PAYLOAD_WRITES)
            | (section == CQE_WRITES)
            | (section == REPORTS)
            | (section == LAST);

        // 3 cycles later `seen`, `issued` and `written` show the section
        let settling = !age.slice::<3>(2).any();
        let turn = age == TURN;
        noted = turn & (section == CLASS_QUEUES);
        note = noted;
        quiet += 1;
        if seen.busy | settling {
            quiet = 0;
        }
        let there = if turn { due } else { seen.level };
        due = if there.any() {
            there - if_there(seen.moved, bits::<16>(1))
        } else {
            0
        };
        if !turn {
            age += 1;
        }
        let gone = written - mark;
        let over = if counts_writes {
            !gone.bit(15)
        } else {
            quiet.bit(4) | (turn & !due.any())
        };
        let through = over & !settling;
        if settling {
            mark = issued;
        }

        finished = false;
        if !running {
            running = start;
            section = 0;
            age = 0;
        } else if through {
            section += 1;
            age = 0;
            if section == LAST {
                running = false;
                finished = true;
            }
        }
        done = finished;
    }
}
