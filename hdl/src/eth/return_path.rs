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
#[derive(Block)]
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
    wire_ends: Deep<Bits<2>, A>,
    #[init(Ram::new(Style::Block))]
    wire_data: Ram<Bits<W>, A>,
    #[init(Ram::new(Style::Block))]
    wire_keep: Ram<Bits<K>, A>,
    own_ends: Deep<Bits<2>, A>,
    #[init(Ram::new(Style::Block))]
    own_data: Ram<Bits<W>, A>,
    #[init(Ram::new(Style::Block))]
    own_keep: Ram<Bits<K>, A>,
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
    #[init(Constant::new((1u64 << (A - 1)).to_bits()))]
    half: Constant<Bits<16>>,
}

impl<const W: usize, const K: usize, const A: usize> Logic for ReturnPath<W, K, A> {
    describe!(
        "return_path",
        format!("w{W}_{A}"),
        "Lets own frames in among those from the wire."
    );

    #[kernel]
    fn update(&mut self) {
        // own frames in, whole or not at all
        own.tready = true;
        let room = !(own_ends.level & !(half - 1)).any();
        let take = own.tvalid & ((entering & taking) | (!entering & room));
        let drop = own.tvalid & !entering & !room;
        if own.tvalid {
            entering = !own.tlast;
            taking = take;
        }
        own_ends.s.valid = take;
        copy!(own_data <= own_ends; we, waddr, re, raddr);
        copy!(own_keep <= own_ends; we, waddr, re, raddr);
        own_data.wdata = own.tdata;
        own_keep.wdata = own.tkeep;
        own_ends.s.payload = bits::<2>(0)
            .replace_bit(0, own.tlast)
            .replace_bit(1, own.tuser);
        overflows = overflow | dropped.any();
        if drop & (overflow | !dropped.any()) {
            dropped = dropped + 1;
        } else if !drop & !overflow & dropped.any() {
            dropped = dropped - 1;
        }

        // whose beat leaves
        s_axis.tready = true;
        let stored = wire_ends.level.any();
        let begins = !open & !stored & !s_axis.tvalid & own_ends.m.valid;
        let own_turn = returning | begins;
        let arriving = bits::<2>(0)
            .replace_bit(0, s_axis.tlast)
            .replace_bit(1, s_axis.tuser);
        copy!(wire_data <= wire_ends; we, waddr, re, raddr);
        copy!(wire_keep <= wire_ends; we, waddr, re, raddr);
        wire_data.wdata = s_axis.tdata;
        wire_keep.wdata = s_axis.tkeep;
        wire_ends.s.payload = arriving;
        wire_ends.s.valid = s_axis.tvalid & (own_turn | stored);
        own_ends.m.ready = own_turn;
        wire_ends.m.ready = !own_turn;

        data = s_axis.tdata;
        keep = s_axis.tkeep;
        let mut out_ends = arriving;
        let mut out_valid = s_axis.tvalid;
        if own_turn {
            data = own_data.rdata;
            keep = own_keep.rdata;
            out_ends = own_ends.m.payload;
            out_valid = own_ends.m.valid;
        } else if stored {
            data = wire_data.rdata;
            keep = wire_keep.rdata;
            out_ends = wire_ends.m.payload;
            out_valid = wire_ends.m.valid;
        }
        ends = out_ends;
        valid = out_valid;
        if out_valid {
            returning = own_turn & !out_ends.bit(0);
            open = !own_turn & !out_ends.bit(0);
        }
        m_axis.tvalid = valid;
        m_axis.tdata = data;
        m_axis.tkeep = keep;
        m_axis.tlast = ends.bit(0);
        m_axis.tuser = ends.bit(1);
    }
}
