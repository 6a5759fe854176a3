//! Merges the frames of the lanes, in turns: neither starves the other.
//!
//! A lane that was granted keeps the grant to the end of its frame. A beat a cycle, no idle cycle between frames; no
//! register in the data path: the lanes end in skid buffers, and what follows begins with a register.
use crate::prelude::*;

/// Merge of two lanes of frames.
#[derive(Clone, Debug, Default, LogicBlock)]
pub struct FrameMux<const W: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Frames, by lane.
    pub s: [FrameIn<W>; 2],
    /// All frames.
    pub m: FrameOut<W>,
    arbiter: Arbiter<2>,
    open: Reg<Bit>,
    owner: Reg<Bits<2>>,
    grant: Signal<Local, Bits<2>>,
    requests: Signal<Local, Bits<2>>,
    transfer: Signal<Local, Bit>,
    last: Signal<Local, Bit>,
}

impl<const W: usize> Logic for FrameMux<W> {
    describe!(
        "frame_mux",
        format!("w{W}"),
        "Merges the frames of the lanes, round robin."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, arbiter);
        dff_setup!(self, clock, open, owner);
        self.requests.next = bits::<2>(0)
            .replace_bit(0, self.s[0].valid.val())
            .replace_bit(1, self.s[1].valid.val());
        self.arbiter.request.next = self.requests.val();
        self.grant.next = self.arbiter.grant.val();
        if self.open.q.val() {
            self.grant.next = self.owner.q.val();
        }
        self.m.data.next = self.s[0].data.val();
        self.m.beat.next = self.s[0].beat.val();
        self.last.next = self.s[0].beat.val().last;
        if self.grant.val().get_bit(1) {
            self.m.data.next = self.s[1].data.val();
            self.m.beat.next = self.s[1].beat.val();
            self.last.next = self.s[1].beat.val().last;
        }
        self.m.valid.next = (self.grant.val() & self.requests.val()).any();
        self.transfer.next = (self.grant.val() & self.requests.val()).any() & self.m.ready.val();
        self.arbiter.take.next = self.transfer.val() & !self.open.q.val();
        for i in 0..2 {
            self.s[i].ready.next = self.grant.val().get_bit(i) & self.m.ready.val();
        }
        if self.transfer.val() {
            self.open.d.next = !self.last.val();
            self.owner.d.next = self.grant.val();
        }
    }
}
