//! Merges the frames of two AXI4-Streams, in turns: neither starves the other.
//!
//! A lane that was granted keeps the grant to the end of its frame, so a lane should not begin a frame that it cannot
//! go on with. A beat a cycle, no idle cycle between frames, no latency.
use crate::prelude::*;

/// Merge of two lanes.
#[derive(Clone, Debug, Block)]
pub struct AxisMux<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Frames, by lane.
    pub s_axis: [AxisIn<W, K>; 2],
    /// All frames.
    pub m_axis: AxisOut<W, K>,
    /// Of lane 1.
    pub second: Signal<Out, Bit>,
    arbiter: Arbiter<2>,
    open: Reg<Bit>,
    owner: Reg<Bits<2>>,
}

impl<const W: usize, const K: usize> Logic for AxisMux<W, K> {
    describe!(
        "axis_mux",
        format!("w{W}"),
        "Merges the frames of two AXI4-Streams, round robin."
    );

    #[kernel]
    fn update(&mut self) {
        let requests = bits::<2>(0)
            .replace_bit(0, s_axis[0].tvalid)
            .replace_bit(1, s_axis[1].tvalid);
        // An offer stands until it is taken: the grant too.
        arbiter.request = requests;
        let mut grant = arbiter.grant;
        if open {
            grant = owner;
        }
        copy!(m_axis <= s_axis[0]; tdata, tkeep, tuser);
        let mut last = s_axis[0].tlast;
        if grant.bit(1) {
            copy!(m_axis <= s_axis[1]; tdata, tkeep, tuser);
            last = s_axis[1].tlast;
        }
        second = grant.bit(1);
        m_axis.tlast = last;
        let offered = (grant & requests).any();
        m_axis.tvalid = offered;
        let transfer = offered & m_axis.tready;
        arbiter.take = offered & !open;
        for i in 0..2 {
            s_axis[i].tready = grant.bit(i) & m_axis.tready;
        }
        // The owner is fixed with its first offer, not with its first transfer.
        if offered {
            open = !(transfer & last);
            owner = grant;
        }
    }
}
