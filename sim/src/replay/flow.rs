//! The connection that a capture shows.

use std::collections::HashSet;

use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::regs::feature;
use ferroce_proto::wire::{Class, Gid, Mac, Mtu, NakCode, Operation, Psn, Syndrome};

use super::input::{Announcement, Frame, Refusal};
use super::{Options, Role};

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// MAC address.
    pub mac: Mac,
    /// IP address.
    pub gid: Gid,
    /// Queue pair.
    pub qpn: u32,
}

/// The sender of a packet of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// The requester: a request.
    Requester,
    /// The responder: an answer.
    Responder,
}

/// Traffic in one direction: the requests of one side, and the answers of the other if it is reliable.
#[derive(Debug)]
pub(super) struct Connection<'a> {
    /// Transport.
    pub class: Class,
    /// The requester.
    pub requester: End,
    /// The responder.
    pub responder: End,
    /// The packets, in the order of the capture.
    pub steps: Vec<(Sender, &'a Frame)>,
    /// What the requester announced of itself.
    pub from_requester: Option<Announcement>,
    /// What the responder announced of itself.
    pub from_responder: Option<Announcement>,
}

/// Queue pair of connection management, which is passed over where there is other traffic.
const GENERAL_SERVICES_QPN: u32 = 1;

impl<'a> Connection<'a> {
    /// Finds the connection whose requests go to the queue pair of `options`, or the only one.
    ///
    /// A capture of several interfaces shows a packet once where it was sent and once where it arrived. Those of
    /// the interface at the end that the device plays are taken, which saw what that end saw.
    ///
    /// # Errors
    /// A [`Refusal`] if there is none, or more than one could be meant.
    pub(super) fn find(
        frames: &'a [Frame],
        announcements: &[Announcement],
        packets: usize,
        options: &Options,
    ) -> Result<Self, Refusal> {
        let request = Self::choose(frames, packets, options.qpn)?;
        let is_request = |f: &Frame| f.opcode().is_request() && Flow::of(f) == request;
        let first = frames.iter().find(|f| is_request(f));
        let eth = first.expect("the flow was found by it").packet.headers.eth;
        // The requester's interface is the one that saw a request first.
        let mut interfaces: Vec<usize> = Vec::new();
        for frame in frames.iter().filter(|f| is_request(f)) {
            if !interfaces.contains(&frame.interface) {
                interfaces.push(frame.interface);
            }
        }
        let interface = match options.role {
            Role::Requester => interfaces.first(),
            Role::Responder => interfaces.last(),
        };
        let announced = |gid: Gid| announcements.iter().find(|a| a.gid == gid).copied();
        let answer = match request.class {
            Class::Rc => Some(Self::answers(frames, request)?),
            _ => None,
        };
        let back = |f: &&Frame| {
            let flow = Flow::of(f);
            (flow.class, flow.src, flow.dst) == (request.class, request.dst, request.src)
        };
        // Unreliable connections do not tell where they come from.
        let requester_qpn = match (answer, request.class) {
            (Some(answer), _) => answer.qpn,
            (None, Class::Ud) => request.src_qp,
            _ => frames
                .iter()
                .find(back)
                .map(|f| f.packet.headers.bth.dest_qp)
                .or(announced(request.src).map(|a| a.qpn))
                .unwrap_or(request.qpn),
        };
        let requester = End {
            mac: eth.src,
            gid: request.src,
            qpn: requester_qpn,
        };
        let responder = End {
            mac: eth.dst,
            gid: request.dst,
            qpn: request.qpn,
        };
        let seen = frames.iter().filter(|f| Some(&f.interface) == interface);
        let steps = seen.filter_map(|frame| {
            let (flow, opcode) = (Flow::of(frame), frame.opcode());
            if flow == request && opcode.is_request() {
                Some((Sender::Requester, frame))
            } else if Some(flow) == answer && opcode.is_response() {
                Some((Sender::Responder, frame))
            } else {
                None
            }
        });
        Ok(Self {
            class: request.class,
            requester,
            responder,
            steps: steps.collect(),
            from_requester: announced(requester.gid).filter(|a| a.qpn == requester.qpn),
            from_responder: announced(responder.gid).filter(|a| a.qpn == responder.qpn),
        })
    }

