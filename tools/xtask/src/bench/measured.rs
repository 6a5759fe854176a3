//! What a run of a load measures.

/// What came out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// Messages completed of the slowest requester, and the cycles this took.
    pub(super) messages: u64,
    pub(super) cycles: u64,
    /// Payload bytes a cycle of that one.
    pub(super) goodput: f64,
    /// Payload bytes a cycle of all requesters.
    pub(super) total: f64,
    /// Cycles of the whole run, set-up of the queue pairs not counted.
    pub(super) run: u64,
    /// CPU time of these cycles in s.
    pub(super) cpu: f64,
    /// Packets sent again.
    pub(super) retransmissions: u64,
    /// Local ACK timeouts.
    pub(super) timeouts: u64,
}

impl Measured {
    /// What counts is the sum over all runs, a rate the mean.
    pub(super) fn mean(runs: &[Self]) -> Self {
        let sum = |of: fn(&Self) -> u64| runs.iter().map(of).sum();
        let mean = |of: fn(&Self) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        Self {
            messages: sum(|run| run.messages),
            cycles: sum(|run| run.cycles),
            goodput: mean(|run| run.goodput),
            total: mean(|run| run.total),
            run: sum(|run| run.run),
            cpu: runs.iter().map(|run| run.cpu).sum(),
            retransmissions: sum(|run| run.retransmissions),
            timeouts: sum(|run| run.timeouts),
        }
    }
}
