//! Packets of the tests, as the wire format library builds them.

use std::net::{Ipv4Addr, Ipv6Addr};

use ferroce_proto::abi::qpc::AvCtx;
use ferroce_proto::wire::{
    AethRepr, AtomicAckEthRepr, AtomicEthRepr, BthRepr, DethRepr, EthRepr, Ext, Extensions, Gid,
    Headers, Ip, Mac, Opcode, Psn, RethRepr, Syndrome, udp,
};

/// Queue pairs, and address handles: all kinds of paths, twice.
pub(crate) const QUEUE_PAIRS: u16 = 8;

/// Payload lengths about the MTUs.
pub(crate) const LENGTHS: [usize; 12] = [
    511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 4093, 4095, 4096,
];

/// What a responder sends.
pub(crate) const RESPONSES: [Opcode; 5] = [
    Opcode::RcAck,
    Opcode::RcReadResponseFirst,
    Opcode::RcReadResponseMiddle,
    Opcode::RcReadResponseLast,
    Opcode::RcReadResponseOnly,
];

/// MAC address of the port.
pub(crate) const PORT_MAC: Mac = Mac([0x02, 0x11, 0x22, 0x33, 0x44, 0x55]);

/// Entry `index` of the GID table; odd ones are IPv6.
pub(crate) fn local_gid(index: u8) -> Gid {
    if index % 2 == 1 {
        Gid::from(Ipv6Addr::new(
            0xfe80,
            0,
            0,
            0x1234,
            0x89ab,
            0xcdef,
            0x7fff,
            index.into(),
        ))
    } else {
        Gid::from(Ipv4Addr::new(192, 168, 255, 240 | index))
    }
}

/// Path of queue pair `qpn`: IPv6 by bit 0, tag by bit 1.
pub(crate) fn path(qpn: u16) -> AvCtx {
    let n = qpn as u8;
    let ipv6 = qpn & 1 == 1;
    let remote = if ipv6 {
        Gid::from(Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 3, 4, 0xfffe, qpn))
    } else {
        Gid::from(Ipv4Addr::new(255, 254, n, 253))
    };
    AvCtx {
        dgid: remote.to_le_bits(),
        dmac: 0x1100_ffee_dd02 + (u64::from(n) << 40),
        sgid_index: n & 0xf,
        ipv6,
        vlan_valid: qpn & 2 != 0,
        vlan: 0xa123 ^ qpn,
        tclass: 0xb9 ^ n,
        hop_limit: 0xff - n,
        udp_sport: 0xc0de ^ qpn,
        flow_label: 0xf_1234 ^ u32::from(qpn),
        remote_qpn: 0xab_cd00 + u32::from(qpn),
        pkey: 0x8765 ^ qpn,
        ..Default::default()
    }
}

/// Path of address handle `ah`, other than that of the queue pair of this number.
pub(crate) fn handle(ah: u16) -> AvCtx {
    AvCtx {
        remote_qpn: 0x55_5555,
        ..path(0x40 + ah)
    }
}

/// A packet to send.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) qpn: u16,
    pub(crate) opcode: Opcode,
    pub(crate) plen: usize,
    pub(crate) psn: u32,
    pub(crate) solicited: bool,
    pub(crate) ack_req: bool,
    pub(crate) va: u64,
    pub(crate) rkey: u32,
    pub(crate) dma_len: u32,
    pub(crate) imm: u32,
    pub(crate) syndrome: u8,
    pub(crate) msn: u32,
    pub(crate) swap_add: u64,
    pub(crate) compare: u64,
    /// Address handle and remote queue pair of a datagram.
    pub(crate) ah: u16,
    pub(crate) peer: u32,
    /// The requester gets a report of it.
    pub(crate) notify: bool,
    /// Its payload cannot be read: it must not be sent.
    pub(crate) unreadable: bool,
    /// The kind of path that its payload is aligned for, if that is not its own: it must not be sent either.
    pub(crate) aligned: Option<u8>,
}

