//! Times: what is sent again and when, and what is given up.

use std::time::Duration;

use super::{CmEvent, Manager, Output, State, Waiting};

/// Code of the time until a message is sent again, 4.3 s: as Linux has it.
pub(super) const ANSWER: u8 = 20;
/// How often it is.
pub(super) const RETRIES: u8 = 15;
/// Code of the time that a program may take to decide, 69 s, before its peer asks again.
pub(super) const DECIDE: u8 = 24;
/// Requests that programs have not decided on; more are left, and come again.
pub(super) const UNDECIDED: usize = 1024;
/// How long late messages of a connection are known.
pub(super) const TIME_WAIT: Duration = time(18);

/// The time that a code stands for (IB1 12.7.34).
pub(super) const fn time(code: u8) -> Duration {
    Duration::from_nanos(4096 << code)
}

impl Manager {
    /// When [`tick`](Self::tick) has something to do.
    pub fn deadline(&self) -> Option<Duration> {
        self.connections.deadline()
    }

    /// Sends again what was not answered in time, and gives up what was sent often enough.
    pub fn tick(&mut self, now: Duration) {
        for id in self.connections.due(now) {
            let Some(c) = self.connections.get_mut(id) else {
                continue;
            };
            let peer = c.peer;
            if let Some(waiting) = c.state.waiting()
                && waiting.left > 0
            {
                waiting.left -= 1;
                let again = waiting.mad.clone();
                self.connections.wait(id, now + time(ANSWER));
                self.out.push_back(Output::Send(peer, again));
                continue;
            }
            match c.state {
                State::DreqSent(_) => {
                    self.time_wait(now, id, CmEvent::Disconnected { in_time: false });
                }
                State::TimeWait(_) => self.end(id, CmEvent::TimeWaitOver),
                State::SidrAnswered(..) => drop(self.connections.remove(id)),
                _ => self.end(id, CmEvent::Unreachable),
            }
        }
    }
}

#[cfg(test)]
std::thread_local! {
    /// States that were looked at for their time.
    pub(super) static LOOKED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl State {
    pub(super) fn waiting(&mut self) -> Option<&mut Waiting> {
        match self {
            Self::ReqSent(w) | Self::RepSent(w) | Self::DreqSent(w) | Self::SidrSent(w) => Some(w),
            _ => None,
        }
    }

    /// When something is to be done.
    pub(super) fn at(&self) -> Option<Duration> {
        #[cfg(test)]
        LOOKED.set(LOOKED.get() + 1);
        match self {
            Self::ReqSent(w) | Self::RepSent(w) | Self::DreqSent(w) | Self::SidrSent(w) => {
                Some(w.at)
            }
            Self::TimeWait(at) | Self::SidrAnswered(_, at) => Some(*at),
            Self::ReqReceived | Self::RepReceived | Self::Established | Self::SidrReceived => None,
        }
    }
}
