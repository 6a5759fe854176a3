//! Requester: round trips, of one packet of a queue pair at a time (docs/congestion.md).

use ferroce_proto::wire::Psn;

use super::{Env, stats};

/// Cycles from which on a round trip is no sample.
const TOO_LONG: u64 = 1 << 24;

/// The packet that is measured.
#[derive(Clone, Default)]
pub(super) struct RoundTrip {
    /// The PSN behind it, and the cycle in which it left.
    measured: Option<(Psn, u64)>,
    /// What was made before the latest go-back ends here: it is sent again, so nothing of it is measured (Karn).
    fresh: Psn,
}

impl RoundTrip {
    /// Measures from `psn` on.
    pub(super) fn from(psn: Psn) -> Self {
        Self {
            measured: None,
            fresh: psn,
        }
    }

    /// A packet left that asks for an acknowledgement; `after` is the PSN behind it.
    pub(super) fn departed(&mut self, now: u64, after: Psn) {
        if self.measured.is_none() && after.since(self.fresh) > 0 {
            self.measured = Some((after, now));
        }
    }

    /// An acknowledgement of just the packet in front of `psn` came. Its round trip in cycles, if it is the one that is measured.
    pub(super) fn sample(&mut self, env: &mut Env, psn: Psn) -> Option<u64> {
        let (_, at) = self.measured.take_if(|(after, _)| *after == psn)?;
        let rtt = env.now - at;
        (rtt < TOO_LONG).then(|| {
            env.stats.count(stats::RP_RTT_SAMPLES);
            env.stats.add(stats::RP_RTT_CYCLES, rtt);
            rtt
        })
    }

    /// All before `una` is acknowledged. Of an acknowledgement that goes further than the packet the peer may have waited.
    pub(super) fn passed(&mut self, una: Psn) {
        if una.since(self.fresh) > 0 {
            self.fresh = una;
        }
        self.measured.take_if(|(after, _)| una.since(*after) >= 0);
    }
}
