//! The depth of a queue over time: mean and maximum by interval, and how long it had which depth.

use super::Time;

/// Bytes of a step of the histogram.
pub const BIN: u64 = 1000;

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Length of an interval.
    pub interval: Time,
    /// Start of the time that mean and histogram count.
    pub from: Time,
    /// Its end.
    pub until: Time,
}

impl Default for Window {
    /// 100 us, all of the time.
    fn default() -> Self {
        Self {
            interval: 100 * super::US,
            from: 0,
            until: Time::MAX,
        }
    }
}

/// Depth of a queue in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Byte-picoseconds.
    area: u128,
    /// Bytes.
    pub max: u64,
}

/// The record of one queue.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    window: Window,
    /// Until when it is written.
    now: Time,
    depth: u64,
    intervals: Vec<Depth>,
    /// Picoseconds at each depth: 0, then up to [`BIN`] bytes, up to twice as many, and so on.
    bins: Vec<Time>,
    /// Byte-picoseconds of the same time.
    area: u128,
}

impl Trace {
    /// One of a queue that is empty at time 0.
    #[must_use]
    pub fn new(window: Window) -> Self {
        Self {
            window,
            ..Self::default()
        }
    }

    /// The queue has another depth from `now` on.
    pub fn set(&mut self, now: Time, depth: u64) {
        self.run(now);
        self.depth = depth;
        let place = self.place(now);
        self.intervals[place].max = self.intervals[place].max.max(depth);
    }

    /// Time passes.
    pub fn run(&mut self, now: Time) {
        while self.now < now {
            let place = self.place(self.now);
            let end = ((place as u64 + 1) * self.window.interval).min(now);
            let time = end - self.now;
            let interval = &mut self.intervals[place];
            interval.area += u128::from(self.depth) * u128::from(time);
            interval.max = interval.max.max(self.depth);
            let last = end.min(self.window.until);
            let counted = last.saturating_sub(self.window.from.max(self.now));
            let bin = self.depth.div_ceil(BIN) as usize;
            self.area += u128::from(self.depth) * u128::from(counted);
            if counted > 0 {
                if self.bins.len() <= bin {
                    self.bins.resize(bin + 1, 0);
                }
                self.bins[bin] += counted;
            }
            self.now = end;
        }
    }

    /// Mean and maximum of each interval, bytes.
    #[must_use]
    pub fn intervals(&self) -> Vec<(f64, u64)> {
        let length = self.window.interval as f64;
        let intervals = self.intervals.iter();
        intervals
            .map(|depth| (depth.area as f64 / length, depth.max))
            .collect()
    }

    /// Greatest depth ever, bytes.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.intervals
            .iter()
            .map(|depth| depth.max)
            .max()
            .unwrap_or(0)
    }

    /// Mean depth in the time that counts, bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let total: Time = self.bins.iter().sum();
        self.area as f64 / total.max(1) as f64
    }

    /// The depth, in bytes, that the queue had or was below this share of the time, to a bin.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        let total: Time = self.bins.iter().sum();
        let mut left = (total as f64 * share) as Time;
        for (bin, &time) in self.bins.iter().enumerate() {
            if time >= left {
                return (bin as u64 * BIN).min(self.peak());
            }
            left -= time;
        }
        0
    }

    /// Share of the time that the queue was above `depth` bytes, to a bin.
    #[must_use]
    pub fn share_above(&self, depth: u64) -> f64 {
        let total: Time = self.bins.iter().sum();
        let above: Time = self.bins.iter().skip((depth / BIN) as usize + 1).sum();
        above as f64 / total.max(1) as f64
    }

    fn place(&mut self, at: Time) -> usize {
        let place = (at / self.window.interval) as usize;
        if self.intervals.len() <= place {
            self.intervals.resize(place + 1, Depth::default());
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_counted_where_it_was() {
        let window = Window {
            interval: 100,
            from: 50,
            until: 200,
        };
        let mut trace = Trace::new(window);
        trace.set(20, 10_500);
        trace.set(150, 0);
        trace.run(500);
        assert_eq!(trace.intervals()[..2], [(8400.0, 10_500), (5250.0, 10_500)]);
        assert_eq!(trace.peak(), 10_500);
        assert_eq!(trace.quantile(0.3), 0, "50 of 150 it was empty");
        assert_eq!(trace.quantile(0.99), 10_500, "no more than the greatest");
        assert!((trace.share_above(10_000) - 2.0 / 3.0).abs() < 1e-9);
        assert!((trace.mean() - 7000.0).abs() < 1e-9);
    }

    #[test]
    fn an_empty_queue_has_depth_0() {
        let mut trace = Trace::new(Window::default());
        trace.run(1000);
        assert_eq!(
            (trace.mean(), trace.quantile(0.99), trace.share_above(0)),
            (0.0, 0, 0.0)
        );
    }
}
