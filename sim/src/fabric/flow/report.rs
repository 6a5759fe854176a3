//! What came of the flows of a host.

use super::FlowId;
use super::reaction::Change;
use crate::fabric::Time;

/// What happened in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// Bytes: of whole frames where they were sent, of payload where they were received.
    pub bytes: u64,
    /// CNPs that came, or went.
    pub cnps: u32,
    /// Decreases of the rate or the window.
    pub decreases: u32,
    /// Increases of the rate or the window.
    pub increases: u32,
}

impl Tick {
    /// A change of the rate or the window.
    pub(super) const fn count(&mut self, change: Change) {
        match change {
            Change::Decrease => self.decreases += 1,
            Change::Increase => self.increases += 1,
        }
    }
}

/// What happened by interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    interval: Time,
    /// Place of the first tick.
    first: usize,
    ticks: Vec<Tick>,
}

impl Series {
    /// Nothing yet.
    #[must_use]
    pub const fn new(interval: Time) -> Self {
        Self {
            interval,
            first: 0,
            ticks: Vec::new(),
        }
    }

    /// The tick of a time that is not before those asked for so far.
    pub fn at(&mut self, now: Time) -> &mut Tick {
        let place = (now / self.interval) as usize;
        if self.ticks.is_empty() {
            self.first = place;
        }
        let place = place.saturating_sub(self.first);
        if self.ticks.len() <= place {
            self.ticks.resize(place + 1, Tick::default());
        }
        &mut self.ticks[place]
    }

    /// The tick of interval number `place`.
    #[must_use]
    pub fn get(&self, place: usize) -> Tick {
        let place = place.checked_sub(self.first);
        let tick = place.and_then(|place| self.ticks.get(place));
        tick.copied().unwrap_or_default()
    }

    /// Sum of the intervals that begin within a time.
    #[must_use]
    pub fn sum(&self, from: Time, to: Time) -> Tick {
        let places = from.div_ceil(self.interval)..to.div_ceil(self.interval);
        places.fold(Tick::default(), |sum, place| {
            let tick = self.get(place as usize);
            Tick {
                bytes: sum.bytes + tick.bytes,
                cnps: sum.cnps + tick.cnps,
                decreases: sum.decreases + tick.decreases,
                increases: sum.increases + tick.increases,
            }
        })
    }

    /// Length of an interval.
    #[must_use]
    pub const fn interval(&self) -> Time {
        self.interval
    }
}

/// A flow at its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Which.
    pub flow: FlowId,
    /// When it was given to the sender.
    pub started: Option<Time>,
    /// When its last packet was acknowledged.
    pub finished: Option<Time>,
    /// Packets sent, repeated ones counted.
    pub packets: u64,
    /// Packets sent again.
    pub repeated: u64,
    /// Waits for an acknowledgement that ran out.
    pub timeouts: u64,
    /// Frames sent; CNPs, decreases, increases.
    pub series: Series,
}

impl Sent {
    /// Of the two ends of a flow that is fetched: the times of one, the packets of the other.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let (times, sender) = if self.started.is_some() {
            (self, other)
        } else {
            (other, self)
        };
        Self {
            started: times.started,
            finished: times.finished,
            ..sender
        }
    }
}

/// A flow at its receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Which.
    pub flow: FlowId,
    /// When all of it was there.
    pub finished: Option<Time>,
    /// Bytes that came in order.
    pub bytes: u64,
    /// Packets that carried CE.
    pub marked: u64,
    /// Payload in order; CNPs sent.
    pub series: Series,
}

/// What came of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostReport {
    /// Flows that it sent.
    pub sent: Vec<Sent>,
    /// Flows that it received.
    pub received: Vec<Received>,
    /// Frames that it put on the wire.
    pub frames_out: u64,
    /// Frames that came to it but for pauses.
    pub frames_in: u64,
    /// Frames that it took for no packet of its own.
    pub refused: u64,
    /// Pauses that it was given.
    pub held: u64,
    /// Waits for an acknowledgement that ran out, which a card counts of all flows together.
    pub timeouts: u64,
    /// What makes the run a failed one.
    pub failures: Vec<String>,
}
