//! Bandwidth: many messages in flight. The last message of each queue pair says so, which ends the receiver too.

use std::collections::VecDeque;

use anyhow::Result;
use ferroce_driver::{Backend, Wc, WcOpcode};

use super::exchange::Outcome;
use super::options::{Args, Operation};
use super::side::Side;
use crate::clock::Clock;
use crate::device::Device;

/// Samples for the peak: with more of them every further one is left out.
const SAMPLES: usize = 4096;

/// Runs one side for one size of messages.
pub(super) fn run<B: Backend>(
    device: &mut Device<B>,
    side: &mut Side<B>,
    args: &Args,
    size: u32,
) -> Result<Outcome> {
    let sends = !side.is_server || args.bidirectional;
    let receives =
        args.test.operation() == Operation::Send && (side.is_server || args.bidirectional);
    let count = side.ends.len();
    let mut receiving = Receiving {
        posted: vec![0; count],
        open: if receives { count } else { 0 },
        received: 0,
        clock: None,
    };
    if receives {
        for number in 0..count {
            side.post_recvs(number, size, args.receives())?;
            receiving.posted[number] = args.receives().into();
        }
    }
    side.meet(device, "ready")?;
    let mut sending = Sending {
        flows: (0..count).map(|_| Flow::default()).collect(),
        open: if sends { count } else { 0 },
        posted: 0,
        completed: 0,
        samples: Vec::new(),
        clock: Clock::start(device),
    };
    let mut wcs = [Wc::default(); 32];
    let (mut sent, mut received) = (None, None);
    while sending.open > 0 || receiving.open > 0 {
        sending.post(device, side, args, size)?;
        for wc in side.completions.next(device, &mut wcs)? {
            match wc.opcode {
                WcOpcode::Recv => receiving.take(device, side, args, size, wc)?,
                _ => sending.take(wc.wr_id as usize),
            }
        }
        if sends && sending.open == 0 && sent.is_none() {
            sent = Some(sending.clock.times(device));
        }
        if receives && receiving.open == 0 && received.is_none() {
            received = receiving.clock.as_ref().map(|clock| clock.times(device));
        }
    }
    let no_peak = args.no_peak || args.duration.is_some();
    Ok(Outcome {
        sent: sending.flows.iter().map(|flow| flow.posted).collect(),
        messages: if sends {
            sending.completed
        } else {
            receiving.received
        },
        times: sent.or(received),
        peak: (!no_peak).then(|| peak(&sending.samples)).flatten(),
    })
}

/// What a side sends over a queue pair.
#[derive(Default)]
struct Flow {
    posted: u64,
    completed: u64,
    /// The last message is posted.
    ended: bool,
    /// The message after the last signaled one.
    first: Option<Posted>,
    /// Messages up to a signaled one, in order: the first, and how many they are up to the last.
    flying: VecDeque<(Posted, u64)>,
}

/// A message: how many were posted with it over all queue pairs, and when, in seconds.
#[derive(Clone, Copy)]
struct Posted {
    number: u64,
    at: f64,
}

/// What a side sends over all.
struct Sending {
    flows: Vec<Flow>,
    /// Queue pairs with more to send or to complete.
    open: usize,
    posted: u64,
    completed: u64,
    samples: Vec<Sample>,
    clock: Clock,
}

impl Sending {
    /// Posts what there is room for, one queue pair after the other.
    fn post<B: Backend>(
        &mut self,
        device: &Device<B>,
        side: &mut Side<B>,
        args: &Args,
        size: u32,
    ) -> Result<()> {
        if self.open == 0 {
            return Ok(());
        }
        let over = args.is_over(&self.clock, device);
        // The last of a full queue is signaled too, or nothing would ever complete.
        let moderation = args.cq_mod.min(args.tx_depth).into();
        let mut is_full = false;
        while !is_full {
            is_full = true;
            for (number, flow) in self.flows.iter_mut().enumerate() {
                if flow.ended || flow.posted - flow.completed >= args.tx_depth.into() {
                    continue;
                }
                is_full = false;
                flow.posted += 1;
                self.posted += 1;
                flow.ended = over || !args.goes_on(flow.posted);
                let first = *flow.first.get_or_insert_with(|| Posted {
                    number: self.posted,
                    at: self.clock.host(),
                });
                let signaled = flow.ended || flow.posted.is_multiple_of(moderation);
                side.post(args, number, size, signaled, flow.ended)?;
                if signaled {
                    flow.flying.push_back((first, flow.posted));
                    flow.first = None;
                }
            }
        }
        Ok(())
    }

    /// A signaled message of queue pair `number` completed, and all before it.
    fn take(&mut self, number: usize) {
        let Some(flow) = self.flows.get_mut(number) else {
            return;
        };
        let Some((first, posted)) = flow.flying.pop_front() else {
            return;
        };
        self.completed += posted - flow.completed;
        flow.completed = posted;
        if flow.ended && flow.completed == flow.posted {
            self.open -= 1;
        }
        if self.samples.len() < SAMPLES {
            self.samples.push(Sample {
                first,
                completed: self.completed,
                now: self.clock.host(),
            });
        }
    }
}

/// Messages from `first` on, and how many were complete when, in seconds.
struct Sample {
    first: Posted,
    completed: u64,
    now: f64,
}

/// Most messages a second between the post of one message and the completion of a later one.
fn peak(samples: &[Sample]) -> Option<f64> {
    let rates = samples.iter().enumerate().flat_map(|(i, a)| {
        let rate =
            |b: &Sample| (b.completed as f64 - a.first.number as f64 + 1.0) / (b.now - a.first.at);
        samples[i..].iter().map(rate)
    });
    rates.filter(|rate| rate.is_finite()).reduce(f64::max)
}

/// What a side receives over all queue pairs.
struct Receiving {
    /// Receives posted to each.
    posted: Vec<u64>,
    /// Queue pairs of which the last message did not come yet.
    open: usize,
    received: u64,
    /// Since the first message.
    clock: Option<Clock>,
}

impl Receiving {
    /// A message came.
    fn take<B: Backend>(
        &mut self,
        device: &Device<B>,
        side: &mut Side<B>,
        args: &Args,
        size: u32,
        wc: &Wc,
    ) -> Result<()> {
        self.clock.get_or_insert_with(|| Clock::start(device));
        self.received += 1;
        let number = wc.wr_id as usize;
        if wc.imm_data().is_some() {
            self.open = self.open.saturating_sub(1);
        } else if args.goes_on(self.posted[number]) {
            side.post_recvs(number, size, 1)?;
            self.posted[number] += 1;
        }
        Ok(())
    }
}
