//! Types of the class queues.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::prelude::*;

payload! {
    /// Room of a queue that frames will take.
    Space {
        /// Queue.
        queue: Bits<4>,
        /// Beats.
        beats: Bits<14>,
    }

    /// What of a frame says its queue.
    FrameMark {
        /// Class.
        packet_class: Bits<2>,
        /// An acknowledgement.
        ack: Bit,
        /// A CNP.
        cnp: Bit,
        /// Of the lane of responses.
        response: Bit,
        /// A request: its departure counts. None of the four: a frame of the host.
        request: Bit,
    }

    /// Classes of which something is not to start, a bit of each.
    ClosedClasses {
        /// No turn of responses.
        turns: Bits<4>,
        /// No part of a request that may be of any length.
        any: Bits<4>,
        /// No part of up to [`LONG_PART`](super::class_gate::LONG_PART) units.
        long: Bits<4>,
        /// None of up to [`SHORT_PART`](super::class_gate::SHORT_PART).
        short: Bits<4>,
        /// Those that waited are not to be read again yet.
        waits: Bits<4>,
        /// Not even for a short part.
        waits_short: Bits<4>,
    }

    /// Classes of which requests are refused, a bit of each, by the length that a part of these may have.
    RefusedClasses {
        /// Any.
        any: Bits<4>,
        /// Up to [`LONG_PART`](super::class_gate::LONG_PART) units.
        long: Bits<4>,
        /// Up to [`SHORT_PART`](super::class_gate::SHORT_PART).
        short: Bits<4>,
    }

    /// Requests that are granted and not cut into packets, and what was refused in a cycle.
    RequestsAhead {
        /// Units of 64 bytes that are granted.
        units: Bits<16>,
        /// Classes of which one was refused.
        refused: RefusedClasses,
    }

    /// What of an address vector says the class of its packets.
    PathMark {
        /// DSCP.
        dscp: Bits<6>,
        /// It has an 802.1Q tag.
        tagged: Bit,
        /// Its PCP.
        pcp: Bits<3>,
        /// To the port itself.
        own: Bit,
    }

    /// What the host says of classes (`ferroce_proto::abi::classes`).
    ClassSetup {
        /// The PCP says the priority; else the DSCP.
        by_pcp: Bit,
        /// Priority of what has no tag, when the PCP says it.
        default_prio: Bits<3>,
        /// Priority of each DSCP, four bits each.
        dscp_prio: Bits<256>,
        /// Class of each priority, four bits each.
        prio_class: Bits<32>,
        /// Weight of each class, eight bits each; 0: strict.
        weight: Bits<32>,
        /// Priorities whose pause is obeyed.
        obeys: Bits<8>,
        /// Milliseconds for which a pause is obeyed; 0: for ever.
        watchdog: Bits<14>,
        /// Priorities of which pauses are sent.
        sends: Bits<8>,
        /// What of the receive buffer a class holds when it asks for a pause: `[15:0]` units of 64 bytes, `[31:16]` packets.
        xoff: Bits<32>,
        /// Below both of these it asks no more.
        xon: Bits<32>,
        /// At one of these, held by all classes that ask for none, frames of these are dropped.
        lossy: Bits<32>,
        /// Milliseconds for which a class asks while nothing of it leaves; 0: for ever.
        storm: Bits<13>,
    }

    /// Counter pulses of the pauses that are asked for.
    PauseCounts {
        /// Priorities of which one begins.
        begun: Bits<8>,
        /// A class has asked for 85 % of the time that it may.
        warning: Bit,
        /// One has asked for too long, and asks no more.
        error: Bit,
    }
}
