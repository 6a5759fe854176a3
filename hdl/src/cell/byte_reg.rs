//! Register of which each byte has its own enable.
use crate::prelude::*;

/// Register for beats of `W` bits = `K` bytes.
#[derive(Clone, Debug, Block)]
#[block(check)]
pub struct ByteReg<const W: usize, const K: usize> {
    /// Clock; the reset is not used.
    pub clock: ClkRst,
    /// Bytes to take in this cycle.
    pub lanes: Signal<In, Bits<K>>,
    /// The beat they are of.
    pub data: Signal<In, Bits<W>>,
    /// What was taken last, byte by byte.
    pub kept: Signal<Out, Bits<W>>,
}

impl<const W: usize, const K: usize> ByteReg<W, K> {
    fn check() {
        assert!(
            W == 8 * K,
            "beats of {W} bits have {} bytes, not {K}",
            W / 8
        );
    }
}

impl<const W: usize, const K: usize> Logic for ByteReg<W, K> {
    describe!(
        "byte_reg",
        format!("{W}"),
        "Register of which each byte has its own enable."
    );

    fn update(&mut self) {
        if self.clock.clk.pos_edge() {
            let mut kept = self.kept.val();
            for i in (0..K).filter(|&i| self.lanes.val().get_bit(i)) {
                kept.set_bits::<8>(8 * i, self.data.val().get_bits::<8>(8 * i));
            }
            self.kept.next = kept;
        }
    }

    fn connect(&mut self) {
        self.kept.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "integer i;\n\
             always @(posedge clk) begin\n    \
                 for (i = 0; i < {K}; i = i + 1)\n        \
                     if (lanes[i]) kept[8*i +: 8] <= data[8*i +: 8];\n\
             end\n"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_kept() {
        let mut u = ByteReg::<16, 2>::default();
        u.connect_all();
        for (lanes, data, kept) in [
            (3u64, 0x1122u64, 0x1122u64),
            (2, 0x3344, 0x3322),
            (0, 0x5566, 0x3322),
        ] {
            u.lanes.next = lanes.to_bits();
            u.data.next = data.to_bits();
            for clk in [false, true] {
                u.clock.drive(clk, false);
                assert!(simulate(&mut u, 50));
            }
            assert_eq!(u.kept.val(), kept);
        }
    }
}
