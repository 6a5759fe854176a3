//! What slows a flow down: the golden reaction point of the card, or that of the simulators whose traces a fabric is compared with.

use crate::fabric::NS;
use crate::fabric::Time;
use crate::model::congestion::{Dcqcn, Fired, Swift};

/// What a rule did to a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is lower.
    Decrease,
    /// It is higher, or its target is.
    Increase,
}

/// The rate of one flow. Times are those of the fabric.
pub trait Reaction {
    /// A CNP came. Whether the rate fell at once.
    fn cnp(&mut self, now: Time) -> bool;

    /// A frame of so many bytes left.
    fn sent(&mut self, _now: Time, _bytes: u32) {}

    /// Packets of so many bytes were acknowledged, the latest after a round trip of `rtt` if that was measured. What changed.
    fn acked(&mut self, _now: Time, _bytes: u32, _rtt: Option<Time>) -> Option<Change> {
        None
    }

    /// A NAK came, or the timer ran out (`timeout`). Whether rate or window fell.
    fn lost(&mut self, _now: Time, _timeout: bool) -> bool {
        false
    }

    /// Bytes that may be on their way, as whole packets; `None`: any number.
    fn window(&self) -> Option<u64> {
        None
    }

    /// The next rule that is due: when, and what it did.
    fn step(&mut self, _now: Time) -> Option<(Time, Change)> {
        None
    }

    /// Bits a second; `None`: those of the line.
    fn rate(&self) -> Option<u64>;

    /// When a rule may be due without a frame.
    fn next(&self) -> Option<Time> {
        None
    }

    /// A change moves the start that is already planned.
    fn moves_start(&self) -> bool {
        true
    }
}

impl Reaction for Dcqcn {
    fn cnp(&mut self, now: Time) -> bool {
        let before = self.rate_mbps();
        self.on_cnp(now / NS);
        self.rate_mbps() < before
    }

    fn sent(&mut self, now: Time, bytes: u32) {
        self.on_sent(now / NS, bytes);
    }

    fn step(&mut self, now: Time) -> Option<(Time, Change)> {
        loop {
            let (at, fired) = Self::step(self, now / NS)?;
            let change = match fired {
                Fired::Alpha => continue,
                Fired::Decrease => Change::Decrease,
                _ => Change::Increase,
            };
            return Some((at * NS, change));
        }
    }

    fn rate(&self) -> Option<u64> {
        self.is_limited()
            .then(|| u64::from(self.rate_mbps()) * 1_000_000)
    }

    fn next(&self) -> Option<Time> {
        self.next_event().map(|ns| ns * NS)
    }
}

impl Reaction for Swift {
    fn cnp(&mut self, _now: Time) -> bool {
        false
    }

    fn acked(&mut self, now: Time, bytes: u32, rtt: Option<Time>) -> Option<Change> {
        let before = Self::window(self);
        if self.on_ack(now / NS, bytes, rtt.map(|rtt| rtt / NS)) {
            return Some(Change::Decrease);
        }
        (Self::window(self) > before).then_some(Change::Increase)
    }

    fn lost(&mut self, now: Time, timeout: bool) -> bool {
        if timeout {
            self.on_timeout(now / NS)
        } else {
            self.on_nak(now / NS)
        }
    }

    fn window(&self) -> Option<u64> {
        Some(Self::window(self).into())
    }

    fn rate(&self) -> Option<u64> {
        self.rate_mbps().map(|mbps| u64::from(mbps) * 1_000_000)
    }
}

/// Parameters of [`Recorded`], rates in bits a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordedParams {
    /// Gain of alpha.
    pub g: f64,
    /// From one tick of alpha to the next.
    pub alpha_period: Time,
    /// From one look for a CNP to the next.
    pub decrease_period: Time,
    /// From a decrease to an increase, and from one to the next.
    pub increase_period: Time,
    /// Increases that leave the target.
    pub threshold: u32,
    /// Additive increase.
    pub additive: u64,
    /// Hyper increase.
    pub hyper: u64,
    /// Lowest rate.
    pub min: u64,
    /// Rate of the line.
    pub line: u64,
}

impl RecordedParams {
    /// Preset "dcqcn" of the simulator: the maker's.
    pub const VENDOR: Self = Self {
        g: 1.0 / 256.0,
        alpha_period: 1_000 * NS,
        decrease_period: 4_000 * NS,
        increase_period: 300_000 * NS,
        threshold: 1,
        additive: 20_000_000,
        hyper: 200_000_000,
        min: 1_000_000_000,
        line: 100_000_000_000,
    };

