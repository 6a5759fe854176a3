//! A decrease: what alpha takes off a rate, within bounds.
//!
//! Product and quotient grow bit by bit of the rate, highest first, one a cycle: of rate * alpha the product, of rate * percent / 100 the
//! quotient and what is left. 25 cycles.
use crate::prelude::*;

/// Bits of a rate.
const BITS: u64 = 20;

/// The decrease. `start` in a cycle in which it is not busy; the inputs stay until it is done.
#[derive(Block)]
pub struct Cut {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A decrease is due.
    pub start: Signal<In, Bit>,
    /// The rate before, Mb/s.
    pub rate: Signal<In, Bits<20>>,
    /// Alpha, 1/65536.
    pub alpha: Signal<In, Bits<16>>,
    /// It takes off rate * alpha >> `gd` + 6,
    pub gd: Signal<In, Bits<4>>,
    /// leaves so much at least, percent,
    pub leaves: Signal<In, Bits<7>>,
    /// and this at least, Mb/s.
    pub least: Signal<In, Bits<20>>,
    /// Not done.
    pub busy: Signal<Out, Bit>,
    /// When done: the rate behind it, Mb/s.
    pub result: Signal<Out, Bits<20>>,

    running: Reg<Bit>,
    count: Dff<Bits<5>>,
    factor: Dff<Bits<20>>,
    product: Dff<Bits<36>>,
    percent: Dff<Bits<7>>,
    /// Quotient and what is left of the other product.
    most: Dff<Bits<21>>,
    left: Dff<Bits<9>>,
    share: Dff<Bits<30>>,
    less: Dff<Bits<20>>,
    after: Dff<Bits<20>>,
}

impl Logic for Cut {
    describe!("cut", "What a decrease of DCQCN leaves of a rate.");

    #[kernel]
    fn update(&mut self) {
        let one = factor.bit(19);
        let mut part = bits::<36>(0);
        let mut taken = bits::<9>(0);
        if one {
            part = alpha.resize::<36>();
            taken = percent.resize::<9>();
        }
        let sum = (left << 1) + taken;
        let mut whole = bits::<21>(0);
        let mut rest = sum;
        if sum >= 200 {
            whole = bits::<21>(2);
            rest = sum - 200;
        } else if sum >= 100 {
            whole = bits::<21>(1);
            rest = sum - 100;
        }
        if running & (count < BITS) {
            factor = factor << 1;
            product = (product << 1) + part;
            most = (most << 1) + whole;
            left = rest;
        }
        count = count + 1;
        // the last cycles: shift, the smaller one, the difference, the larger one
        share = (product >> gd).slice::<30>(6);
        less = if share < most.resize::<30>() {
            share.low::<20>()
        } else {
            most.low::<20>()
        };
        after = rate - less;
        if count == (BITS + 4) {
            running = false;
        }
        if start {
            running = true;
            count = bits::<5>(0);
            factor = rate;
            product = bits::<36>(0);
            percent = bits::<7>(100) - leaves;
            most = bits::<21>(0);
            left = bits::<9>(0);
        }
        busy = running;
        result = if after < least { least } else { after };
    }
}
