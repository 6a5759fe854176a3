//! Lets frames that the port sent to itself in among those from the wire.
//!
//! ```text
//!  s_axis ─┬─────────► register ─► m_axis
//!          └─► FIFO ──────▲ ▲
//!  own ───────► FIFO ───────┘
//! ```
//!
//! The wire comes first: it is never held up, and a frame of the own queue begins only in a cycle in which the wire is
//! between frames and nothing of it is stored; what comes meanwhile is stored. An own frame that finds its queue half
//! full is dropped whole, as a switch would do, and counted with `overflow`: the pulses of the receive side pass, those
//! of the block follow in a cycle in which there is none.
//!
//! A beat a cycle; one cycle of latency on an idle port. 2^A beats each way; frames have at most 2^(A-1).
//!
//! Assumes: `own` comes without pauses within a frame; `m_axis.tready` is constant 1.
use crate::prelude::*;

/// The block, for beats of `W` bits = `K` bytes.
#[derive(LogicBlock)]
pub struct ReturnPath<const W: usize, const K: usize, const A: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Frames from the wire; always ready.
    pub s_axis: AxisIn<W, K>,
    /// Frames to the own address; always ready.
    pub own: AxisIn<W, K>,
    /// All frames.
    pub m_axis: AxisOut<W, K>,
    /// The receive side dropped a frame for want of room.
    pub overflow: Signal<In, Bit>,
    /// It, or this block, did.
    pub overflows: Signal<Out, Bit>,
    wire_data: Fifo<Bits<W>, A>,
    wire_keep: Fifo<Bits<K>, A>,
    wire_ends: Fifo<Bits<2>, A>,
    own_data: Fifo<Bits<W>, A>,
    own_keep: Fifo<Bits<K>, A>,
    own_ends: Fifo<Bits<2>, A>,
    /// The next beat of `own` goes on with a frame, which is taken if `taking`.
    entering: Reg<Bit>,
    taking: Reg<Bit>,
    /// A frame of the wire, or an own one, is leaving.
    open: Reg<Bit>,
    returning: Reg<Bit>,
    dropped: Reg<Bits<8>>,
    valid: Reg<Bit>,
    data: Dff<Bits<W>>,
    keep: Dff<Bits<K>>,
    ends: Dff<Bits<2>>,
    stored: Signal<Local, Bit>,
    begins: Signal<Local, Bit>,
    own_turn: Signal<Local, Bit>,
    room: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    drop: Signal<Local, Bit>,
    arriving: Signal<Local, Bits<2>>,
    out_ends: Signal<Local, Bits<2>>,
    out_valid: Signal<Local, Bit>,
    half: Constant<Bits<16>>,
}

impl<const W: usize, const K: usize, const A: usize> Default for ReturnPath<W, K, A> {
    fn default() -> Self {
        Self {
            clock: ClkRst::default(),
            s_axis: AxisIn::default(),
            own: AxisIn::default(),
            m_axis: AxisOut::default(),
            overflow: Signal::default(),
            overflows: Signal::default(),
            wire_data: Fifo::default(),
            wire_keep: Fifo::default(),
            wire_ends: Fifo::default(),
            own_data: Fifo::default(),
            own_keep: Fifo::default(),
            own_ends: Fifo::default(),
            entering: Reg::default(),
            taking: Reg::default(),
            open: Reg::default(),
            returning: Reg::default(),
            dropped: Reg::default(),
            valid: Reg::default(),
            data: Dff::default(),
            keep: Dff::default(),
            ends: Dff::default(),
            stored: Signal::default(),
            begins: Signal::default(),
            own_turn: Signal::default(),
            room: Signal::default(),
            take: Signal::default(),
            drop: Signal::default(),
            arriving: Signal::default(),
            out_ends: Signal::default(),
            out_valid: Signal::default(),
            half: Constant::new((1u64 << (A - 1)).to_bits()),
        }
    }
}

impl<const W: usize, const K: usize, const A: usize> Logic for ReturnPath<W, K, A> {
    describe!(
        "return_path",
        format!("w{W}_{A}"),
        "Lets own frames in among those from the wire."
    );

