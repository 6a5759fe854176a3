//! A host with a card: the flows as RDMA WRITEs or READs of real queue pairs, on any [`Nic`].
//!
//! A flow is a queue pair at either end. Its sender keeps some WRITEs of 64 KiB posted; the last one has immediate data, so that the
//! receiver knows when all is there. Or its receiver keeps as many READs posted. In front of the card is a MAC that stores a frame,
//! takes pauses, and sends at the rate of the wire. It has one queue: a pause of the class of its first frame holds all behind it.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use ferroce_proto::abi::cq::{Cqe, status};
use ferroce_proto::abi::regs;
use ferroce_proto::wire::ip::ECN_ECT0;
use ferroce_proto::wire::{Opcode, Packet, Psn};

use super::ends::{Receiver, Role, Sender};
use super::paced::{self, Control};
use super::packets::{DATA_DSCP, host_ip};
use super::report::{HostReport, Received, Sent, Series};
use super::starts::Starts;
use super::{Flow, FlowId};
use crate::fabric::frame::{class, dscp_classes};
use crate::fabric::net::{Node, Outbox, Outcome};
use crate::fabric::pause::{Held, Pause};
use crate::fabric::{Frame, Line, NEVER, NS, Time, US, host_mac};
use crate::memory::{HostMemory, Ranges};
use crate::nic::{NS_PER_CYCLE, Nic};
use crate::testhost::{Host, Mr, Peer, QpOptions, Rights, Work};

/// Most flows that a fabric with cards may have: each is a queue pair, by its number, in the smallest of the builds.
pub const FLOWS: usize = 250;

/// Makes a card with its memory.
pub type Make = Arc<dyn Fn(Rc<dyn HostMemory>) -> Box<dyn Nic> + Send + Sync>;

const CYCLE: Time = NS_PER_CYCLE * NS;

/// Bytes of a WRITE or READ.
const CHUNK: u64 = 64 << 10;
/// WRITEs or READs of a flow that are posted at once.
const DEPTH: u64 = 8;
/// Frames that the MAC holds.
const MAC_FRAMES: usize = 2;
/// Completions are looked for in each cycle of so many, and when the card is idle.
const POLL: u64 = 16;
/// Log2 of the entries of the completion queue.
const CQ_LOG: u8 = 11;
/// Where the buffer of every host is, and its key: that of the first region.
const BUFFER: Mr = Mr {
    addr: 0x10_0000,
    len: CHUNK,
    key: 0x111,
};

impl Sender {
    /// WRITEs or READs in all.
    const fn requests(&self) -> u64 {
        self.flow.bytes.div_ceil(CHUNK)
    }
}

/// Of every queue pair, at both ends.
fn first_psn() -> Psn {
    Psn::new(QpOptions::default().psn)
}

/// A host with a card.
pub struct CardHost {
    host: Host,
    line: Line,
    /// Cycle of the card at time 0.
    base: u64,
    senders: Vec<Sender>,
    sending: BTreeMap<FlowId, usize>,
    receivers: BTreeMap<FlowId, Receiver>,
    starts: Starts,
    mac: VecDeque<Frame>,
    held: Held,
    free_at: Time,
    report: HostReport,
}

/// Writes the registers of congestion control.
fn control(host: &mut Host, config: &paced::Config) {
    let us = (config.cnp_interval / US) as u32;
    let mut registers = vec![(regs::MIN_TIME_BETWEEN_CNPS, us)];
    match config.control {
        Control::None => registers.push((regs::RP_CONFIG, regs::RP_CONFIG_RESET & !1)),
        Control::Dcqcn { params, line } => {
            registers.push((regs::LINE_RATE, line));
            registers.extend(params.registers());
        }
        Control::Swift(params) => registers.extend(params.registers()),
        Control::Recorded(_) => panic!("a card has DCQCN in integers, or Swift"),
    }
    let write = |(register, value)| host.write32(register, value);
    registers.into_iter().for_each(write);
}

