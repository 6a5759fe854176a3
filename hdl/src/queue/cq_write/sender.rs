//! Sender: CQEs as write bursts.
//!
//! A CQE is one burst of 256 / W beats, of half a beat at W = 512, in order of address: its last 8 bytes are never ahead
//! of the rest. Rate: a beat a cycle. Latency: 1 cycle.
use super::types::CqEntry;
use crate::bus::types::WriteCmd;
use crate::prelude::*;

/// Sender on a data path of `W` bits = `K` bytes.
#[derive(Block)]
#[block(check)]
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

    #[init(Constant::new(((256 / W as u64).max(1) - 1).to_bits()))]
    last_index: Constant<Bits<2>>,
    #[init(Constant::new(u64::from(W.ilog2()).to_bits()))]
    log_beat: Constant<Bits<4>>,
    #[init(Self::lanes(false))]
    lower: Constant<Bits<K>>,
    #[init(Self::lanes(true))]
    upper: Constant<Bits<K>>,
}

impl<const W: usize, const K: usize> CqSender<W, K> {
    fn check() {
        assert!(
            W == 8 * K && (64..=512).contains(&W) && W.is_power_of_two(),
            "data path of {W} bits and {K} bytes: 64, 128, 256 or 512 bits are expected"
        );
    }

    /// Strobes of a CQE in the upper or lower half of a beat.
    fn lanes(upper: bool) -> Constant<Bits<K>> {
        let lane = |mask: Bits<K>, i| mask.replace_bit(i, K < 64 || (i >= 32) == upper);
        Constant::new((0..K).fold(Bits::default(), lane))
    }
}

impl<const W: usize, const K: usize> Logic for CqSender<W, K> {
    describe!("cq_sender", format!("w{W}"), "Writes CQEs to host memory.");

    #[kernel]
    fn update(&mut self) {
        let first = index == 0;
        let last = index == last_index;
        let room = data.s.ready & marks.s.ready & (commands.s.ready | !first);
        let pushes = s.valid & room;
        if pushes {
            index = index + 1;
            if last {
                index = bits::<2>(0);
            }
        }
        s.ready = room & last;

        commands.s.valid = pushes & first;
        commands.s.payload.addr = s.payload.addr;
        commands.s.payload.len = last_index.resize::<8>();
        let both_halves = s.payload.cqe.resize::<512>() | (s.payload.cqe.resize::<512>() << 256);
        data.s.valid = pushes;
        data.s.payload = (both_halves >> (index.resize::<10>() << log_beat)).low::<W>();
        marks.s.valid = pushes;
        marks.s.payload = bits::<2>(0)
            .replace_bit(0, last)
            .replace_bit(1, s.payload.addr.bit(5));

        forward!(write <= commands.m);
        beats.data = data.m.payload;
        beats.last = marks.m.payload.bit(0);
        beats.strb = lower;
        if marks.m.payload.bit(1) {
            beats.strb = upper;
        }
        beats.valid = data.m.valid;
        data.m.ready = beats.ready;
        marks.m.ready = beats.ready;
    }
}
