//! `ferroce-perf`: bandwidth and latency of WRITE, READ, SEND and atomics, with the options and columns of perftest.

mod bandwidth;
mod exchange;
mod latency;
mod options;
mod report;
mod side;

use std::io::Write;

use anyhow::Result;
use ferroce_driver::Backend;

use crate::device::Device;
pub use options::{Args, Atomic, Connection, Measure, Operation, Test};
use side::Side;

/// Sizes of `-a`: all powers of two up to this.
const LARGEST: u32 = 1 << 23;

/// Runs one side of a test.
///
/// # Errors
/// Bad input; both sides do not agree; the peer or the card failed; wrong bytes with `--validate`; Ctrl-C.
pub fn run<B: Backend>(device: &mut Device<B>, args: &Args, out: &mut impl Write) -> Result<()> {
    args.check(device)?;
    let mut side = Side::open(device, args)?;
    report::head(out, device, args, &side)?;
    let sizes = if args.all {
        (1..=LARGEST.ilog2()).map(|log| 1 << log).collect()
    } else {
        vec![args.bytes()]
    };
    for size in sizes {
        let (outcome, times) = match args.test.measure() {
            Measure::Bandwidth => (bandwidth::run(device, &mut side, args, size)?, Vec::new()),
            Measure::Latency => latency::run(device, &mut side, args, size)?,
        };
        let there = side.exchange(device, &outcome)?;
        match args.test.measure() {
            Measure::Bandwidth => report::bandwidth(out, device, args, size, &outcome, &there)?,
            Measure::Latency if side.is_server => {}
            Measure::Latency => report::latency(out, device, args, size, &outcome, &times)?,
        }
        side.validate(args, size, &there)?;
    }
    report::foot(out)?;
    side.finish(device)
}
