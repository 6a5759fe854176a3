//! What a responder must be given and must do, derived from the requests of a capture and their answers.
//!
//! This is a responder of its own, without anything of the golden model: it follows PSNs and messages,
//! and learns from the recorded answers which requests were refused and why.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use ferroce_proto::wire::{Class, Mtu, Psn, Syndrome};

use super::flow::{Connection, Sender};
use super::input::{Frame, Refusal};
use super::regions::Target;
use super::writer::Writer;
use crate::memory::Ranges;

/// A receive WQE and its result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Receive {
    /// Length of the buffer in bytes: that of the message, or one less than what did not fit.
    pub(super) len: usize,
    /// What is in the buffer afterwards, from its start.
    pub(super) data: Vec<u8>,
    /// Bytes of messages that were dropped before the one it took: what lies between is not defined.
    pub(super) stale: usize,
    /// Its completion.
    pub(super) completion: Completion,
}

/// What a receive completion says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Completion {
    /// `cq::status`.
    pub(super) status: u8,
    /// `cq::opcode`.
    pub(super) opcode: u8,
    pub(super) byte_len: u32,
    pub(super) imm: Option<u32>,
    /// Key that was invalidated.
    pub(super) inv: Option<u32>,
    pub(super) solicited: bool,
    /// Source queue pair of a datagram, whose IP header stands before it.
    pub(super) datagram: Option<u32>,
}

/// Where the connection stands after a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct After {
    /// Receive WQEs that must be posted before the request.
    pub(super) receives: usize,
    /// Everything up to this PSN must be acknowledged when the responder is quiet.
    pub(super) due: Option<Psn>,
    /// Nothing behind this PSN was executed.
    pub(super) executed: Psn,
    /// It asked for an acknowledgement once more and must have an answer.
    pub(super) repeated: bool,
    /// It was lost behind the capture point.
    pub(super) lost: bool,
}

/// A write of the host of the responder: address and bytes.
pub(super) type HostWrite = (u64, Vec<u8>);

/// What the responder must be given and must do.
pub(super) struct Script {
    /// Path MTU: the size of packets that are not the last, or the least that the packets fit in.
    pub(super) mtu: Mtu,
    /// First PSN expected.
    pub(super) start: Psn,
    /// RNR NAK timer code.
    pub(super) rnr_timer: u8,
    /// A step of the connection each; `None` for answers.
    pub(super) after: Vec<Option<After>>,
    pub(super) receives: Vec<Receive>,
    /// Memory regions by rkey: first and last address.
    pub(super) regions: Vec<Target>,
    /// The memory under the regions before the first request.
    pub(super) memory: Rc<Ranges>,
    /// The same after the last one.
    pub(super) expected: Ranges,
    /// Pieces of that memory: address and length.
    pub(super) pieces: Vec<(u64, usize)>,
    /// Payload bytes that WRITEs place.
    pub(super) written: usize,
    /// The SEND that did not fit its receive buffer.
    pub(super) too_long: Option<Psn>,
    /// MSN in an answer to each executed request packet.
    pub(super) msns: HashMap<Psn, u32>,
    /// What the host writes before a step.
    pub(super) host_writes: BTreeMap<usize, Vec<HostWrite>>,
    /// PSNs that were requested again.
    pub(super) repeated: HashSet<Psn>,
    /// PSNs that a READ goes on from which started before them.
    pub(super) resumed: HashSet<Psn>,
    /// Requests are repeated or missing.
    pub(super) lossy: bool,
}

impl Script {
    /// MSN of an answer up to `psn`; `None` if no executed request has it.
    pub(super) fn msn(&self, psn: Psn) -> Option<u32> {
        self.msns.get(&psn).copied()
    }

    /// Derives it.
    pub(super) fn derive(connection: &Connection<'_>) -> Result<Self, Refusal> {
        let mut writer = Writer::new(connection);
        for (index, &(sender, frame)) in connection.steps.iter().enumerate() {
            let after = match sender {
                Sender::Responder => None,
                Sender::Requester => {
                    let repeated = writer.is_repeated(frame);
                    let lost = connection.class == Class::Rc && writer.is_lost(index, frame);
                    match connection.class {
                        Class::Uc => writer.unreliable(frame)?,
                        Class::Ud => writer.datagram(frame)?,
                        _ if lost => writer.lossy = true,
                        _ => writer.request(index, frame)?,
                    }
                    Some(After {
                        repeated: repeated && !lost,
                        lost,
                        ..writer.after()
                    })
                }
            };
            writer.push(after);
        }
        writer.finish(rnr_timer(connection))
    }
}

/// RNR NAK timer code of the answers; that of 0.64 ms if they have none.
fn rnr_timer(connection: &Connection<'_>) -> u8 {
    let timer = |f: &Frame| match f.packet.headers.ext.aeth?.syndrome {
        Syndrome::RnrNak { timer } => Some(timer),
        _ => None,
    };
    connection.answers_recorded().find_map(timer).unwrap_or(12)
}
