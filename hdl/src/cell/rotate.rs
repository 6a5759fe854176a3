//! Byte rotator: moves every byte of a beat up by the same number of lanes, round the end.
//!
//! One register stage behind log4(K) levels of 4:1 multiplexers (3 levels of LUT6 at 64 bytes). Output lane
//! `(i + amount) mod K` shows input lane `i` of the last cycle in which `enable` was 1.
use crate::prelude::*;

/// Stages of 4:1 multiplexers: enough for 64 bytes.
const STAGES: usize = 3;

/// Rotator for beats of `W` bits = `K` bytes, K a power of two up to 64.
#[derive(Clone, Debug, LogicBlock)]
pub struct Rotate<const W: usize, const K: usize> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// The beat.
    pub data: Signal<In, Bits<W>>,
    /// Lanes to move up, below K.
    pub amount: Signal<In, Bits<6>>,
    /// Takes the beat in this cycle.
    pub enable: Signal<In, Bit>,
    /// The rotated beat, one cycle later.
    pub rotated: Signal<Out, Bits<W>>,
    out: Dff<Bits<W>>,
    /// The beat before each stage and behind the last.
    stage: [Signal<Local, Bits<W>>; STAGES + 1],
    /// Bits by which stage `i` moves up for digit `j`: entry `3 * i + j - 1`; and what leaves at the top comes in below.
    up: [Constant<Bits<10>>; 3 * STAGES],
    down: [Constant<Bits<10>>; 3 * STAGES],
}

impl<const W: usize, const K: usize> Default for Rotate<W, K> {
    fn default() -> Self {
        assert!(
            W == 8 * K && K.is_power_of_two() && K <= 64,
            "no rotator for {W} bits = {K} bytes"
        );
        let up = |i: usize| 8 * (((1 + i % 3) << (2 * (i / 3))) % K);
        Self {
            clock: ClkRst::default(),
            data: Signal::default(),
            amount: Signal::default(),
            enable: Signal::default(),
            rotated: Signal::default(),
            out: Dff::default(),
            stage: Default::default(),
            up: std::array::from_fn(|i| Constant::new((up(i) as u64).to_bits())),
            down: std::array::from_fn(|i| Constant::new(((W - up(i)) as u64).to_bits())),
        }
    }
}

impl<const W: usize, const K: usize> Logic for Rotate<W, K> {
    describe!(
        "rotate",
        format!("{W}"),
        "Rotates the bytes of a beat upwards."
    );

    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, out);
        self.stage[0].next = self.data.val();
        for i in 0..STAGES {
            self.stage[i + 1].next = self.stage[i].val();
            match self.amount.val().get_bits::<2>(2 * i).index() {
                1 => {
                    self.stage[i + 1].next = (self.stage[i].val() << self.up[3 * i].val())
                        | (self.stage[i].val() >> self.down[3 * i].val());
                }
                2 => {
                    self.stage[i + 1].next = (self.stage[i].val() << self.up[3 * i + 1].val())
                        | (self.stage[i].val() >> self.down[3 * i + 1].val());
                }
                3 => {
                    self.stage[i + 1].next = (self.stage[i].val() << self.up[3 * i + 2].val())
                        | (self.stage[i].val() >> self.down[3 * i + 2].val());
                }
                _ => {}
            }
        }
        if self.enable.val() {
            self.out.d.next = self.stage[3].val();
        }
        self.rotated.next = self.out.q.val();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const W: usize, const K: usize>() {
        let mut u = Rotate::<W, K>::default();
        u.connect_all();
        let mut beat: Bits<W> = Default::default();
        for i in 0..K {
            beat.set_bits::<8>(8 * i, (0x40 + i as u64).to_bits());
        }
        u.data.next = beat;
        for amount in 0..K {
            u.amount.next = (amount as u64).to_bits();
            u.enable.next = true;
            for clk in [false, true] {
                u.clock.drive(clk, false);
                assert!(simulate(&mut u, 50));
            }
            u.enable.next = false;
            for i in 0..K {
                let lane = u.rotated.val().get_bits::<8>(8 * ((i + amount) % K));
                assert_eq!(lane, 0x40 + i as u64, "lane {i} moved by {amount} of {K}");
            }
        }
    }

    #[test]
    fn every_amount() {
        check::<512, 64>();
        check::<64, 8>();
    }
}
