//! Computes the ICRC of frames as they pass and writes it behind the pad (IB1 7.8.1, A17 CA17-22).
//!
//! ```text
//! cycle 0       1         2, 3        4, 5          6
//! beat ─► mask ─► CRC over whole ─► take back ─► write, ─► FIFO ─► m_axis
//!   │             beats             the zeros    tkeep
//!   └──────────── delay ─────────────────────────┘
//! ```
//!
//! The CRC runs over whole beats in which everything that is not covered is 0; the zeros behind the covered bytes are
//! then taken back: two of them by the CRC itself, since their number is 2 modulo 4, the rest by constant matrices, for
//! which the CRC has its register in their coordinates. The assembler left room for the ICRC, so no beat is added. The pipeline never
//! stalls: a beat enters only when there is room in the FIFO behind it. A beat a cycle, 8 cycles of latency; the output
//! pauses within a frame only if the input does.
use ferroce_proto::wire::eth;

use super::icrc_mask::IcrcMask;
use crate::bus::frame::FrameBeat;
use crate::cell::count::one_less;
use crate::cell::crc::{Crc, Map};
use crate::cell::crc_undo::CrcUndo;
use crate::cell::delay::Delay;
use crate::egress::types::FrameMark;
use crate::prelude::*;

/// The block.
#[derive(Clone, Debug, Block)]
#[block(check)]
pub struct IcrcInsert<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Frames.
    pub s: FrameIn<W>,
    /// Frames with their ICRC, without frame check sequence, not padded to the Ethernet minimum.
    pub m_axis: AxisOut<W, K>,
    /// With each beat: what its frame is.
    pub mark: Signal<Out, FrameMark>,
    /// A frame is complete; one cycle.
    pub frame: Signal<Out, Bit>,
    /// Its bytes.
    pub frame_bytes: Signal<Out, Bits<13>>,
    /// It is an acknowledgement.
    pub frame_ack: Signal<Out, Bit>,
    used: Reg<Bits<6>>,
    room: Reg<Bit>,
    entered: Reg<Bit>,
    data: Dff<Bits<W>>,
    beat: Dff<FrameBeat>,
    mask: IcrcMask<W, K>,
    valid_1: Reg<Bit>,
    beat_1: Dff<FrameBeat>,
    #[init(Crc::seen_through(0, Map::undo_zero_bytes(TAIL).then(&CrcUndo::coordinates())))]
    crc: Crc<W>,
    beat_line: Delay<FrameBeat, 2>,
    undo: CrcUndo,
    beat_late: Delay<FrameBeat, 2>,
    valid_line: Delay<Bit, 4>,
    data_line: Delay<Bits<W>, 5>,
    write: IcrcWrite<W, K>,
    written: Reg<Bit>,
    queue: Fifo<Bits<W>, 5>,
    keeps: Fifo<Bits<K>, 5>,
    mark_q: Dff<FrameMark>,
    marks: Fifo<FrameMark, 5>,
    frame_q: Reg<Bit>,
    frame_bytes_q: Dff<Bits<13>>,
    frame_ack_q: Reg<Bit>,
}

impl<const W: usize, const K: usize> IcrcInsert<W, K> {
    const BYTES: u64 = K as u64;
    const LAST_LANE: usize = K - 1;
}

/// Bytes of a frame beyond whole words, all of 4 bytes.
const TAIL: usize = eth::LEN % 4;

/// Beats that may be between `s` and `m_axis` for one more to enter; two more may before the count shows.
const MOST: u64 = 29;

impl<const W: usize, const K: usize> IcrcInsert<W, K> {
    fn check() {
        assert!(
            W == 8 * K && K.is_power_of_two() && (8..=64).contains(&K),
            "no ICRC for beats of {W} bits = {K} bytes: 8, 16, 32 or 64 bytes are expected"
        );
    }
}

impl<const W: usize, const K: usize> Logic for IcrcInsert<W, K> {
    describe!(
        "icrc_insert",
        format!("w{W}"),
        "Computes and writes the ICRC of frames, a beat a cycle."
    );

