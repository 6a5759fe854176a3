//! Where bytes go when a run of them moves from one lane to another, beat by beat.
//!
//! A run of `len` bytes begins at lane `source` of its first source beat and is to begin at lane `target`. Every source
//! beat is rotated by the same amount; its bytes then touch at most two neighbouring target beats: the lanes from
//! `start` up in the first, and what is left from lane 0 up in the second. [`Align`] has the numbers of a run,
//! [`LaneMasks`] the lanes of one source beat. Both are combinational.
use crate::bus::axi;
use crate::prelude::*;

use super::types::Fit;

/// Numbers of a run of bytes, for beats of `K` bytes.
#[derive(Clone, Debug, Block)]
#[block(check)]
pub struct Align<const K: usize> {
    /// Lane of the first byte in its source beat.
    pub source: Signal<In, Bits<6>>,
    /// Lane of the first byte in its target beat.
    pub target: Signal<In, Bits<6>>,
    /// Bytes, 1 to 4096.
    pub len: Signal<In, Bits<13>>,
    /// How its beats move.
    pub fit: Signal<Out, Fit>,
    /// Source beats less one.
    pub source_more: Signal<Out, Bits<10>>,
    /// Target beats less one.
    pub target_more: Signal<Out, Bits<10>>,
    /// Lane behind the last byte, 0 for a new beat, in the source.
    pub source_next: Signal<Out, Bits<6>>,
    /// The same in the target.
    pub target_next: Signal<Out, Bits<6>>,
    #[init(Constant::new(u64::from(axi::burst_size(K)).to_bits()))]
    log_beat: Constant<Bits<3>>,
    #[init(Constant::new((K as u64).to_bits()))]
    beat: Constant<Bits<7>>,
    #[init(Constant::new((K as u64 - 1).to_bits()))]
    lanes: Constant<Bits<6>>,
}

impl<const K: usize> Align<K> {
    fn check() {
        assert!(
            K.is_power_of_two() && K <= 64,
            "beats of {K} bytes: 1, 2, 4 ... 64"
        );
    }
}

impl<const K: usize> Logic for Align<K> {
    describe!(
        "align",
        format!("{K}"),
        "Numbers of a run of bytes that moves to another lane."
    );

    #[kernel]
    fn update(&mut self) {
        // Lanes by which bytes move up, counted from the beat before.
        let shift = (target.resize::<7>() - source.resize::<7>()) ^ beat;
        let rotation = shift.resize::<6>() & lanes;
        let source_last = source.resize::<14>() + len.resize::<14>() - 1;
        let target_last = target.resize::<14>() + len.resize::<14>() - 1;
        let last_lane = source_last.resize::<6>() & lanes;
        source_more = (source_last >> log_beat).resize::<10>();
        target_more = (target_last >> log_beat).resize::<10>();
        source_next = (source + len.resize::<6>()) & lanes;
        target_next = (target + len.resize::<6>()) & lanes;
        fit.rotation = rotation;
        fit.start = target;
        // behind the last lane of the source beat, or behind the last byte if it is in that beat
        let mut first_end = shift & ((beat << 1) - 1);
        if !source_more.any() {
            first_end = target.resize::<7>() + len.resize::<7>();
        }
        fit.first_end = first_end;
        fit.last_end = rotation.resize::<7>() + last_lane.resize::<7>() + 1;
    }
}

/// Lanes of one rotated source beat, for beats of `K` bytes.
///
/// Lanes are compared in two digits, eights and ones, which all lanes share: one LUT6 a lane and output behind them.
#[derive(Clone, Debug, Block)]
#[block(check)]
pub struct LaneMasks<const K: usize> {
    /// First lane, below K.
    pub start: Signal<In, Bits<6>>,
    /// Lane behind the last, counted on past the end of the beat; at most `start` + K and below 2 K.
    pub end_lane: Signal<In, Bits<7>>,
    /// There is a beat; else no lane is shown.
    pub enable: Signal<In, Bit>,
    /// Exchanges the outputs.
    pub swap: Signal<In, Bit>,
    /// Lanes in the target beat of `start`.
    pub low: Signal<Out, Bits<K>>,
    /// Lanes in the target beat behind it.
    pub high: Signal<Out, Bits<K>>,
}

