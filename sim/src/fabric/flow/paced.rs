//! A host without a card: flows as RoCEv2 frames, each slowed down by [`Dcqcn`] or [`Swift`].
//!
//! It shows what the algorithm does in a fabric, over milliseconds at 100 Gb/s in seconds of real time; it says nothing of a card.
//! Every frame is a real one and is checked when it arrives. A flow is a queue pair that sends WRITEs with go-back-N; a receiver
//! answers a mark with a CNP, at most one an interval and flow. The rate of a flow bounds the starts of its frames; a rate that changes
//! moves the start that is planned. CNPs go before acknowledgements, and those before data; a pause of a class stops what is of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ferroce_proto::wire::{BthHeader, Opcode, Packet, Syndrome, eth, ipv4, udp};

use super::packets::{self, CNP_DSCP, DATA_DSCP};
use super::reaction::{Reaction, Recorded, RecordedParams};
use super::receiver::Receiver;
use super::report::HostReport;
use super::sender::Sender;
use super::starts::Starts;
use super::{Flow, FlowId};
use crate::fabric::net::{Node, Outbox, Outcome};
use crate::fabric::pause::{Held, Pause};
use crate::fabric::{Frame, Line, NEVER, Time, US, frame};
use crate::model::congestion::{Dcqcn, Params, Swift, SwiftParams};

const DATA_CLASS: usize = DATA_DSCP as usize >> 3;
const CNP_CLASS: usize = CNP_DSCP as usize >> 3;

/// Where the BTH stands in a frame of these hosts.
const BTH: usize = eth::LEN + ipv4::LEN + udp::LEN;

/// What slows a flow down.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Control {
    /// Nothing: it sends as fast as its port.
    #[default]
    None,
    /// DCQCN.
    Dcqcn {
        /// Its parameters.
        params: Params,
        /// Rate that it takes the line for, Mb/s.
        line: u32,
    },
    /// DCQCN as recorded simulations had it.
    Recorded(RecordedParams),
    /// Swift: a window by round-trip times.
    Swift(SwiftParams),
}

impl Control {
    pub(super) fn reaction(&self) -> Option<Box<dyn Reaction>> {
        match *self {
            Self::None => None,
            Self::Dcqcn { params, line } => Some(Box::new(Dcqcn::new(params, line))),
            Self::Recorded(params) => Some(Box::new(Recorded::new(params))),
            Self::Swift(params) => Some(Box::new(Swift::new(params))),
        }
    }
}

/// How hosts send and receive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Bytes of payload in a packet, a multiple of 4 up to 4096.
    pub payload: usize,
    /// What slows a flow down.
    pub control: Control,
    /// Least time between two CNPs of a flow.
    pub cnp_interval: Time,
    /// Packets of a flow to an acknowledgement.
    pub ack_every: u64,
    /// Bytes of a flow that may be on their way.
    pub window: u64,
    /// After this without an acknowledgement a flow goes back.
    pub timeout: Time,
    /// Interval of what is recorded.
    pub interval: Time,
    /// Cards: the receiver of a flow fetches it by RDMA READs; else its sender writes.
    pub reads: bool,
}

impl Default for Config {
    /// Packets of 1024 bytes, no control, CNPs 4 us apart, a timeout of 4.2 ms (code 10).
    fn default() -> Self {
        Self {
            payload: 1024,
            control: Control::None,
            cnp_interval: 4 * US,
            ack_every: 16,
            window: u64::MAX,
            timeout: 4_194_304_000,
            interval: 100 * US,
            reads: false,
        }
    }
}

/// A host.
pub struct Paced {
    line: Line,
    senders: Vec<Sender>,
    /// Place in `senders` by flow.
    sending: BTreeMap<FlowId, usize>,
    receivers: BTreeMap<FlowId, Receiver>,
    starts: Starts,
    /// Senders that started and are not done.
    active: Vec<usize>,
    /// Place in `active` of the one that goes first.
    turn: usize,
    cnps: VecDeque<Frame>,
    acks: VecDeque<Frame>,
    held: Held,
    free_at: Time,
    /// When it does something next.
    due: Time,
    report: HostReport,
}

impl Paced {
    /// Host number `host` of those that `flows` are between.
    #[must_use]
    pub fn new(host: usize, flows: &Arc<Vec<Flow>>, config: &Config, line: Line) -> Self {
        let mut new = Self {
            line,
            senders: Vec::new(),
            sending: BTreeMap::new(),
            receivers: BTreeMap::new(),
            starts: Starts::default(),
            active: Vec::new(),
            turn: 0,
            cnps: VecDeque::new(),
            acks: VecDeque::new(),
            held: Held::default(),
            free_at: 0,
            due: NEVER,
            report: HostReport::default(),
        };
        for (id, flow) in flows.iter().enumerate() {
            if flow.src == host {
                let place = new.senders.len();
                new.sending.insert(id, place);
                new.senders.push(Sender::new(id, flow, config));
                new.starts.add(Some(&flow.start));
            }
            if flow.dst == host {
                let receiver = Receiver::new(id, flow, config.cnp_interval, config.interval);
                new.receivers.insert(id, receiver);
            }
        }
        new.plan();
        new
    }

