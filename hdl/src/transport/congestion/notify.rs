//! Notification point: marked packets draw CNPs (A17.9.3, docs/congestion.md).
//!
//! ```text
//!  notice ─► connected? ─┬─► counts, received
//!                        └─► marks ─► latest (when?) ─► cnp
//! ```
//!
//! * A queue pair is connected while it has a responder image, whatever its state. A mark for another has no effect; a CNP
//!   for it counts as ignored.
//! * A mark asks when the queue pair was last given a CNP. If `min_time` is over, or it never was, the next CNP is due, and
//!   the time starts afresh. A mark that finds no room in one of the queues of 16 is counted and forgotten, and no time
//!   starts: the next one asks again.
//! * Times are cycles modulo 2^25. Each queue pair is visited in 2^Q * 256 cycles, and one whose time is over is marked so:
//!   no time is older than 2^24 + 2^22 cycles.
//!
//! Rate: a notice a cycle is counted, a mark in 3 cycles is looked up. Latency: 2 cycles to `counts` and `received`, 7 to
//! `cnp`. `received` cannot wait.

use super::notify_types::{LatestCnp, Notice, NotifyCounts, NotifySetup};
use crate::bus::qp_state::RESET;
use crate::bus::time::CLOCK_MHZ;
use crate::bus::valid::Valid;
use crate::prelude::*;
use crate::transport::responder::event::RqEvent;

const _: () = assert!(
    CLOCK_MHZ == 256 - 4 - 2,
    "cycles of a microsecond, by shifts"
);

/// Stage of a mark, or of a visit.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum NotifyState {
    /// Tables are swept.
    Sweep,
    /// The time of a queue pair is read.
    Read,
    /// Its age is computed.
    Age,
    /// It is compared.
    Decide,
}

/// Notification point for 2^Q queue pairs, Q up to 14.
#[derive(Block)]
pub struct Notify<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What arrived.
    pub notice: Signal<In, Valid<Notice>>,
    /// `command` is a command on a queue pair.
    pub command_valid: Signal<In, Bit>,
    /// It, for one cycle or more.
    pub command: Signal<In, RqEvent>,
    /// What the host says.
    pub setup: Signal<In, NotifySetup>,
    /// Queue pairs whose peer is due a CNP.
    pub cnp: StreamOut<Bits<16>>,
    /// A queue pair received a CNP.
    pub received: Signal<Out, Valid<Bits<16>>>,
    /// Counter pulses.
    pub counts: Signal<Out, NotifyCounts>,
    /// Tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    connected: Ram<Bit, Q>,
    asked: Reg<Valid<Notice>>,
    handled: Reg<Valid<Bits<16>>>,
    counted: Reg<NotifyCounts>,
    marks: Fifo<Bits<16>, 4>,
    cnps: Fifo<Bits<16>, 4>,

    now: Reg<Bits<25>>,
    /// `min_time` in cycles, of which there are 250 in a microsecond: 256 less 4, less 2.
    less_four: Dff<Bits<24>>,
    min_cycles: Dff<Bits<24>>,
    latest: Ram<LatestCnp, Q>,
    state: Reg<NotifyState>,
    /// Queue pair to visit next.
    visit: Reg<Bits<Q>>,
    due: Reg<Bit>,
    visiting: Reg<Bit>,
    age: Dff<Bits<25>>,
    held: Dff<Bit>,
    /// This queue pair is another one from now on: its first mark draws a CNP.
    fresh: Reg<Bit>,
    fresh_qpn: Dff<Bits<Q>>,
}

impl<const Q: usize> Logic for Notify<Q> {
    describe!("notify", format!("q{Q}"), "Marked packets draw CNPs.");

    #[kernel]
    fn update(&mut self) {
        now += 1;
        let swept = state != NotifyState::Sweep;
        ready = swept;

        // connected queue pairs
        let closes = command.set & (command.state == RESET);
        connected.we = !swept | (command_valid & (command.image | closes));
        connected.waddr = command.qpn.low::<Q>();
        if !swept {
            connected.waddr = visit;
        }
        connected.wdata = swept & !closes;
        connected.re = true;
        connected.raddr = notice.payload.qpn.low::<Q>();
        asked = notice;
        let known = asked.valid & asked.payload.of_peer & connected.rdata & swept;
        counted.marked = known & !asked.payload.cnp;
        counted.handled = known & asked.payload.cnp;
        counted.ignored = asked.valid & asked.payload.cnp & !known;
        handled.valid = known & asked.payload.cnp;
        handled.payload = asked.payload.qpn;
        counts = counted;
        received = handled;
        marks.s.valid = known & !asked.payload.cnp;
        marks.s.payload = asked.payload.qpn;

        // when its peer was last sent a CNP
        less_four = (setup.min_time.resize::<24>() << 8) - (setup.min_time.resize::<24>() << 2);
        min_cycles = less_four - (setup.min_time.resize::<24>() << 1);
        if now.low::<8>().all() {
            due = true;
        }
        latest.re = true;
        latest.raddr = marks.m.payload.low::<Q>();
        latest.we = false;
        latest.waddr = marks.m.payload.low::<Q>();
        latest.wdata.at = now;
        latest.wdata.valid = true;
        marks.m.ready = false;
        cnps.s.valid = false;
        cnps.s.payload = marks.m.payload;
        let early = held & (age < min_cycles.resize::<25>());
        match state {
            NotifyState::Sweep => {
                latest.we = true;
                latest.waddr = visit;
                latest.wdata.valid = false;
                visit += 1;
                if visit.all() {
                    state = NotifyState::Read;
                }
            }
            NotifyState::Read => {
                visiting = due;
                if due {
                    latest.raddr = visit;
                }
                if fresh {
                    latest.we = true;
                    latest.waddr = fresh_qpn;
                    latest.wdata.valid = false;
                    fresh = false;
                } else if due | marks.m.valid {
                    state = NotifyState::Age;
                }
            }
            NotifyState::Age => {
                age = now - latest.rdata.at;
                held = latest.rdata.valid;
                state = NotifyState::Decide;
            }
            NotifyState::Decide => {
                if visiting {
                    latest.we = !early;
                    latest.waddr = visit;
                    latest.wdata.valid = false;
                    visit += 1;
                    due = false;
                } else {
                    let sends = setup.enable & !early & cnps.s.ready;
                    latest.we = sends;
                    cnps.s.valid = sends;
                    marks.m.ready = true;
                }
                state = NotifyState::Read;
            }
        }
        if command_valid & command.image {
            fresh = true;
            fresh_qpn = command.qpn.low::<Q>();
        }
        forward!(cnp <= cnps.m);
    }
}
