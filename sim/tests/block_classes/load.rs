//! What a test wants of a queue.

/// What a test wants of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// Shortest frame, bytes; 0: no frames.
    pub(crate) shortest: usize,
    /// Longest.
    pub(crate) longest: usize,
    /// Chance that a frame comes in a cycle in which one may.
    pub(crate) chance: f64,
}

impl Load {
    /// As much as there is room for.
    pub(crate) fn full(shortest: usize, longest: usize) -> Self {
        Self {
            shortest,
            longest,
            chance: 1.0,
        }
    }
}