    /// The flow of requests to replay.
    fn choose(frames: &[Frame], packets: usize, qpn: Option<u32>) -> Result<Flow, Refusal> {
        let is_request = |f: &&Frame| {
            matches!(f.opcode().class(), Class::Rc | Class::Uc | Class::Ud)
                && f.opcode().is_request()
                && qpn.is_none_or(|qpn| f.packet.headers.bth.dest_qp == qpn)
        };
        let mut flows: Vec<Flow> = Vec::new();
        for frame in frames.iter().filter(is_request) {
            let flow = Flow::of(frame);
            if !flows.contains(&flow) {
                flows.push(flow);
            }
        }
        if flows.iter().any(|flow| flow.qpn != GENERAL_SERVICES_QPN) {
            flows.retain(|flow| flow.qpn != GENERAL_SERVICES_QPN);
        }
        match flows.as_slice() {
            [] => {
                let roce = frames.len();
                Err(Refusal::NoRequest { qpn, packets, roce })
            }
            [flow] => Ok(*flow),
            // The two directions of one connection: the one that starts is replayed.
            [one, two]
                if (one.class, one.src, one.dst) == (two.class, two.dst, two.src)
                    && (one.class != Class::Ud
                        || (one.src_qp, one.qpn) == (two.qpn, two.src_qp)) =>
            {
                Ok(*one)
            }
            several => {
                let mut qpns: Vec<_> = several.iter().map(|flow| flow.qpn).collect();
                qpns.sort_unstable();
                qpns.dedup();
                Err(Refusal::Several(qpns))
            }
        }
    }

    /// Where the answers to the requests of `request` go.
    fn answers(frames: &[Frame], request: Flow) -> Result<Flow, Refusal> {
        let mut flows: Vec<Flow> = Vec::new();
        for frame in frames.iter().filter(|f| f.opcode().class() == Class::Rc) {
            let flow = Flow::of(frame);
            if frame.opcode().is_response()
                && (flow.src, flow.dst) == (request.dst, request.src)
                && !flows.contains(&flow)
            {
                flows.push(flow);
            }
        }
        if flows.len() > 1 {
            let of = |flow: Flow| frames.iter().filter(move |f| Flow::of(f) == flow);
            let mtu = mtu_of(of(request).map(|f| f.payload().len()));
            let psns: HashSet<Psn> = of(request)
                .filter(|f| f.opcode().is_request())
                .flat_map(|f| (0..f.psns(mtu)).map(|n| f.psn().add(n)))
                .collect();
            // A NAK may name a packet that the capture lacks.
            let strays = |flow: Flow| {
                let answers = of(flow).filter(|f| f.opcode().is_response());
                answers
                    .filter(|f| !f.is_sequence_nak() && !psns.contains(&f.psn()))
                    .count()
            };
            let least = flows.iter().map(|flow| strays(*flow)).min();
            flows.retain(|flow| Some(strays(*flow)) == least);
        }
        match flows.as_slice() {
            [] => Err(Refusal::NoAnswer(request.qpn)),
            [flow] => Ok(*flow),
            several => Err(Refusal::Ambiguous(several.iter().map(|f| f.qpn).collect())),
        }
    }

    /// What a device must have to take a side: feature bits with their names.
    pub(super) fn needs(&self) -> Vec<(u32, &'static str)> {
        let mut needs = vec![match self.class {
            Class::Uc => (feature::UC, "unreliable connections"),
            Class::Ud => (feature::UD, "unreliable datagrams"),
            _ => (feature::RC, "reliable connections"),
        }];
        let any = |is: fn(&Frame) -> bool| self.requests().any(is);
        if any(|f| f.opcode().operation() == Operation::ReadRequest) {
            needs.push((feature::READ, "READ"));
        }
        if any(|f| f.opcode().has_atomic_eth()) {
            needs.push((feature::ATOMIC, "atomics"));
        }
        if any(|f| f.opcode().has_ieth()) {
            needs.push((feature::INVALIDATE, "SEND with invalidate"));
        }
        needs
    }

