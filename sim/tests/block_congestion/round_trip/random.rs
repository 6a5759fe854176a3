//! Round trips of send queues that go back and begin afresh at random.

use std::collections::VecDeque;

use super::{Kind, Left, PSNS, QPS, Report, Rig, plus};

/// Whether `a` is `b` or behind it.
fn reaches(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) & (PSNS - 1) < PSNS / 2
}

/// A send queue as its peer and its network see it.
#[derive(Clone, Default)]
struct Sender {
    incarnation: u64,
    una: u32,
    /// Next to depart.
    next: u32,
    /// Behind all that was granted.
    granted: u32,
    /// It goes back when what was granted has left.
    goes_back: bool,
    /// Of this life, since the last go-back or before it, not acknowledged.
    left: Vec<(Left, bool)>,
    reported_at: u64,
}

impl Sender {
    fn reset(&mut self, psn: u32) {
        let incarnation = (self.incarnation + 1) % 4;
        *self = Self {
            incarnation,
            una: psn,
            next: psn,
            granted: psn,
            reported_at: self.reported_at,
            ..Self::default()
        };
    }

    fn departs(&mut self, qpn: usize, at: u64, rng: &mut fastrand::Rng) -> Option<Left> {
        if self.next == self.granted {
            if self.goes_back {
                (self.goes_back, self.next) = (false, self.una);
            }
            let ahead = self.granted.wrapping_sub(self.una) & (PSNS - 1);
            if self.next == self.granted && ahead < 60 {
                self.granted = plus(self.granted, rng.u32(1..12));
            }
            return None;
        }
        let most = self.granted.wrapping_sub(self.next) & (PSNS - 1);
        let left = Left {
            qpn,
            psn: self.next,
            next_psn: plus(self.next, rng.u32(1..=most.min(3))),
            incarnation: self.incarnation,
            asks: rng.u8(..3) > 0,
            at,
        };
        self.next = left.next_psn;
        self.left.push((left, true));
        Some(left)
    }

    /// Whether the report may be a sample, and of which departure.
    fn sample(&self, report: &Report) -> Option<Left> {
        let covers = |left: &Left| {
            let last = plus(report.psn, PSNS - 1);
            reaches(last, left.psn) && !reaches(last, left.next_psn)
        };
        let of: Vec<_> = self.left.iter().filter(|(left, _)| covers(left)).collect();
        match of[..] {
            [(left, valid)] if *valid && left.asks && left.next_psn == report.psn => Some(*left),
            _ => None,
        }
    }

    fn report(&mut self, qpn: usize, rng: &mut fastrand::Rng) -> Option<Report> {
        let ahead = self.granted.wrapping_sub(self.una) & (PSNS - 1);
        let mut report = Report::new(qpn, Kind::Ack, self.una);
        report.bytes = rng.u32(..PSNS);
        match rng.u8(..40) {
            0 => {
                self.reset(rng.u32(..PSNS));
                report = Report::new(qpn, Kind::Reset, self.una);
                report.incarnation = self.incarnation;
            }
            kind @ 1..4 if ahead > 0 => {
                report.kind = [None, Some(Kind::Nak), Some(Kind::Timeout)][usize::from(kind) - 1];
                (report.voids, report.plain) = (true, false);
                report.psn = self.granted;
                self.goes_back = true;
                for (_, valid) in &mut self.left {
                    *valid = false;
                }
            }
            _ => {
                // what has left is acknowledged, often at the end of a packet
                let reach = self.left.iter().map(|(left, _)| left.next_psn);
                let reach: Vec<_> = reach.filter(|psn| *psn != self.una).collect();
                let &psn = reach.get(rng.usize(..reach.len().max(1)))?;
                if !reaches(psn, self.una) {
                    return None;
                }
                report.psn = psn;
                report.plain = rng.u8(..8) > 0;
                self.una = psn;
                if !reaches(self.next, psn) {
                    self.next = psn;
                }
            }
        }
        Some(report)
    }
}

#[test]
fn samples_are_of_packets_sent_once_under_random_traffic() {
    let mut rig = Rig::new();
    let mut rng = fastrand::Rng::with_seed(rig.bench.rng().u64(..));
    let mut senders = vec![Sender::default(); QPS];
    for (qpn, sender) in senders.iter_mut().enumerate() {
        sender.reset(PSNS - 40);
        let mut report = Report::new(qpn, Kind::Reset, PSNS - 40);
        report.incarnation = sender.incarnation;
        rig.report(report);
    }
    // what each event may be a sample of
    let mut allowed = VecDeque::new();
    let (mut samples, mut possible) = (0, 0);
    for round in 0..200_000_u64 {
        let now = rig.bench.cycle();
        let busy = round / 5000 % 2 == 0;
        let chance = if busy { 2 } else { 12 };
        let left = (rng.u8(..chance) == 0)
            .then(|| rng.usize(..QPS))
            .and_then(|qpn| senders[qpn].departs(qpn, now, &mut rng));
        let qpn = rng.usize(..QPS);
        let sender = &mut senders[qpn];
        let mut report = None;
        // an acknowledgement is accepted some cycles behind the departure at the earliest
        let late = sender.left.last().is_none_or(|(left, _)| left.at + 6 < now);
        if rng.u8(..chance) == 0 && late && sender.reported_at + 2 <= now {
            let before = sender.clone();
            report = sender.report(qpn, &mut rng);
            if let Some(report) = &report {
                sender.reported_at = now;
                let is_plain = report.kind == Some(Kind::Ack) && report.plain;
                let of = before.sample(report).filter(|_| is_plain);
                if report.kind.is_some_and(|kind| kind != Kind::Reset) {
                    allowed.push_back(of);
                }
                let una = sender.una;
                sender.left.retain(|(left, _)| !reaches(una, left.next_psn));
            }
        }
        rig.step(left, report);
        for (at, report, event) in rig.events.drain(..) {
            let of = allowed.pop_front().unwrap();
            possible += u64::from(of.is_some());
            if event.rtt > 0 {
                let of = of.unwrap_or_else(|| panic!("{event:?} of {report:?} at {at}"));
                let elapsed = at - of.at + 1;
                assert!(
                    event.rtt <= elapsed && event.rtt + 40 > elapsed,
                    "{event:?}, {elapsed} cycles: {of:?}"
                );
                samples += 1;
            }
        }
    }
    assert!(
        samples > 1000 && samples * 5 > possible,
        "{samples} of {possible}"
    );
}
