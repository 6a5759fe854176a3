//! Sender: EQEs as write bursts.
//!
//! An EQE is one burst: two beats at W = 64, else a beat with 16 of its bytes set, in order of address. Rate: a beat a
//! cycle. Latency: 1 cycle.
use super::types::EqEntry;
use crate::bus::types::WriteCmd;
use crate::prelude::*;

/// Sender on a data path of `W` bits = `K` bytes.
#[derive(LogicBlock)]
pub struct EqSender<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// EQEs.
    pub s: StreamIn<EqEntry>,
    /// Bursts for `dma_write`.
    pub write: StreamOut<WriteCmd>,
    /// Their beats.
    pub beats: WriteBeatOut<W, K>,

    commands: Skid<WriteCmd>,
    data: SkidRam<Bits<W>>,
    /// Last beat; place of the EQE in its beat in units of 16 bytes.
    marks: Skid<Bits<3>>,
    /// The second beat of two is next.
    second: Reg<Bit>,
    quarters: Signal<Local, Bits<512>>,
    room: Signal<Local, Bit>,
    last: Signal<Local, Bit>,
    pushes: Signal<Local, Bit>,

    last_beat: Constant<Bits<8>>,
    one_beat: Constant<Bit>,
    lanes: [Constant<Bits<K>>; 4],
}

impl<const W: usize, const K: usize> Default for EqSender<W, K> {
    fn default() -> Self {
        assert!(
            W == 8 * K && (64..=512).contains(&W) && W.is_power_of_two(),
            "data path of {W} bits and {K} bytes: 64, 128, 256 or 512 bits are expected"
        );
        let quarter = |q: usize| {
            let lane = |mask: Bits<K>, i| mask.replace_bit(i, K < 16 || i / 16 == q % (K / 16));
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
            second: Reg::default(),
            quarters: Signal::default(),
            room: Signal::default(),
            last: Signal::default(),
            pushes: Signal::default(),
            last_beat: Constant::new(((128 / W as u64).max(1) - 1).to_bits()),
            one_beat: Constant::new(W >= 128),
            lanes: std::array::from_fn(quarter),
        }
    }
}

impl<const W: usize, const K: usize> Logic for EqSender<W, K> {
    describe!("eq_sender", format!("w{W}"), "Writes EQEs to host memory.");

    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, commands, data, marks);
        dff_setup!(self, clock, second);

        self.last.next = self.one_beat.val() | self.second.q.val();
        self.room.next = self.data.s.ready.val()
            & self.marks.s.ready.val()
            & (self.commands.s.ready.val() | self.second.q.val());
        self.pushes.next = self.s.valid.val() & self.room.val();
        if self.pushes.val() {
            self.second.d.next = !self.last.val();
        }
        self.s.ready.next = self.room.val() & self.last.val();

        self.commands.s.valid.next = self.pushes.val() & !self.second.q.val();
        self.commands.s.payload.next.addr = self.s.payload.val().addr;
        self.commands.s.payload.next.len = self.last_beat.val();
        self.quarters.next = bit_cast::<512, 128>(self.s.payload.val().eqe)
            | (bit_cast::<512, 128>(self.s.payload.val().eqe) << 128)
            | (bit_cast::<512, 128>(self.s.payload.val().eqe) << 256)
            | (bit_cast::<512, 128>(self.s.payload.val().eqe) << 384);
        self.data.s.valid.next = self.pushes.val();
        self.data.s.payload.next = self.quarters.val().get_bits::<W>(0);
        if self.second.q.val() {
            self.data.s.payload.next = (self.quarters.val() >> 64).get_bits::<W>(0);
        }
        self.marks.s.valid.next = self.pushes.val();
        self.marks.s.payload.next = bits::<3>(0)
            .replace_bit(0, self.last.val())
            .replace_bit(1, self.s.payload.val().addr.get_bit(4))
            .replace_bit(2, self.s.payload.val().addr.get_bit(5));

        StreamOut::<WriteCmd>::link(&mut self.write, &mut self.commands.m);
        self.beats.data.next = self.data.m.payload.val();
        self.beats.last.next = self.marks.m.payload.val().get_bit(0);
        self.beats.strb.next = self.lanes[0].val();
        if self.marks.m.payload.val().get_bits::<2>(1) == 1 {
            self.beats.strb.next = self.lanes[1].val();
        } else if self.marks.m.payload.val().get_bits::<2>(1) == 2 {
            self.beats.strb.next = self.lanes[2].val();
        } else if self.marks.m.payload.val().get_bits::<2>(1) == 3 {
            self.beats.strb.next = self.lanes[3].val();
        }
        self.beats.valid.next = self.data.m.valid.val();
        self.data.m.ready.next = self.beats.ready.val();
        self.marks.m.ready.next = self.beats.ready.val();
    }
}
