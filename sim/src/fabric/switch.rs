//! A switch that stores and forwards: shared buffer, queues by class, ECN marking, PFC, trimming.

use fastrand::Rng;
use ferroce_proto::wire::Mac;

use super::buffer::{self, Buffer};
use super::egress::{Egress, Queued};
use super::marking::Red;
use super::net::{Node, Outbox, Outcome};
use super::pause::{Pause, quanta_time};
use super::routes::Routes;
use super::trace::{Trace, Window};
use super::{CLASSES, Frame, Line, NEVER, Time, frame};

/// How a switch behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// DSCP to class for frames without a tag.
    pub classes: [u8; 64],
    /// Bit a class that goes before the others.
    pub strict: u8,
    /// ECN marking by class.
    pub red: [Option<Red>; CLASSES],
    /// The buffer and PFC.
    pub buffer: buffer::Config,
    /// What finds no room is cut to its headers, if it is IP.
    pub trim: bool,
    /// What is recorded of the depths.
    pub window: Window,
    /// Seed of marks and spraying.
    pub seed: u64,
}

/// What a switch did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Frames that came in but those of its own MACs.
    pub frames_in: u64,
    /// Frames that went out but those of its own MACs.
    pub frames_out: u64,
    /// Frames that found no room.
    pub dropped: u64,
    /// Frames to where no port leads.
    pub strays: u64,
    /// Frames cut to their headers.
    pub trimmed: u64,
    /// Frames that left with a mark of its own.
    pub marked: u64,
    /// Pauses that it began; repeats and ends are not counted.
    pub pauses: u64,
    /// Pauses that it was given.
    pub held: u64,
    /// Frames that wait in it.
    pub waiting: u64,
    /// Most bytes ever in use.
    pub peak: u64,
    /// Depth over all classes of each port.
    pub traces: Vec<Trace>,
}

/// A switch.
pub struct Switch {
    config: Config,
    lines: Vec<Line>,
    routes: Routes,
    buffer: Buffer,
    ports: Vec<Egress>,
    /// When the pause of a port and class is to be repeated.
    repeats: Vec<[Time; CLASSES]>,
    /// When each port has something to do next.
    due: Vec<Time>,
    mac: Mac,
    rng: Rng,
    report: Report,
}

impl Switch {
    /// One with a port for each of `lines`.
    #[must_use]
    pub fn new(config: Config, lines: Vec<Line>, routes: Routes, mac: Mac) -> Self {
        let ports = lines.len();
        let report = Report {
            traces: vec![Trace::new(config.window); ports],
            ..Report::default()
        };
        Self {
            routes,
            buffer: Buffer::new(config.buffer, ports),
            ports: vec![Egress::new(config.strict); ports],
            repeats: vec![[NEVER; CLASSES]; ports],
            due: vec![NEVER; ports],
            mac,
            rng: Rng::with_seed(config.seed),
            report,
            lines,
            config,
        }
    }

    /// A frame goes into the queue of the port that it takes.
    fn forward(&mut self, now: Time, from: usize, mut frame: Frame) -> Option<usize> {
        self.report.frames_in += 1;
        let Some(to) = self.routes.port(&frame, &mut self.rng) else {
            self.report.strays += 1;
            return None;
        };
        let class = frame::class(&frame, &self.config.classes);
        let (mut len, mut queue) = (frame.len() as u64, class);
        let queued = self.ports[to].bytes(queue);
        if !self.buffer.admit(from, class, len, queued) {
            let cut = self.config.trim && frame::trim(&mut frame);
            queue = frame::class(&frame, &self.config.classes);
            len = frame.len() as u64;
            if !cut
                || !self
                    .buffer
                    .admit(from, queue, len, self.ports[to].bytes(queue))
            {
                self.report.dropped += 1;
                return None;
            }
            self.report.trimmed += 1;
        }
        let queued = Queued {
            frame,
            from,
            class: queue,
            charged: len,
        };
        self.ports[to].push(queue, queued);
        self.report.traces[to].set(now, self.ports[to].total());
        self.report.peak = self.report.peak.max(self.buffer.used());
        self.signal(now, from, queue);
        Some(to)
    }

    /// Starts the next frame of a port if it is free.
    fn start(&mut self, now: Time, port: usize, out: &mut Outbox) {
        if self.ports[port].free_at <= now {
            self.start_next(now, port, out);
        }
        self.plan(port);
    }

