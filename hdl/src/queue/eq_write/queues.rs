//! Event queues: their states and images. One operation at a time reads a queue and writes its state back.
//!
//! ```text
//!  cycle n      n+1        n+2            n+3
//!  read ─► RAM ─► load ─► found ─► keep ─► written
//! ```
//!
//! After reset all queues are closed, one a cycle; nothing is read or written before `ready`.
use super::types::{EqFound, EqState};
use crate::bus::types::image::EqCtx;
use crate::prelude::*;

/// States and images of 2^E event queues.
#[derive(Block)]
pub struct EqQueues<const E: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Read queue `read_eqn`.
    pub read: Signal<In, Bit>,
    /// Which.
    pub read_eqn: Signal<In, Bits<E>>,
    /// A cycle later: it is to be found.
    pub load: Signal<In, Bit>,
    /// EQE bursts that have their response, modulo 2^16.
    pub done: Signal<In, Bits<16>>,
    /// The time, in cycles.
    pub now: Signal<In, Bits<26>>,
    /// The queue, from the cycle behind `load` on.
    pub found: Signal<Out, EqFound>,
    /// Keep `state` as that of queue `eqn`; it is written in the next cycle.
    pub keep: Signal<In, Bit>,
    /// Which; it stays for that cycle.
    pub eqn: Signal<In, Bits<E>>,
    /// Its state.
    pub state: Signal<In, EqState>,
    /// Write the image of queue `eqn`.
    pub image_we: Signal<In, Bit>,
    /// The image.
    pub image: Signal<In, EqCtx>,
    /// All queues are closed after reset.
    pub ready: Signal<Out, Bit>,

    table: SweptRam<EqState, E>,
    images: Ram<EqCtx, E>,
    kept: Reg<Bit>,
    store: Dff<EqState>,
    queue: Dff<EqFound>,
}

impl<const E: usize> Logic for EqQueues<E> {
    describe!(
        "eq_queues",
        format!("e{E}"),
        "States and images of event queues."
    );

    #[kernel]
    fn update(&mut self) {
        images.re = read;
        images.raddr = read_eqn;
        images.we = image_we;
        images.waddr = eqn;
        images.wdata = image;
        table.re = read;
        table.raddr = read_eqn;
        kept = keep;
        store = state;
        table.we = kept;
        table.waddr = eqn;
        table.wdata = store;
        ready = table.ready;

        let late = now - table.rdata.deadline;
        if load {
            queue = EqFound {
                state: table.rdata,
                image: images.rdata,
                mask: (bits::<24>(1) << images.rdata.log_size) - 1,
                level: table.rdata.written - table.rdata.taken,
                arrived: has_passed(done, table.rdata.mark),
                all_arrived: has_passed(done, table.rdata.last),
                over: !late.bit(25),
            };
        }
        found = queue;
    }
}

/// The event with the count `mark` is among the first `count`, modulo 2^16.
#[kernel_fn]
fn has_passed(count: Bits<16>, mark: Bits<16>) -> Bit {
    let age = count - mark;
    !age.bit(15)
}
