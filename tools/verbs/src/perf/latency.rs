//! Latency: one message at a time. Of WRITE and SEND half of the way there and back, as the peer answers in kind; of
//! READ and atomics the whole.

use std::io::Write;

use anyhow::Result;
use ferroce_driver::{Backend, Wc, WcOpcode};

use super::bandwidth::{Clock, Times};
use super::options::{Args, Operation};
use super::report;
use super::side::Side;
use crate::device::Device;

/// Runs one side for one size of messages.
pub(super) fn run<B: Backend>(
    device: &mut Device<B>,
    side: &mut Side<B>,
    args: &Args,
    size: u32,
    out: &mut impl Write,
) -> Result<()> {
    let one_sided = matches!(args.test.operation(), Operation::Read | Operation::Atomic);
    let sends = args.test.operation() == Operation::Send;
    let mut receives = if sends {
        args.rx_depth.min(args.iters)
    } else {
        0
    };
    side.post_recvs(size, receives)?;
    if args.test.operation() == Operation::Write {
        // No mark of an earlier size.
        side.to.write(0, &vec![0; size as usize]);
    }
    side.meet(device, "ready")?;
    if side.is_server && one_sided {
        return Ok(());
    }
    let mut times = Vec::with_capacity(args.iters as usize);
    let mut wcs = [Wc::default(); 8];
    let mut done = Done::default();
    for turn in 0..args.iters {
        let clock = Clock::start(device);
        if side.is_server {
            await_message(device, side, args, size, turn, &mut done, &mut wcs)?;
        }
        if args.test.operation() == Operation::Write {
            side.from.write(size as usize - 1, &[mark(turn)]);
        }
        side.post(args, size, true)?;
        if !side.is_server && !one_sided {
            await_message(device, side, args, size, turn, &mut done, &mut wcs)?;
        }
        while done.sends <= turn {
            done.take(device.completions(&mut side.cq, &mut wcs)?);
        }
        if sends && receives < args.iters {
            side.post_recvs(size, 1)?;
            receives += 1;
        }
        times.push(clock.stop(device));
    }
    if side.is_server {
        return Ok(());
    }
    let parts = if one_sided { 1.0 } else { 2.0 };
    let times: Vec<Times> = times.into_iter().map(|t| t.map(|t| t / parts)).collect();
    report::latency(out, device, args, size, &times)
}

/// What completed since the first turn. The next message of the peer may come before the acknowledgement of the own one,
/// so that no turn has its own count.
#[derive(Default)]
struct Done {
    /// Own messages.
    sends: u32,
    /// Messages of the peer.
    messages: u32,
}

impl Done {
    fn take(&mut self, found: &[Wc]) {
        for wc in found {
            match wc.opcode {
                WcOpcode::Recv => self.messages += 1,
                _ => self.sends += 1,
            }
        }
    }
}

/// Last byte of the message of a turn: another than that of the turn before, and not 0.
fn mark(turn: u32) -> u8 {
    (turn % 255) as u8 + 1
}

/// Waits for the message of the peer.
fn await_message<B: Backend>(
    device: &mut Device<B>,
    side: &mut Side<B>,
    args: &Args,
    size: u32,
    turn: u32,
    done: &mut Done,
    wcs: &mut [Wc],
) -> Result<()> {
    if args.test.operation() == Operation::Write {
        let (to, last) = (&side.to, size as usize - 1);
        let mut byte = [0];
        device.wait_until(|| {
            to.read(last, &mut byte);
            usize::from(byte[0] == mark(turn))
        })?;
        return Ok(());
    }
    while done.messages <= turn {
        done.take(device.completions(&mut side.cq, wcs)?);
    }
    Ok(())
}
