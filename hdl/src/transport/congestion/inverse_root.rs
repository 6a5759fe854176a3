//! 1024 divided by the square root of a number of 1/1024 packets, within 1.6 %: a table of 64 values.
//!
//! The number is shifted up to its leading one, a bit a cycle; the five bits behind that and the parity of its logarithm name the value.
//! 3 to 29 cycles.
use crate::prelude::*;

/// Bits of a number.
const BITS: usize = 26;

/// 32768 / sqrt(x) in the middle of a step: x from 1 to 2 in 32 steps, then from 2 to 4.
fn entry(i: usize) -> Bits<15> {
    let middle = 1.0 + ((i % 32) as f64 + 0.5) / 32.0;
    let value = middle * if i < 32 { 1.0 } else { 2.0 };
    ((32768.0 / value.sqrt()).round() as u64).to_bits()
}

/// The table. `start` in a cycle in which it is not busy.
#[derive(Block)]
pub struct InverseRoot {
    /// Clock and reset.
    pub clock: ClkRst,
    /// There is something to do.
    pub start: Signal<In, Bit>,
    /// 1/1024 packets; 0 counts as 1.
    pub packets: Signal<In, Bits<26>>,
    /// Not done.
    pub busy: Signal<Out, Bit>,
    /// When done: the value.
    pub result: Signal<Out, Bits<15>>,

    shifts: Reg<Bit>,
    looks: Reg<Bit>,
    ends: Reg<Bit>,
    number: Dff<Bits<26>>,
    log: Dff<Bits<5>>,
    value: Dff<Bits<15>>,
    shifted: Dff<Bits<15>>,
    #[init(std::array::from_fn(|i| Constant::new(entry(i))))]
    values: [Constant<Bits<15>>; 64],
}

impl Logic for InverseRoot {
    describe!("inverse_root", "The inverse root of a window.");

    #[kernel]
    fn update(&mut self) {
        looks = false;
        ends = looks;
        if shifts {
            if number.bit(BITS - 1) {
                shifts = false;
                looks = true;
            } else {
                number = number << 1;
                log = log - 1;
            }
        }
        if start {
            shifts = true;
            number = packets;
            if !packets.any() {
                number = bits::<26>(1);
            }
            log = bits::<5>(25);
        }
        let place = number
            .slice::<5>(20)
            .resize::<6>()
            .replace_bit(5, log.bit(0));
        let hot = bits::<64>(1) << place;
        let mut found: Bits<15> = bits::<15>(0);
        for i in 0..64 {
            if hot.bit(i) {
                found = values[i];
            }
        }
        value = found;
        shifted = value >> log.slice::<4>(1);
        busy = shifts | looks | ends;
        result = shifted;
    }
}
