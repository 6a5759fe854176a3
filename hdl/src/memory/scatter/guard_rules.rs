//! The rules of [`mr_guard`](super::mr_guard): whether a packet is written, and what fails with one that is not. No state
//! of its own.
//!
//! The first row that applies:
//!
//! | the packet | written | NAK | CQE of its receive WQE, or failure | queue pair afterwards |
//! |---|---|---|---|---|
//! | starts the queue pair afresh (`reset`) | no | | | not poisoned, not dropping |
//! | of a poisoned queue pair | no | | the cause kept, then WR_FLUSH_ERR | poisoned |
//! | WRITE, unreliable: denied, or behind one that was | no | remote access, once a message | LOC_ACCESS_ERR | drops the rest of the message |
//! | SEND, unreliable: longer than its buffer, or behind such a one | no | invalid request, once a message | LOC_LEN_ERR | drops the rest of the message |
//! | WRITE: denied | no | remote access | | poisoned |
//! | response: unusable WQE or list too short | no | | LOC_QP_OP_ERR | poisoned |
//! | response: denied | no | | LOC_PROT_ERR | poisoned |
//! | SEND: unusable receive WQE | no | remote operational | LOC_QP_OP_ERR | poisoned |
//! | SEND: buffer too short | no | invalid request | LOC_LEN_ERR | poisoned |
//! | SEND: denied | no | remote operational | LOC_PROT_ERR | poisoned |
//! | its key cannot be invalidated | yes | remote access | WR_FLUSH_ERR | poisoned |
//! | else | yes | | as it says | as before |
//!
//! An atomic that is executed counts, and the next completion of its queue pair waits for it.
//!
//! The receive WQE of a message that is dropped completes, for one that is taken cannot be given back
//! (docs/decisions/short-buffers.md). NAK codes: IB1 9.7.5.2.8.
use ferroce_proto::wire::NakCode;

use super::types::{FailCause, MrResult, Pending, Poison};
use crate::bus::types::PlaceKind;
use crate::prelude::*;

const INVALID_REQUEST: u8 = NakCode::InvalidRequest.code();
const REMOTE_ACCESS: u8 = NakCode::RemoteAccess.code();
const REMOTE_OPERATIONAL: u8 = NakCode::RemoteOperational.code();

/// The rules, combinational.
#[derive(Block)]
pub struct GuardRules {
    /// The last piece of a packet, `short` and `broken` those of all its pieces.
    pub checked: Signal<In, Pending>,
    /// A memory region denies one of its pieces.
    pub denied: Signal<In, Bit>,
    /// What is remembered of its queue pair.
    pub poison: Signal<In, Poison>,
    /// The same afterwards.
    pub next_poison: Signal<Out, Poison>,
    /// Its payload is written.
    pub written: Signal<Out, Bit>,
    /// What is reported.
    pub ruling: Signal<Out, MrResult>,
}

impl Logic for GuardRules {
    describe!(
        "scatter_rules",
        "Which packets are written, and what fails with the others."
    );

    #[kernel]
    fn update(&mut self) {
        let packet = checked.packet;
        let is_write = packet.kind == PlaceKind::Write;
        let is_response = packet.kind == PlaceKind::Response;
        let plain_write = packet.unreliable & is_write;
        let plain_send = packet.unreliable & (packet.kind == PlaceKind::Recv);
        // A packet before it in its message failed.
        let is_late = (plain_write | plain_send) & !packet.opens & poison.dropping;
        let is_long = plain_send & (is_late | (checked.short & !checked.broken));

        let mut next = poison;
        ruling.good = false;
        ruling.nak = 0;
        ruling.complete = packet.complete;
        ruling.cause = FailCause::Flush;
        ruling.answer = packet.answer;
        ruling.spared = false;
        copy!(ruling <= poison; after_atomics, atomics);
        written = false;
        if packet.reset {
            next.poisoned = false;
            next.dropping = false;
            next.cause = FailCause::Flush;
            ruling.complete = false;
            ruling.answer = false;
        } else if poison.poisoned {
            ruling.cause = poison.cause;
            ruling.answer = packet.answer & packet.closed;
            if packet.complete {
                next.cause = FailCause::Flush;
            }
        } else if plain_write & (denied | is_late) {
            if !is_late {
                ruling.nak = REMOTE_ACCESS;
            }
            ruling.spared = true;
            next.dropping = true;
        } else if is_long {
            if !is_late {
                ruling.nak = INVALID_REQUEST;
            }
            ruling.cause = FailCause::Length;
            ruling.spared = true;
            next.dropping = true;
        } else if checked.broken | checked.short | denied {
            if is_write {
                ruling.nak = REMOTE_ACCESS;
            } else if is_response {
                // The list was good when the request was sent.
                ruling.cause = FailCause::Protection;
                if checked.broken | checked.short {
                    ruling.cause = FailCause::Operation;
                }
            } else if checked.broken {
                ruling.nak = REMOTE_OPERATIONAL;
                ruling.cause = FailCause::Operation;
            } else if checked.short {
                ruling.nak = INVALID_REQUEST;
                ruling.cause = FailCause::Length;
            } else {
                ruling.nak = REMOTE_OPERATIONAL;
                ruling.cause = FailCause::Protection;
            }
            next.poisoned = true;
            next.cause = FailCause::Flush;
            if !packet.complete & !is_response {
                next.cause = ruling.cause;
            }
        } else if checked.refused {
            ruling.nak = REMOTE_ACCESS;
            next.poisoned = true;
            next.cause = FailCause::Flush;
            written = true;
        } else {
            written = true;
            ruling.good = true;
            ruling.complete = false;
            if is_write | plain_send {
                next.dropping = false;
            }
        }
        if packet.runs & !poison.poisoned {
            next.atomics = poison.atomics + 1;
            next.after_atomics = true;
        } else if packet.complete {
            next.after_atomics = false;
        }
        next_poison = next;
    }
}
