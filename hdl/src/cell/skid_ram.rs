//! [`Skid`](crate::cell::skid::Skid) for wide items: its two items stand in LUT RAM instead of registers.
//!
//! Full rate, one cycle of latency; `s.ready` and `m.valid` come straight from registers, `m.payload` is read at an
//! address in a register: one LUT level behind it, and none in front.
use crate::cell::fifo_ram::FifoRam;
use crate::cell::ram::Style;
use crate::prelude::*;

/// Register stage for items of type `T`.
#[derive(Clone, Debug, LogicBlock)]
pub struct SkidRam<T: Synth> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Items in.
    pub s: StreamIn<T>,
    /// Items out.
    pub m: StreamOut<T>,
    ram: FifoRam<T, 1>,
    out_valid: Reg<Bit>,
    spare_valid: Reg<Bit>,
    /// Of the two words, where the next item is written.
    write: Reg<Bit>,
    /// Where the one behind that offered stands.
    read: Reg<Bit>,
    take: Signal<Local, Bit>,
    push: Signal<Local, Bit>,
    comes: Signal<Local, Bit>,
}

impl<T: Synth> Default for SkidRam<T> {
    fn default() -> Self {
        Self {
            clock: ClkRst::default(),
            s: StreamIn::default(),
            m: StreamOut::default(),
            ram: FifoRam::new(Style::Distributed),
            out_valid: Reg::default(),
            spare_valid: Reg::default(),
            write: Reg::default(),
            read: Reg::default(),
            take: Signal::default(),
            push: Signal::default(),
            comes: Signal::default(),
        }
    }
}

impl<T: Synth> Logic for SkidRam<T> {
    describe!(
        "skid_ram",
        format!("{}", T::BITS),
        "Stream register stage that cuts valid, payload and ready, of LUT RAM."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, ram);
        dff_setup!(self, clock, out_valid, spare_valid, write, read);
        self.take.next = self.m.ready.val() | !self.out_valid.q.val();
        self.push.next = self.s.valid.val() & !self.spare_valid.q.val();
        self.comes.next = self.spare_valid.q.val() | self.s.valid.val();
        if self.take.val() {
            self.out_valid.d.next = self.comes.val();
            self.spare_valid.d.next = false;
            self.read.d.next = self.read.q.val() ^ self.comes.val();
        } else {
            self.spare_valid.d.next = self.comes.val();
        }
        self.write.d.next = self.write.q.val() ^ self.push.val();
        self.ram.we.next = self.push.val();
        self.ram.waddr.next = bits::<16>(0).replace_bit(0, self.write.q.val());
        self.ram.wdata.next = self.s.payload.val();
        self.ram.re.next = self.take.val();
        self.ram.pass.next = !self.spare_valid.q.val();
        self.ram.raddr.next = bits::<16>(0).replace_bit(0, self.read.q.val());
        self.s.ready.next = !self.spare_valid.q.val();
        self.m.valid.next = self.out_valid.q.val();
        self.m.payload.next = self.ram.rdata.val();
    }
}
