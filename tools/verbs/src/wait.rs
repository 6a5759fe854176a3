//! Waiting for completions, by polling or asleep, bounded by the card's time.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Result, bail};
use ferroce_driver::{Backend, CompChannel, Cq, EventAttr, Notify, Wc};

use crate::device::Device;
use crate::program::{BadInput, check_interrupt};

/// Longest time without a completion in ns of the card's time: more than the retries of a queue pair take.
const PATIENCE_NS: u64 = 5_000_000_000;
/// What the peer of a test sent before it left comes within this time, in ns of the card's time: more than the ACK
/// timeout, or of a simulated card, on whose wire nothing is lost, a bearable wait.
const LAST_NS: u64 = 100_000_000;
const LAST_SIMULATED_NS: u64 = 20_000_000;
/// Turns of a wait that polls from one look at the neighbours to the next.
const TURNS: u32 = 64;
/// Longest sleep in ns of the card's time: the neighbours wait meanwhile.
const SLEEP: Duration = Duration::from_millis(1);

/// A completion queue that is polled, or slept on by a channel of its own.
pub struct Completions<B: Backend> {
    /// The queue.
    pub cq: Cq<B>,
    channel: Option<CompChannel<B>>,
    /// An event is due.
    armed: bool,
}

impl<B: Backend> Completions<B> {
    /// A queue of at least `entries`; with `events` a wait sleeps.
    ///
    /// # Errors
    /// [`BadInput`]: more entries than the card has, or no events.
    pub fn new(device: &Device<B>, entries: u32, events: bool) -> Result<Self> {
        let channel = events.then(|| device.context.create_comp_channel(&EventAttr::default()));
        let channel = channel.transpose();
        let channel = channel.map_err(|e| BadInput(format!("no -e: {e}")))?;
        let cq = match &channel {
            Some(channel) => device.context.create_cq_on(entries, channel),
            None => device.context.create_cq(entries),
        };
        Ok(Self {
            cq: cq.map_err(BadInput::of)?,
            channel,
            armed: false,
        })
    }

    /// Waits for completions, at least one, which must be successes.
    ///
    /// # Errors
    /// A completion with an error; none for too long; Ctrl-C.
    pub fn next<'a>(&mut self, device: &mut Device<B>, wcs: &'a mut [Wc]) -> Result<&'a [Wc]> {
        let mut found = self.cq.poll(wcs);
        if found == 0 {
            let turns = if self.channel.is_some() { 1 } else { TURNS };
            found = device.wait(turns, |backend| self.turn(backend, wcs))?;
        }
        for wc in &wcs[..found] {
            wc.ok()?;
        }
        Ok(&wcs[..found])
    }

    /// A turn of a wait: the completions there are, or some time passes.
    fn turn(&mut self, backend: &B, wcs: &mut [Wc]) -> Result<usize> {
        let found = self.cq.poll(wcs);
        if found > 0 {
            return Ok(found);
        }
        let Some(channel) = &mut self.channel else {
            backend.relax();
            return Ok(0);
        };
        // What came since the poll is reported at once.
        if !self.armed {
            self.cq.req_notify(Notify::Any)?;
            self.armed = true;
        }
        self.armed = channel.get_event(SLEEP).is_none();
        Ok(0)
    }
}

impl<B: Backend> Device<B> {
    /// Waits until `done` says so.
    ///
    /// # Errors
    /// That is not so for too long; Ctrl-C.
    pub fn wait_until(&mut self, mut done: impl FnMut() -> bool) -> Result<()> {
        let turn = |backend: &B| {
            let answer = done();
            if !answer {
                backend.relax();
            }
            Ok(usize::from(answer))
        };
        self.wait(TURNS, turn).map(drop)
    }

    /// Repeats `turn`, in which time passes, until it answers other than 0, and looks around every so many `turns`.
    fn wait(&mut self, turns: u32, mut turn: impl FnMut(&B) -> Result<usize>) -> Result<usize> {
        let context = self.context.clone();
        let start = context.backend().now_ns();
        let last = if self.simulated {
            LAST_SIMULATED_NS
        } else {
            LAST_NS
        };
        let mut left = None;
        for count in 1u32.. {
            let answer = turn(context.backend())?;
            if answer > 0 {
                return Ok(answer);
            }
            if !count.is_multiple_of(turns) {
                continue;
            }
            check_interrupt()?;
            self.neighbours.poll();
            if context.is_lost() {
                bail!(
                    "the card is gone: its registers read as all ones; see that it is there and configured, and start anew"
                );
            }
            let status = context.status();
            let waited = context.backend().now_ns().saturating_sub(start);
            if left.is_none() && self.peer_left() {
                left = Some(waited);
            }
            if left.is_some_and(|left| waited - left > last) {
                bail!("the peer ended before this side was done: see what it says");
            }
            if waited > PATIENCE_NS || status.dma_error {
                bail!(
                    "nothing completed for {} ms of the card's time ({status}): see whether the peer still runs, and ferroce-stats; over UC and UD a lost message stays lost",
                    waited / 1_000_000
                );
            }
        }
        unreachable!("the wait is bounded by time")
    }

    /// The peer of a test closed the connection.
    fn peer_left(&self) -> bool {
        let peek = |peer: &TcpStream| peer.peek(&mut [0]);
        match self.peer.as_ref().map(peek) {
            None | Some(Ok(1..)) => false,
            Some(Ok(0)) => true,
            Some(Err(e)) => !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }
}
