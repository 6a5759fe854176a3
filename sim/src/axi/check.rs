//! Rules of the protocols, checked in every cycle of every run.

use std::fmt;

use super::{Address, BOUNDARY, INCR};

/// A rule of a port that the engine broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Cycle, as [`Nic::now`](crate::nic::Nic::now) counts.
    pub cycle: u64,
    /// Port and channel.
    pub channel: &'static str,
    /// What happened and what the rule asks for.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cycle {}: {}: {}", self.cycle, self.channel, self.what)
    }
}

/// Violations found so far. A run with any has failed.
#[derive(Clone, Debug, Default)]
pub struct Violations {
    list: Vec<Violation>,
    count: u64,
}

impl Violations {
    /// Violations kept with their text; later ones are only counted.
    pub const KEPT: usize = 64;

    /// Notes a violation.
    pub fn add(&mut self, cycle: u64, channel: &'static str, what: impl Into<String>) {
        self.count += 1;
        if self.list.len() < Self::KEPT {
            self.list.push(Violation {
                cycle,
                channel,
                what: what.into(),
            });
        }
    }

    /// The first [`KEPT`](Self::KEPT), oldest first.
    #[must_use]
    pub fn list(&self) -> &[Violation] {
        &self.list
    }

    /// All of them.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// The rule that valid stays until ready and that the payload stays with it (AXI4 A3.2.1).
#[derive(Clone, Debug)]
pub(crate) struct Hold<T> {
    channel: &'static str,
    waiting: Option<T>,
}

impl<T: Copy + PartialEq> Hold<T> {
    pub(crate) fn new(channel: &'static str) -> Self {
        Self {
            channel,
            waiting: None,
        }
    }

    /// Looks at one cycle of the channel; `payload` holds its valid too.
    #[inline]
    pub(crate) fn check(
        &mut self,
        now: u64,
        valid: bool,
        ready: bool,
        payload: &T,
        log: &mut Violations,
    ) {
        if let Some(waiting) = &self.waiting {
            if !valid {
                log.add(
                    now,
                    self.channel,
                    "valid was withdrawn before ready; it must stay",
                );
            } else if waiting != payload {
                log.add(
                    now,
                    self.channel,
                    "the payload changed before ready; it must stay",
                );
            }
        }
        if valid && !ready {
            self.waiting = Some(*payload);
        } else if self.waiting.is_some() {
            self.waiting = None;
        }
    }

    pub(crate) fn reset(&mut self) {
        self.waiting = None;
    }
}

/// Checks an address for a data path of `lanes` bytes.
pub(super) fn address(
    now: u64,
    channel: &'static str,
    a: &Address,
    lanes: usize,
    log: &mut Violations,
) {
    if a.burst != INCR {
        log.add(
            now,
            channel,
            format!(
                "burst type {} at {:#x}; memory takes INCR (1) only",
                a.burst, a.addr
            ),
        );
    }
    if 1usize.checked_shl(a.size.into()) != Some(lanes) {
        log.add(
            now,
            channel,
            format!(
                "beats of 2^{} bytes at {:#x}; the data path has {lanes}",
                a.size, a.addr
            ),
        );
    }
    let first = a.addr & !(lanes as u64 - 1);
    let last = first.wrapping_add((a.beats() * lanes) as u64 - 1);
    if first / BOUNDARY != last / BOUNDARY {
        log.add(
            now,
            channel,
            format!(
                "{} beats at {:#x} cross a {BOUNDARY}-byte boundary",
                a.beats(),
                a.addr
            ),
        );
    }
}