    /// What is due happens, and the next frame goes out if the port is free.
    fn run(&mut self, now: Time, out: &mut Outbox) {
        while let Some(place) = self.starts.take(now) {
            self.senders[place].start(now);
            self.active.push(place);
        }
        for &place in &self.active {
            if self.senders[place].due() <= now {
                self.senders[place].advance(now);
            }
        }
        self.active.retain(|&place| !self.senders[place].is_done());
        if self.free_at <= now
            && let Some(frame) = self.pick(now)
        {
            self.free_at = now + self.line.frame(frame.len());
            self.report.frames_out += 1;
            out.send(0, self.free_at, frame);
        }
        self.plan();
    }

    fn pick(&mut self, now: Time) -> Option<Frame> {
        if self.held.is_open(CNP_CLASS, now)
            && let Some(frame) = self.cnps.pop_front()
        {
            return Some(frame);
        }
        if !self.held.is_open(DATA_CLASS, now) {
            return None;
        }
        if let Some(frame) = self.acks.pop_front() {
            return Some(frame);
        }
        let count = self.active.len();
        let mut places = (0..count).map(|step| (self.turn + step) % count);
        let ready = |&place: &usize| self.senders[self.active[place]].ready(&self.line) <= now;
        let place = places.find(ready)?;
        self.turn = (place + 1) % count;
        Some(self.senders[self.active[place]].packet(now, &self.line))
    }

    /// When something happens next.
    fn plan(&mut self) {
        let port = |class| self.free_at.max(self.held.opens(class));
        let mut due = self.starts.due();
        if !self.cnps.is_empty() {
            due = due.min(port(CNP_CLASS));
        }
        if !self.acks.is_empty() {
            due = due.min(port(DATA_CLASS));
        }
        for &place in &self.active {
            let sender = &self.senders[place];
            let ready = sender.ready(&self.line).max(port(DATA_CLASS));
            due = due.min(ready).min(sender.due());
        }
        self.due = due;
    }

    fn take(&mut self, now: Time, frame: &Frame) -> Option<()> {
        if frame::is_trimmed(frame) {
            return self.take_trimmed(frame);
        }
        let packet = Packet::parse(frame).ok()?;
        let bth = &packet.headers.bth;
        let id = Flow::of_qpn(bth.dest_qp)?;
        if let Some(receiver) = self.receivers.get_mut(&id)
            && bth.opcode.is_request()
        {
            let answer = receiver.packet(now, &packet);
            self.acks.extend(answer.ack);
            self.cnps.extend(answer.cnp);
            if answer.complete {
                self.starts.received(now, id);
            }
            return Some(());
        }
        let sender = &mut self.senders[*self.sending.get(&id)?];
        match (bth.opcode, packet.headers.ext.aeth) {
            (Opcode::Cnp, _) => sender.cnp(now),
            (Opcode::RcAck, Some(aeth)) => {
                let number = packets::number(bth.psn, sender.near())?;
                match aeth.syndrome {
                    Syndrome::Nak(_) => sender.missing(now, number),
                    _ => sender.acked(now, number + 1),
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// A frame that was cut asks for itself at once. What is left of it has no ICRC: it can do no more than ask.
    fn take_trimmed(&mut self, frame: &Frame) -> Option<()> {
        let bth = BthHeader::new_checked(frame.get(BTH..)?).ok()?;
        let receiver = self.receivers.get_mut(&Flow::of_qpn(bth.dest_qp())?)?;
        self.acks.extend(receiver.trimmed(bth.psn()));
        Some(())
    }
}

impl Node for Paced {
    fn next(&self) -> Time {
        self.due
    }

    fn arrive(&mut self, now: Time, _port: usize, frame: Frame, out: &mut Outbox) {
        if let Some(pause) = Pause::parse(&frame) {
            let stops = pause.quanta.iter().flatten().any(|&quanta| quanta > 0);
            self.report.held += u64::from(stops);
            self.held.take(now, &pause, &self.line);
        } else {
            self.report.frames_in += 1;
            if self.take(now, &frame).is_none() {
                self.report.refused += 1;
            }
        }
        self.run(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Outbox) {
        self.run(now, out);
    }

    fn is_done(&self) -> bool {
        self.senders.iter().all(Sender::is_done) && self.cnps.is_empty() && self.acks.is_empty()
    }

    fn finish(mut self: Box<Self>, _now: Time) -> Outcome {
        self.report.sent = self
            .senders
            .into_iter()
            .map(|sender| sender.report)
            .collect();
        let receivers = self.receivers.into_values();
        self.report.received = receivers.map(|receiver| receiver.report).collect();
        Outcome::Host(self.report)
    }
}
