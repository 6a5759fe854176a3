//! Finds whose payload host memory refused (docs/decisions/refused-writes.md).
//!
//! ```text
//!  owner (scatter) ─► owners, 512 deep ─┐
//!  done, refused (dma_write) ───────────┴► judge ─┬─► marks ◄─► look (cq_write)
//!                                                 ├─► failed (responder)
//!                                                 └─► judged: `done`, behind the judgement
//! ```
//!
//! Responses of payload writes come in the order of the bursts. Each placement with payload is an owner: its queue pair, and
//! the bursts up to its end. A response is that of the oldest owner, or of the one that comes next; with the response to its last
//! burst the owner leaves, and if one of them refused a burst:
//!
//! * its queue pair is marked with that end, for requests and for READ data apart, and the first such end stays until the
//!   queue pair starts afresh. A completion fails whose own fence is that end or behind it: `look` tells `cq_write`. The
//!   queue pairs are visited in turn while nothing else is to be written: a mark 2^13 bursts later is `old`, before the
//!   count comes round, and every completion fails;
//! * received data fails its queue pair at the responder, whatever its transport, as for a scatter list that it
//!   may not write. READ data fails with its completion.
//!
//! Throughput: a response a cycle. Latency: `judged` 1 cycle behind `done`; a mark shows to `look` 4 cycles behind the
//! response, before a completion that waits for `judged` can come there.
//! Assumes: `owner` comes before the response to its last burst; it has one burst at least; no more than 120 owners come
//! after `room` fell; at most a response in a cycle; a `starts_*` lasts a cycle, and the next one of its kind comes no sooner
//! than two cycles later.
//!
//! A start comes when no write of the queue pair is pending, and no completion of it waits. A RESET, which comes before, is none: what
//! it drains is judged by the marks.
#![allow(missing_docs)] // the accessors that the derive generates have no documentation
use crate::bus::payload::payload;
use crate::bus::types::{Activity, WriteMark, WriteMarks, WriteOwner};
use crate::bus::valid::Valid;
use crate::prelude::*;

payload! {
    /// What changes the marks of a queue pair.
    MarkOp {
        /// Queue pair.
        qpn: Bits<16>,
        /// Its receive side starts afresh.
        starts_recv: Bit,
        /// Its send side does.
        starts_send: Bit,
        /// It is only visited.
        visits: Bit,
        /// Else: whose write was refused.
        owner: WriteOwner,
    }
}

/// Payload writes of 2^Q queue pairs.
#[derive(Block)]
pub struct WriteFaults<const Q: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A placement has handed its last burst over.
    pub owner: Signal<In, Valid<WriteOwner>>,
    /// Owners may come.
    pub room: Signal<Out, Bit>,
    /// Payload writes done, modulo 2^16.
    pub done: Signal<In, Bits<16>>,
    /// The last of these was refused.
    pub refused: Signal<In, Bit>,
    /// Of these, those that are judged.
    pub judged: Signal<Out, Bits<16>>,
    /// The receive side of a queue pair starts afresh.
    pub starts_recv: Signal<In, Bit>,
    /// Which.
    pub recv_qpn: Signal<In, Bits<16>>,
    /// The send side of one does.
    pub starts_send: Signal<In, Bit>,
    /// Which.
    pub send_qpn: Signal<In, Bits<16>>,
    /// Queue pair of the next completion.
    pub look: Signal<In, Bits<16>>,
    /// A cycle later: its marks.
    pub marks: Signal<Out, WriteMarks>,
    /// Queue pairs whose received data was refused, each until its receive side starts afresh.
    pub failed: StreamOut<WriteOwner>,
    /// Those that wait to be reported.
    pub faulted: Signal<Out, Activity>,
    /// The tables are swept after reset.
    pub ready: Signal<Out, Bit>,

    owners: Fifo<WriteOwner, 9>,
    roomy: Reg<Bit>,
    /// `done` of the cycle before.
    counted: Reg<Bits<16>>,
    /// A burst of the oldest owner was refused.
    spoiled: Reg<Bit>,
    /// Starts that wait for a cycle without a fault.
    recv_due: Reg<Bit>,
    recv_start: Dff<Bits<16>>,
    send_due: Reg<Bit>,
    send_start: Dff<Bits<16>>,
    table: Rmw<WriteMarks, Q>,
    op_1: Dff<MarkOp>,
    op_2: Dff<MarkOp>,
    /// The same words, for `look`.
    copy: SweptRam<WriteMarks, Q>,
    /// Which queue pair is visited next.
    round: Reg<Bits<Q>>,
    failures: Deep<WriteOwner, Q>,
    no_op: Zero<MarkOp>,
    no_mark: Zero<WriteMark>,
}

