//! Queues of frames in front of the wire, one a class or more: a queue that is paused stops behind its frame and holds no
//! other (`docs/classes.md`).
//!
//! ```text
//!  s_axis, queue ─► register ─► RAM: 8 rings ─► read ─► register ─► m_axis
//!                      └─► class_queue[i] ─ ready ─► class_turn ─┘    └─ bytes ─► class_turn: accounts
//!  reserve, give_back ─► class_queue[i] ─► open[i]
//! ```
//!
//! * **Room** is announced ahead: whoever makes frames reserves their beats of `room`, or those of one of a queue that is `open`,
//!   at most T, before anything of them waits elsewhere. So `s_axis.tready` is constant 1, and what stands in front of this block
//!   always drains, whatever is paused. What was reserved and does not come is given back.
//! * **Order**: frames of a queue leave in the order in which they came. Which queue is next: `class_turn`.
//! * **Pause**: from the cycle behind `pause` on no frame of the queue is begun; of what was begun before, the rest and up
//!   to three frames of a beat leave, 192 bytes.
//! * **Departure**: what comes with the last beat of a request is given back a cycle after the wire took that beat.
//! * **`stands`** says that a beat is here; from `note` on, that one is here which was here then.
//! * A frame **counts** its bytes and 24 more: check sequence, preamble and gap.
//! * **Rate**: a beat a cycle, frames of one beat too; no idle cycle within a frame if it comes without. **Latency**: 4
//!   cycles from `s_axis` to `m_axis`. A frame is sent while it comes (cut-through): to wait for its end would add 66 cycles
//!   to the latency of a frame of 4 KiB.
//!
//! Assumes: the beats of a frame follow each other without a frame of another queue between, and without a pause, or the
//! frame pauses on the wire; `tuser` is 0. A request has 58 bytes at least, and goes to a queue of the lower half. There 64
//! bytes and four beats stay free, so that no two last beats of requests share a record.
use super::class_queue::ClassQueue;
use super::class_turn::ClassTurn;
use super::types::Space;
use super::{CLASSES, DATA, QUEUES};
use crate::bus::types::Departure;
use crate::bus::valid::Valid;
use crate::prelude::*;

/// Preamble, check sequence and gap.
const AROUND: u64 = 24;
/// log2 of the requests that wait: one in 64 bytes of memory.
const LOG_REQUESTS: usize = super::LOG_BYTES - 6 + 2;

/// Two queues of each class in 2^A beats of `W` bits = `K` bytes: 2^B for acknowledgements and CNPs, the others for data. The memory of all
/// has 2^M beats, the largest frame T.
#[derive(Clone, Debug, Block)]
#[block(check)]
pub struct ClassEgress<
    const W: usize,
    const K: usize,
    const A: usize,
    const B: usize,
    const M: usize,
    const T: usize,
> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Frames.
    pub s_axis: AxisIn<W, K>,
    /// With each beat: the queue of its frame.
    pub queue: Signal<In, Bits<4>>,
    /// With a last beat: of a request.
    pub request: Signal<In, Bit>,
    /// Which.
    pub departure: Signal<In, Departure>,
    /// A frame will come.
    pub reserve: Signal<In, Valid<Space>>,
    /// It will not come, or is shorter.
    pub give_back: Signal<In, Valid<Space>>,
    /// Beats that each queue has room for.
    pub room: [Signal<Out, Bits<16>>; QUEUES],
    /// Queues with room for a frame of any length.
    pub open: Signal<Out, Bits<QUEUES>>,
    /// Queues that hold a beat.
    pub waiting: Signal<Out, Bits<QUEUES>>,
    /// Queues that are to start no frame.
    pub pause: Signal<In, Bits<QUEUES>>,
    /// Queues of which a frame is under way: from the cycle behind its first beat's read to that in which its last one is taken.
    pub active: Signal<Out, Bits<QUEUES>>,
    /// Queue of which a beat leaves, if any.
    pub pop: Signal<Out, Bits<QUEUES>>,
    /// What comes from now on does not count in `stands`; what is here goes before it, also before strict data queues.
    pub note: Signal<In, Bit>,
    /// A beat is here; with `note`: of those before it.
    pub stands: Signal<Out, Bit>,
    /// A request has left; one cycle.
    pub departed: Signal<Out, Valid<Departure>>,
    /// Share of each queue, 128 bytes a round; 0: strict.
    pub weight: [Signal<In, Bits<7>>; QUEUES],
    /// Frames.
    pub m_axis: AxisOut<W, K>,
    data_queues: [ClassQueue<A, B, T>; CLASSES],
    control_queues: [ClassQueue<B, B, T>; CLASSES],
    turn: ClassTurn<QUEUES>,
    #[init(Ram::new(Style::Ultra))]
    data: Ram<Bits<W>, M>,
    #[init(Ram::new(Style::Block))]
    keep: Ram<Bits<K>, M>,
    /// Of the last beat of a request, at the place of its 64 bytes.
    #[init(Ram::new(Style::Ultra))]
    departures: Ram<Departure, LOG_REQUESTS>,
    into: Pick<Bits<M>, QUEUES>,
    from: Pick<Bits<M>, QUEUES>,
    count: RunLength<K>,
    // in
    came: Reg<Bits<QUEUES>>,
    came_data: Dff<Bits<W>>,
    came_keep: Dff<Bits<K>>,
    came_departure: Dff<Departure>,
    // its word is asked for, shown, offered
    reading: Reg<Bits<QUEUES>>,
    reading_last: Dff<Bit>,
    shown: Reg<Bits<QUEUES>>,
    shown_last: Dff<Bit>,
    out: Reg<Bits<QUEUES>>,
    out_data: Dff<Bits<W>>,
    out_keep: Dff<Bits<K>>,
    out_last: Dff<Bit>,
    out_request: Dff<Bit>,
    out_departure: Dff<Departure>,
    // each counts in `stands`
    reading_counts: Reg<Bit>,
    shown_counts: Reg<Bit>,
    out_counts: Reg<Bit>,
    any_stands: Reg<Bit>,
    /// Queues of data that wait until what is noted has left others.
    yields: Reg<Bits<QUEUES>>,
    /// A frame has begun on the wire.
    within: Reg<Bit>,
    left: Reg<Bit>,
    left_departure: Dff<Departure>,
    charged: Reg<Bits<QUEUES>>,
    charge: Dff<Bits<7>>,
}

impl<const W: usize, const K: usize, const A: usize, const B: usize, const M: usize, const T: usize>
    ClassEgress<W, K, A, B, M, T>
{
    /// Where the queues of acknowledgements and CNPs begin.
    const CONTROL: u64 = ClassQueue::<A, B, T>::BEATS;
    const BYTES: u64 = K as u64;
    /// log2 of the beats of 64 bytes.
    const SHIFT: u64 = 6 - K.ilog2() as u64;

    fn check() {
        assert!(
            W == 8 * K && K <= 64 && B < A && CLASSES << A == 1 << M && T < 1 << B,
            "queues of 2^{A} beats of {W} bits, of these 2^{B}, in 2^{M}, frames of up to {T} beats: a queue has room for more than the \
             largest frame, the memory for all queues"
        );
        assert!(
            K << M == 64 << LOG_REQUESTS,
            "2^{M} beats of {K} bytes hold 2^{LOG_REQUESTS} requests"
        );
    }
}

/// Queues of data without what is noted, while one has some and may send.
#[kernel_fn]
fn yielding(note: Bit, counting: Bits<QUEUES>, sends: Bits<QUEUES>) -> Bits<QUEUES> {
    let is_due = note & (counting & sends & DATA).any();
    let queues: Bits<QUEUES> = if is_due { !counting & DATA } else { 0 };
    queues
}