    /// Preset "dcqcn_paper": periods of 50 and 55 us.
    pub const PAPER: Self = Self {
        alpha_period: 50_000 * NS,
        decrease_period: 50_000 * NS,
        increase_period: 55_000 * NS,
        ..Self::VENDOR
    };

    /// The defaults of mlx5 in the same rules, with a least rate of 100 Mb/s.
    pub const STOCK: Self = Self {
        g: 5.0 / 1024.0,
        additive: 5_000_000,
        hyper: 50_000_000,
        min: 100_000_000,
        ..Self::VENDOR
    };
}

/// DCQCN by the rules of the simulator of HPCC (Li et al., SIGCOMM 2019), in floating point. It is here to tell what of a difference
/// to recorded traces comes from the fabric and what from the card's integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recorded {
    params: RecordedParams,
    active: bool,
    rate: u64,
    target: u64,
    alpha: f64,
    alpha_cnp: bool,
    decrease_cnp: bool,
    stage: u32,
    alpha_at: Time,
    decrease_at: Time,
    /// Not before the first decrease.
    increase_at: Option<Time>,
}

impl Recorded {
    /// State before the first congestion.
    #[must_use]
    pub const fn new(params: RecordedParams) -> Self {
        Self {
            params,
            active: false,
            rate: params.line,
            target: params.line,
            alpha: 1.0,
            alpha_cnp: false,
            decrease_cnp: false,
            stage: 0,
            alpha_at: 0,
            decrease_at: 0,
            increase_at: None,
        }
    }

    fn decrease(&mut self, at: Time) -> Option<(Time, Change)> {
        self.decrease_at += self.params.decrease_period;
        if !self.decrease_cnp {
            return None;
        }
        if self.stage > 0 {
            self.target = self.rate;
        }
        let rate = (self.rate as f64 * (1.0 - self.alpha / 2.0)) as u64;
        self.rate = rate.max(self.params.min);
        (self.stage, self.decrease_cnp) = (0, false);
        self.increase_at = Some(at + self.params.increase_period);
        Some((at, Change::Decrease))
    }

    fn increase(&mut self, at: Time) -> (Time, Change) {
        let more = match self.stage.cmp(&self.params.threshold) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => self.params.additive,
            std::cmp::Ordering::Greater => self.params.hyper,
        };
        self.target = (self.target + more).min(self.params.line);
        self.rate = self.rate / 2 + self.target / 2;
        self.stage += 1;
        self.increase_at = Some(at + self.params.increase_period);
        (at, Change::Increase)
    }
}

impl Reaction for Recorded {
    fn cnp(&mut self, now: Time) -> bool {
        (self.alpha_cnp, self.decrease_cnp) = (true, true);
        if !self.active {
            self.active = true;
            self.alpha_cnp = false;
            self.alpha_at = now + self.params.alpha_period;
            self.decrease_at = now + self.params.decrease_period + NS;
        }
        false
    }

    fn step(&mut self, now: Time) -> Option<(Time, Change)> {
        while self.active {
            let increase = self.increase_at.unwrap_or(Time::MAX);
            let first = self.alpha_at.min(self.decrease_at).min(increase);
            if first > now {
                break;
            }
            if increase == first {
                return Some(self.increase(first));
            }
            if self.decrease_at == first {
                match self.decrease(first) {
                    None => continue,
                    change => return change,
                }
            }
            let rise = if self.alpha_cnp { self.params.g } else { 0.0 };
            self.alpha = (1.0 - self.params.g) * self.alpha + rise;
            self.alpha_cnp = false;
            self.alpha_at += self.params.alpha_period;
        }
        None
    }

    fn rate(&self) -> Option<u64> {
        (self.active && self.rate < self.params.line).then_some(self.rate)
    }

    fn next(&self) -> Option<Time> {
        let decrease = self.decrease_cnp.then_some(self.decrease_at);
        decrease.into_iter().chain(self.increase_at).min()
    }

    fn moves_start(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::US;

    #[test]
    fn the_first_cnp_halves_after_a_period_and_an_increase_goes_half_the_way_back() {
        let mut flow = Recorded::new(RecordedParams::VENDOR);
        assert!(!flow.cnp(10 * US) && flow.rate().is_none());
        let alpha = (255.0 / 256.0_f64).powi(4);
        assert_eq!(flow.step(20 * US), Some((14 * US + NS, Change::Decrease)));
        assert_eq!(flow.step(313 * US), None);
        let low = (1e11 * (1.0 - alpha / 2.0)) as u64;
        assert_eq!(flow.rate(), Some(low));
        assert_eq!(flow.step(320 * US), Some((314 * US + NS, Change::Increase)));
        assert_eq!(flow.rate(), Some(low / 2 + 50_000_000_000));
    }
}
