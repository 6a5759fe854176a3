//! Byte rotator: moves every byte of a beat up by the same number of lanes, round the end.
//!
//! One register stage behind log4(K) levels of 4:1 multiplexers: at 64 bytes 3 LUT6 a bit. Output lane
//! `(i + amount) mod K` shows input lane `i` of the last cycle in which `enable` was 1.
use crate::prelude::*;

/// Rotator for beats of `W` bits = `K` bytes, K a power of two up to 64.
#[derive(Clone, Debug, Block)]
#[block(check)]
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
}

impl<const W: usize, const K: usize> Rotate<W, K> {
    fn check() {
        assert!(
            W == 8 * K && K.is_power_of_two() && (2..=64).contains(&K),
            "no rotator for {W} bits = {K} bytes"
        );
    }
}

impl<const W: usize, const K: usize> Logic for Rotate<W, K> {
    describe!(
        "rotate",
        format!("{W}"),
        "Rotates the bytes of a beat upwards."
    );

    fn update(&mut self) {
        if self.clock.clk.pos_edge() && self.enable.val() {
            let (data, amount) = (self.data.val(), self.amount.val().index());
            let mut rotated = data;
            for i in 0..K {
                rotated.set_bits::<8>(8 * ((i + amount) % K), data.get_bits::<8>(8 * i));
            }
            self.rotated.next = rotated;
        }
    }

    fn connect(&mut self) {
        self.rotated.connect();
    }

    fn hdl(&self) -> Verilog {
        // A sum of products a stage. From a `case`, Yosys makes chains of 2:1 multiplexers that share their first half:
        // that seems cheap to the mapper, which then takes two LUTs for what is one.
        let (mut text, mut from) = (String::new(), "data".to_owned());
        for low in (0..K.ilog2()).step_by(2) {
            let bits = (K.ilog2() - low).min(2);
            let terms: Vec<_> = (0..1usize << bits)
                .map(|digit| {
                    let moved = match 8 * (digit << low) {
                        0 => from.clone(),
                        up => format!("{{{from}[{}:0], {from}[{}:{}]}}", W - 1 - up, W - 1, W - up),
                    };
                    let high = low + bits - 1;
                    format!("({{{W}{{amount[{high}:{low}] == {bits}'d{digit}}}}} & {moved})")
                })
                .collect();
            from = format!("by_{low}");
            text += &format!("wire [{}:0] {from} = {};\n", W - 1, terms.join("\n    | "));
        }
        text += &format!("always @(posedge clk) if (enable) rotated <= {from};\n");
        Verilog::Custom(text)
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