    /// `qpc::qp_type` of its ends.
    pub(super) fn qp_type(&self) -> u8 {
        match self.class {
            Class::Uc => qp_type::UC,
            Class::Ud => qp_type::UD,
            _ => qp_type::RC,
        }
    }

    /// Q_Key of the datagrams; 0 if they are none.
    pub(super) fn qkey(&self) -> u32 {
        let first = self.requests().next();
        first
            .and_then(|f| f.packet.headers.ext.deth)
            .map_or(0, |deth| deth.qkey)
    }

    /// First PSN that the responder expected: as announced, or as it asked for when the first packets
    /// were lost, or that of the first packet.
    pub(super) fn start(&self) -> Psn {
        let first = self.requests().next().expect("a connection has requests");
        let answer = self.answers_recorded().next();
        let missing = answer.filter(|f| f.is_sequence_nak() && f.psn().since(first.psn()) < 0);
        let announced = self.from_requester.map(|a| a.psn);
        announced.or(missing.map(Frame::psn)).unwrap_or(first.psn())
    }

    /// The requests, in the order of the capture.
    pub(super) fn requests(&self) -> impl Iterator<Item = &'a Frame> {
        self.of(Sender::Requester)
    }

    /// The answers, in the order of the capture.
    pub(super) fn answers_recorded(&self) -> impl Iterator<Item = &'a Frame> {
        self.of(Sender::Responder)
    }

    /// Path MTU: the size of packets that others follow, or the least that all fit in.
    pub(super) fn path_mtu(&self) -> Mtu {
        mtu_of(self.steps.iter().map(|(_, f)| f.payload().len()))
    }

    fn of(&self, sender: Sender) -> impl Iterator<Item = &'a Frame> {
        let steps = self.steps.iter();
        steps
            .filter(move |step| step.0 == sender)
            .map(|step| step.1)
    }
}

/// The least path MTU that all of these payloads fit in.
fn mtu_of(payloads: impl Iterator<Item = usize>) -> Mtu {
    let longest = payloads.max().unwrap_or(0);
    let fits = Mtu::ALL.into_iter().find(|mtu| mtu.bytes() >= longest);
    fits.unwrap_or(Mtu::MAX)
}

impl Frame {
    /// PSNs that it takes: of a READ request those of its response.
    pub(super) fn psns(&self, mtu: Mtu) -> u32 {
        match self.packet.headers.ext.reth {
            Some(reth) if self.opcode().operation() == Operation::ReadRequest => {
                mtu.packets(reth.dma_len)
            }
            _ => 1,
        }
    }

    /// Its syndrome, if it has one.
    pub(super) fn syndrome(&self) -> Option<Syndrome> {
        self.packet.headers.ext.aeth.map(|aeth| aeth.syndrome)
    }

    /// Is a NAK that asks for a PSN once more.
    pub(super) fn is_sequence_nak(&self) -> bool {
        self.syndrome() == Some(Syndrome::Nak(NakCode::PsnSequence))
    }
}

/// Packets of one direction to one queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flow {
    class: Class,
    src: Gid,
    dst: Gid,
    qpn: u32,
    /// Source queue pair of datagrams, else 0.
    src_qp: u32,
}

impl Flow {
    fn of(frame: &Frame) -> Self {
        let headers = &frame.packet.headers;
        Self {
            class: frame.opcode().class(),
            src: headers.ip.src_gid(),
            dst: headers.ip.dst_gid(),
            qpn: headers.bth.dest_qp,
            src_qp: headers.ext.deth.map_or(0, |deth| deth.src_qp),
        }
    }
}