    #[kernel]
    fn update(&mut self) {
        // Room.
        let enter = s.valid & room;
        let leave = queue.m.valid & m_axis.tready;
        if enter & !leave {
            used = used + 1;
        } else if !enter & leave {
            used = one_less(used);
        }
        room = used < MOST;
        s.ready = room;

        // Cycle 0: mask.
        entered = enter;
        data = s.data;
        beat = s.beat;
        mask.data = data;
        copy!(mask <= beat; index, ipv6, vlan, whole, partial, tail);
        valid_1 = entered;
        beat_1 = beat;
        data_line.d = data;

        // Cycle 1: CRC. A beat that holds the end of the ICRC alone leaves the register to it.
        crc.valid = valid_1 & (beat_1.whole | beat_1.partial);
        crc.first = beat_1.index == 0;
        crc.data = mask.masked;
        beat_line.d = beat_1;
        valid_line.d = valid_1;

        // Cycle 3: take back the zeros.
        undo.register = crc.register;
        let filled = bits::<7>(Self::BYTES) - beat_line.q.tail.resize::<7>();
        undo.words = filled.slice::<4>(2);
        beat_late.d = beat_line.q;

        // Cycle 5: write.
        write.data = data_line.q;
        write.crc = undo.crc;
        write.partial = beat_late.q.partial;
        write.icrc_in_next_beat = !(beat_late.q.whole | beat_late.q.partial);
        copy!(write <= beat_late.q; tail, last, bytes);
        copy!(mark_q <= beat_late.q; packet_class, ack, cnp, response);
        mark_q.request = !beat_late.q.response & !beat_late.q.cnp;
        written = valid_line.q;
        let ends = valid_line.q & beat_late.q.last;
        frame_q = ends;
        frame_bytes_q = beat_late.q.length;
        frame_ack_q = ends & beat_late.q.ack;
        frame = frame_q;
        frame_bytes = frame_bytes_q;
        frame_ack = frame_ack_q;

        // Cycle 6: the queues take and give in the same cycles.
        queue.s.payload = write.sealed;
        queue.s.valid = written;
        keeps.s.payload = write.keep;
        keeps.s.valid = written;
        marks.s.payload = mark_q;
        marks.s.valid = written;
        marks.m.ready = m_axis.tready;
        mark = marks.m.payload;
        queue.m.ready = m_axis.tready;
        keeps.m.ready = m_axis.tready;
        m_axis.tdata = queue.m.payload;
        m_axis.tkeep = keeps.m.payload;
        // The last beat is never full: a frame is 2 modulo 4 bytes long.
        m_axis.tlast = !keeps.m.payload.bit(Self::LAST_LANE);
        m_axis.tuser = false;
        m_axis.tvalid = queue.m.valid;
    }
}

/// Writes the ICRC into a beat; one cycle, three LUT levels.
#[derive(Clone, Debug, Block)]
struct IcrcWrite<const W: usize, const K: usize> {
    pub clock: ClkRst,
    pub data: Signal<In, Bits<W>>,
    pub crc: Signal<In, Bits<32>>,
    /// The ICRC begins at lane `tail`, which is 2 modulo 4.
    pub partial: Signal<In, Bit>,
    pub tail: Signal<In, Bits<6>>,
    /// Its last two bytes are at lanes 0 and 1.
    pub icrc_in_next_beat: Signal<In, Bit>,
    pub last: Signal<In, Bit>,
    pub bytes: Signal<In, Bits<6>>,
    pub sealed: Signal<Out, Bits<W>>,
    pub keep: Signal<Out, Bits<K>>,
}

impl<const W: usize, const K: usize> Logic for IcrcWrite<W, K> {
    describe!(
        "icrc_write",
        format!("w{W}"),
        "Writes the ICRC, least significant byte first, and says which bytes are the frame's."
    );

    fn update(&mut self) {
        if !self.clock.clk.pos_edge() {
            return;
        }
        let tail = self.tail.val().index();
        let lanes = match (self.partial.val(), self.icrc_in_next_beat.val()) {
            (true, _) => tail..(tail + 4).min(K),
            (_, true) => 0..2,
            _ => 0..0,
        };
        let mut sealed = self.data.val();
        for lane in lanes {
            let byte = self.crc.val().get_bits::<8>(8 * ((lane + 2) % 4));
            sealed.set_bits::<8>(8 * lane, byte | sealed.get_bits::<8>(8 * lane));
        }
        self.sealed.next = sealed;
        let mut keep: Bits<K> = Default::default();
        for lane in 0..K {
            let inside = !self.last.val() || lane < self.bytes.val().index();
            keep = keep.replace_bit(lane, inside);
        }
        self.keep.next = keep;
    }

    fn connect(&mut self) {
        self.sealed.connect();
        self.keep.connect();
    }

    fn hdl(&self) -> Verilog {
        let (k, w) = (K - 1, W - 1);
        Verilog::Custom(format!(
            "wire [{k}:0] lanes = ({{{K}{{partial}}}} & ({K}'hf << tail)) | ({{{K}{{icrc_in_next_beat}}}} & {K}'h3);\n\
             // Lane 2 modulo 4 holds byte 0 of the ICRC.\n\
             wire [{w}:0] everywhere = {{{words}{{crc[15:0], crc[31:16]}}}};\n\
             integer lane;\n\
             always @(posedge clk) begin\n    \
             for (lane = 0; lane < {K}; lane = lane + 1)\n        \
             sealed[8*lane +: 8] <= data[8*lane +: 8] | ({{8{{lanes[lane]}}}} & everywhere[8*lane +: 8]);\n    \
             keep <= {{{K}{{!last}}}} | ~({{{K}{{1'b1}}}} << bytes);\n\
             end\n",
            words = K / 4,
        ))
    }
}