    /// Notes when a port has something to do next.
    fn plan(&mut self, port: usize) {
        let repeats = self.repeats[port].iter().copied();
        self.due[port] = repeats.fold(self.ports[port].next(), Time::min);
    }

    fn start_next(&mut self, now: Time, port: usize, out: &mut Outbox) {
        if let Some(frame) = self.ports[port].control.pop_front() {
            self.send(now, port, frame, out);
            return;
        }
        let Some((class, queued)) = self.ports[port].pop(now) else {
            return;
        };
        let Queued {
            mut frame,
            from,
            class: charged_class,
            charged,
        } = queued;
        self.buffer.release(from, charged_class, charged);
        let left = self.ports[port].bytes(class);
        self.report.traces[port].set(now, self.ports[port].total());
        if let Some(red) = self.config.red[class]
            && red.hits(left, &mut self.rng)
            && frame::mark(&mut frame)
        {
            self.report.marked += 1;
        }
        self.report.frames_out += 1;
        self.send(now, port, frame, out);
        self.signal(now, from, charged_class);
        // A pause may have to go out by a port that is free.
        if from != port {
            self.start_control(now, from, out);
        }
    }

    fn start_control(&mut self, now: Time, port: usize, out: &mut Outbox) {
        if self.ports[port].free_at <= now
            && let Some(frame) = self.ports[port].control.pop_front()
        {
            self.send(now, port, frame, out);
        }
        self.plan(port);
    }

    fn send(&mut self, now: Time, port: usize, frame: Frame, out: &mut Outbox) {
        let left = now + self.lines[port].frame(frame.len());
        self.ports[port].free_at = left;
        out.send(port, left, frame);
    }

    /// Stops the peer of a port, or lets it go on, as its share of the buffer asks for.
    fn signal(&mut self, now: Time, port: usize, class: usize) {
        let Some(stop) = self.buffer.turn(port, class) else {
            return;
        };
        let quanta = self.quanta(class);
        let quanta = if stop { quanta } else { 0 };
        self.report.pauses += u64::from(stop);
        self.say(port, class, quanta);
        self.repeats[port][class] = self.repeat(now, port, quanta);
    }

    fn say(&mut self, port: usize, class: usize, quanta: u16) {
        let frame = Pause::of(class, quanta).emit(self.mac);
        self.ports[port].control.push_back(frame);
    }

    fn quanta(&self, class: usize) -> u16 {
        self.buffer.lossless(class).map_or(0, |pfc| pfc.quanta)
    }

    fn repeat(&self, now: Time, port: usize, quanta: u16) -> Time {
        match quanta {
            0 => NEVER,
            quanta => now + quanta_time(quanta, &self.lines[port]) / 2,
        }
    }
}

impl Node for Switch {
    fn next(&self) -> Time {
        self.due.iter().copied().min().unwrap_or(NEVER)
    }

    fn arrive(&mut self, now: Time, port: usize, frame: Frame, out: &mut Outbox) {
        if let Some(pause) = Pause::parse(&frame) {
            let stops = pause.quanta.iter().flatten().any(|&quanta| quanta > 0);
            self.report.held += u64::from(stops);
            let line = self.lines[port];
            self.ports[port].held.take(now, &pause, &line);
            self.start(now, port, out);
            return;
        }
        if let Some(to) = self.forward(now, port, frame) {
            self.start(now, to, out);
        }
        self.start_control(now, port, out);
    }

    fn wake(&mut self, now: Time, out: &mut Outbox) {
        for port in 0..self.ports.len() {
            if self.due[port] > now {
                continue;
            }
            for class in 0..CLASSES {
                if self.repeats[port][class] <= now {
                    let quanta = self.quanta(class);
                    self.say(port, class, quanta);
                    self.repeats[port][class] = self.repeat(now, port, quanta);
                }
            }
            self.start(now, port, out);
        }
    }

    fn finish(mut self: Box<Self>, now: Time) -> Outcome {
        self.report
            .traces
            .iter_mut()
            .for_each(|trace| trace.run(now));
        self.report.waiting = self.ports.iter().map(Egress::frames).sum();
        Outcome::Switch(self.report)
    }
}
