//! Swift for one queue pair, the golden reference.
//!
//! G. Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020, Algorithm 1 and
//! section 3.5 (scaling of the target delay), in integers. The window counts bytes. Time counts in cycles of 4 ns.

use super::swift_params::SwiftParams;

/// The window counts in 2^-8 bytes.
const FRACTION: u32 = 8;
/// Nanoseconds of a cycle.
const CYCLE: u64 = crate::nic::NS_PER_CYCLE;

/// What is remembered of a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwiftState {
    /// Bytes that may be outstanding (`cwnd`), in 2^-8 bytes.
    pub cwnd: u64,
    /// The last round trip that is known, in cycles; 0: none.
    pub rtt: u64,
    /// The last decrease, in cycles; `None`: there was none.
    pub decreased_at: Option<u64>,
    /// Timeouts since the last acknowledgement (`retransmit_cnt`).
    pub retransmits: u32,
}

/// Swift for one queue pair.
#[derive(Clone, Debug)]
pub struct Swift {
    params: SwiftParams,
    state: SwiftState,
}

impl Swift {
    /// A queue pair before its first packet.
    ///
    /// # Panics
    /// If a parameter is out of range (see [`SwiftParams::check`]).
    #[must_use]
    pub fn new(params: SwiftParams) -> Self {
        let params = valid(params);
        let state = SwiftState {
            cwnd: u64::from(params.initial_cwnd) << (params.log_packet + FRACTION),
            ..SwiftState::default()
        };
        let mut swift = Self { params, state };
        swift.clamp();
        swift
    }

    /// Other parameters from the next event on.
    ///
    /// # Panics
    /// If a parameter is out of range (see [`SwiftParams::check`]).
    pub fn set(&mut self, params: SwiftParams) {
        self.params = valid(params);
    }

    /// Its parameters.
    #[must_use]
    pub const fn params(&self) -> SwiftParams {
        self.params
    }

    /// `bytes` were acknowledged. `rtt_ns` is the round trip of the latest of these packets, if it was measured. Without it the one
    /// before tells whether the window grows, and nothing decreases. Whether the window is smaller now.
    pub fn on_ack(&mut self, now_ns: u64, bytes: u32, rtt_ns: Option<u64>) -> bool {
        let p = self.params;
        self.state.retransmits = 0;
        let rtt = rtt_ns.map(|ns| (ns / CYCLE).clamp(1, SwiftParams::RTT_MAX));
        if let Some(rtt) = rtt {
            self.state.rtt = rtt;
        }
        let delay = self.state.rtt * CYCLE;
        let target = self.target_delay();
        if delay < target {
            // ai packets a window; below a packet, ai packets a packet
            let window = (self.state.cwnd >> FRACTION).max(1 << p.log_packet);
            let step = (u64::from(p.ai) * u64::from(bytes)) << p.log_packet;
            self.state.cwnd += step / window;
            self.clamp();
            return false;
        }
        // 1/1024 of the window
        let share = u64::from(p.beta) * (delay - target) / delay;
        rtt.is_some() && self.decrease(now_ns, share.min(u64::from(p.max_mdf)))
    }

    /// A NAK for a PSN sequence error: packets were lost. Whether the window is smaller now.
    pub fn on_nak(&mut self, now_ns: u64) -> bool {
        self.state.retransmits = 0;
        self.decrease(now_ns, u64::from(self.params.max_mdf))
    }

    /// The ACK timer ran out. Whether the window is smaller now.
    pub fn on_timeout(&mut self, now_ns: u64) -> bool {
        let p = self.params;
        self.state.retransmits = (self.state.retransmits + 1).min(p.retx_reset_threshold);
        if self.state.retransmits < p.retx_reset_threshold {
            return self.decrease(now_ns, u64::from(p.max_mdf));
        }
        let before = self.state.cwnd;
        self.state.cwnd = 0;
        self.clamp();
        self.state.cwnd < before
    }

    /// Bytes that may be outstanding, 1 at least. A window below a packet lets one out at [`rate_mbps`](Self::rate_mbps).
    #[must_use]
    pub const fn window(&self) -> u32 {
        (self.state.cwnd >> FRACTION) as u32
    }

    /// Packets that may be outstanding, 1 at least.
    #[must_use]
    pub fn packets(&self) -> u32 {
        (self.window() >> self.params.log_packet).max(1)
    }

    /// The rate of a window below a packet, Mb/s; `None`: packets leave as fast as the line takes them.
    #[must_use]
    pub fn rate_mbps(&self) -> Option<u32> {
        let window = u64::from(self.window());
        if window >= 1 << self.params.log_packet {
            return None;
        }
        let rtt = match self.state.rtt {
            0 => u64::from(self.params.base_target),
            cycles => cycles * CYCLE,
        };
        Some((window * 8000 / rtt).clamp(1, 0xf_ffff) as u32)
    }