impl CardHost {
    /// Host number `me` of those that `flows` are between, with the card that `make` makes. Its queue pairs are connected; of `config` the
    /// control and the interval of CNPs count.
    ///
    /// # Panics
    /// If the control is none that a card has.
    #[must_use]
    pub fn new(
        me: usize,
        flows: &Arc<Vec<Flow>>,
        make: &Make,
        config: &paced::Config,
        line: Line,
        interval: Time,
    ) -> Self {
        let memory = Rc::new(Ranges::new());
        let mapped = memory.map(BUFFER.addr, vec![0; CHUNK as usize]);
        mapped.expect("memory is empty");
        let ip = host_ip(me).into();
        let mut host = Host::with_memory(|memory| make(memory), memory, host_mac(me), ip);
        let buffer = host.register(BUFFER.addr, BUFFER.len, Rights::ALL);
        assert_eq!(buffer, BUFFER);
        host.create_cq(CQ_LOG);
        control(&mut host, config);
        let mut new = Self {
            host,
            line,
            base: 0,
            senders: Vec::new(),
            sending: BTreeMap::new(),
            receivers: BTreeMap::new(),
            starts: Starts::default(),
            mac: VecDeque::new(),
            held: Held::default(),
            free_at: 0,
            report: HostReport::default(),
        };
        for (id, flow) in flows.iter().enumerate() {
            if flow.src == me {
                new.connect(id, flow.dst, config);
                let role = if config.reads {
                    Role::Serves
                } else {
                    Role::Writes
                };
                new.add_sender(id, flow, role, interval);
            } else if flow.dst == me {
                new.connect(id, flow.src, config);
                if config.reads {
                    new.add_sender(id, flow, Role::Reads, interval);
                } else {
                    new.host.post_recv(Flow::qpn(id), &[]);
                }
                let received = Received {
                    flow: id,
                    finished: None,
                    bytes: 0,
                    marked: 0,
                    series: Series::new(interval),
                };
                let receiver = Receiver {
                    bytes: flow.bytes,
                    due: first_psn(),
                    report: received,
                };
                new.receivers.insert(id, receiver);
            }
        }
        new.base = new.host.nic.now();
        new
    }

    fn connect(&mut self, id: FlowId, peer: usize, config: &paced::Config) {
        let options = QpOptions {
            swift: matches!(config.control, Control::Swift(_)),
            timeout: 10,
            tclass: DATA_DSCP << 2 | ECN_ECT0,
            ..QpOptions::default()
        };
        let qpn = self.host.create_qp_as(Flow::qpn(id), options);
        let peer = Peer {
            mac: host_mac(peer),
            gid: host_ip(peer).into(),
            qpn,
            psn: options.psn,
        };
        self.host.connect(qpn, &peer);
    }

    fn add_sender(&mut self, id: FlowId, flow: &Flow, role: Role, interval: Time) {
        self.sending.insert(id, self.senders.len());
        self.starts
            .add((role != Role::Serves).then_some(&flow.start));
        let report = Sent {
            flow: id,
            started: None,
            finished: None,
            packets: 0,
            repeated: 0,
            timeouts: 0,
            series: Series::new(interval),
        };
        self.senders.push(Sender {
            flow: flow.clone(),
            role,
            posted: 0,
            completed: 0,
            fresh: first_psn(),
            report,
        });
    }

    /// The time in which a cycle begins.
    fn time_of(&self, cycle: u64) -> Time {
        (cycle - self.base).saturating_mul(CYCLE)
    }

    /// When the card does something by itself.
    fn card_due(&self) -> Time {
        let nic = &self.host.nic;
        self.time_of(nic.idle_until().unwrap_or(nic.now()))
    }

    fn run(&mut self, now: Time, out: &mut Outbox) {
        while let Some(place) = self.starts.take(now) {
            self.senders[place].report.started = Some(now);
            self.post(place);
        }
        while self.card_due() <= now {
            self.host.nic.step();
        }
        let is_idle = self.host.nic.idle_until().is_some();
        if is_idle || self.host.nic.now().is_multiple_of(POLL) {
            while let Some(cqe) = self.host.poll(0) {
                self.completed(now, &cqe);
            }
        }
        while self.mac.len() < MAC_FRAMES
            && let Some(frame) = self.host.nic.transmit()
        {
            self.mac.push_back(frame);
        }
        if self.mac_due() <= now
            && let Some(frame) = self.mac.pop_front()
        {
            self.free_at = now + self.line.frame(frame.len());
            self.report.frames_out += 1;
            self.count_sent(now, &frame);
            out.send(0, self.free_at, frame);
        }
    }

    fn mac_due(&self) -> Time {
        let Some(frame) = self.mac.front() else {
            return NEVER;
        };
        let class = class(frame, &dscp_classes());
        self.free_at.max(self.held.opens(class))
    }

