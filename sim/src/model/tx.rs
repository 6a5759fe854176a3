//! Transmit: frames from headers and payload, arbitration, the pace of the port.

use std::collections::VecDeque;

use ferroce_proto::abi::qpc::AvCtx;
use ferroce_proto::abi::wqe::UdAddress;
use ferroce_proto::wire::{
    BthRepr, EthRepr, Extensions, Gid, Headers, Ip, Ipv4Repr, Ipv6Repr, Mac, Opcode, Psn, UdpRepr,
    cnp,
};

use super::egress::{Departure, Kind, Leaving};
use super::{Env, Model, stats};
use crate::packet;

/// Bytes that leave the port in a cycle.
const BYTES_PER_CYCLE: u64 = 64;

/// A packet to send, without what the address vector adds.
#[derive(Clone)]
pub(super) struct Outgoing {
    pub(super) opcode: Opcode,
    pub(super) psn: Psn,
    pub(super) solicited: bool,
    pub(super) ack_req: bool,
    pub(super) ext: Extensions,
    pub(super) payload: Vec<u8>,
    /// Where a datagram goes.
    pub(super) address: Option<UdAddress>,
}

impl Outgoing {
    /// A response without payload.
    pub(super) fn response(opcode: Opcode, psn: Psn, ext: Extensions) -> Self {
        Self {
            opcode,
            psn,
            solicited: false,
            ack_req: false,
            ext,
            payload: Vec::new(),
            address: None,
        }
    }
}

/// Queue pairs that wait for the wire, each once, first come first served.
#[derive(Clone, Default)]
pub(super) struct Ready {
    queue: VecDeque<u32>,
    members: std::collections::BTreeSet<u32>,
}

impl Ready {
    pub(super) fn add(&mut self, qpn: u32) {
        if self.members.insert(qpn) {
            self.queue.push_back(qpn);
        }
    }