    /// The delay that the window aims at, ns: that of the path, and more for a smaller window, as that is one of many.
    #[must_use]
    pub fn target_delay(&self) -> u64 {
        let p = self.params;
        let scaled = (u64::from(p.fs_alpha) * inverse_root(self.fraction())) >> 10;
        let more = scaled.saturating_sub(p.fs_beta.into());
        u64::from(p.base_target) + more.min(p.fs_range.into())
    }

    /// What is remembered.
    #[must_use]
    pub const fn state(&self) -> &SwiftState {
        &self.state
    }

    /// The window in 1/1024 packets.
    const fn fraction(&self) -> u64 {
        ((self.state.cwnd << 10) >> FRACTION) >> self.params.log_packet
    }

    /// Takes `share`/1024 of the window off, if the last decrease was a round trip ago.
    fn decrease(&mut self, now_ns: u64, share: u64) -> bool {
        let now = now_ns / CYCLE;
        let at = self.state.decreased_at;
        if at.is_some_and(|at| now - at < self.state.rtt) {
            return false;
        }
        let before = self.state.cwnd;
        self.state.cwnd -= (before * share) >> 10;
        self.clamp();
        let falls = self.state.cwnd < before;
        if falls {
            self.state.decreased_at = Some(now);
        }
        falls
    }

    fn clamp(&mut self) {
        let p = self.params;
        let least = (u64::from(p.min_cwnd) << (p.log_packet + FRACTION)) >> 10;
        let most = u64::from(p.max_cwnd) << (p.log_packet + FRACTION);
        let least = least.max(1 << FRACTION);
        self.state.cwnd = self
            .state
            .cwnd
            .clamp(least, most.min(SwiftParams::CWND_MAX));
    }
}

/// `params`, which are in range.
fn valid(params: SwiftParams) -> SwiftParams {
    if let Err(error) = params.check() {
        panic!("{error}");
    }
    params
}

