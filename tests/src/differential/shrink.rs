//! Smaller scenarios that still fail: fewer steps, then only the connections they are about.

use serde::{Deserialize, Serialize};

use super::scenario::{Noise, Scenario, Step};

/// Parts of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Steps, by their number.
    pub steps: Vec<usize>,
    /// Connections, by their number.
    pub connections: Vec<usize>,
}

impl Selection {
    /// All of a scenario.
    #[must_use]
    pub fn all(scenario: &Scenario) -> Self {
        Self {
            steps: (0..scenario.steps.len()).collect(),
            connections: (0..scenario.connections.len()).collect(),
        }
    }

    /// What is left of a scenario. Steps about a connection that is not left are left out too.
    #[must_use]
    pub fn of(&self, whole: &Scenario) -> Scenario {
        let number = |connection| self.connections.iter().position(|&c| c == connection);
        let steps = self.steps.iter().filter_map(|&step| {
            let mut step = whole.steps[step].clone();
            if let Some(connection) = step.connection_mut() {
                *connection = number(*connection)?;
            }
            Some(step)
        });
        let connections = self.connections.iter();
        Scenario {
            connections: connections.map(|&c| whole.connections[c].clone()).collect(),
            steps: steps.collect(),
            ..whole.clone()
        }
    }
}

/// Leaves out steps of a scenario as long as `fails` holds of what is left, asking at most `budget` times.
#[must_use]
pub fn shrink(
    scenario: &Scenario,
    mut budget: u32,
    mut fails: impl FnMut(&Scenario) -> bool,
) -> Selection {
    let mut best = Selection::all(scenario);
    let connections = best.connections.clone();
    best.steps = fewer(best.steps.len(), budget, |steps| {
        budget -= 1;
        let candidate = Selection {
            steps: steps.to_vec(),
            connections: connections.clone(),
        };
        fails(&candidate.of(scenario))
    });
    for connection in (0..best.connections.len()).rev() {
        let mut candidate = best.clone();
        let number = candidate.connections.remove(connection);
        let mut steps = best.steps.iter().map(|&step| scenario.steps[step].clone());
        let concerned = steps.any(|mut step| step.connection_mut().is_some_and(|c| *c == number));
        if concerned || candidate.connections.is_empty() || budget == 0 {
            continue;
        }
        budget -= 1;
        if fails(&candidate.of(scenario)) {
            best = candidate;
        }
    }
    best
}

/// Leaves out places of 0 to `count` as long as `fails` holds of those that are left, asking at most `budget` times.
#[must_use]
pub fn fewer(count: usize, mut budget: u32, mut fails: impl FnMut(&[usize]) -> bool) -> Vec<usize> {
    let mut best: Vec<usize> = (0..count).collect();
    let mut chunk = count.div_ceil(2);
    while chunk > 0 {
        let mut start = 0;
        while start < best.len() && budget > 0 {
            let mut candidate = best.clone();
            let end = (start + chunk).min(candidate.len());
            candidate.drain(start..end);
            budget -= 1;
            if fails(&candidate) {
                best = candidate;
            } else {
                start = end;
            }
        }
        chunk = if chunk == 1 { 0 } else { chunk.div_ceil(2) };
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