    fn take(&mut self) -> Option<u32> {
        let qpn = self.queue.pop_front()?;
        self.members.remove(&qpn);
        Some(qpn)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// The transmit side of the port.
#[derive(Clone, Default)]
pub(super) struct Port {
    /// The frame on the wire, the cycle in which its last beat leaves, and its class.
    leaving: Option<(u64, Vec<u8>, u8)>,
    /// Frames that have left.
    pub(super) sent: VecDeque<Vec<u8>>,
    /// The lane that goes first next: responses or requests.
    responses_first: bool,
    /// A frame of the host goes before those of the transport.
    exceptions_first: bool,
}

impl Port {
    pub(super) fn is_busy(&self) -> bool {
        self.leaving.is_some()
    }

    /// Class of the frame on the wire.
    pub(super) fn class(&self) -> Option<u8> {
        self.leaving.as_ref().map(|(_, _, class)| *class)
    }
}

impl Model {
    /// One cycle: when the wire is free, puts the next frame on it.
    pub(super) fn step_transmit(&mut self) {
        if !self.port.is_busy()
            && let Some((frame, departure)) = self.next_to_send()
        {
            if let Some(departure) = departure {
                self.departs(departure);
            }
            let cycles = (frame.len() as u64).div_ceil(BYTES_PER_CYCLE);
            let class = self.egress.class(&frame);
            self.port.leaving = Some((self.env.now + cycles - 1, frame, class));
        }
        let now = self.env.now;
        if let Some((_, frame, _)) = self.port.leaving.take_if(|(last, ..)| *last <= now) {
            if self.is_own(&frame) {
                self.arrived.push_back(frame);
            } else {
                self.port.sent.push_back(frame);
            }
        }
    }

    /// What is addressed to the port itself comes back to it, and is never paused.
    fn is_own(&self, frame: &[u8]) -> bool {
        frame[..6] == mac(self.env.config.mac).0
    }

    /// The next frame that may leave. One is made when none waits that may. Transport and host take turns.
    fn next_to_send(&mut self) -> Option<Leaving> {
        loop {
            if let Some(leaving) = self.egress.next() {
                return Some(leaving);
            }
            let exceptions_first = self.port.exceptions_first;
            let ((frame, departure), kind) = [exceptions_first, !exceptions_first]
                .into_iter()
                .find_map(|exception| {
                    let next = if exception {
                        ((self.next_exception()?, None), Kind::Other)
                    } else {
                        self.next_packet()?
                    };
                    self.port.exceptions_first = !exception;
                    Some(next)
                })?;
            self.env.stats.count(stats::TX_FRAMES);
            self.env.stats.add(stats::TX_BYTES, frame.len() as u64);
            if self.is_own(&frame) {
                return Some((frame, departure));
            }
            self.egress.push(frame, kind, departure);
        }
    }

    /// A request leaves.
    fn departs(&mut self, departure: Departure) {
        let qpn = departure.qpn;
        self.qps[qpn as usize].departed(&mut self.env, departure);
        self.schedule(qpn, false);
    }

    /// The next frame of the transport: a CNP before all else; responses and requests take turns.
    fn next_packet(&mut self) -> Option<(Leaving, Kind)> {
        let responses_first = self.port.responses_first;
        let frame = self.next_cnp().or_else(|| {
            [responses_first, !responses_first]
                .into_iter()
                .find_map(|responses| {
                    let frame = self.next_frame(responses)?;
                    self.port.responses_first = !responses;
                    Some(frame)
                })
        })?;
        self.env.stats.count(stats::TX_ROCE_PACKETS);
        Some(frame)
    }

    /// The next CNP, on the path of its queue pair but for DSCP, ECN and PCP.
    fn next_cnp(&mut self) -> Option<(Leaving, Kind)> {
        let av = &self.qps[self.notify.due.pop_front()? as usize].av;
        let config = &self.notify.config;
        let path = AvCtx {
            tclass: config.cnp_dscp << 2,
            vlan: av.vlan & 0x1fff | u16::from(config.cnp_802p_prio) << 13,
            ..*av
        };
        self.env.stats.count(stats::NP_CNP_SENT);
        let bth = cnp::bth(av.remote_qpn, av.pkey);
        let frame = self.env.frame(&path, bth, Extensions::default(), &[]);
        Some(((frame, None), Kind::Cnp))
    }

    /// The next frame of one of the two lanes.
    fn next_frame(&mut self, responses: bool) -> Option<(Leaving, Kind)> {
        loop {
            let lane = if responses {
                &mut self.responses
            } else {
                &mut self.requests
            };
            let qpn = lane.take()?;
            let qp = &mut self.qps[qpn as usize];
            let (now, reaction) = (self.env.now, &self.reaction);
            if qp.next_start(now, responses, reaction) > now {
                self.schedule(qpn, false);
                continue;
            }
            let counts = !responses || qp.response_has_data();
            let packet = if responses {
                qp.next_response(&mut self.env)
            } else {
                qp.next_request(&mut self.env)
            };
            if let Some(packet) = packet.as_ref().filter(|_| counts) {
                let bytes = packet.payload.len();
                qp.sq.pacing.on_sent(now, responses, bytes, reaction);
            }
            let frame = packet.map(|packet| {
                let kind = match packet.opcode {
                    Opcode::RcAck => Kind::Ack,
                    _ if responses => Kind::Response,
                    _ => Kind::Other,
                };
                let departure = Departure {
                    qpn,
                    after: qp.sq.next,
                    asks: packet.ack_req,
                    made: now,
                };
                let departure = (!responses).then_some(departure);
                ((self.env.packet(&qp.av, &packet), departure), kind)
            });
            let blocked = frame.is_none();
            self.schedule(qpn, blocked);
            if frame.is_some() {
                return frame;
            }
        }
    }
}

impl Env {
    /// The path of a packet: that of its queue pair, or of the address handle of a datagram.
    fn path(&self, connected: &AvCtx, packet: &Outgoing) -> AvCtx {
        match packet.address {
            Some(UdAddress { ah, remote_qpn, .. }) => AvCtx {
                remote_qpn,
                ..self.ahs[ah as usize]
            },
            None => *connected,
        }
    }

    /// The frame of a packet of a queue pair.
    fn packet(&mut self, connected: &AvCtx, packet: &Outgoing) -> Vec<u8> {
        if packet.opcode == Opcode::RcAck {
            self.stats.count(stats::TX_ACKS);
        }
        let av = self.path(connected, packet);
        let bth = BthRepr {
            solicited: packet.solicited,
            pkey: av.pkey,
            ack_req: packet.ack_req,
            ..BthRepr::new(packet.opcode, av.remote_qpn, packet.psn)
        };
        self.frame(&av, bth, packet.ext, &packet.payload)
    }

    /// A frame on the path of an address vector.
    fn frame(&self, av: &AvCtx, bth: BthRepr, ext: Extensions, payload: &[u8]) -> Vec<u8> {
        let headers = Headers {
            eth: EthRepr {
                dst: mac(av.dmac),
                src: mac(self.config.mac),
                vlan: av.vlan_valid.then_some(av.vlan),
            },
            ip: self.ip(av),
            udp: UdpRepr {
                src_port: av.udp_sport,
            },
            bth,
            ext,
        };
        packet::frame(&headers, payload)
    }

    fn ip(&self, av: &AvCtx) -> Ip {
        let src = self.gids[usize::from(av.sgid_index)].gid.to_le_bytes();
        let dst = av.dgid.to_le_bytes();
        let v4 = |gid: [u8; 16]| [gid[12], gid[13], gid[14], gid[15]].into();
        if av.ipv6 {
            Ip::V6(Ipv6Repr {
                src: src.into(),
                dst: dst.into(),
                traffic_class: av.tclass,
                flow_label: av.flow_label,
                hop_limit: av.hop_limit,
            })
        } else {
            Ip::V4(Ipv4Repr {
                src: v4(src),
                dst: v4(dst),
                tos: av.tclass,
                ident: 0,
                ttl: av.hop_limit,
            })
        }
    }
}

/// A MAC address of the host contract: first byte in the lowest bits.
pub(super) fn mac(bits: u64) -> Mac {
    let [mac @ .., _, _] = bits.to_le_bytes();
    Mac(mac)
}

/// A GID of the host contract: first byte in the lowest bits.
pub(super) fn gid(bits: u128) -> Gid {
    Gid::from_le_bits(bits)
}
