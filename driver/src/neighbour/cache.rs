//! Where peers are: the neighbour cache with its states and times (RFC 4861, 7.3), for ARP too.

use std::collections::{BTreeMap, VecDeque};

use ferroce_proto::wire::Mac;

use super::NeighbourConfig;

/// What is known of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NeighbourState {
    /// Asked for, and no answer yet.
    Incomplete,
    /// Confirmed within the reachable time.
    Reachable,
    /// Known from a while ago, or only from what it asked: asked again when needed.
    Stale,
    /// Being asked whether it is still there.
    Probe,
    /// Did not answer.
    Failed,
}

/// Which neighbour: an address in 16 bytes, as of a GID.
pub(super) type Address = std::net::Ipv6Addr;

/// A question that is due.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) address: Address,
    pub(super) sgid_index: u8,
    /// Where it was; `None`: ask all.
    pub(super) to: Option<Mac>,
}

struct Entry {
    mac: Option<Mac>,
    state: NeighbourState,
    /// Questions asked in this state.
    asked: u32,
    /// When the state ends or the next question is due, in ns.
    next: u64,
    /// When it was last of use, in ns.
    used: u64,
    /// Since when somebody needs it without an answer that lasts, in ns.
    wanted: Option<u64>,
    sgid_index: u8,
    /// Frames that wait for the address of their destination, which is left open in them.
    waiting: VecDeque<Vec<u8>>,
}

impl Entry {
    fn enter(&mut self, state: NeighbourState, now: u64) {
        (self.state, self.asked, self.next) = (state, 0, now);
    }

    /// Somebody asked for it not long ago.
    fn is_wanted(&self, now: u64, limit: u64) -> bool {
        now.saturating_sub(self.used) <= limit
    }

    /// It was asked for as long as may be: answers that contradict each other begin the questions anew, not this time.
    fn is_over(&self, now: u64, limit: u64) -> bool {
        use NeighbourState::{Failed, Reachable};
        let is_open = !matches!(self.state, Failed | Reachable) && self.is_wanted(now, limit);
        is_open
            && self
                .wanted
                .is_some_and(|since| now.saturating_sub(since) > limit)
    }

    /// A question of ours for it is open.
    fn is_asked(&self) -> bool {
        use NeighbourState::{Incomplete, Probe};
        matches!(self.state, Incomplete | Probe)
    }
}

/// Neighbours by address.
pub(super) struct Cache {
    config: NeighbourConfig,
    entries: BTreeMap<Address, Entry>,
}

impl Cache {
    pub(super) fn new(config: NeighbourConfig) -> Self {
        Self {
            config,
            entries: BTreeMap::new(),
        }
    }

    /// MAC address and state of a neighbour.
    pub(super) fn get(&self, address: Address) -> Option<(Option<Mac>, NeighbourState)> {
        let entry = self.entries.get(&address)?;
        Some((entry.mac, entry.state))
    }

    /// Somebody needs a neighbour: its address if it is confirmed, else questions begin if none are under way.
    pub(super) fn want(&mut self, address: Address, sgid_index: u8, now: u64) -> Option<Mac> {
        if !self.entries.contains_key(&address) {
            self.insert(address, NeighbourState::Incomplete, now);
        }
        let entry = self.entries.get_mut(&address)?;
        if !entry.is_wanted(now, self.config.limit_ns()) {
            entry.wanted = None;
        }
        entry.used = now;
        match entry.state {
            NeighbourState::Reachable if now < entry.next => {
                entry.wanted = None;
                return entry.mac;
            }
            NeighbourState::Reachable | NeighbourState::Stale => {
                entry.enter(NeighbourState::Probe, now);
                entry.sgid_index = sgid_index;
            }
            NeighbourState::Failed => entry.enter(NeighbourState::Incomplete, now),
            NeighbourState::Incomplete if entry.asked == 0 => entry.sgid_index = sgid_index,
            NeighbourState::Incomplete | NeighbourState::Probe => {}
        }
        entry.wanted.get_or_insert(now);
        None
    }

    /// Keeps a frame until the neighbour is known; returns how many older ones are lost to it.
    pub(super) fn hold(&mut self, address: Address, frame: Vec<u8>) -> u64 {
        let Some(entry) = self.entries.get_mut(&address) else {
            return 1;
        };
        entry.waiting.push_back(frame);
        let over = entry.waiting.len().saturating_sub(self.config.queue);
        entry.waiting.drain(..over);
        over as u64
    }

