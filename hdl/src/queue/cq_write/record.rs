//! Reader of consumer records: one read at a time.
//!
//! `ask` begins a read; `reading` is 1 from the next cycle until the answer is taken. The answer comes with `answered`,
//! one cycle after its beat, and stays until `take`.
use ferroce_proto::abi::RECORD_BYTES;

use crate::bus::types::ReadReq;
use crate::prelude::*;

/// Reader on a data path of W bits.
#[derive(Block)]
#[block(check)]
pub struct CqRecord<const W: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Begin; not while `reading`.
    pub ask: Signal<In, Bit>,
    /// Host address of the record, a multiple of 4.
    pub addr: Signal<In, Bits<64>>,
    /// Reads for `dma_read`.
    pub read: StreamOut<ReadReq>,
    /// Their answers.
    pub beat: ReadBeatIn<W>,
    /// A read is under way, or its answer waits.
    pub reading: Signal<Out, Bit>,
    /// The answer is there.
    pub answered: Signal<Out, Bit>,
    /// The read succeeded.
    pub ok: Signal<Out, Bit>,
    /// Entries taken by the host, modulo 2^24.
    pub taken: Signal<Out, Bits<24>>,
    /// The answer is taken.
    pub take: Signal<In, Bit>,

    /// The read is not taken yet.
    asks: Reg<Bit>,
    record: Dff<Bits<64>>,
    busy: Reg<Bit>,
    there: Reg<Bit>,
    good: Dff<Bit>,
    value: Dff<Bits<24>>,
    /// Place of the record in its beat, in words of 4 bytes.
    word: Dff<Bits<4>>,
    #[init(Constant::new((W as u64 / 32 - 1).to_bits()))]
    last_word: Constant<Bits<4>>,
}

impl<const W: usize> CqRecord<W> {
    fn check() {
        assert!(
            (64..=512).contains(&W) && W.is_power_of_two(),
            "data path of {W} bits: 64, 128, 256 or 512"
        );
    }
}

impl<const W: usize> Logic for CqRecord<W> {
    describe!("cq_record", format!("w{W}"), "Reads consumer records.");

    #[kernel]
    fn update(&mut self) {
        read.valid = asks;
        read.payload.addr = record;
        read.payload.len = RECORD_BYTES;
        if read.ready {
            asks = false;
        }
        if ask {
            asks = true;
            record = addr;
            busy = true;
            word = addr.slice::<4>(2) & last_word;
        }
        if beat.valid {
            there = true;
            good = !beat.error;
            value = beat.data.slice::<24>(word * 32);
        }
        if take {
            busy = false;
            there = false;
        }
        reading = busy;
        answered = there;
        ok = good;
        taken = value;
    }
}
