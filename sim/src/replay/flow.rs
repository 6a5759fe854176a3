//! The connection that a capture shows.

use ferroce_proto::wire::{Class, Gid, Mac, Mtu, Psn};

use super::input::{Announcement, Frame, Refusal};

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

/// Who sent a packet of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// The requester: a request.
    Requester,
    /// The responder: an answer.
    Responder,
}

/// A reliable connection, seen in one direction: the requests of one side and the answers of the other.
#[derive(Debug)]
pub(super) struct Connection<'a> {
    /// Who requests.
    pub requester: End,
    /// Who answers.
    pub responder: End,
    /// The packets, in the order of the capture.
    pub steps: Vec<(Sender, &'a Frame)>,
    /// What the requester announced of itself.
    pub from_requester: Option<Announcement>,
    /// What the responder announced of itself.
    pub from_responder: Option<Announcement>,
}

impl<'a> Connection<'a> {
    /// Finds the connection whose requests go to queue pair `qpn`, or the only one.
    ///
    /// # Errors
    /// A [`Refusal`] if there is none, or more than one could be meant.
    pub(super) fn find(
        frames: &'a [Frame],
        announcements: &[Announcement],
        packets: usize,
        qpn: Option<u32>,
    ) -> Result<Self, Refusal> {
        let is_request = |f: &Frame| {
            f.opcode().class() == Class::Rc
                && f.opcode().is_request()
                && qpn.is_none_or(|qpn| f.packet.headers.bth.dest_qp == qpn)
        };
        let mut flows: Vec<Flow> = Vec::new();
        for frame in frames.iter().filter(|f| is_request(f)) {
            let flow = Flow::of(frame);
            if !flows.contains(&flow) {
                flows.push(flow);
            }
        }
        let request = match flows.as_slice() {
            [] => {
                let roce = frames.len();
                return Err(Refusal::NoRequest { qpn, packets, roce });
            }
            [flow] => *flow,
            several => {
                let mut qpns: Vec<_> = several.iter().map(|flow| flow.qpn).collect();
                qpns.dedup();
                // The two directions of one connection: the one that starts is replayed.
                let back = several.len() == 2
                    && (several[0].src, several[0].dst) == (several[1].dst, several[1].src);
                if !back {
                    return Err(Refusal::Several(qpns));
                }
                several[0]
            }
        };
        let first = frames
            .iter()
            .find(|f| is_request(f) && Flow::of(f) == request)
            .expect("the flow was found by it");
        let announced = |gid: Gid| announcements.iter().find(|a| a.gid == gid).copied();
        let answer = Self::answers(frames, request)?;
        let eth = first.packet.headers.eth;
        let requester = End {
            mac: eth.src,
            gid: request.src,
            qpn: answer.qpn,
        };
        let responder = End {
            mac: eth.dst,
            gid: request.dst,
            qpn: request.qpn,
        };
        let steps = frames.iter().filter_map(|frame| {
            let (flow, opcode) = (Flow::of(frame), frame.opcode());
            if flow == request && opcode.class() == Class::Rc && opcode.is_request() {
                Some((Sender::Requester, frame))
            } else if flow == answer && opcode.class() == Class::Rc && opcode.is_response() {
                Some((Sender::Responder, frame))
            } else {
                None
            }
        });
        Ok(Self {
            requester,
            responder,
            steps: steps.collect(),
            from_requester: announced(requester.gid).filter(|a| a.qpn == requester.qpn),
            from_responder: announced(responder.gid).filter(|a| a.qpn == responder.qpn),
        })
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
            let psns: Vec<Psn> = of(request).map(Frame::psn).collect();
            flows.retain(|&flow| {
                of(flow)
                    .filter(|f| f.opcode().is_response())
                    .all(|f| psns.contains(&f.psn()))
            });
        }
        match flows.as_slice() {
            [] => Err(Refusal::NoAnswer(request.qpn)),
            [flow] => Ok(*flow),
            several => Err(Refusal::Ambiguous(several.iter().map(|f| f.qpn).collect())),
        }
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
        let longest = self.requests().map(|f| f.payload().len()).max();
        let longest = longest.unwrap_or(0);
        let fits = Mtu::ALL.into_iter().find(|mtu| mtu.bytes() >= longest);
        fits.unwrap_or(Mtu::MAX)
    }

    fn of(&self, sender: Sender) -> impl Iterator<Item = &'a Frame> {
        let steps = self.steps.iter();
        steps
            .filter(move |step| step.0 == sender)
            .map(|step| step.1)
    }
}

/// Packets of one direction to one queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flow {
    src: Gid,
    dst: Gid,
    qpn: u32,
}

impl Flow {
    fn of(frame: &Frame) -> Self {
        let headers = &frame.packet.headers;
        Self {
            src: headers.ip.src_gid(),
            dst: headers.ip.dst_gid(),
            qpn: headers.bth.dest_qp,
        }
    }
}