impl<const W: usize, const K: usize, const A: usize, const B: usize, const M: usize, const T: usize>
    Logic for ClassEgress<W, K, A, B, M, T>
{
    describe!(
        "class_egress",
        format!("w{W}_{}_{}_{T}", 1usize << A, 1usize << B),
        "Queues of frames by class, with pause, strict and deficit round robin."
    );

    #[kernel]
    fn update(&mut self) {
        s_axis.tready = true;
        let mut comes = bits::<QUEUES>(0);
        came_data = s_axis.tdata;
        // the first byte is always there: its bit says that it is no request
        came_keep = s_axis.tkeep.replace_bit(0, !(request & s_axis.tlast));
        came_departure = departure;
        let mut opens = bits::<QUEUES>(0);
        let mut full = bits::<QUEUES>(0);
        let mut lasts = bits::<QUEUES>(0);
        let mut counting = bits::<QUEUES>(0);
        let mut returns = bits::<QUEUES>(0);
        let mut reserves = bits::<QUEUES>(0);
        for i in 0..QUEUES {
            comes = comes.replace_bit(i, s_axis.tvalid & (queue == i));
            reserves = reserves.replace_bit(i, reserve.valid & (reserve.payload.queue == i));
            returns = returns.replace_bit(i, give_back.valid & (give_back.payload.queue == i));
            turn.weight[i] = weight[i];
        }
        for i in 0..CLASSES {
            data_queues[i].push = comes.bit(i);
            data_queues[i].push_last = s_axis.tlast;
            data_queues[i].pop = turn.pop.bit(i);
            data_queues[i].reserves = reserves.bit(i);
            data_queues[i].reserve = reserve.payload.beats;
            data_queues[i].give_back = bits::<14>(0);
            if returns.bit(i) {
                data_queues[i].give_back = give_back.payload.beats;
            }
            data_queues[i].note = note;
            counting = counting.replace_bit(i, data_queues[i].stands);
            room[i] = data_queues[i].left;
            opens = opens.replace_bit(i, data_queues[i].open);
            full = full.replace_bit(i, data_queues[i].ready);
            lasts = lasts.replace_bit(i, data_queues[i].last);
            into.item[i] = (bits::<M>(i) << A) | data_queues[i].write.resize::<M>();
            from.item[i] = (bits::<M>(i) << A) | data_queues[i].read.resize::<M>();

            control_queues[i].push = comes.bit(i + CLASSES);
            control_queues[i].push_last = s_axis.tlast;
            control_queues[i].pop = turn.pop.bit(i + CLASSES);
            control_queues[i].reserves = reserves.bit(i + CLASSES);
            control_queues[i].reserve = reserve.payload.beats;
            control_queues[i].give_back = bits::<14>(0);
            if returns.bit(i + CLASSES) {
                control_queues[i].give_back = give_back.payload.beats;
            }
            control_queues[i].note = note;
            counting = counting.replace_bit(i + CLASSES, control_queues[i].stands);
            room[i + CLASSES] = control_queues[i].left;
            opens = opens.replace_bit(i + CLASSES, control_queues[i].open);
            full = full.replace_bit(i + CLASSES, control_queues[i].ready);
            lasts = lasts.replace_bit(i + CLASSES, control_queues[i].last);
            let start = (bits::<M>(i) << A) | bits::<M>(Self::CONTROL);
            into.item[i + CLASSES] = start | control_queues[i].write.resize::<M>();
            from.item[i + CLASSES] = start | control_queues[i].read.resize::<M>();
        }
        assert!(
            !s_axis.tvalid | (queue < QUEUES),
            "a frame for a queue that is not there"
        );
        assert!(
            !s_axis.tvalid | !s_axis.tuser,
            "a frame to send is marked bad"
        );
        assert!(
            !s_axis.tvalid | s_axis.tkeep.bit(0),
            "a beat without its first byte"
        );
        came = comes;
        open = opens;
        waiting = full;
        pop = turn.pop;
        // Write, in the cycle behind that in which the beat came.
        into.choice = came;
        data.we = came.any();
        data.waddr = into.picked;
        data.wdata = came_data;
        keep.we = came.any();
        keep.waddr = into.picked;
        keep.wdata = came_keep;
        departures.we = came.any() & !came_keep.bit(0);
        departures.waddr = (into.picked >> Self::SHIFT).resize::<LOG_REQUESTS>();
        departures.wdata = came_departure;
        // Read.
        let out_free = !out.any() | m_axis.tready;
        let shown_free = !shown.any() | out_free;
        let step = !reading.any() | shown_free;
        turn.ready = full;
        turn.control = !bits::<QUEUES>(DATA);
        turn.last = lasts;
        turn.step = step;
        // what is noted goes first, so that it leaves however much of a strict queue comes
        yields = yielding(note, counting, full & !pause);
        turn.pause = pause | yields;
        copy!(turn <= self; charged, charge);
        if step {
            reading = turn.pop;
            reading_last = (turn.pop & lasts).any();
            reading_counts = (turn.pop & counting).any();
        }
        from.choice = reading;
        data.re = shown_free;
        data.raddr = from.picked;
        keep.re = shown_free;
        keep.raddr = from.picked;
        departures.re = shown_free;
        departures.raddr = (from.picked >> Self::SHIFT).resize::<LOG_REQUESTS>();
        if shown_free {
            shown = reading;
            shown_last = reading_last;
            shown_counts = reading_counts;
        }
        let whole_keep = keep.rdata.replace_bit(0, true);
        if out_free {
            out = shown;
            out_data = data.rdata;
            out_keep = whole_keep;
            out_last = shown_last;
            out_request = !keep.rdata.bit(0);
            out_departure = departures.rdata;
            out_counts = shown_counts;
        }
        any_stands = counting.any() | reading_counts | shown_counts | out_counts;
        stands = any_stands;
        left = out.any() & m_axis.tready & out_request;
        left_departure = out_departure;
        departed.valid = left;
        departed.payload = left_departure;
        // What it counts.
        count.keep = whole_keep;
        charged = bits::<QUEUES>(0);
        if out_free {
            charged = shown;
        }
        charge = bits::<7>(Self::BYTES);
        if shown_last {
            charge = count.bytes + AROUND;
        }
        m_axis.tdata = out_data;
        m_axis.tkeep = out_keep;
        m_axis.tlast = out_last;
        m_axis.tuser = false;
        m_axis.tvalid = out.any();
        if out.any() & m_axis.tready {
            within = !out_last;
        }
        assert!(!within | out.any(), "a frame pauses on the wire");
        active = turn.under_way | reading | shown | out;
    }
}

