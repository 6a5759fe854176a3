//! Smaller scenarios that still fail: fewer steps, then only the connections they are about.

use super::scenario::{Noise, Scenario, Step};

/// Leaves out steps of a scenario as long as `fails` holds of what is left, asking at most `budget` times.
#[must_use]
pub fn shrink(
    scenario: &Scenario,
    mut budget: u32,
    mut fails: impl FnMut(&Scenario) -> bool,
) -> Scenario {
    let mut best = scenario.clone();
    let mut chunk = best.steps.len().div_ceil(2);
    while chunk > 0 {
        let mut start = 0;
        while start < best.steps.len() && budget > 0 {
            let mut candidate = best.clone();
            let end = (start + chunk).min(candidate.steps.len());
            candidate.steps.drain(start..end);
            budget -= 1;
            if fails(&candidate) {
                best = candidate;
            } else {
                start = end;
            }
        }
        chunk = if chunk == 1 { 0 } else { chunk.div_ceil(2) };
    }
    for connection in (0..best.connections.len()).rev() {
        let mut candidate = best.clone();
        let concerned = candidate.steps.iter_mut().any(|step| {
            let number = step.connection_mut();
            number.is_some_and(|number| *number == connection)
        });
        if concerned || candidate.connections.len() == 1 || budget == 0 {
            continue;
        }
        candidate.connections.remove(connection);
        for number in candidate.steps.iter_mut().filter_map(Step::connection_mut) {
            *number -= usize::from(*number > connection);
        }
        budget -= 1;
        if fails(&candidate) {
            best = candidate;
        }
    }
    best
}

impl Step {
    /// The connection that the step is about.
    fn connection_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::Message(message) => Some(&mut message.connection),
            Self::Spare { connection, .. }
            | Self::Forgery { connection, .. }
            | Self::Reconnect { connection, .. }
            | Self::Noise {
                noise: Noise::Spoilt { connection, .. },
                ..
            } => Some(connection),
            Self::Noise { .. } | Self::Command { .. } | Self::Rest => None,
        }
    }
}
