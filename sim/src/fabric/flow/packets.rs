//! The frames of a host without a card.

use std::net::Ipv4Addr;

use ferroce_proto::wire::ip::ECN_ECT0;
use ferroce_proto::wire::{
    AethRepr, BthRepr, EthRepr, Extensions, Headers, Ip, Ipv4Repr, NakCode, Opcode, Psn, RethRepr,
    Syndrome, UdpRepr, cnp, udp,
};

use super::{Flow, FlowId};
use crate::fabric::{Frame, host_mac};
use crate::packet;

/// DSCP of data and acknowledgements: class 3.
pub(super) const DATA_DSCP: u8 = 26;
/// DSCP of CNPs: class 6.
pub(super) const CNP_DSCP: u8 = 48;

/// Packets of a message: what is longer is several WRITEs.
const MESSAGE: u64 = 1024;

const ZEROS: [u8; 4096] = [0; 4096];

/// IP address of a host.
pub(super) fn host_ip(host: usize) -> Ipv4Addr {
    let [high, low] = (host as u16).to_be_bytes();
    Ipv4Addr::new(10, 1, high, low)
}

/// Makes the frames of one end of a flow.
#[derive(Clone, Debug)]
pub(super) struct Packets {
    eth: EthRepr,
    src: Ipv4Addr,
    dst: Ipv4Addr,
    qpn: u32,
    port: u16,
}

impl Packets {
    /// From host `from` to host `to`.
    pub(super) fn new(id: FlowId, from: usize, to: usize) -> Self {
        let qpn = Flow::qpn(id);
        Self {
            eth: EthRepr {
                dst: host_mac(to),
                src: host_mac(from),
                vlan: None,
            },
            src: host_ip(from),
            dst: host_ip(to),
            qpn,
            port: udp::source_port(0, qpn, qpn),
        }
    }

    fn frame(&self, tos: u8, bth: BthRepr, ext: Extensions, payload: &[u8]) -> Frame {
        let headers = Headers {
            eth: self.eth,
            ip: Ip::V4(Ipv4Repr {
                src: self.src,
                dst: self.dst,
                tos,
                ident: 0,
                ttl: 64,
            }),
            udp: UdpRepr {
                src_port: self.port,
            },
            bth,
            ext,
        };
        packet::frame(&headers, payload)
    }

    /// Packet `number` of `packets` of the flow.
    pub(super) fn write(&self, number: u64, packets: u64, len: usize, ack_req: bool) -> Frame {
        let place = number % MESSAGE;
        let is_last = is_end(number, packets);
        let opcode = match (place, is_last) {
            (0, true) => Opcode::RcWriteOnly,
            (0, false) => Opcode::RcWriteFirst,
            (_, true) => Opcode::RcWriteLast,
            (_, false) => Opcode::RcWriteMiddle,
        };
        let mut ext = Extensions::default();
        if place == 0 {
            let left = MESSAGE.min(packets - number);
            ext.reth = Some(RethRepr {
                va: 0,
                rkey: 0,
                dma_len: left as u32 * len as u32,
            });
        }
        let mut bth = BthRepr::new(opcode, self.qpn, psn(number));
        bth.ack_req = ack_req;
        self.frame(DATA_DSCP << 2 | ECN_ECT0, bth, ext, &ZEROS[..len])
    }

    /// All up to packet `number` came.
    pub(super) fn ack(&self, number: u64) -> Frame {
        self.answer(number, Syndrome::ACK)
    }

    /// Packet `number` is missing.
    pub(super) fn nak(&self, number: u64) -> Frame {
        self.answer(number, Syndrome::Nak(NakCode::PsnSequence))
    }

    fn answer(&self, number: u64, syndrome: Syndrome) -> Frame {
        let ext = Extensions {
            aeth: Some(AethRepr {
                syndrome,
                msn: (number / MESSAGE) as u32 & 0xff_ffff,
            }),
            ..Extensions::default()
        };
        let bth = BthRepr::new(Opcode::RcAck, self.qpn, psn(number));
        self.frame(DATA_DSCP << 2, bth, ext, &[])
    }

    /// A packet came with a mark.
    pub(super) fn cnp(&self) -> Frame {
        let bth = cnp::bth(self.qpn, 0xffff);
        self.frame(CNP_DSCP << 2, bth, Extensions::default(), &[])
    }
}

/// Whether a packet ends a message.
pub(super) const fn is_end(number: u64, packets: u64) -> bool {
    number % MESSAGE == MESSAGE - 1 || number + 1 == packets
}

fn psn(number: u64) -> Psn {
    Psn::new(number as u32 & 0xff_ffff)
}

/// The packet number of a PSN, the nearest to `near`; `None` before the first.
pub(super) fn number(psn: Psn, near: u64) -> Option<u64> {
    let away = psn.since(Psn::new(near as u32 & 0xff_ffff));
    near.checked_add_signed(away.into())
}
