//! The request for a connection (IB1 12.6.5).

use super::HEAD;
use super::bytes::Bytes;

/// The one partition.
pub(super) const PKEY: u16 = 0xffff;
/// A LID that says nothing: the way is found by GIDs.
const PERMISSIVE_LID: u16 = 0xffff;
/// Code of the rate of a path: 25 Gbit/s.
const RATE: u8 = 15;

/// A REQ, as far as RoCE uses it: without end-to-end contexts and an alternate path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Req {
    /// Communication ID of the sender.
    pub local: u32,
    /// Service ID.
    pub service: u64,
    /// GUID of the card of the sender.
    pub guid: u64,
    /// Queue pair of the sender, 24 bits.
    pub qpn: u32,
    /// READs and atomics that the sender takes at a time.
    pub responder_resources: u8,
    /// READs and atomics that the sender starts at a time.
    pub initiator_depth: u8,
    /// Code of the time the receiver may take to answer.
    pub remote_timeout: u8,
    /// Transport: 0 for RC, 1 for UC.
    pub transport: u8,
    /// End-to-end credits.
    pub flow_control: bool,
    /// PSN that the sender expects first (IB1 12.7.31).
    pub psn: u32,
    /// Code of the time the sender takes to answer.
    pub local_timeout: u8,
    /// Retries of a request without acknowledgement, 3 bits.
    pub retry: u8,
    /// Code of the path MTU.
    pub mtu: u8,
    /// Retries after an RNR NAK, 3 bits; 7 for ever.
    pub rnr_retry: u8,
    /// How often messages are sent again.
    pub cm_retries: u8,
    /// The queue pair has a shared receive queue.
    pub srq: bool,
    /// GID of the sender.
    pub local_gid: [u8; 16],
    /// GID of the receiver.
    pub remote_gid: [u8; 16],
    /// Flow label of the path, 20 bits.
    pub flow_label: u32,
    /// Traffic class of the path.
    pub traffic_class: u8,
    /// Hop limit of the path.
    pub hop_limit: u8,
    /// Code of the ACK timeout that the receiver is to use.
    pub ack_timeout: u8,
    /// Data of the program.
    pub private: [u8; 92],
}

impl Default for Req {
    /// Of a reliable connection with packets of 1024 bytes, 7 retries of each kind and an ACK timeout of 0.5 s; without
    /// service, ends and data.
    fn default() -> Self {
        Self {
            local: 0,
            service: 0,
            guid: 0,
            qpn: 0,
            responder_resources: 1,
            initiator_depth: 1,
            remote_timeout: 0,
            transport: 0,
            flow_control: false,
            psn: 0,
            local_timeout: 0,
            retry: 7,
            mtu: 3,
            rnr_retry: 7,
            cm_retries: 0,
            srq: false,
            local_gid: [0; 16],
            remote_gid: [0; 16],
            flow_label: 0,
            traffic_class: 0,
            hop_limit: 64,
            ack_timeout: 17,
            private: [0; 92],
        }
    }
}

impl Req {
    pub(super) fn parse(b: &Bytes) -> Self {
        let at = |offset| HEAD + offset;
        Self {
            local: b.u32(at(0)),
            service: b.u64(at(8)),
            guid: b.u64(at(16)),
            qpn: b.u24(at(32)),
            responder_resources: b.u8(at(35)),
            initiator_depth: b.u8(at(39)),
            remote_timeout: b.u8(at(43)) >> 3,
            transport: b.u8(at(43)) >> 1 & 3,
            flow_control: b.u8(at(43)) & 1 != 0,
            psn: b.u24(at(44)),
            local_timeout: b.u8(at(47)) >> 3,
            retry: b.u8(at(47)) & 7,
            mtu: b.u8(at(50)) >> 4,
            rnr_retry: b.u8(at(50)) & 7,
            cm_retries: b.u8(at(51)) >> 4,
            srq: b.u8(at(51)) & 1 << 3 != 0,
            local_gid: b.array(at(56)),
            remote_gid: b.array(at(72)),
            flow_label: b.u24(at(88)) >> 4,
            traffic_class: b.u8(at(92)),
            hop_limit: b.u8(at(93)),
            ack_timeout: b.u8(at(95)) >> 3,
            private: b.array(at(140)),
        }
    }

    pub(super) fn emit(&self, b: &mut Bytes) {
        let at = |offset| HEAD + offset;
        b.set_u32(at(0), self.local);
        b.set_u64(at(8), self.service);
        b.set_u64(at(16), self.guid);
        b.set_u24(at(32), self.qpn);
        b.set(at(35), &[self.responder_resources]);
        b.set(at(39), &[self.initiator_depth]);
        let flow = u8::from(self.flow_control);
        b.set(
            at(43),
            &[self.remote_timeout << 3 | self.transport << 1 | flow],
        );
        b.set_u24(at(44), self.psn);
        b.set(at(47), &[self.local_timeout << 3 | self.retry]);
        b.set(at(48), &PKEY.to_be_bytes());
        let srq = u8::from(self.srq) << 3;
        b.set(
            at(50),
            &[self.mtu << 4 | self.rnr_retry, self.cm_retries << 4 | srq],
        );
        for lid in [52, 54] {
            b.set(at(lid), &PERMISSIVE_LID.to_be_bytes());
        }
        b.set(at(56), &self.local_gid);
        b.set(at(72), &self.remote_gid);
        b.set_u24(at(88), self.flow_label << 4);
        b.set(at(91), &[RATE, self.traffic_class, self.hop_limit]);
        b.set(at(95), &[self.ack_timeout << 3]);
        b.set(at(140), &self.private);
    }
}
