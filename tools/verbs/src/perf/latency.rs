//! Latency: one message at a time. Of WRITE and SEND half of the way there and back, as the peer answers in kind; of
//! READ and atomics the whole. The last message says so, which ends the peer too.

use anyhow::Result;
use ferroce_driver::{Backend, Wc, WcOpcode};

use super::exchange::Outcome;
use super::options::{Args, Operation};
use super::side::Side;
use crate::clock::{Clock, Times};
use crate::device::Device;
use crate::pattern;

/// Runs one side for one size of messages; with the times of all turns, unless `-D` has no end of them.
pub(super) fn run<B: Backend>(
    device: &mut Device<B>,
    side: &mut Side<B>,
    args: &Args,
    size: u32,
) -> Result<(Outcome, Vec<Times>)> {
    let operation = args.test.operation();
    let one_sided = matches!(operation, Operation::Read | Operation::Atomic);
    let sends = operation == Operation::Send;
    let mut receives = 0;
    if sends {
        side.post_recvs(0, size, args.receives())?;
        receives = args.receives().into();
    }
    if operation == Operation::Write {
        // No mark of an earlier size.
        side.to.write(0, &vec![0; size as usize]);
    }
    side.meet(device, "ready")?;
    let mut outcome = Outcome::default();
    let mut times = Vec::new();
    if side.is_server && one_sided {
        return Ok((outcome, times));
    }
    let start = Clock::start(device);
    let mut done = Done::default();
    let (mut turn, mut last) = (0, false);
    while !last {
        let clock = Clock::start(device);
        if side.is_server {
            last = await_message(device, side, args, size, turn, &mut done)?;
        } else {
            last = !args.goes_on(turn + 1) || args.is_over(&start, device);
        }
        if operation == Operation::Write {
            side.from.write(size as usize - 1, &[mark(turn, last)]);
        }
        side.post(args, 0, size, true, last)?;
        if !side.is_server && !one_sided {
            await_message(device, side, args, size, turn, &mut done)?;
        }
        while done.sends <= turn {
            done.wait(device, side)?;
        }
        if sends && args.goes_on(receives) {
            side.post_recvs(0, size, 1)?;
            receives += 1;
        }
        if args.duration.is_none() {
            times.push(clock.times(device));
        }
        turn += 1;
    }
    if operation == Operation::Write {
        // A larger message has no mark here.
        let at = size as usize - 1;
        let byte = pattern::byte(side.is_server, 0, at);
        side.from.write(at, &[byte]);
    }
    outcome.sent = vec![turn];
    outcome.messages = turn;
    outcome.times = (!side.is_server).then(|| start.times(device));
    Ok((outcome, times))
}

/// What completed since the first turn. The next message of the peer may come before the acknowledgement of the own one,
/// so that no turn has its own count.
#[derive(Default)]
struct Done {
    /// Own messages.
    sends: u64,
    /// Messages of the peer.
    messages: u64,
    /// The last of them came.
    ended: bool,
}

impl Done {
    fn wait<B: Backend>(&mut self, device: &mut Device<B>, side: &mut Side<B>) -> Result<()> {
        let mut wcs = [Wc::default(); 8];
        for wc in side.completions.next(device, &mut wcs)? {
            if wc.opcode == WcOpcode::Recv {
                self.messages += 1;
                self.ended |= wc.imm_data().is_some();
            } else {
                self.sends += 1;
            }
        }
        Ok(())
    }
}

/// Last byte of the message that ends a test of WRITE.
const LAST: u8 = 255;

/// Last byte of the message of a turn: another than that of the turn before, and not 0.
fn mark(turn: u64, last: bool) -> u8 {
    if last { LAST } else { (turn % 254) as u8 + 1 }
}

/// Waits for the message of the peer; whether it is the last.
fn await_message<B: Backend>(
    device: &mut Device<B>,
    side: &mut Side<B>,
    args: &Args,
    size: u32,
    turn: u64,
    done: &mut Done,
) -> Result<bool> {
    if args.test.operation() == Operation::Write {
        let (to, last) = (&side.to, size as usize - 1);
        let mut byte = [0];
        device.wait_until(|| {
            to.read(last, &mut byte);
            byte[0] == mark(turn, false) || byte[0] == LAST
        })?;
        return Ok(byte[0] == LAST);
    }
    while done.messages <= turn {
        done.wait(device, side)?;
    }
    Ok(done.ended)
}