impl<const K: usize> LaneMasks<K> {
    fn check() {
        assert!(
            K.is_power_of_two() && (8..=64).contains(&K),
            "no lane masks for beats of {K} bytes"
        );
    }
}

impl<const K: usize> Logic for LaneMasks<K> {
    describe!(
        "lane_masks",
        format!("{K}"),
        "Lanes of a rotated beat in two target beats."
    );

    fn update(&mut self) {
        let (start, end_lane) = (self.start.val().index(), self.end_lane.val().index());
        let (mut low, mut high) = (Bits::default(), Bits::default());
        if self.enable.val() {
            for i in 0..K {
                low = low.replace_bit(i, (start..end_lane).contains(&i));
                high = high.replace_bit(i, i + K < end_lane);
            }
        }
        let swap = self.swap.val();
        (self.low.next, self.high.next) = if swap { (high, low) } else { (low, high) };
    }

    fn connect(&mut self) {
        self.low.connect();
        self.high.connect();
    }

    fn hdl(&self) -> Verilog {
        let eights = |name: &str| {
            let each = (0..K / 8).rev().map(|i| format!("{{8{{{name}[{i}]}}}}"));
            format!("{{{}}}", each.collect::<Vec<_>>().join(", "))
        };
        let output = |name: &str, first: &str| {
            format!(
                "wire [7:0] {name}_above = {{8{{!{first}}}}} | above;\n\
                 wire [7:0] {name}_below = {{8{{enable}}}} & ({first} ? {{8{{over}}}} | below : {{8{{over}}}} & below);\n\
                 wire [7:0] {name}_end = {{8{{enable & ({first} | over)}}}} & at_end;\n\
                 assign {name} = ({above} | ({at_start} & {{{n}{{from}}}}))\n    \
                     & ({below} | ({at_end} & {{{n}{{upto}}}}));\n",
                n = K / 8,
                above = eights(&format!("{name}_above")),
                at_start = eights("at_start"),
                below = eights(&format!("{name}_below")),
                at_end = eights(&format!("{name}_end")),
            )
        };
        Verilog::Custom(format!(
            "wire over = end_lane[{log}];\n\
             wire [5:0] last = end_lane[5:0] & 6'd{lanes};\n\
             wire [7:0] from = 8'hff << start[2:0];\n\
             wire [7:0] upto = ~(8'hff << last[2:0]);\n\
             wire [7:0] above = 8'hfe << start[5:3];\n\
             wire [7:0] at_start = 8'h01 << start[5:3];\n\
             wire [7:0] below = ~(8'hff << last[5:3]);\n\
             wire [7:0] at_end = 8'h01 << last[5:3];\n\
             wire first = !swap;\n\
             {low}{high}",
            log = K.ilog2(),
            lanes = K - 1,
            low = output("low", "first"),
            high = output("high", "swap"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_of_a_beat() {
        let mut u = LaneMasks::<8>::default();
        u.connect_all();
        u.enable.next = true;
        // five bytes from lane 6 on: two, and three in the beat behind
        for (swap, low, high) in [
            (false, 0b1100_0000u64, 0b111u64),
            (true, 0b111, 0b1100_0000),
        ] {
            u.start.next = bits::<6>(6);
            u.end_lane.next = bits::<7>(11);
            u.swap.next = swap;
            assert!(simulate(&mut u, 50));
            assert_eq!(u.low.val(), low);
            assert_eq!(u.high.val(), high);
        }
        u.enable.next = false;
        assert!(simulate(&mut u, 50));
        assert!(!u.low.val().any() && !u.high.val().any());
    }
}
