//! What is under way in the parts of the engine, as the sections of [`drain`](crate::control::drain). Wiring only.
use crate::bus::types::{Activity, if_there};
use crate::control::drain::ELSEWHERE;
use crate::control::drain::section::*;
use crate::prelude::*;

/// The sections, by the names of the parts.
#[derive(Clone, Debug, Block)]
pub struct Sections {
    /// Send WQEs being read.
    pub fetches: Signal<In, Activity>,
    /// Send WQEs that wait for their checks or their grant.
    pub wqes: Signal<In, Activity>,
    /// Requests that change keys.
    pub keys: Signal<In, Activity>,
    /// Parts of messages that were granted and are not packets yet.
    pub parts: Signal<In, Activity>,
    /// Payload being read.
    pub pieces: Signal<In, Activity>,
    /// Placements of requests.
    pub requested: Signal<In, Activity>,
    /// Placements of responses.
    pub tracked: Signal<In, Activity>,
    /// Placements in the order of the packets.
    pub decided: Signal<In, Activity>,
    /// Placements being checked and moved.
    pub placed: Signal<In, Activity>,
    /// Messages being taken off the outstanding table.
    pub retired: Signal<In, Activity>,
    /// Completions that wait for payload to be read.
    pub held: Signal<In, Activity>,
    /// Completions.
    pub cq_activity: Signal<In, Activity>,
    /// Acknowledgements that wait for a completion.
    pub acks: Signal<In, Activity>,
    /// Replies that wait for payload to be written.
    pub fenced: Signal<In, Activity>,
    /// Turns of READs and atomics to be answered.
    pub turns: Signal<In, Activity>,
    /// Atomics.
    pub atomics: Signal<In, Activity>,
    /// Payload of responses being read.
    pub response_pieces: Signal<In, Activity>,
    /// Requests of which no frame started yet.
    pub requests: Signal<In, Activity>,
    /// Responses, likewise.
    pub responses: Signal<In, Activity>,
    /// CNPs, likewise.
    pub cnps: Signal<In, Activity>,
    /// Packets on their way to the queue of their class.
    pub passage: Signal<In, Activity>,
    /// Frames in the queues of the classes.
    pub queued: Signal<In, Activity>,
    /// Queue pairs whose received data was refused.
    pub faulted: Signal<In, Activity>,
    /// UC and UD messages that left, and are not complete.
    pub departed: Signal<In, Activity>,
    /// Responses that wait in front of `responses`.
    pub waiting: Signal<In, Bits<16>>,
    /// One of them takes a place that is counted in neither.
    pub losing: Signal<In, Bit>,
    /// By [`section`](crate::control::drain::section).
    pub activity: [Signal<Out, Activity>; ELSEWHERE],
}

impl Logic for Sections {
    describe!(
        "sections",
        "What is under way in the parts of the engine, by section."
    );

    #[kernel]
    fn update(&mut self) {
        activity[FETCHES] = fetches;
        activity[WQES] = wqes;
        activity[KEYS] = keys;
        activity[GRANTED] = parts;
        activity[PAYLOAD] = pieces;
        activity[REQUESTED] = requested;
        activity[TRACKED] = tracked;
        activity[DECIDED] = decided;
        activity[PLACED] = placed;
        activity[RETIRED] = retired;
        activity[HELD] = held;
        activity[COMPLETIONS] = cq_activity;
        activity[ACKS] = acks;
        activity[FENCED] = fenced;
        activity[TURNS] = turns;
        activity[ATOMICS] = atomics;
        activity[RESPONSE_PAYLOAD] = response_pieces;
        activity[REQUESTS] = requests;
        activity[RESPONSES].busy = responses.busy | losing;
        activity[RESPONSES].moved = responses.moved & !losing;
        activity[RESPONSES].level = responses.level + waiting + if_there(losing, bits::<16>(1));
        activity[CNPS] = cnps;
        activity[PASSAGE] = passage;
        activity[CLASS_QUEUES] = queued;
        activity[FAULTED] = faulted;
        activity[DEPARTED] = departed;
    }
}