impl Packet {
    /// A packet whose other fields follow from the arguments.
    pub(crate) fn new(qpn: u16, opcode: Opcode, plen: usize) -> Self {
        let x = (u64::from(qpn) << 32 | (opcode.code() as u64) << 16 | plen as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self {
            qpn,
            opcode,
            plen,
            psn: x as u32 & 0xff_ffff,
            solicited: x >> 24 & 1 == 1,
            ack_req: x >> 25 & 1 == 1,
            va: x.rotate_left(13),
            rkey: (x >> 7) as u32,
            dma_len: (x >> 17) as u32,
            imm: (x >> 27) as u32,
            syndrome: (x >> 40) as u8,
            msn: (x >> 33) as u32 & 0xff_ffff,
            swap_add: x.rotate_left(21) ^ 0x0123_4567_89ab_cdef,
            compare: x.rotate_left(37),
            ah: (qpn + 3) % QUEUE_PAIRS,
            peer: (x >> 11) as u32 & 0xff_ffff,
            notify: x >> 26 & 1 == 1,
            unreadable: false,
            aligned: None,
        }
    }

    /// 0 for requests, 1 for responses.
    pub(crate) fn lane(&self) -> usize {
        usize::from(self.opcode.is_response())
    }

    fn is_datagram(&self) -> bool {
        self.opcode.has(Ext::Deth)
    }

    /// Field `va` of the descriptor.
    pub(crate) fn va(&self) -> u64 {
        if self.is_datagram() {
            u64::from(self.peer) << 32 | u64::from(self.ah)
        } else {
            self.va
        }
    }

    fn av(&self) -> AvCtx {
        if self.is_datagram() {
            AvCtx {
                remote_qpn: self.peer,
                ..handle(self.ah)
            }
        } else {
            path(self.qpn)
        }
    }

    /// Kind of its path: 1 IPv6, 2 a tag.
    fn kind(&self) -> u8 {
        u8::from(self.av().ipv6) | u8::from(self.av().vlan_valid) << 1
    }

    /// The kind that its descriptor names.
    pub(crate) fn aligned(&self) -> u8 {
        self.aligned.unwrap_or(self.kind())
    }

    /// It must leave no trace on the wire.
    pub(crate) fn is_dropped(&self) -> bool {
        self.unreadable || self.plen > 0 && self.aligned() != self.kind()
    }

    /// Where its payload stands in the frame it is aligned for.
    pub(crate) fn payload_at(&self) -> usize {
        let extra = |kind: u8| 20 * usize::from(kind & 1) + 4 * usize::from(kind >> 1);
        self.header_len() - extra(self.kind()) + extra(self.aligned())
    }

    pub(crate) fn headers(&self) -> Headers {
        let av = self.av();
        let dmac = av.dmac.to_le_bytes();
        let has = |ext| self.opcode.has(ext);
        let (va, rkey) = (self.va, self.rkey);
        let local = local_gid(av.sgid_index);
        let remote = Gid::from_le_bits(av.dgid);
        Headers {
            eth: EthRepr {
                dst: Mac(dmac[..6].try_into().expect("six bytes")),
                src: PORT_MAC,
                vlan: av.vlan_valid.then_some(av.vlan),
            },
            ip: Ip::between(local, remote, av.tclass, av.flow_label, av.hop_limit)
                .expect("one version"),
            udp: udp::Repr {
                src_port: av.udp_sport,
            },
            bth: BthRepr {
                solicited: self.solicited,
                ack_req: self.ack_req,
                pkey: av.pkey,
                ..BthRepr::new(self.opcode, av.remote_qpn, Psn::new(self.psn))
            },
            ext: Extensions {
                reth: has(Ext::Reth).then_some(RethRepr {
                    va,
                    rkey,
                    dma_len: self.dma_len,
                }),
                atomic: has(Ext::AtomicEth).then_some(AtomicEthRepr {
                    va,
                    rkey,
                    swap_add: self.swap_add,
                    compare: self.compare,
                }),
                aeth: has(Ext::Aeth).then_some(AethRepr {
                    syndrome: Syndrome::from_bits(self.syndrome),
                    msn: self.msn,
                }),
                atomic_ack: has(Ext::AtomicAckEth).then_some(AtomicAckEthRepr { original: va }),
                imm: has(Ext::ImmDt).then_some(self.imm),
                ieth: has(Ext::Ieth).then_some(self.imm),
                deth: has(Ext::Deth).then_some(DethRepr {
                    qkey: rkey,
                    src_qp: self.qpn.into(),
                }),
            },
        }
    }

    /// Bytes in front of the payload.
    pub(crate) fn header_len(&self) -> usize {
        self.headers().frame_len(0) - 4
    }

    pub(crate) fn payload(&self) -> Vec<u8> {
        let byte = |i: usize| (i * 167 + (i >> 8) * 31 + self.psn as usize) as u8;
        (0..self.plen).map(byte).collect()
    }

    /// The frame on the wire.
    pub(crate) fn frame(&self) -> Vec<u8> {
        let headers = self.headers();
        let mut frame = vec![0; headers.frame_len(self.plen)];
        let len = headers.build(&self.payload(), &mut frame);
        assert_eq!(len, Ok(frame.len()));
        frame
    }
}
