//! Drain: tells when everything that was under way is done, while other work goes on.
//!
//! A command that takes something away from the engine (a memory region, a queue pair, a completion queue) first changes
//! the tables, so that nothing new starts, and is answered when what had started is done. The sections of the engine are
//! looked at one after the other, in the order in which work passes them. A section is through when it was empty for 16
//! cycles on end or when 512 things have left it, more than any section holds: so other queue pairs under full load do not
//! hold a command up. Writes to host memory are counted instead: those issued when the section's turn came have their response.
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
//! | 9 | checked responses and atomics |
//! | 10 | payload of responses being read |
//! | 11 | events |
//! | 12 | EQEs being written |
//!
//! Latency: 213 cycles if nothing is under way. One drain at a time: `start` is heard when none is under way.
use crate::bus::types::Activity;
use crate::prelude::*;

/// The sections watched by their activity.
pub const WATCHED: usize = 10;

/// The drain.
#[derive(LogicBlock, Default)]
pub struct Drain {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Begin.
    pub start: Signal<In, Bit>,
    /// Everything that was under way at `start` is done; one cycle.
    pub done: Signal<Out, Bit>,
    /// Sections 0 to 4, 6, 7, 9, 10 and 11.
    pub activity: [Signal<In, Activity>; WATCHED],
    /// Payload bursts issued, modulo 2^16.
    pub payload_issued: Signal<In, Bits<16>>,
    /// Payload bursts done.
    pub payload_done: Signal<In, Bits<16>>,
    /// CQE bursts issued.
    pub cqe_issued: Signal<In, Bits<16>>,
    /// CQE bursts done.
    pub cqe_done: Signal<In, Bits<16>>,
    /// EQE bursts issued.
    pub eqe_issued: Signal<In, Bits<16>>,
    /// EQE bursts done.
    pub eqe_done: Signal<In, Bits<16>>,

    running: Reg<Bit>,
    section: Reg<Bits<4>>,
    settle: Reg<Bits<2>>,
    quiet: Reg<Bits<5>>,
    count: Reg<Bits<10>>,
    mark: Dff<Bits<16>>,
    finished: Reg<Bit>,
    seen: Dff<Activity>,
    issued: Dff<Bits<16>>,
    written: Dff<Bits<16>>,
    counts_writes: Signal<Local, Bit>,
    age: Signal<Local, Bits<16>>,
    through: Signal<Local, Bit>,
}

impl Logic for Drain {
    describe!("drain", "Tells when everything that was under way is done.");

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self, clock, running, section, settle, quiet, count, mark, finished, seen, issued,
            written
        );

        self.seen.d.next = self.activity[0].val();
        if self.section.q.val() == 1 {
            self.seen.d.next = self.activity[1].val();
        } else if self.section.q.val() == 2 {
            self.seen.d.next = self.activity[2].val();
        } else if self.section.q.val() == 3 {
            self.seen.d.next = self.activity[3].val();
        } else if self.section.q.val() == 4 {
            self.seen.d.next = self.activity[4].val();
        } else if self.section.q.val() == 6 {
            self.seen.d.next = self.activity[5].val();
        } else if self.section.q.val() == 7 {
            self.seen.d.next = self.activity[6].val();
        } else if self.section.q.val() == 9 {
            self.seen.d.next = self.activity[7].val();
        } else if self.section.q.val() == 10 {
            self.seen.d.next = self.activity[8].val();
        } else if self.section.q.val() == 11 {
            self.seen.d.next = self.activity[9].val();
        }
        self.issued.d.next = self.payload_issued.val();
        self.written.d.next = self.payload_done.val();
        if self.section.q.val() == 8 {
            self.issued.d.next = self.cqe_issued.val();
            self.written.d.next = self.cqe_done.val();
        } else if self.section.q.val() == 12 {
            self.issued.d.next = self.eqe_issued.val();
            self.written.d.next = self.eqe_done.val();
        }
        self.counts_writes.next = (self.section.q.val() == 5)
            | (self.section.q.val() == 8)
            | (self.section.q.val() == 12);

        self.quiet.d.next = self.quiet.q.val() + 1;
        if self.seen.q.val().busy & !self.counts_writes.val() {
            self.quiet.d.next = bits::<5>(0);
        }
        if self.seen.q.val().moved {
            self.count.d.next = self.count.q.val() + 1;
        }
        self.age.next = self.written.q.val() - self.mark.q.val();
        self.through.next = self.quiet.q.val().get_bit(4) | self.count.q.val().get_bit(9);
        if self.counts_writes.val() {
            self.through.next = !self.age.val().get_bit(15);
        }

        self.finished.d.next = false;
        if !self.running.q.val() {
            self.running.d.next = self.start.val();
            self.section.d.next = bits::<4>(0);
            self.settle.d.next = bits::<2>(0);
        } else if !self.settle.q.val().all() {
            // `seen`, `issued` and `written` still show the section before
            self.settle.d.next = self.settle.q.val() + 1;
            self.quiet.d.next = bits::<5>(0);
            self.count.d.next = bits::<10>(0);
            self.mark.d.next = self.issued.q.val();
        } else if self.through.val() {
            self.section.d.next = self.section.q.val() + 1;
            self.settle.d.next = bits::<2>(0);
            if self.section.q.val() == 12 {
                self.running.d.next = false;
                self.finished.d.next = true;
            }
        }
        self.done.next = self.finished.q.val();
    }
}