impl<const Q: usize> Logic for WriteFaults<Q> {
    describe!(
        "write_faults",
        format!("q{Q}"),
        "Finds whose payload host memory refused."
    );

    #[kernel]
    fn update(&mut self) {
        owners.s.valid = owner.valid;
        owners.s.payload = owner.payload;
        roomy = !owners.level.slice::<2>(7).all() & !owners.level.bit(9);
        room = roomy;
        assert!(
            !owner.valid | owners.s.ready,
            "the queue of owners has room"
        );

        // a response, and whether it is the last one of its owner
        let came = done.bit(0) ^ counted.bit(0);
        counted = done;
        judged = counted;
        let oldest = owners.m.payload;
        // an owner comes with its last burst: responses to those before may be there first
        let ends = came & owners.m.valid & (oldest.end == done);
        owners.m.ready = ends;
        let bad = came & (spoiled | refused);
        let fault = bad & ends;
        spoiled = (spoiled | bad) & !ends;

        // marks: of faults, and of starts when there is none
        let mut op = no_op;
        op.qpn = oldest.qpn;
        op.owner = oldest;
        if !fault {
            op.starts_recv = recv_due;
            op.starts_send = send_due & !recv_due;
            op.qpn = if recv_due { recv_start } else { send_start };
            if !recv_due & !send_due {
                op.visits = true;
                op.qpn = round.resize::<16>();
                round += 1;
            }
            recv_due = false;
            send_due = send_due & recv_due;
        }
        if starts_recv {
            recv_due = true;
            recv_start = recv_qpn;
        }
        if starts_send {
            send_due = true;
            send_start = send_qpn;
        }
        table.valid = table.ready;
        table.addr = op.qpn.low::<Q>();
        op_1 = op;
        op_2 = op_1;

        // the first end stays
        let found = table.current;
        let mut next = found;
        let recv_age = counted - found.recv.end;
        let send_age = counted - found.send.end;
        if op_2.starts_recv {
            next.recv = no_mark;
        } else if op_2.starts_send {
            next.send = no_mark;
        } else if op_2.visits {
            next.recv.old = found.recv.failed & (found.recv.old | recv_age.slice::<3>(13).any());
            next.send.old = found.send.failed & (found.send.old | send_age.slice::<3>(13).any());
        } else if op_2.owner.response & !found.send.failed {
            next.send.failed = true;
            next.send.end = op_2.owner.end;
        } else if !op_2.owner.response & !found.recv.failed {
            next.recv.failed = true;
            next.recv.end = op_2.owner.end;
        }
        table.write = true;
        table.result = next;
        copy.we = table.x_valid;
        copy.waddr = table.x_addr;
        copy.wdata = next;
        ready = copy.ready & table.ready;
        copy.re = true;
        copy.raddr = look.low::<Q>();
        marks = copy.rdata;

        let is_fault = !op_2.starts_recv & !op_2.starts_send & !op_2.visits;
        let fails = table.x_valid & is_fault & !op_2.owner.response & !found.recv.failed;
        failures.s.valid = fails;
        assert!(
            !fails | failures.s.ready,
            "a queue pair waits to be reported once"
        );
        failures.s.payload = op_2.owner;
        faulted = Activity {
            busy: failures.level.any(),
            moved: failures.m.valid & failed.ready,
            level: failures.level,
        };
        forward!(failed <= failures.m);
    }
}
