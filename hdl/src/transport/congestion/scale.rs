//! A product, and a product divided: a * b, or a * b * 2^shift / d, rounded down, a bit a cycle.
//!
//! 17 cycles for a product; 44 + `shift` more for a quotient.
use crate::prelude::*;

/// Bits of a product, and of `b`.
const PRODUCT: u64 = 44;
const FACTOR: u64 = 16;

/// The unit. `start` in a cycle in which it is not busy; `a`, `d` and `shift` stay until it is done.
#[derive(Block)]
pub struct Scale {
    /// Clock and reset.
    pub clock: ClkRst,
    /// There is something to do.
    pub start: Signal<In, Bit>,
    /// First factor; the product is below 2^44.
    pub a: Signal<In, Bits<32>>,
    /// Second factor.
    pub b: Signal<In, Bits<16>>,
    /// The product is divided.
    pub divides: Signal<In, Bit>,
    /// Divisor, not 0.
    pub d: Signal<In, Bits<26>>,
    /// Zeros behind the product that is divided, 0 to 12.
    pub shift: Signal<In, Bits<4>>,
    /// Not done.
    pub busy: Signal<Out, Bit>,
    /// When done: the product.
    pub product: Signal<Out, Bits<44>>,
    /// When done: the quotient.
    pub quotient: Signal<Out, Bits<44>>,

    multiplies: Reg<Bit>,
    divides_on: Reg<Bit>,
    count: Dff<Bits<6>>,
    factor: Dff<Bits<16>>,
    /// Product, 12 zeros; quotient bits come from below.
    all: Dff<Bits<56>>,
    rest: Dff<Bits<26>>,
    then_divides: Dff<Bit>,
}

impl Logic for Scale {
    describe!("scale", "A product, divided by a number.");

    #[kernel]
    fn update(&mut self) {
        let wide = (rest.resize::<27>() << 1) | all.slice::<1>(55).resize::<27>();
        let less = wide.resize::<28>() - d.resize::<28>();
        let fits = !less.bit(27);
        count = count + 1;
        if multiplies {
            let mut part = bits::<44>(0);
            if factor.bit(15) {
                part = a.resize::<44>();
            }
            let sum = (all.slice::<44>(12) << 1) + part;
            all = sum.resize::<56>() << 12;
            factor = factor << 1;
            if count == (FACTOR - 1) {
                multiplies = false;
                divides_on = then_divides;
                count = bits::<6>(0);
            }
        } else {
            rest = if fits {
                less.low::<26>()
            } else {
                wide.low::<26>()
            };
            all = (all << 1).replace_bit(0, fits);
            if count == (shift.resize::<6>() + (PRODUCT - 1)) {
                divides_on = false;
            }
        }
        if !multiplies & !divides_on {
            all = all;
        }
        if start {
            multiplies = true;
            then_divides = divides;
            count = bits::<6>(0);
            factor = b;
            all = bits::<56>(0);
            rest = bits::<26>(0);
        }
        busy = multiplies | divides_on;
        product = all.slice::<44>(12);
        quotient = all.low::<44>();
    }
}
