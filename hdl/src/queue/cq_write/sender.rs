//! Sender: CQEs as write bursts.
//!
//! A CQE is one burst of 256 / W beats, of half a beat at W = 512, in order of address: its last 8 bytes are never ahead
//! of the rest. Rate: a beat a cycle. Latency: 1 cycle.
use super::types::CqEntry;
use crate::bus::types::WriteCmd;
use crate::prelude::*;

/// Sender on a data path of `W` bits = `K` bytes.
#[derive(LogicBlock)]
pub struct CqSender<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// CQEs.
    pub s: StreamIn<CqEntry>,
    /// Bursts for `dma_write`.
    pub write: StreamOut<WriteCmd>,
    /// Their beats.
    pub beats: WriteBeatOut<W, K>,

    commands: Skid<WriteCmd>,
    data: SkidRam<Bits<W>>,
    /// Last beat; upper half of the beat.
    marks: Skid<Bits<2>>,
    /// Beat of the CQE.
    index: Reg<Bits<2>>,
    both_halves: Signal<Local, Bits<512>>,
    room: Signal<Local, Bit>,
    first: Signal<Local, Bit>,
    last: Signal<Local, Bit>,
    pushes: Signal<Local, Bit>,

    last_index: Constant<Bits<2>>,
    log_beat: Constant<Bits<4>>,
    lower: Constant<Bits<K>>,
    upper: Constant<Bits<K>>,
}

impl<const W: usize, const K: usize> Default for CqSender<W, K> {
    fn default() -> Self {
        assert!(
            W == 8 * K && (64..=512).contains(&W) && W.is_power_of_two(),
            "data path of {W} bits and {K} bytes: 64, 128, 256 or 512 bits are expected"
        );
        let beats = (256 / W as u64).max(1);
        let lanes = |upper: bool| {
            let lane = |mask: Bits<K>, i| mask.replace_bit(i, K < 64 || (i >= 32) == upper);
            Constant::new((0..K).fold(Bits::default(), lane))
        };
        Self {
            clock: ClkRst::default(),
            s: StreamIn::default(),
            write: StreamOut::default(),
            beats: WriteBeatOut::default(),
            commands: Skid::default(),
            data: SkidRam::default(),
            marks: Skid::default(),
            index: Reg::default(),
            both_halves: Signal::default(),
            room: Signal::default(),
            first: Signal::default(),
            last: Signal::default(),
            pushes: Signal::default(),
            last_index: Constant::new((beats - 1).to_bits()),
            log_beat: Constant::new(u64::from(W.ilog2()).to_bits()),
            lower: lanes(false),
            upper: lanes(true),
        }
    }
}

impl<const W: usize, const K: usize> Logic for CqSender<W, K> {
    describe!("cq_sender", format!("w{W}"), "Writes CQEs to host memory.");

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, commands, data, marks);
        dff_setup!(self, clock, index);

        self.first.next = self.index.q.val() == 0;
        self.last.next = self.index.q.val() == self.last_index.val();
        self.room.next = self.data.s.ready.val()
            & self.marks.s.ready.val()
            & (self.commands.s.ready.val() | !self.first.val());
        self.pushes.next = self.s.valid.val() & self.room.val();
        if self.pushes.val() {
            self.index.d.next = self.index.q.val() + 1;
            if self.last.val() {
                self.index.d.next = bits::<2>(0);
            }
        }
        self.s.ready.next = self.room.val() & self.last.val();

        self.commands.s.valid.next = self.pushes.val() & self.first.val();
        self.commands.s.payload.next.addr = self.s.payload.val().addr;
        self.commands.s.payload.next.len = bit_cast::<8, 2>(self.last_index.val());
        self.both_halves.next = bit_cast::<512, 256>(self.s.payload.val().cqe)
            | (bit_cast::<512, 256>(self.s.payload.val().cqe) << 256);
        self.data.s.valid.next = self.pushes.val();
        self.data.s.payload.next = (self.both_halves.val()
            >> (bit_cast::<10, 2>(self.index.q.val()) << self.log_beat.val()))
        .get_bits::<W>(0);
        self.marks.s.valid.next = self.pushes.val();
        self.marks.s.payload.next = bits::<2>(0)
            .replace_bit(0, self.last.val())
            .replace_bit(1, self.s.payload.val().addr.get_bit(5));

        StreamOut::<WriteCmd>::link(&mut self.write, &mut self.commands.m);
        self.beats.data.next = self.data.m.payload.val();
        self.beats.last.next = self.marks.m.payload.val().get_bit(0);
        self.beats.strb.next = self.lower.val();
        if self.marks.m.payload.val().get_bit(1) {
            self.beats.strb.next = self.upper.val();
        }
        self.beats.valid.next = self.data.m.valid.val();
        self.data.m.ready.next = self.beats.ready.val();
        self.marks.m.ready.next = self.beats.ready.val();
    }
}
