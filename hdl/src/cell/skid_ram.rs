//! [`Skid`] for wide items: its two items stand in LUT RAM instead of registers.
//!
//! Full rate, one cycle of latency; `s.ready` and `m.valid` come straight from registers, `m.payload` is read at an
//! address in a register: one LUT level behind it, and none in front.
use crate::cell::fifo_ram::FifoRam;
use crate::cell::ram::Style;
use crate::prelude::*;

/// Register stage for items of type `T`.
#[derive(Clone, Debug, Block)]
pub struct SkidRam<T: Synth> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Items in.
    pub s: StreamIn<T>,
    /// Items out.
    pub m: StreamOut<T>,
    #[init(FifoRam::new(Style::Distributed))]
    ram: FifoRam<T, 1>,
    out_valid: Reg<Bit>,
    spare_valid: Reg<Bit>,
    /// Of the two words, where the next item is written.
    write: Reg<Bit>,
    /// Where the one behind that offered stands.
    read: Reg<Bit>,
}

impl<T: Synth> Logic for SkidRam<T> {
    describe!(
        "skid_ram",
        format!("{}", T::BITS),
        "Stream register stage that cuts valid, payload and ready, of LUT RAM."
    );

    #[kernel]
    fn update(&mut self) {
        let take = m.ready | !out_valid;
        let push = s.valid & !spare_valid;
        let comes = spare_valid | s.valid;
        if take {
            out_valid = comes;
            spare_valid = false;
            read = read ^ comes;
        } else {
            spare_valid = comes;
        }
        write = write ^ push;
        ram.we = push;
        ram.waddr = bits::<16>(0).replace_bit(0, write);
        ram.wdata = s.payload;
        ram.re = take;
        ram.pass = !spare_valid;
        ram.raddr = bits::<16>(0).replace_bit(0, read);
        s.ready = !spare_valid;
        m.valid = out_valid;
        m.payload = ram.rdata;
    }
}