/// 1024 divided by the square root of a number of 1/1024 packets, within 1.6 %: a table of 64 values.
fn inverse_root(packets: u64) -> u64 {
    let packets = packets.max(1);
    let log = packets.ilog2();
    let step = ((packets << 5) >> log) & 31;
    // in the middle of its step, 1 to 4
    let value = (1.0 + (step as f64 + 0.5) / 32.0) * f64::from(1 + (log & 1));
    let entry = (32768.0 / value.sqrt()).round() as u64;
    entry >> (log >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u32 = 4096;
    const US: u64 = 1000;

    fn swift() -> Swift {
        Swift::new(SwiftParams::default())
    }

    fn sized(cwnd: u64) -> Swift {
        let mut swift = swift();
        swift.state.cwnd = cwnd << FRACTION;
        swift
    }

    #[test]
    fn a_round_trip_below_the_target_adds_a_packet() {
        let mut swift = swift();
        let before = swift.window();
        assert_eq!(before, 16 * PACKET);
        for _ in 0..16 {
            assert!(!swift.on_ack(0, PACKET, Some(10 * US)));
        }
        let grown = swift.window() - before;
        assert!((PACKET * 95 / 100..=PACKET).contains(&grown), "{grown}");
    }

    #[test]
    fn a_decrease_is_in_proportion_to_the_excess_and_ends_at_max_mdf() {
        let target = swift().target_delay();
        let fall = |delay: u64| {
            let mut swift = swift();
            let before = f64::from(swift.window());
            assert!(swift.on_ack(0, PACKET, Some(delay)));
            1.0 - f64::from(swift.window()) / before
        };
        // beta * (delay - target) / delay, with beta 0.8
        let quarter = fall(target * 4 / 3);
        assert!((quarter - 0.2).abs() < 0.002, "{quarter}");
        let far = fall(target * 20);
        assert!((far - 0.5).abs() < 0.001, "{far}");
    }

    #[test]
    fn a_decrease_comes_once_a_round_trip() {
        let mut swift = swift();
        let rtt = 200 * US;
        assert!(swift.on_ack(1000 * US, PACKET, Some(rtt)));
        let after = swift.window();
        assert!(!swift.on_ack(1199 * US, PACKET, Some(rtt)));
        assert!(!swift.on_nak(1199 * US) && !swift.on_timeout(1199 * US));
        assert_eq!(swift.window(), after);
        assert!(swift.on_ack(1200 * US, PACKET, Some(rtt)));
        assert_eq!(swift.window(), after / 2);
    }

    #[test]
    fn an_acknowledgement_without_a_round_trip_never_decreases() {
        let mut swift = swift();
        assert!(swift.on_ack(0, PACKET, Some(200 * US)));
        let after = swift.window();
        assert!(!swift.on_ack(1000 * US, PACKET, None));
        assert_eq!(swift.window(), after);
        assert!(!swift.on_ack(1001 * US, PACKET, Some(5 * US)));
        let grown = swift.window();
        swift.on_ack(1002 * US, PACKET, None);
        assert!(after < grown && grown < swift.window());
    }

    #[test]
    fn timeouts_halve_and_the_third_starts_from_the_least_window() {
        let mut swift = swift();
        for at in 1..3 {
            assert!(swift.on_timeout(at * 1000 * US));
        }
        assert_eq!(swift.window(), 4 * PACKET);
        assert!(swift.on_timeout(3000 * US));
        assert_eq!(swift.window(), 10 * PACKET / 1024);
        // an acknowledgement ends the count, and a packet of them takes it back to a packet
        assert!(!swift.on_ack(4000 * US, PACKET, Some(5 * US)));
        assert!(swift.window() >= PACKET);
        assert_eq!(swift.state().retransmits, 0);
    }

    #[test]
    fn a_nak_halves() {
        let mut swift = swift();
        assert!(swift.on_nak(0));
        assert_eq!(swift.window(), 8 * PACKET);
    }

    #[test]
    fn a_window_below_a_packet_has_a_rate() {
        assert_eq!(sized(4096).rate_mbps(), None);
        let mut swift = sized(2048);
        assert_eq!(swift.rate_mbps(), Some(2048 * 8000 / 25_000));
        swift.state.rtt = 100_000 / CYCLE;
        assert_eq!(swift.rate_mbps(), Some(163));
        // half a packet a round trip: a packet in two of them
        let between: f64 = 4096.0 * 8.0 / 163.0;
        assert!((between / 200.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn the_target_rises_for_small_windows_within_its_range() {
        let p = SwiftParams::default();
        let target = |packets: f64| sized((packets * 4096.0) as u64).target_delay();
        let base = u64::from(p.base_target);
        assert!(target(250.0) < base + 100);
        assert_eq!(target(300.0), base);
        assert_eq!(target(0.05), base + u64::from(p.fs_range));
        // (1/sqrt(4) - 1/sqrt(256)) / (1/sqrt(0.1) - 1/sqrt(256)) of the range
        let share = (0.5 - 0.0625) / (10f64.sqrt() - 0.0625);
        let more = (target(4.0) - base) as f64 / f64::from(p.fs_range);
        assert!((more - share).abs() < 0.006, "{more} {share}");
    }

    #[test]
    fn inverse_roots_are_within_two_percent() {
        for packets in (1..200_000).step_by(7) {
            let exact = 1024.0 / (packets as f64 / 1024.0).sqrt();
            let error = (inverse_root(packets) as f64 - exact).abs();
            assert!(error <= exact * 0.02 + 1.0, "{packets}");
        }
    }

    /// Flows on one queue of 100 Gb/s behind 10 us, a step a microsecond: the delay and the windows in the end.
    fn share(mut flows: Vec<Swift>, us: u64) -> (f64, Vec<f64>) {
        let (line, base) = (12_500.0, 10.0);
        let mut sums = vec![0.0; flows.len()];
        let mut delays = 0.0;
        let mut acked = vec![0.0; flows.len()];
        for now in 0..us {
            let all: f64 = flows.iter().map(|flow| f64::from(flow.window())).sum();
            let delay = (all / line).max(base);
            for (flow, acked) in flows.iter_mut().zip(&mut acked) {
                *acked += f64::from(flow.window()) / delay;
                while *acked >= f64::from(PACKET) {
                    *acked -= f64::from(PACKET);
                    flow.on_ack(now * US, PACKET, Some((delay * 1000.0) as u64));
                }
            }
            if now >= us / 2 {
                delays += delay;
                for (sum, flow) in sums.iter_mut().zip(&flows) {
                    *sum += f64::from(flow.window());
                }
            }
        }
        let half = (us - us / 2) as f64;
        (
            delays / half,
            sums.into_iter().map(|sum| sum / half).collect(),
        )
    }

    #[test]
    fn one_flow_comes_to_its_target_delay() {
        let (delay, windows) = share(vec![swift()], 20_000);
        let target = sized(windows[0] as u64).target_delay() as f64 / 1000.0;
        assert!(
            (delay / target - 1.0).abs() < 0.05,
            "{delay} us, target {target} us"
        );
    }

    #[test]
    fn flows_that_start_apart_come_to_equal_windows() {
        let flows = [16, 200, 1, 60].map(|packets| sized(packets * u64::from(PACKET)));
        let (delay, windows) = share(flows.to_vec(), 40_000);
        let mean = windows.iter().sum::<f64>() / 4.0;
        for window in &windows {
            assert!((window / mean - 1.0).abs() < 0.1, "{windows:?}");
        }
        let target = sized(mean as u64).target_delay() as f64 / 1000.0;
        assert!((delay / target - 1.0).abs() < 0.1, "{delay} {target}");
    }
}
