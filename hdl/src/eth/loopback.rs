//! Steers what is addressed to the port itself back to its receive side (a switch would not return it).
//!
//! A frame whose destination MAC address, its first six bytes, is `mac` leaves whole at `own`, any other at `m`. Frames
//! keep their order; a frame that its output does not take holds up those behind it. One cycle of latency, a beat a
//! cycle, no idle cycle between frames; `s.tready` follows the `tready` of the outputs in the same cycle.
//!
//! Assumes: `mac` does not change while frames pass; beats have at least eight bytes.
use crate::egress::types::FrameMark;
use crate::prelude::*;

/// The block, for beats of `W` bits = `K` bytes.
#[derive(Clone, Debug, Block)]
pub struct Loopback<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// MAC address of the port, first byte in the lowest bits.
    pub mac: Signal<In, Bits<48>>,
    /// Frames.
    pub s: AxisIn<W, K>,
    /// With each beat: what its frame is.
    pub mark: Signal<In, FrameMark>,
    /// Frames to others.
    pub m: AxisOut<W, K>,
    /// With each beat: what its frame is.
    pub m_mark: Signal<Out, FrameMark>,
    /// Frames to the port itself.
    pub own: AxisOut<W, K>,
    valid: Reg<Bit>,
    data: Dff<Bits<W>>,
    keep: Dff<Bits<K>>,
    last: Dff<Bit>,
    bad: Dff<Bit>,
    mark_q: Dff<FrameMark>,
    returns: Dff<Bit>,
    /// The next beat is not the first of its frame.
    inside: Reg<Bit>,
}

impl<const W: usize, const K: usize> Logic for Loopback<W, K> {
    describe!(
        "loopback",
        format!("w{W}"),
        "Steers frames to the own MAC address back."
    );

    #[kernel]
    fn update(&mut self) {
        let go = !valid | (returns & own.tready) | (!returns & m.tready);
        s.tready = go;
        if go {
            valid = s.tvalid;
            data = s.tdata;
            keep = s.tkeep;
            last = s.tlast;
            bad = s.tuser;
            mark_q = mark;
            if s.tvalid {
                inside = !s.tlast;
                if !inside {
                    returns = s.tdata.low::<48>() == mac;
                }
            }
        }
        m.tvalid = valid & !returns;
        m.tdata = data;
        m.tkeep = keep;
        m.tlast = last;
        m.tuser = bad;
        m_mark = mark_q;
        own.tvalid = valid & returns;
        own.tdata = data;
        own.tkeep = keep;
        own.tlast = last;
        own.tuser = bad;
    }
}
