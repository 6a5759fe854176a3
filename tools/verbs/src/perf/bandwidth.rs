//! Bandwidth: many messages in flight.

use std::io::Write;
use std::time::Instant;

use anyhow::Result;
use ferroce_driver::{Backend, Wc};

use super::options::{Args, Operation};
use super::report::{self, Bandwidth};
use super::side::Side;
use crate::device::Device;

/// Samples for the peak: with more of them every further one is left out.
const SAMPLES: usize = 4096;

/// Runs one side for one size of messages.
pub(super) fn run<B: Backend>(
    device: &mut Device<B>,
    side: &mut Side<B>,
    args: &Args,
    size: u32,
    out: &mut impl Write,
) -> Result<()> {
    let receives = side.is_server && args.test.operation() == Operation::Send;
    if receives {
        side.post_recvs(size, args.rx_depth.min(args.iters))?;
    }
    side.meet(device, "ready")?;
    if side.is_server {
        if receives {
            receive(device, side, args, size, out)?;
        }
        return Ok(());
    }
    let mut wcs = [Wc::default(); 32];
    let (mut posted, mut completed) = (0, 0);
    // Messages up to a signaled one, in order: number of the first and when it was posted, number of the last.
    let mut flying = std::collections::VecDeque::new();
    let mut first = None;
    let mut samples = Vec::new();
    let clock = Clock::start(device);
    while completed < args.iters {
        while posted < args.iters && posted - completed < args.tx_depth {
            // The last of a full queue too, or nothing would ever complete.
            let turn = posted + 1;
            let signaled =
                turn.is_multiple_of(args.cq_mod.min(args.tx_depth)) || turn == args.iters;
            let (number, at) = *first.get_or_insert((turn, clock.start.elapsed().as_secs_f64()));
            side.post(args, size, signaled)?;
            posted += 1;
            if signaled {
                flying.push_back((number, at, posted));
                first = None;
            }
        }
        let found = device.completions(&mut side.cq, &mut wcs)?.len();
        let now = clock.start.elapsed().as_secs_f64();
        for _ in 0..found {
            if let Some((first, at, last)) = flying.pop_front() {
                completed = last;
                if samples.len() < SAMPLES {
                    samples.push(Sample {
                        first,
                        at,
                        last,
                        now,
                    });
                }
            }
        }
    }
    let times = clock.stop(device);
    let peak = (!args.no_peak).then(|| peak(&samples)).flatten();
    report::bandwidth(
        out,
        device,
        args,
        &Bandwidth {
            size,
            iters: args.iters,
            times,
            peak,
        },
    )
}

/// Messages `first` to `last`: when the first was posted, and when the last was complete, in seconds.
struct Sample {
    first: u32,
    at: f64,
    last: u32,
    now: f64,
}

/// Most messages a second between the post of one message and the completion of a later one.
fn peak(samples: &[Sample]) -> Option<f64> {
    let rates = samples.iter().enumerate().flat_map(|(i, a)| {
        let rate = |b: &Sample| f64::from(b.last - a.first + 1) / (b.now - a.at);
        samples[i..].iter().map(rate)
    });
    rates.filter(|rate| rate.is_finite()).reduce(f64::max)
}

fn receive<B: Backend>(
    device: &mut Device<B>,
    side: &mut Side<B>,
    args: &Args,
    size: u32,
    out: &mut impl Write,
) -> Result<()> {
    let mut wcs = [Wc::default(); 32];
    let mut posted = args.rx_depth.min(args.iters);
    let mut received = 0;
    let mut clock = None;
    while received < args.iters {
        let found = device.completions(&mut side.cq, &mut wcs)?.len() as u32;
        clock.get_or_insert_with(|| Clock::start(device));
        received += found;
        let more = found.min(args.iters - posted);
        side.post_recvs(size, more)?;
        posted += more;
    }
    let Some(clock) = clock else {
        return Ok(());
    };
    let times = clock.stop(device);
    report::bandwidth(
        out,
        device,
        args,
        &Bandwidth {
            size,
            iters: args.iters,
            times,
            peak: None,
        },
    )
}

/// Time of the host and of the card.
pub(super) struct Clock {
    start: Instant,
    card: u64,
}

/// Seconds of the host and of the card.
pub(super) type Times = [f64; 2];

impl Clock {
    pub(super) fn start<B: Backend>(device: &Device<B>) -> Self {
        let card = device.context.backend().now_ns();
        Self {
            start: Instant::now(),
            card,
        }
    }

    pub(super) fn stop<B: Backend>(&self, device: &Device<B>) -> Times {
        let card = device.context.backend().now_ns().saturating_sub(self.card);
        [self.start.elapsed().as_secs_f64(), card as f64 / 1e9]
    }
}
