//! Queue pairs of a [`Host`].

use ferroce_proto::abi::cmd::{CmdHead, QpState, opcode, status};
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::qpc::{AvCtx, RqCtx, SqCtx, qp_type, state};
use ferroce_proto::abi::wqe::{RECV_SGES_FIRST, RecvWqe, SGE_BYTES, SLOT_BYTES, Sge};
use ferroce_proto::wire::{Gid, Mac, Mtu};

use super::{Host, Work};

/// A queue pair.
pub(super) struct Qp {
    options: QpOptions,
    /// In the order of creation, from 2.
    place: u32,
    sq_base: u64,
    rq_base: u64,
    sq_producer: u16,
    rq_producer: u16,
}

impl Qp {
    /// Both rings.
    pub(super) const fn rings(&self) -> [(u64, u64); 2] {
        [self.send_ring(), self.recv_ring()]
    }

    /// Address and bytes of the send queue.
    const fn send_ring(&self) -> (u64, u64) {
        (self.sq_base, (SLOT_BYTES as u64) << self.options.sq_log)
    }

    /// Address and bytes of the receive queue.
    const fn recv_ring(&self) -> (u64, u64) {
        let log = self.options.rq_stride + self.options.rq_log;
        (self.rq_base, (SLOT_BYTES as u64) << log)
    }
}

/// How a queue pair is set up.
#[derive(Clone, Copy, Debug)]
pub struct QpOptions {
    /// Transport, see `qpc::qp_type`.
    pub qp_type: u8,
    /// Path MTU.
    pub mtu: Mtu,
    /// Completion queue of the send queue.
    pub send_cq: u16,
    /// Completion queue of the receive queue.
    pub recv_cq: u16,
    /// Log2 of the slots of the send queue.
    pub sq_log: u8,
    /// Log2 of the WQEs of the receive queue.
    pub rq_log: u8,
    /// Log2 of the slots of a receive WQE.
    pub rq_stride: u8,
    /// Log2 of the messages outstanding.
    pub ot_log: u8,
    /// Local ACK timeout code.
    pub timeout: u8,
    /// Retries.
    pub retry_cnt: u8,
    /// RNR retries.
    pub rnr_retry: u8,
    /// RNR NAK timer code this side asks its peer for.
    pub min_rnr_timer: u8,
    /// READs and atomics outstanding, as requester and as responder.
    pub max_rd_atomic: u8,
    /// First PSN this side sends.
    pub psn: u32,
    /// 802.1Q tag to send.
    pub vlan: Option<u16>,
    /// Type of service or traffic class to send: DSCP and ECN.
    pub tclass: u8,
    /// Q_Key (UD).
    pub qkey: u32,
    /// Shared receive queue to receive from.
    pub srq: Option<u16>,
    /// Limit of what it sends, Mb/s; 0: none.
    pub rate_limit: u32,
    /// PSNs that may be outstanding; 0: any number.
    pub window: u16,
    /// Congestion control by round-trip times, else DCQCN.
    pub swift: bool,
}

impl Default for QpOptions {
    fn default() -> Self {
        Self {
            qp_type: qp_type::RC,
            mtu: Mtu::Mtu1024,
            send_cq: 0,
            recv_cq: 0,
            sq_log: 6,
            rq_log: 4,
            rq_stride: 0,
            ot_log: 4,
            timeout: 4,
            retry_cnt: 7,
            rnr_retry: 7,
            min_rnr_timer: 1,
            max_rd_atomic: 4,
            psn: 0x1000,
            vlan: None,
            tclass: 0,
            qkey: 0x1234_5678,
            srq: None,
            rate_limit: 0,
            window: 0,
            swift: false,
        }
    }
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its MAC address.
    pub mac: Mac,
    /// Its GID.
    pub gid: Gid,
    /// Its queue pair.
    pub qpn: u32,
    /// The first PSN it sends.
    pub psn: u32,
}

impl Peer {
    /// The address vector of the way to it, without a tag.
    #[must_use]
    pub fn path(&self) -> AvCtx {
        let Mac([a, b, c, d, e, f]) = self.mac;
        AvCtx {
            dgid: self.gid.to_le_bits(),
            dmac: u64::from_le_bytes([a, b, c, d, e, f, 0, 0]),
            ipv6: !self.gid.is_ipv4(),
            hop_limit: 64,
            udp_sport: 0xc000,
            remote_qpn: self.qpn,
            pkey: 0xffff,
            ..AvCtx::default()
        }
    }
}

impl Host {
    /// A queue pair in RESET, with its rings. Numbers start at 2.
    pub fn create_qp(&mut self, options: QpOptions) -> u32 {
        self.create_qp_as(2 + self.qps.len() as u32, options)
    }