    /// Questions that are due, and neighbours given up with the frames that waited for them.
    pub(super) fn due(&mut self, now: u64) -> (Vec<Question>, u64) {
        let (mut questions, mut lost) = (Vec::new(), 0);
        for (&address, entry) in &mut self.entries {
            let is_over = entry.is_over(now, self.config.limit_ns());
            if !is_over && (!entry.is_asked() || now < entry.next) {
                continue;
            }
            if entry.asked == self.config.tries || is_over {
                if entry.state == NeighbourState::Probe && !is_over {
                    // It may have moved: everybody is asked.
                    entry.enter(NeighbourState::Incomplete, now);
                    entry.mac = None;
                } else {
                    // Kept for this time, so that the callers that asked see the failure.
                    let kept = self.config.retry_ns * u64::from(self.config.tries);
                    entry.enter(NeighbourState::Failed, now + kept);
                    entry.mac = None;
                    entry.wanted = None;
                    lost += entry.waiting.drain(..).count() as u64;
                    continue;
                }
            }
            entry.asked += 1;
            entry.next = now + self.config.retry_ns;
            let probes = entry.state == NeighbourState::Probe;
            questions.push(Question {
                address,
                sgid_index: entry.sgid_index,
                to: entry.mac.filter(|_| probes),
            });
        }
        (questions, lost)
    }

    /// A neighbour asked for something of ours, and so said where it is (RFC 826; RFC 4861, 7.2.3).
    pub(super) fn learn(&mut self, address: Address, mac: Mac, now: u64) -> VecDeque<Vec<u8>> {
        if !self.entries.contains_key(&address) {
            self.insert(address, NeighbourState::Stale, now);
        }
        self.moved(address, mac, now)
    }

    /// Takes an unsolicited announcement of a neighbour: it updates a known entry and adds none.
    pub(super) fn moved(&mut self, address: Address, mac: Mac, now: u64) -> VecDeque<Vec<u8>> {
        let Some(entry) = self.entries.get_mut(&address) else {
            return VecDeque::new();
        };
        if entry.mac != Some(mac) {
            entry.mac = Some(mac);
            // An open question goes on: else it never ends while somebody announces ever other addresses.
            if !entry.is_asked() {
                entry.enter(NeighbourState::Stale, now);
            }
        }
        std::mem::take(&mut entry.waiting)
    }

    /// A question of ours for a neighbour is open.
    pub(super) fn is_asked(&self, address: Address) -> bool {
        self.entries.get(&address).is_some_and(Entry::is_asked)
    }

    /// A neighbour answered (RFC 4861, 7.2.5); `overrides`: also if another address was known. `None`: no question is
    /// open, or the answer does not count.
    pub(super) fn answered(
        &mut self,
        address: Address,
        mac: Option<Mac>,
        overrides: bool,
        now: u64,
    ) -> Option<VecDeque<Vec<u8>>> {
        let entry = self.entries.get_mut(&address)?;
        let mac = mac.or(entry.mac)?;
        match entry.state {
            NeighbourState::Failed => return None,
            NeighbourState::Incomplete => {}
            _ if entry.mac != Some(mac) && !overrides => {
                if entry.state == NeighbourState::Reachable {
                    entry.enter(NeighbourState::Stale, now);
                }
                return None;
            }
            _ => {}
        }
        entry.mac = Some(mac);
        entry.enter(NeighbourState::Reachable, now + self.config.reachable_ns);
        Some(std::mem::take(&mut entry.waiting))
    }

    /// Forgets that a neighbour did not answer.
    pub(super) fn discard(&mut self, address: Address) {
        self.entries.remove(&address);
    }

    /// Makes a place for a neighbour: that of the one not needed for longest, but none that is being asked for.
    fn insert(&mut self, address: Address, state: NeighbourState, now: u64) {
        let wanted = state == NeighbourState::Incomplete;
        if self.entries.len() >= self.config.entries {
            let asked = |entry: &Entry| {
                entry.is_asked() || (entry.state == NeighbourState::Failed && now < entry.next)
            };
            let oldest = self.entries.iter().filter(|(_, entry)| !asked(entry));
            match oldest.min_by_key(|(_, entry)| entry.used).map(|(a, _)| *a) {
                Some(oldest) => {
                    self.entries.remove(&oldest);
                }
                // What the host asks for is bounded by itself; what others tell must not grow.
                None if !wanted => return,
                None => {}
            }
        }
        let entry = Entry {
            mac: None,
            state,
            asked: 0,
            next: now,
            used: now,
            wanted: None,
            sgid_index: 0,
            waiting: VecDeque::new(),
        };
        self.entries.insert(address, entry);
    }
}
