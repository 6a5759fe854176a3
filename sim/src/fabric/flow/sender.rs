//! The requester of one flow: go-back-N, with a rate and a window.
//!
//! One packet at a time is measured, one that was not sent before and asks for an acknowledgement. An acknowledgement that names it
//! tells the round trip. One that names another, or a step back, tells none (Karn and Partridge, SIGCOMM 1987).

use super::paced::Config;
use super::packets::{Packets, is_end};
use super::reaction::{Change, Reaction};
use super::report::Sent;
use super::{ENDLESS, Flow, FlowId, Series};
use crate::fabric::{Frame, Line, NEVER, Time};

/// One flow at its sender.
pub(super) struct Sender {
    packets: Packets,
    /// How many in all.
    count: u64,
    payload: usize,
    /// Bytes of the last packet.
    rest: usize,
    ack_every: u64,
    window: u64,
    timeout: Time,
    stop: Time,
    /// First packet that is not acknowledged.
    unacked: u64,
    /// Next packet to send.
    next: u64,
    /// First packet that was never sent.
    fresh: u64,
    /// When the last packet began to leave, and its bytes.
    last: (Time, usize),
    /// Rate of that time.
    planned: Option<u64>,
    /// The packet that is measured, and when it began to leave.
    measured: Option<(u64, Time)>,
    /// When something was acknowledged last, or sent with nothing outstanding.
    progress: Time,
    reaction: Option<Box<dyn Reaction>>,
    pub(super) report: Sent,
}

impl Sender {
    pub(super) fn new(id: FlowId, flow: &Flow, config: &Config) -> Self {
        let payload = config.payload;
        let count = if flow.bytes == ENDLESS {
            u64::MAX / 2
        } else {
            flow.bytes.div_ceil(payload as u64)
        };
        let rest = (flow.bytes - 1) % payload as u64 + 1;
        Self {
            packets: Packets::new(id, flow.src, flow.dst),
            count,
            payload,
            rest: rest as usize,
            ack_every: config.ack_every,
            window: (config.window / payload as u64).max(1),
            timeout: config.timeout,
            stop: flow.stop.unwrap_or(NEVER),
            unacked: 0,
            next: 0,
            fresh: 0,
            last: (0, 0),
            planned: None,
            measured: None,
            progress: 0,
            reaction: config.control.reaction(),
            report: Sent {
                flow: id,
                started: None,
                finished: None,
                packets: 0,
                repeated: 0,
                timeouts: 0,
                series: Series::new(config.interval),
            },
        }
    }

    pub(super) fn start(&mut self, now: Time) {
        self.report.started = Some(now);
        self.progress = now;
        self.last = (now, 0);
    }

    pub(super) fn is_done(&self) -> bool {
        self.report.finished.is_some()
    }

    /// When its next packet may leave.
    pub(super) fn ready(&self, line: &Line) -> Time {
        if self.next == self.count || self.next - self.unacked >= self.window() {
            return NEVER;
        }
        self.last.0 + self.gap(line)
    }

    /// From the begin of the last packet to that of the next.
    fn gap(&self, line: &Line) -> Time {
        let rate = match &self.reaction {
            Some(reaction) if reaction.moves_start() => reaction.rate(),
            _ => self.planned,
        };
        match (rate, self.last.1) {
            (Some(rate), len) if len > 0 => line.frame_at(len, rate),
            _ => 0,
        }
    }

    /// When something happens without a frame: a timer runs out, or the rate rises.
    pub(super) fn due(&self) -> Time {
        if self.is_done() {
            return NEVER;
        }
        let timer = match self.next > self.unacked {
            true => self.progress.saturating_add(self.timeout),
            false => NEVER,
        };
        let stop = if self.count > self.fresh {
            self.stop
        } else {
            NEVER
        };
        let rate = match &self.reaction {
            Some(reaction) if self.next < self.count => reaction.next().unwrap_or(NEVER),
            _ => NEVER,
        };
        timer.min(stop).min(rate)
    }