/// How many lanes a run of ones from lane 0 has; no register.
#[derive(Clone, Debug, Block)]
struct RunLength<const K: usize> {
    pub keep: Signal<In, Bits<K>>,
    pub bytes: Signal<Out, Bits<7>>,
}

impl<const K: usize> Logic for RunLength<K> {
    describe!("run_length", format!("k{K}"), "Length of a run of ones.");

    fn update(&mut self) {
        let ones = (0..K).filter(|&lane| self.keep.val().get_bit(lane));
        self.bytes.next = (ones.count() as u64).to_bits();
    }

    fn connect(&mut self) {
        self.bytes.connect();
    }

    fn hdl(&self) -> Verilog {
        // bit b is 1 where an odd multiple of 2^b is reached, and the multiple behind it is not
        let bit = |b: usize| {
            let terms: Vec<_> = (1..=K >> b)
                .step_by(2)
                .map(|odd| match (odd + 1) << b {
                    next if next <= K => {
                        format!("(keep[{}] & !keep[{}])", (odd << b) - 1, next - 1)
                    }
                    _ => format!("keep[{}]", (odd << b) - 1),
                })
                .collect();
            if terms.is_empty() {
                "1'b0".into()
            } else {
                terms.join(" | ")
            }
        };
        let text: Vec<_> = (0..7)
            .map(|b| format!("assign bytes[{b}] = {};\n", bit(b)))
            .collect();
        Verilog::Custom(text.concat())
    }
}