    /// A queue pair of a number of the caller's choice, in RESET, with its rings.
    pub fn create_qp_as(&mut self, qpn: u32, options: QpOptions) -> u32 {
        let sq_base = self.alloc_ring(SLOT_BYTES << options.sq_log);
        let rq_base = self.alloc_ring(SLOT_BYTES << options.rq_stride << options.rq_log);
        // Slots for outstanding messages go by the order of creation: a large number has none of its own in every build.
        let count = self.qps.len() as u32;
        let place = self.qps.get(&qpn).map_or(2 + count, |qp| qp.place);
        let qp = Qp {
            options,
            place,
            sq_base,
            rq_base,
            sq_producer: 0,
            rq_producer: 0,
        };
        self.qps.insert(qpn, qp);
        qpn
    }

    /// What the peer needs to know of a queue pair.
    #[must_use]
    pub fn peer(&self, qpn: u32) -> Peer {
        Peer {
            mac: self.mac,
            gid: self.gid,
            qpn,
            psn: self.qps[&qpn].options.psn,
        }
    }

    /// Takes a queue pair to RESET and empties its rings.
    pub fn reset_qp(&mut self, qpn: u32) {
        let head = CmdHead {
            opcode: opcode::MODIFY_QP,
            index: qpn,
            qp_sq_state: true,
            sq_reset: true,
            qp_rq_state: true,
            rq_reset: true,
            ..CmdHead::default()
        };
        assert_eq!(self.command(head, &[]).status, status::OK);
        self.was_reset(qpn);
    }

    /// Notes that a RESET was answered: the rings are empty, and the card must not reach them until something is posted.
    pub fn was_reset(&mut self, qpn: u32) {
        let qp = self.qps.get_mut(&qpn).expect("created");
        (qp.sq_producer, qp.rq_producer) = (0, 0);
        for (base, bytes) in qp.rings() {
            self.reach.take_back(base, bytes);
        }
        self.nic.write32(doorbell::sq(qpn), 0);
        self.nic.write32(doorbell::rq(qpn), 0);
    }

    /// Takes a queue pair to one of the states of `qpc::state`, both sides.
    pub fn modify_state(&mut self, qpn: u32, state: u8) {
        let head = CmdHead {
            opcode: opcode::MODIFY_QP,
            index: qpn,
            qp_sq_state: true,
            sq_state: state,
            qp_rq_state: true,
            rq_state: state,
            ..CmdHead::default()
        };
        assert_eq!(self.command(head, &[]).status, status::OK);
    }

    /// Takes a queue pair through RESET to RTS; its rings are empty afterwards.
    pub fn connect(&mut self, qpn: u32, peer: &Peer) {
        self.reset_qp(qpn);
        let images = self.images(qpn, peer);
        let head = self.opening(qpn, peer);
        assert_eq!(self.command(head, &images).status, status::OK);
    }

    /// The command that takes a queue pair in RESET to RTS, with its three images.
    #[must_use]
    pub fn opening(&self, qpn: u32, peer: &Peer) -> CmdHead {
        CmdHead {
            opcode: opcode::MODIFY_QP,
            index: qpn,
            qp_sq: true,
            qp_av: true,
            qp_rq: true,
            qp_sq_state: true,
            sq_reset: true,
            sq_state: state::RTS,
            sq_psn: self.qps[&qpn].options.psn,
            qp_rq_state: true,
            rq_reset: true,
            rq_state: state::RTS,
            rq_psn: peer.psn,
            ..CmdHead::default()
        }
    }

    /// The three images of a queue pair connected to `peer`.
    #[must_use]
    pub fn images(&self, qpn: u32, peer: &Peer) -> [[u8; 64]; 3] {
        let Qp {
            options,
            place,
            sq_base,
            rq_base,
            ..
        } = &self.qps[&qpn];
        let sq = SqCtx {
            qp_type: options.qp_type,
            mtu: options.mtu.code(),
            sq_log: options.sq_log,
            ot_log: options.ot_log,
            retry_cnt: options.retry_cnt,
            rnr_retry: options.rnr_retry,
            timeout: options.timeout,
            max_rd_atomic: options.max_rd_atomic,
            pd: self.pd,
            cqn: options.send_cq,
            ot_base: place << options.ot_log,
            sq_base: *sq_base,
            rate_limit: options.rate_limit,
            window: options.window,
            swift: options.swift,
            ..SqCtx::default()
        };
        let av = AvCtx {
            vlan_valid: options.vlan.is_some(),
            vlan: options.vlan.unwrap_or(0),
            tclass: options.tclass,
            udp_sport: 0xc000 | (qpn as u16 & 0x3fff),
            ..peer.path()
        };
        let rq = RqCtx {
            remote_gid: peer.gid.to_le_bits(),
            rq_base: *rq_base,
            qp_type: options.qp_type,
            mtu: options.mtu.code(),
            rq_log: options.rq_log,
            rq_stride: options.rq_stride,
            min_rnr_timer: options.min_rnr_timer,
            remote_write: true,
            remote_read: true,
            remote_atomic: true,
            max_dest_rd_atomic: options.max_rd_atomic,
            pkey: 0xffff,
            pd: self.pd,
            cqn: options.recv_cq,
            srq_valid: options.srq.is_some(),
            srqn: options.srq.unwrap_or(0),
            qkey: options.qkey,
            ..RqCtx::default()
        };
        [sq.emit(), av.emit(), rq.emit()]
    }

