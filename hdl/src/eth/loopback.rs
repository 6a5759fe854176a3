//! Steers what is addressed to the port itself back to its receive side (a switch would not return it).
//!
//! A frame whose destination MAC address, its first six bytes, is `mac` leaves whole at `own`, any other at `m`. Frames
//! keep their order; a frame that its output does not take holds up those behind it. One cycle of latency, a beat a
//! cycle, no idle cycle between frames; `s.tready` follows the `tready` of the outputs in the same cycle.
//!
//! Assumes: `mac` does not change while frames pass; beats have at least eight bytes.
use crate::prelude::*;

/// The block, for beats of `W` bits = `K` bytes.
#[derive(Clone, Debug, Default, LogicBlock)]
pub struct Loopback<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// Frames.
    pub s: AxisIn<W, K>,
    /// Frames to others.
    pub m: AxisOut<W, K>,
    /// Frames to the port itself.
    pub own: AxisOut<W, K>,
    valid: Reg<Bit>,
    data: Dff<Bits<W>>,
    keep: Dff<Bits<K>>,
    last: Dff<Bit>,
    bad: Dff<Bit>,
    returns: Dff<Bit>,
    /// The next beat is not the first of its frame.
    inside: Reg<Bit>,
    go: Signal<Local, Bit>,
}

impl<const W: usize, const K: usize> Logic for Loopback<W, K> {
    describe!(
        "loopback",
        format!("w{W}"),
        "Steers frames to the own MAC address back."
    );

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, valid, data, keep, last, bad, returns, inside);
        self.go.next = !self.valid.q.val()
            | (self.returns.q.val() & self.own.tready.val())
            | (!self.returns.q.val() & self.m.tready.val());
        self.s.tready.next = self.go.val();
        if self.go.val() {
            self.valid.d.next = self.s.tvalid.val();
            self.data.d.next = self.s.tdata.val();
            self.keep.d.next = self.s.tkeep.val();
            self.last.d.next = self.s.tlast.val();
            self.bad.d.next = self.s.tuser.val();
            if self.s.tvalid.val() {
                self.inside.d.next = !self.s.tlast.val();
                if !self.inside.q.val() {
                    self.returns.d.next = self.s.tdata.val().get_bits::<48>(0) == self.mac.val();
                }
            }
        }
        self.m.tvalid.next = self.valid.q.val() & !self.returns.q.val();
        self.m.tdata.next = self.data.q.val();
        self.m.tkeep.next = self.keep.q.val();
        self.m.tlast.next = self.last.q.val();
        self.m.tuser.next = self.bad.q.val();
        self.own.tvalid.next = self.valid.q.val() & self.returns.q.val();
        self.own.tdata.next = self.data.q.val();
        self.own.tkeep.next = self.keep.q.val();
        self.own.tlast.next = self.last.q.val();
        self.own.tuser.next = self.bad.q.val();
    }
}
