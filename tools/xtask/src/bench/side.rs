//! One host's requests of another, and what came of them.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Result, ensure};
use ferroce_sim::testhost::{Host, Mr, pattern};

use super::load::Op;

/// Words that additions go to, one after the other.
pub(super) const WORDS: u64 = 64;

/// A queue pair that requests.
pub(super) struct Requester {
    pub(super) qpn: u32,
    /// That of the other host.
    pub(super) peer: u32,
    pub(super) op: Op,
    /// It is measured.
    pub(super) counts: bool,
    pub(super) posted: u64,
    pub(super) done: u64,
}

/// The requests of one host of another.
pub(super) struct Side {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) op: Op,
    /// Bytes of a message.
    pub(super) bytes: u32,
    pub(super) qps: Vec<Requester>,
    pub(super) source: Mr,
    pub(super) target: Mr,
    pub(super) posted: u64,
    pub(super) done: u64,
    /// Places in `qps` where something completed since messages were posted there.
    pub(super) due: BTreeSet<usize>,
    /// Messages done and cycle where the measurement begins, and where it ends.
    pub(super) begin: Option<(u64, u64)>,
    pub(super) end: Option<(u64, u64)>,
}

/// Side and place of the queue pairs of a host.
pub(super) type Owners = HashMap<(usize, u32), (usize, usize)>;

/// Of all sides.
pub(super) fn owners(sides: &[Side]) -> Owners {
    let mut owners = Owners::new();
    for (index, side) in sides.iter().enumerate() {
        for (place, qp) in side.qps.iter().enumerate() {
            owners.insert((side.from, qp.qpn), (index, place));
            owners.insert((side.to, qp.peer), (index, place));
        }
    }
    owners
}

impl Side {
    /// All that was posted and is measured is done.
    pub(super) fn is_drained(&self) -> bool {
        self.done == self.posted
    }

    /// Messages measured, and the cycles they took.
    pub(super) fn span(&self) -> (u64, u64) {
        let ((m0, t0), (m1, t1)) = self.begin.zip(self.end).expect("measured");
        (m1 - m0, (t1 - t0).max(1))
    }

    /// Payload bytes a cycle.
    pub(super) fn goodput(&self) -> f64 {
        let (messages, cycles) = self.span();
        messages as f64 / cycles as f64 * f64::from(self.bytes)
    }

    /// The target holds what was moved there, or the sum of all additions.
    pub(super) fn check(&self, hosts: &[Host]) -> Result<()> {
        let at = match self.op {
            Op::Read => self.from,
            _ => self.to,
        };
        let read = |len: u64| hosts[at].read(self.target.addr, len as usize);
        if self.op == Op::FetchAdd {
            let words = read(8 * WORDS);
            let words = words.as_chunks().0.iter();
            let sum: u64 = words.map(|&word| u64::from_le_bytes(word)).sum();
            ensure!(sum == self.done, "{sum} of {} were added", self.done);
            return Ok(());
        }
        let expected = match self.op {
            Op::CmpSwap => vec![0; 8],
            _ => pattern(self.bytes as usize, 1),
        };
        let found = read(self.bytes.into());
        ensure!(found == expected, "other bytes arrived than were sent");
        Ok(())
    }
}
