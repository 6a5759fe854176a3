//! How the card's time follows ours.
//!
//! A card that has work to do is stepped as fast as that goes. One that waits for its next timer lets time pass as on our
//! clock: its peer, another process, needs time to answer. An engine cannot tell that it waits; when nothing moved at its
//! ports for long it goes on at a slow pace, which costs little.

use std::time::{Duration, Instant};

use crate::nic::NS_PER_CYCLE;

/// Cycles of a turn.
pub(crate) const TURN: u64 = 8;
/// Cycles without anything at the ports after which an engine is slowed down.
const LINGER: u64 = 1 << 18;
/// Sleep of a turn of an engine that is slowed down.
const NAP: Duration = Duration::from_millis(1);
/// Longest sleep; what ends it otherwise is watched.
const LONGEST: Duration = Duration::from_secs(10);

/// What the next turn does with time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Steps.
    Step,
    /// Sleeps before it steps.
    Nap(Duration),
    /// Sleeps, but not beyond this cycle of the card, and then lets as much time pass as it slept.
    Wait(u64, Duration),
}

/// Watches for how long nothing moved.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    quiet_since: Option<u64>,
}

impl Watch {
    /// Something moved.
    pub(crate) fn moved(&mut self) {
        self.quiet_since = None;
    }

    /// What to do at cycle `now` of a card that is idle until a cycle, if it can tell; `is_quiet`: nothing is under way.
    pub(crate) fn pace(&mut self, now: u64, idle_until: Option<u64>, is_quiet: bool) -> Pace {
        if let Some(until) = idle_until {
            let ns = until.saturating_sub(now).saturating_mul(NS_PER_CYCLE);
            return Pace::Wait(until, Duration::from_nanos(ns).min(LONGEST));
        }
        if !is_quiet {
            self.moved();
            return Pace::Step;
        }
        // A reset sets the card's time back.
        let since = *self.quiet_since.get_or_insert(now);
        let since = since.min(now);
        self.quiet_since = Some(since);
        if now - since < LINGER {
            Pace::Step
        } else {
            Pace::Nap(NAP)
        }
    }
}

/// Cycles that have passed since `start`.
pub(crate) fn cycles_since(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64 / NS_PER_CYCLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_slowed_down_when_nothing_moved_for_long() {
        let mut watch = Watch::default();
        assert_eq!(watch.pace(100, None, true), Pace::Step);
        assert_eq!(watch.pace(99 + LINGER, None, true), Pace::Step);
        assert_eq!(watch.pace(100 + LINGER, None, true), Pace::Nap(NAP));
        watch.moved();
        assert_eq!(watch.pace(101 + LINGER, None, true), Pace::Step);
        assert_eq!(watch.pace(9 * LINGER, None, false), Pace::Step);
        assert_eq!(watch.pace(9 * LINGER + 1, None, true), Pace::Step);
        // Reset.
        assert_eq!(watch.pace(5, None, true), Pace::Step);
        assert_eq!(watch.pace(5 + LINGER, None, true), Pace::Nap(NAP));
    }

    #[test]
    fn a_card_with_a_known_timer_waits_for_it() {
        let mut watch = Watch::default();
        let wait = |cycles: u64| Pace::Wait(100 + cycles, Duration::from_nanos(4 * cycles));
        assert_eq!(watch.pace(100, Some(350), true), wait(250));
        let longest = Pace::Wait(u64::MAX, LONGEST);
        assert_eq!(watch.pace(100, Some(u64::MAX), true), longest);
    }
}
