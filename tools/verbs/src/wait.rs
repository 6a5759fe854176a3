//! Waiting for completions, bounded by the card's time.

use std::io::ErrorKind;
use std::net::TcpStream;

use anyhow::{Result, bail};
use ferroce_driver::{Backend, Cq, Wc};

use crate::device::Device;
use crate::program::check_interrupt;

/// Longest time without a completion in ns of the card's time: more than the retries of a queue pair take.
const PATIENCE_NS: u64 = 5_000_000_000;
/// What the peer of a test sent before it left comes within this time, in ns of the card's time.
const LAST_NS: u64 = 100_000_000;
/// Turns of a wait from one look at the neighbours to the next.
const TURNS: u32 = 64;

impl<B: Backend> Device<B> {
    /// Waits for completions, at least one, which must be successes.
    ///
    /// # Errors
    /// A completion with an error; none for too long; Ctrl-C.
    pub fn completions<'a>(&mut self, cq: &mut Cq<B>, wcs: &'a mut [Wc]) -> Result<&'a [Wc]> {
        let found = cq.poll(wcs);
        let found = if found > 0 {
            found
        } else {
            self.wait_until(|| cq.poll(wcs))?
        };
        for wc in &wcs[..found] {
            wc.ok()?;
        }
        Ok(&wcs[..found])
    }

    /// Waits until `done` answers other than 0.
    ///
    /// # Errors
    /// That is not so for too long; Ctrl-C.
    pub fn wait_until(&mut self, mut done: impl FnMut() -> usize) -> Result<usize> {
        let start = self.context.backend().now_ns();
        let mut left = None;
        for turn in 1u32.. {
            let answer = done();
            if answer > 0 {
                return Ok(answer);
            }
            if turn.is_multiple_of(TURNS) {
                check_interrupt()?;
                self.neighbours.poll();
                let status = self.context.status();
                let waited = self.context.backend().now_ns().saturating_sub(start);
                if left.is_none() && self.peer_left() {
                    left = Some(waited);
                }
                if left.is_some_and(|left| waited - left > LAST_NS) {
                    bail!("the peer ended before this side was done: see what it says");
                }
                if waited > PATIENCE_NS || status.absent || status.dma_error {
                    bail!(
                        "nothing completed for {} ms of the card's time ({status}): see whether the peer still runs, and ferroce-stats",
                        waited / 1_000_000
                    );
                }
            }
            self.context.backend().relax();
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
