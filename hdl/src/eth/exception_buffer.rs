//! Buffer of the exception queue: every received beat enters; the frames for the host are kept as a whole.
//!
//! At the last beat of a frame, when the parser knows what it is, the frame is kept, or the write pointer goes back. The
//! input is never held up: a frame without room, or longer than a slot, is dropped (`dropped`), and all are refused while
//! the queue is off (`refused`). For each frame kept its length comes out at `lengths`; its beats are then taken by
//! `step`, one a cycle, without a way back. Holds 2^A beats and 32 frames.
use super::exception_types::{LONGEST, LONGEST_LARGE, RawBeat};
use crate::prelude::*;

/// The block.
#[derive(Clone, Debug, Block)]
#[block(check)]
pub struct ExceptionBuffer<const W: usize, const A: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// The queue is on.
    pub on: Signal<In, Bit>,
    /// Slots are large.
    pub jumbo: Signal<In, Bit>,
    /// A received beat.
    pub beat: Signal<In, RawBeat>,
    /// Its bytes.
    pub data: Signal<In, Bits<W>>,
    /// Bytes of each frame kept.
    pub lengths: StreamOut<Bits<16>>,
    /// The next beat is taken; it stands at `rdata` from the next cycle to the next `step`.
    pub step: Signal<In, Bit>,
    /// The beat.
    pub rdata: Signal<Out, Bits<W>>,
    /// A frame was dropped for lack of room; one cycle.
    pub dropped: Signal<Out, Bit>,
    /// A frame was dropped because the queue is off; one cycle.
    pub refused: Signal<Out, Bit>,

    #[init(Ram::new(Style::Block))]
    ram: Ram<Bits<W>, A>,
    fifo: Fifo<Bits<16>, 5>,
    // Pointers run freely; the low A bits address the RAM.
    head: Reg<Bits<16>>,
    committed: Reg<Bits<16>>,
    tail: Reg<Bits<16>>,
    #[init(Reg::new((1_u64 << A).to_bits()))]
    limit: Reg<Bits<16>>,
    length: Reg<Bits<16>>,
    lost: Reg<Bit>,
    dropped_q: Reg<Bit>,
    refused_q: Reg<Bit>,
}

impl<const W: usize, const A: usize> ExceptionBuffer<W, A> {
    fn check() {
        assert!(
            (1..16).contains(&A),
            "exception buffer of 2^{A} beats: up to 2^15 can be built"
        );
    }
}

impl<const W: usize, const A: usize> Logic for ExceptionBuffer<W, A> {
    describe!(
        "exception_buffer",
        format!("w{W}_{}", 1usize << A),
        "Keeps received frames that are for the host as a whole."
    );

    #[kernel]
    fn update(&mut self) {
        // the buffer takes every beat
        let total = length + beat.bytes.resize::<16>();
        // from 32 KiB on the length stays: no frame is so long that it comes round to one that fits
        let long = length.bit(15);
        let full = head == limit;
        let put = beat.valid & !full & !lost;
        let overflow = lost | (beat.valid & full);
        let mut next_head = head;
        if put {
            next_head = head + 1;
        }
        ram.we = put;
        ram.waddr = head.resize::<A>();
        ram.wdata = data;
        let mut longest: Bits<16> = bits::<16>(LONGEST);
        if jumbo {
            longest = bits::<16>(LONGEST_LARGE);
        }

        // and keeps or forgets the frame at its end
        let fits = !long & (total <= longest);
        let keep = beat.last & beat.not_roce & on & !overflow & fits & fifo.s.ready;
        fifo.s.valid = keep;
        fifo.s.payload = total;
        refused_q = beat.last & beat.not_roce & !on;
        dropped_q = beat.last & beat.not_roce & on & !keep;
        head = next_head;
        lost = overflow;
        if beat.valid & !long {
            length = total;
        }
        if beat.last {
            length = bits::<16>(0);
            lost = false;
            head = committed;
        }
        if keep {
            head = next_head;
            committed = next_head;
        }
        forward!(lengths <= fifo.m);
        if step {
            tail = tail + 1;
            limit = limit + 1;
        }
        ram.re = step;
        ram.raddr = tail.resize::<A>();
        rdata = ram.rdata;
        dropped = dropped_q;
        refused = refused_q;
    }
}