    /// The dynamic state of a queue pair.
    pub fn query(&mut self, qpn: u32) -> QpState {
        let head = CmdHead {
            opcode: opcode::QUERY_QP,
            index: qpn,
            ..CmdHead::default()
        };
        let completion = self.command(head, &[]);
        assert_eq!(completion.status, status::OK);
        QpState::parse(&completion.value.to_le_bytes())
    }

    /// Posts a send work request and rings. Answers the WQE index its CQE will carry.
    pub fn post_send(&mut self, qpn: u32, work: &Work) -> u16 {
        self.post_slots(qpn, &work.slots())
    }

    /// Posts the slots of a send WQE, sensible or not, and rings.
    pub fn post_slots(&mut self, qpn: u32, slots: &[[u8; SLOT_BYTES]]) -> u16 {
        let index = self.write_slots(qpn, slots);
        let producer = self.qps[&qpn].sq_producer;
        self.nic.write32(doorbell::sq(qpn), producer.into());
        index
    }

    /// Writes the slots of a send WQE without ringing, for several to one doorbell.
    pub fn write_slots(&mut self, qpn: u32, slots: &[[u8; SLOT_BYTES]]) -> u16 {
        let qp = self.qps.get_mut(&qpn).expect("created");
        let (index, (base, bytes)) = (qp.sq_producer, qp.send_ring());
        self.reach.give(base, bytes);
        let mask = (1 << qp.options.sq_log) - 1;
        qp.sq_producer = index.wrapping_add(slots.len() as u16);
        for (i, slot) in slots.iter().enumerate() {
            let place = index.wrapping_add(i as u16) & mask;
            self.write(base + u64::from(place) * SLOT_BYTES as u64, slot);
        }
        index
    }

    /// Posts a receive WQE and rings. Answers the WQE index its CQE will carry.
    pub fn post_recv(&mut self, qpn: u32, list: &[Sge]) -> u16 {
        let length = list.iter().map(|sge| sge.length).sum();
        let head = RecvWqe {
            num_sge: list.len() as u8,
            length,
            ..RecvWqe::default()
        };
        self.post_recv_wqe(qpn, head, list)
    }

    /// Posts a receive WQE, sensible or not, and rings. Answers the WQE index its CQE will carry.
    pub fn post_recv_wqe(&mut self, qpn: u32, head: RecvWqe, list: &[Sge]) -> u16 {
        let index = self.write_recv_wqe(qpn, head, list);
        self.ring_recv(qpn);
        index
    }

    /// Rings for all receive WQEs written.
    pub fn ring_recv(&mut self, qpn: u32) {
        let producer = self.qps[&qpn].rq_producer;
        self.nic.write32(doorbell::rq(qpn), producer.into());
    }

    /// Writes a receive WQE without ringing, for several to one doorbell.
    pub fn write_recv_wqe(&mut self, qpn: u32, head: RecvWqe, list: &[Sge]) -> u16 {
        let qp = self.qps.get_mut(&qpn).expect("created");
        let stride = SLOT_BYTES << qp.options.rq_stride;
        let room = RECV_SGES_FIRST + (stride - SLOT_BYTES) / SGE_BYTES;
        assert!(
            list.len() <= room,
            "{} entries in a receive WQE of {stride} bytes",
            list.len()
        );
        let index = qp.rq_producer;
        qp.rq_producer = index.wrapping_add(1);
        let (base, bytes) = qp.recv_ring();
        self.reach.give(base, bytes);
        let place = u64::from(index) & ((1 << qp.options.rq_log) - 1);
        let at = qp.rq_base + place * stride as u64;
        self.write(at, &recv_wqe(head, list));
        index
    }
}

/// The bytes of a receive WQE.
pub(super) fn recv_wqe(head: RecvWqe, list: &[Sge]) -> Vec<u8> {
    let mut bytes = head.emit().to_vec();
    bytes.extend(list.iter().flat_map(Sge::emit));
    bytes
}
