//! Sums of the counter pulses between two visits.
//!
//! Each counter has a small sum in flip-flops. A visit takes the sum out and starts it afresh with the pulse of its own
//! cycle, so nothing is lost and nothing counts twice. Every counter must be visited once in [`SWEEP`] cycles: the sums
//! are just wide enough for that. Latency: `sum` comes one cycle behind `visit`.
use std::fmt::Write;

use super::stats::StatPulses;
use crate::prelude::*;

/// Cycles between two visits of a counter.
pub const SWEEP: usize = 128;
/// Bits of the widest sum.
pub const SUM_BITS: usize = 31;

/// Sums of all counters.
#[derive(Clone, Debug, Block)]
#[block(no_default)]
pub struct StatSums {
    /// Clock and reset.
    pub clock: ClkRst,
    /// What every counter is to grow by.
    pub pulses: Signal<In, StatPulses>,
    /// Counter to visit; one that does not exist has the sum 0.
    pub visit: Signal<In, Bits<7>>,
    /// Its sum.
    pub sum: Signal<Out, Bits<SUM_BITS>>,
    _counters: Vec<Counter>,
    _sums: Vec<u64>,
}

/// A counter in [`StatPulses`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counter {
    pub(super) name: String,
    /// Lowest bit of its pulse.
    low: usize,
    /// Bits of its pulse.
    width: usize,
}

impl Counter {
    /// All of them, in order.
    pub(super) fn all() -> Vec<Self> {
        let TypeKind::Composite(fields) = StatPulses::descriptor().kind else {
            panic!("counter pulses are a structure")
        };
        let mut low = 0;
        let place = |field: Box<TypeField>| {
            let TypeKind::Bits(width) = field.kind.kind else {
                panic!("`{}` is no bits", field.fieldname)
            };
            low += width;
            Self {
                name: field.fieldname,
                low: low - width,
                width,
            }
        };
        fields.into_iter().map(place).collect()
    }

    /// Bits of the sum of [`SWEEP`] pulses.
    fn sum_bits(&self) -> usize {
        let largest = ((1 << self.width) - 1) * SWEEP;
        largest.ilog2() as usize + 1
    }
}

impl Default for StatSums {
    fn default() -> Self {
        let counters = Counter::all();
        let widest = counters.iter().map(Counter::sum_bits).max();
        assert_eq!(widest, Some(SUM_BITS), "bits of the widest sum");
        assert!(
            counters.len() <= SWEEP,
            "{} counters, and one is visited a cycle: at most {SWEEP}",
            counters.len()
        );
        Self {
            clock: ClkRst::default(),
            pulses: Signal::default(),
            visit: Signal::default(),
            sum: Signal::default(),
            _sums: vec![0; counters.len()],
            _counters: counters,
        }
    }
}

impl Logic for StatSums {
    describe!(
        "stat_sums",
        "Sums of the counter pulses between two visits."
    );

    fn update(&mut self) {
        if !self.clock.clk.pos_edge() {
            return;
        }
        let visit = self.visit.val().index();
        let sum = self._sums.get(visit).copied().unwrap_or(0);
        self.sum.next = sum.to_bits();
        let pulses: Bits<{ StatPulses::BITS }> = self.pulses.val().into();
        for (i, (sum, counter)) in self._sums.iter_mut().zip(&self._counters).enumerate() {
            let pulse = (0..counter.width)
                .map(|bit| u64::from(pulses.get_bit(counter.low + bit)) << bit)
                .sum::<u64>();
            let kept = if visit == i { 0 } else { *sum };
            *sum = if self.clock.rst.val() {
                0
            } else {
                kept + pulse
            };
        }
    }

    fn connect(&mut self) {
        self.sum.connect();
    }

    fn hdl(&self) -> Verilog {
        let (mut sums, mut steps, mut visits) = (String::new(), String::new(), String::new());
        for (i, c) in self._counters.iter().enumerate() {
            let (name, bits) = (&c.name, c.sum_bits());
            let pulse = if c.width == 1 {
                format!("pulses[{}]", c.low)
            } else {
                format!("pulses[{}:{}]", c.low + c.width - 1, c.low)
            };
            let padded = format!("{{{}'d0, {pulse}}}", bits - c.width);
            let _ = writeln!(sums, "reg [{}:0] sum_{name};", bits - 1);
            // cleared, not added to 0: the carry then takes the register as it is
            let _ = writeln!(
                steps,
                "    if (rst) sum_{name} <= {bits}'d0;\n    \
                     else if (visit == 7'd{i}) sum_{name} <= {padded};\n    \
                     else sum_{name} <= sum_{name} + {padded};"
            );
            let value = if bits == SUM_BITS {
                format!("sum_{name}")
            } else {
                format!("{{{}'d0, sum_{name}}}", SUM_BITS - bits)
            };
            let _ = writeln!(visits, "        7'd{i}: sum <= {value};");
        }
        Verilog::Custom(format!(
            "{sums}always @(posedge clk) begin\n{steps}    case (visit)\n{visits}        default: sum <= {SUM_BITS}'d0;\n    endcase\nend\n"
        ))
    }
}