    /// What is due happens.
    pub(super) fn advance(&mut self, now: Time) {
        self.tick(now);
        if self.stop <= now && self.count > self.fresh {
            self.count = self.fresh;
            self.settle(now);
        }
        if self.next > self.unacked && self.progress.saturating_add(self.timeout) <= now {
            self.next = self.unacked;
            self.progress = now;
            self.report.timeouts += 1;
            self.lost(now, true);
        }
    }

    /// Packets that may be on their way, one at least.
    fn window(&self) -> u64 {
        let bytes = self
            .reaction
            .as_ref()
            .and_then(|reaction| reaction.window());
        let most = bytes.map_or(u64::MAX, |bytes| bytes / self.payload as u64);
        self.window.min(most).max(1)
    }

    /// The packet that is ready.
    pub(super) fn packet(&mut self, now: Time, line: &Line) -> Frame {
        self.tick(now);
        if self.next == self.unacked {
            self.progress = now;
        }
        let number = self.next;
        let is_last = number + 1 == self.count;
        let len = if is_last { self.rest } else { self.payload };
        // an acknowledgement in time for the window to go on, and for the timer
        let window = self.window();
        let every = self.ack_every.min((window / 4).max(1));
        let is_slow = self.gap(line).saturating_mul(every) > self.timeout / 4;
        let fills = is_slow || number % every == every - 1 || number + 1 - self.unacked >= window;
        let ack_req = fills || is_end(number, self.count);
        if ack_req && self.measured.is_none() && number >= self.fresh {
            self.measured = Some((number, now));
        }
        let frame = self.packets.write(number, self.count, len, ack_req);
        self.next += 1;
        self.report.packets += 1;
        self.report.repeated += u64::from(number < self.fresh);
        self.fresh = self.fresh.max(self.next);
        self.last = (now, frame.len());
        self.report.series.at(now).bytes += frame.len() as u64;
        if let Some(reaction) = &mut self.reaction {
            reaction.sent(now, frame.len() as u32);
            self.planned = reaction.rate();
        }
        frame
    }

    /// Everything before packet `number` is there.
    pub(super) fn acked(&mut self, now: Time, number: u64) {
        if number > self.unacked && number <= self.fresh {
            let bytes = (number - self.unacked) * self.payload as u64;
            self.unacked = number;
            self.next = self.next.max(number);
            self.progress = now;
            let measured = self.measured.take_if(|(packet, _)| *packet < number);
            let rtt = measured.filter(|(packet, _)| packet + 1 == number);
            let rtt = rtt.map(|(_, at)| now - at);
            if let Some(reaction) = &mut self.reaction
                && let Some(change) = reaction.acked(now, bytes as u32, rtt)
            {
                self.report.series.at(now).count(change);
            }
            self.settle(now);
        }
    }

    /// Packet `number` is missing.
    pub(super) fn missing(&mut self, now: Time, number: u64) {
        self.acked(now, number);
        if number >= self.unacked && number < self.next {
            self.next = number;
            self.lost(now, false);
        }
    }

    /// It goes back: what is measured may be sent again.
    fn lost(&mut self, now: Time, timeout: bool) {
        self.measured = None;
        if let Some(reaction) = &mut self.reaction
            && reaction.lost(now, timeout)
        {
            self.report.series.at(now).count(Change::Decrease);
        }
    }

    /// First packet that is not acknowledged: near what an answer speaks of.
    pub(super) const fn near(&self) -> u64 {
        self.unacked
    }

    pub(super) fn cnp(&mut self, now: Time) {
        self.tick(now);
        let tick = self.report.series.at(now);
        tick.cnps += 1;
        if let Some(reaction) = &mut self.reaction {
            tick.decreases += u32::from(reaction.cnp(now));
        }
    }

    /// The rules of the reaction point that are due.
    fn tick(&mut self, now: Time) {
        let Some(reaction) = &mut self.reaction else {
            return;
        };
        while let Some((at, change)) = reaction.step(now) {
            self.report.series.at(at).count(change);
        }
    }

    fn settle(&mut self, now: Time) {
        if self.unacked == self.count && self.report.finished.is_none() {
            self.report.finished = Some(now);
        }
    }
}
