//! What owners of send queues came to.

/// What an owner came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Misuse {
    /// Acts.
    pub acts: u64,
    /// Messages of the bystanders that came right.
    pub messages: u64,
    /// Completions of the owners.
    pub completions: u64,
    /// Owners that died.
    pub deaths: u64,
    /// Cycles.
    pub cycles: u64,
    /// Most cycles that a command took.
    pub slowest: u64,
}

impl std::ops::AddAssign for Misuse {
    fn add_assign(&mut self, other: Self) {
        self.acts += other.acts;
        self.messages += other.messages;
        self.completions += other.completions;
        self.deaths += other.deaths;
        self.cycles += other.cycles;
        self.slowest = self.slowest.max(other.slowest);
    }
}
