//! WQE fetch: from granted slot ranges to a stream of slots.
//!
//! A grant of 1 to 8 slots becomes one read of 64 bytes a slot, or two if it wraps around the ring. Each grant holds at
//! least one slot of the buffer, so there are at most 2^B. Many reads are in flight and their answers come in order.
//! The scheduler reserved room for the slots, so the answers are never held up. `credit` reports the slots that are
//! free again: those a grant did not use, and each slot taken out of the buffer. Rate: a slot a cycle at W = 512, a
//! slot in 8 cycles at W = 64.
use super::grant::FetchGrant;
use crate::bus::dma::ReadBeatIn;
use crate::bus::types::{Activity, FetchedWqe, ReadReq};
use crate::cell::count::one_less;
use crate::prelude::*;

/// WQE fetch with a buffer of 2^B slots.
#[derive(Block)]
#[block(check)]
pub struct WqeFetch<const W: usize, const B: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A grant arrives.
    pub grant_valid: Signal<In, Bit>,
    /// The grant.
    pub grant: Signal<In, FetchGrant>,
    /// Reads.
    pub read: StreamOut<ReadReq>,
    /// Beats of the answers.
    pub beat: ReadBeatIn<W>,
    /// Slots out.
    pub m: StreamOut<FetchedWqe>,
    /// Slots that became free.
    pub credit: Signal<Out, Bits<5>>,
    /// Slots asked for and not taken.
    pub activity: Signal<Out, Activity>,
    requests: Bypass<FetchGrant, B>,
    /// The read from the start of the ring is due.
    wrapped: Reg<Bit>,
    pending: Deep<FetchGrant, B>,
    #[init(Bypass::new(Style::Block))]
    buffer: Bypass<FetchedWqe, B>,
    slot: Dff<Bits<512>>,
    failed: Reg<Bit>,
    phase: Reg<Bits<3>>,
    done: Reg<Bits<4>>,
    returned: Reg<Bits<5>>,
    /// Slots asked for and not taken.
    asked: Reg<Bits<8>>,
    #[init(Constant::new((512 / W as u64 - 1).to_bits()))]
    last_phase: Constant<Bits<3>>,
    #[init(Constant::new((W as u64).to_bits()))]
    beat_bits: Constant<Bits<10>>,
    #[init(Constant::new((512 - W as u64).to_bits()))]
    lift: Constant<Bits<10>>,
}

impl<const W: usize, const B: usize> WqeFetch<W, B> {
    fn check() {
        assert!(
            W >= 64 && W <= 512 && W.is_power_of_two(),
            "data path of {W} bits: 64, 128, 256 or 512"
        );
    }
}

impl<const W: usize, const B: usize> Logic for WqeFetch<W, B> {
    describe!(
        "wqe_fetch",
        format!("w{W}_b{B}"),
        "Reads granted send WQE slots from host memory, in order."
    );

    #[kernel]
    fn update(&mut self) {
        requests.s.payload = grant;
        requests.s.valid = grant_valid & grant.count.any();

        // the first read goes out when the place of the grant in `pending` is taken at the same time
        let wraps = requests.m.payload.tail.any();
        read.valid = requests.m.valid & (pending.s.ready | wrapped);
        read.payload.addr = requests.m.payload.addr;
        read.payload.len = requests.m.payload.head.resize::<13>() << 6;
        if wrapped {
            read.payload.addr = requests.m.payload.base;
            read.payload.len = requests.m.payload.tail.resize::<13>() << 6;
        }
        requests.m.ready = read.ready & ((pending.s.ready & !wraps) | wrapped);
        pending.s.valid = requests.m.valid & read.ready & !wrapped;
        pending.s.payload = requests.m.payload;
        if requests.m.valid & read.ready {
            if wrapped {
                wrapped = false;
            } else {
                wrapped = wraps & pending.s.ready;
            }
        }

        // beats into slots
        let slot_next = (beat.data.resize::<512>() << lift) | (slot >> beat_bits);
        let failed_next = failed | beat.error;
        let full_slot = beat.valid & (phase == last_phase);
        if beat.valid {
            slot = slot_next;
            failed = failed_next & !full_slot;
            phase = phase + 1;
            if full_slot {
                phase = bits::<3>(0);
            }
        }
        buffer.s.valid = full_slot;
        buffer.s.payload.qpn = pending.m.payload.qpn;
        buffer.s.payload.epoch = pending.m.payload.epoch;
        buffer.s.payload.index = pending.m.payload.index + done.resize::<16>();
        let ends = done + 1 == pending.m.payload.count;
        buffer.s.payload.first = (done == 0) & !pending.m.payload.partial;
        buffer.s.payload.last = ends;
        buffer.s.payload.error = failed_next;
        buffer.s.payload.slot = slot_next;
        pending.m.ready = false;
        if full_slot {
            done = done + 1;
            if ends {
                done = bits::<4>(0);
                pending.m.ready = true;
            }
        }
        forward!(m <= buffer.m);

        let taken = m.ready & buffer.m.valid;
        let count: Bits<5> = if grant_valid {
            grant.count.resize::<5>()
        } else {
            8
        };
        let granted: Bits<8> = if grant_valid {
            grant.count.resize::<8>()
        } else {
            0
        };
        assert!(asked.any() | !taken, "a slot comes that was asked for");
        let more = asked + granted;
        asked = if taken { one_less(more) } else { more };
        activity.busy = requests.m.valid | pending.m.valid | buffer.m.valid;
        activity.moved = taken;
        activity.level = asked.resize::<16>();
        // both sums, as `taken` is late
        let unused = bits::<5>(8) - count;
        let one_more = bits::<5>(9) - count;
        returned = if taken { one_more } else { unused };
        credit = returned;
    }
}
