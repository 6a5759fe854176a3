//! Sender: EQEs as write bursts.
//!
//! An EQE is one burst: two beats at W = 64, else a beat with 16 of its bytes set, in order of address. Rate: a beat a
//! cycle. Latency: 1 cycle.
use super::types::EqEntry;
use crate::bus::types::WriteCmd;
use crate::prelude::*;

/// Sender on a data path of `W` bits = `K` bytes.
#[derive(Block)]
#[block(check)]
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

    #[init(Constant::new(((128 / W as u64).max(1) - 1).to_bits()))]
    last_beat: Constant<Bits<8>>,
    #[init(Constant::new(W >= 128))]
    one_beat: Constant<Bit>,
    #[init(std::array::from_fn(Self::quarter))]
    lanes: [Constant<Bits<K>>; 4],
}

impl<const W: usize, const K: usize> EqSender<W, K> {
    fn check() {
        assert!(
            W == 8 * K && (64..=512).contains(&W) && W.is_power_of_two(),
            "data path of {W} bits and {K} bytes: 64, 128, 256 or 512 bits are expected"
        );
    }

    /// Strobes of an EQE at place `q` of its four.
    fn quarter(q: usize) -> Constant<Bits<K>> {
        let lane = |mask: Bits<K>, i| mask.replace_bit(i, K < 16 || i / 16 == q % (K / 16));
        Constant::new((0..K).fold(Bits::default(), lane))
    }
}

impl<const W: usize, const K: usize> Logic for EqSender<W, K> {
    describe!("eq_sender", format!("w{W}"), "Writes EQEs to host memory.");

    #[kernel]
    fn update(&mut self) {
        let last = one_beat | second;
        let room = data.s.ready & marks.s.ready & (commands.s.ready | second);
        let pushes = s.valid & room;
        if pushes {
            second = !last;
        }
        s.ready = room & last;

        commands.s.valid = pushes & !second;
        commands.s.payload.addr = s.payload.addr;
        commands.s.payload.len = last_beat;
        let quarters = s.payload.eqe.resize::<512>()
            | (s.payload.eqe.resize::<512>() << 128)
            | (s.payload.eqe.resize::<512>() << 256)
            | (s.payload.eqe.resize::<512>() << 384);
        data.s.valid = pushes;
        data.s.payload = quarters.low::<W>();
        if second {
            data.s.payload = (quarters >> 64).low::<W>();
        }
        marks.s.valid = pushes;
        marks.s.payload = bits::<3>(0)
            .replace_bit(0, last)
            .replace_bit(1, s.payload.addr.bit(4))
            .replace_bit(2, s.payload.addr.bit(5));

        forward!(write <= commands.m);
        beats.data = data.m.payload;
        beats.last = marks.m.payload.bit(0);
        beats.strb = lanes[0];
        if marks.m.payload.slice::<2>(1) == 1 {
            beats.strb = lanes[1];
        } else if marks.m.payload.slice::<2>(1) == 2 {
            beats.strb = lanes[2];
        } else if marks.m.payload.slice::<2>(1) == 3 {
            beats.strb = lanes[3];
        }
        beats.valid = data.m.valid;
        data.m.ready = beats.ready;
        marks.m.ready = beats.ready;
    }
}