    #[hdl_gen]
    fn update(&mut self) {
        clock!(
            self, clock, wire_data, wire_keep, wire_ends, own_data, own_keep, own_ends
        );
        dff_setup!(
            self, clock, entering, taking, open, returning, dropped, valid, data, keep, ends
        );

        // own frames in, whole or not at all
        self.own.tready.next = true;
        self.room.next = !(self.own_ends.level.val() & !(self.half.val() - 1)).any();
        self.take.next = self.own.tvalid.val()
            & ((self.entering.q.val() & self.taking.q.val())
                | (!self.entering.q.val() & self.room.val()));
        self.drop.next = self.own.tvalid.val() & !self.entering.q.val() & !self.room.val();
        if self.own.tvalid.val() {
            self.entering.d.next = !self.own.tlast.val();
            self.taking.d.next = self.take.val();
        }
        self.own_data.s.valid.next = self.take.val();
        self.own_keep.s.valid.next = self.take.val();
        self.own_ends.s.valid.next = self.take.val();
        self.own_data.s.payload.next = self.own.tdata.val();
        self.own_keep.s.payload.next = self.own.tkeep.val();
        self.own_ends.s.payload.next = bits::<2>(0)
            .replace_bit(0, self.own.tlast.val())
            .replace_bit(1, self.own.tuser.val());
        self.overflows.next = self.overflow.val() | self.dropped.q.val().any();
        if self.drop.val() & (self.overflow.val() | !self.dropped.q.val().any()) {
            self.dropped.d.next = self.dropped.q.val() + 1;
        } else if !self.drop.val() & !self.overflow.val() & self.dropped.q.val().any() {
            self.dropped.d.next = self.dropped.q.val() - 1;
        }

        // whose beat leaves
        self.s_axis.tready.next = true;
        self.stored.next = self.wire_ends.m.valid.val();
        self.begins.next = !self.open.q.val()
            & !self.stored.val()
            & !self.s_axis.tvalid.val()
            & self.own_ends.m.valid.val();
        self.own_turn.next = self.returning.q.val() | self.begins.val();
        self.arriving.next = bits::<2>(0)
            .replace_bit(0, self.s_axis.tlast.val())
            .replace_bit(1, self.s_axis.tuser.val());
        self.wire_data.s.payload.next = self.s_axis.tdata.val();
        self.wire_keep.s.payload.next = self.s_axis.tkeep.val();
        self.wire_ends.s.payload.next = self.arriving.val();
        self.wire_data.s.valid.next =
            self.s_axis.tvalid.val() & (self.own_turn.val() | self.stored.val());
        self.wire_keep.s.valid.next =
            self.s_axis.tvalid.val() & (self.own_turn.val() | self.stored.val());
        self.wire_ends.s.valid.next =
            self.s_axis.tvalid.val() & (self.own_turn.val() | self.stored.val());
        self.own_data.m.ready.next = self.own_turn.val();
        self.own_keep.m.ready.next = self.own_turn.val();
        self.own_ends.m.ready.next = self.own_turn.val();
        self.wire_data.m.ready.next = !self.own_turn.val();
        self.wire_keep.m.ready.next = !self.own_turn.val();
        self.wire_ends.m.ready.next = !self.own_turn.val();

        self.data.d.next = self.s_axis.tdata.val();
        self.keep.d.next = self.s_axis.tkeep.val();
        self.out_ends.next = self.arriving.val();
        self.out_valid.next = self.s_axis.tvalid.val();
        if self.own_turn.val() {
            self.data.d.next = self.own_data.m.payload.val();
            self.keep.d.next = self.own_keep.m.payload.val();
            self.out_ends.next = self.own_ends.m.payload.val();
            self.out_valid.next = self.own_ends.m.valid.val();
        } else if self.stored.val() {
            self.data.d.next = self.wire_data.m.payload.val();
            self.keep.d.next = self.wire_keep.m.payload.val();
            self.out_ends.next = self.wire_ends.m.payload.val();
            self.out_valid.next = self.wire_ends.m.valid.val();
        }
        self.ends.d.next = self.out_ends.val();
        self.valid.d.next = self.out_valid.val();
        if self.out_valid.val() {
            self.returning.d.next = self.own_turn.val() & !self.out_ends.val().get_bit(0);
            self.open.d.next = !self.own_turn.val() & !self.out_ends.val().get_bit(0);
        }
        self.m_axis.tvalid.next = self.valid.q.val();
        self.m_axis.tdata.next = self.data.q.val();
        self.m_axis.tkeep.next = self.keep.q.val();
        self.m_axis.tlast.next = self.ends.q.val().get_bit(0);
        self.m_axis.tuser.next = self.ends.q.val().get_bit(1);
    }
}
