//! Steers what is addressed to the port itself back to its receive side (a switch would not return it).
//!
//! A frame whose destination MAC address, its first six bytes, is `mac` leaves whole at `own`, any other at `m`. Frames
//! keep their order; a frame that its output does not take holds up those behind it. One cycle of latency, a beat a
//! cycle, no idle cycle between frames; `s.tready` follows the `tready` of the outputs in the same cycle.
//!
//! While `hold` is 1 no frame to the port itself is begun; from its first beat on it goes to its end.
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
    /// None of those is to begin.
    pub hold: Signal<In, Bit>,
    /// The last beat of a packet is taken, at either output.
    pub passes: Signal<Out, Bit>,
    /// That of a request, at `own`.
    pub returned: Signal<Out, Bit>,
    valid: Reg<Bit>,
    data: Dff<Bits<W>>,
    keep: Dff<Bits<K>>,
    last: Dff<Bit>,
    bad: Dff<Bit>,
    mark_q: Dff<FrameMark>,
    returns: Dff<Bit>,
    first: Dff<Bit>,
    /// A beat is offered to the port itself: it is not withdrawn.
    offered: Reg<Bit>,
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
        let held = first & hold & !offered;
        offered = valid & returns & !held & !own.tready;
        let taken = valid & ((returns & own.tready & !held) | (!returns & m.tready));
        let go = !valid | taken;
        s.tready = go;
        if go {
            valid = s.tvalid;
            data = s.tdata;
            keep = s.tkeep;
            last = s.tlast;
            bad = s.tuser;
            mark_q = mark;
            first = !inside;
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
        own.tvalid = valid & returns & !held;
        own.tdata = data;
        own.tkeep = keep;
        own.tlast = last;
        own.tuser = bad;
        let ends = taken & last;
        passes = ends & (mark_q.request | mark_q.response | mark_q.cnp);
        returned = ends & returns & mark_q.request;
    }
}
