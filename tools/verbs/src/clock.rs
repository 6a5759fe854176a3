//! The two times of a measurement: the host's and the card's.

use std::time::Instant;

use ferroce_driver::Backend;

use crate::device::Device;

/// A moment, in the time of the host and of the card.
pub struct Clock {
    start: Instant,
    card: u64,
}

/// Seconds of the host and of the card.
pub type Times = [f64; 2];

impl Clock {
    /// Now.
    pub fn start<B: Backend>(device: &Device<B>) -> Self {
        let card = device.context.backend().now_ns();
        Self {
            start: Instant::now(),
            card,
        }
    }

    /// Seconds of the host since then.
    #[must_use]
    pub fn host(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Seconds of the card since then. Of a card in hardware they are the host's.
    #[must_use]
    pub fn card<B: Backend>(&self, device: &Device<B>) -> f64 {
        let now = device.context.backend().now_ns();
        now.saturating_sub(self.card) as f64 / 1e9
    }

    /// Both.
    #[must_use]
    pub fn times<B: Backend>(&self, device: &Device<B>) -> Times {
        [self.host(), self.card(device)]
    }
}