    /// Posts as many requests of a sender as may wait.
    fn post(&mut self, place: usize) {
        let sender = &mut self.senders[place];
        let id = sender.report.flow;
        while sender.posted < sender.requests() && sender.posted - sender.completed < DEPTH {
            let left = sender.flow.bytes - sender.posted * CHUNK;
            sender.posted += 1;
            let part = BUFFER.sge(0, left.min(CHUNK) as u32);
            let work = match sender.role {
                Role::Reads => Work::read(&[part], &BUFFER, 0),
                _ if sender.posted == sender.requests() => {
                    Work::write(&[part], &BUFFER, 0).imm(id as u32)
                }
                _ => Work::write(&[part], &BUFFER, 0),
            };
            self.host.post_send(Flow::qpn(id), &work);
        }
    }

    fn completed(&mut self, now: Time, cqe: &Cqe) {
        let id = Flow::of_qpn(cqe.qpn).expect("queue pairs are those of flows");
        if cqe.status != status::SUCCESS {
            let status = cqe.status;
            let failure = format!("flow {id}: a completion of status {status}");
            self.report.failures.push(failure);
        } else if cqe.recv {
            self.arrived(now, id);
        } else {
            let place = self.sending[&id];
            let sender = &mut self.senders[place];
            sender.completed += 1;
            let fetched = sender.role == Role::Reads;
            if sender.completed == sender.requests() {
                sender.report.finished = Some(now);
                if fetched {
                    self.arrived(now, id);
                }
            }
            self.post(place);
        }
    }

    /// All of a flow is here.
    fn arrived(&mut self, now: Time, id: FlowId) {
        let receiver = self.receivers.get_mut(&id).expect("it receives this");
        receiver.report.bytes = receiver.bytes;
        receiver.report.finished = Some(now);
        self.starts.received(now, id);
    }

    fn count_sent(&mut self, now: Time, frame: &Frame) {
        let Ok(packet) = Packet::parse(frame) else {
            return;
        };
        let id = Flow::of_qpn(packet.headers.bth.dest_qp);
        if let Some(&place) = id.and_then(|id| self.sending.get(&id)) {
            self.senders[place].count(now, &packet, frame.len());
        }
    }

    fn count_received(&mut self, now: Time, frame: &Frame) {
        let Ok(packet) = Packet::parse(frame) else {
            self.report.refused += 1;
            return;
        };
        let bth = &packet.headers.bth;
        let Some(id) = Flow::of_qpn(bth.dest_qp) else {
            return;
        };
        if bth.opcode == Opcode::Cnp
            && let Some(&place) = self.sending.get(&id)
        {
            self.senders[place].report.series.at(now).cnps += 1;
        } else if let Some(receiver) = self.receivers.get_mut(&id) {
            receiver.count(now, &packet);
        }
    }
}

impl Node for CardHost {
    fn next(&self) -> Time {
        self.card_due().min(self.starts.due()).min(self.mac_due())
    }

    fn arrive(&mut self, now: Time, _port: usize, frame: Frame, out: &mut Outbox) {
        if let Some(pause) = Pause::parse(&frame) {
            let stops = pause.quanta.iter().flatten().any(|&quanta| quanta > 0);
            self.report.held += u64::from(stops);
            self.held.take(now, &pause, &self.line);
        } else {
            self.report.frames_in += 1;
            self.count_received(now, &frame);
            // What the card slept through is over.
            self.host.nic.run_until(self.base + now / CYCLE);
            self.host.nic.receive(&frame);
        }
        self.run(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Outbox) {
        self.host.nic.run_until(self.base + now / CYCLE);
        self.run(now, out);
    }

    fn is_done(&self) -> bool {
        let sent = self
            .senders
            .iter()
            .all(|sender| sender.role == Role::Serves || sender.report.finished.is_some());
        let failed = !self.report.failures.is_empty();
        failed || sent && self.mac.is_empty()
    }

    fn finish(mut self: Box<Self>, _now: Time) -> Outcome {
        self.report.failures.extend(self.host.nic.failures());
        self.report.timeouts = self.host.stat("local_ack_timeout_err");
        let senders = self.senders.into_iter();
        self.report.sent = senders.map(|sender| sender.report).collect();
        let receivers = self.receivers.into_values();
        self.report.received = receivers.map(|receiver| receiver.report).collect();
        Outcome::Host(self.report)
    }
}
