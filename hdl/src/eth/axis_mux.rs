//! Merges the frames of two AXI4-Streams, in turns: neither starves the other.
//!
//! A lane that was granted keeps the grant to the end of its frame, so a lane should not begin a frame that it cannot
//! go on with. A beat a cycle, no idle cycle between frames, no latency.
use crate::prelude::*;

/// Merge of two lanes.
#[derive(Clone, Debug, Default, LogicBlock)]
pub struct AxisMux<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Frames, by lane.
    pub s_axis: [AxisIn<W, K>; 2],
    /// All frames.
    pub m_axis: AxisOut<W, K>,
    arbiter: Arbiter<2>,
    open: Reg<Bit>,
    owner: Reg<Bits<2>>,
    grant: Signal<Local, Bits<2>>,
    requests: Signal<Local, Bits<2>>,
    offered: Signal<Local, Bit>,
    transfer: Signal<Local, Bit>,
    last: Signal<Local, Bit>,
}

impl<const W: usize, const K: usize> Logic for AxisMux<W, K> {
    describe!(
        "axis_mux",
        format!("w{W}"),
        "Merges the frames of two AXI4-Streams, round robin."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, arbiter);
        dff_setup!(self, clock, open, owner);
        self.requests.next = bits::<2>(0)
            .replace_bit(0, self.s_axis[0].tvalid.val())
            .replace_bit(1, self.s_axis[1].tvalid.val());
        // An offer stands until it is taken: the grant too.
        self.arbiter.request.next = self.requests.val();
        self.grant.next = self.arbiter.grant.val();
        if self.open.q.val() {
            self.grant.next = self.owner.q.val();
        }
        self.m_axis.tdata.next = self.s_axis[0].tdata.val();
        self.m_axis.tkeep.next = self.s_axis[0].tkeep.val();
        self.m_axis.tuser.next = self.s_axis[0].tuser.val();
        self.last.next = self.s_axis[0].tlast.val();
        if self.grant.val().get_bit(1) {
            self.m_axis.tdata.next = self.s_axis[1].tdata.val();
            self.m_axis.tkeep.next = self.s_axis[1].tkeep.val();
            self.m_axis.tuser.next = self.s_axis[1].tuser.val();
            self.last.next = self.s_axis[1].tlast.val();
        }
        self.m_axis.tlast.next = self.last.val();
        self.offered.next = (self.grant.val() & self.requests.val()).any();
        self.m_axis.tvalid.next = self.offered.val();
        self.transfer.next = self.offered.val() & self.m_axis.tready.val();
        self.arbiter.take.next = self.offered.val() & !self.open.q.val();
        for i in 0..2 {
            self.s_axis[i].tready.next = self.grant.val().get_bit(i) & self.m_axis.tready.val();
        }
        // The owner is fixed with its first offer, not with its first transfer.
        if self.offered.val() {
            self.open.d.next = !(self.transfer.val() & self.last.val());
            self.owner.d.next = self.grant.val();
        }
    }
}
