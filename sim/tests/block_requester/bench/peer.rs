//! The peer and the wire: what leaves is compared with what was posted, and answered.

use ferroce_sim::random::Chance;

use super::Rig;

/// What the peer and the wire do.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    /// Cycles from a packet to its answer.
    pub(crate) delay: u64,
    /// Loss of packets and of answers.
    pub(crate) loss: f64,
    /// A message start finds no receive buffer.
    pub(crate) rnr: f64,
    /// Answers nothing at all.
    pub(crate) no_answer: bool,
    /// Syndrome of a NAK for the packet with this PSN, once.
    pub(crate) refuse: Option<(u32, u8)>,
}

impl Default for Peer {
    fn default() -> Self {
        Self {
            delay: 100,
            loss: 0.0,
            rnr: 0.0,
            no_answer: false,
            refuse: None,
        }
    }
}

/// A packet as it should leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// The five bits below the class.
    pub(crate) opcode: u64,
    pub(crate) plen: u32,
    pub(crate) va: u64,
    pub(crate) dma_len: u32,
    pub(crate) imm: u32,
    pub(crate) solicited: bool,
    pub(crate) pieces: Vec<(u64, u32)>,
}

impl Rig {
    /// A descriptor with all of its pieces.
    pub(super) fn take_packet(&mut self) -> Option<(u64, u32, bool, Packet)> {
        let desc = self.descs.front()?;
        let mut count = 0;
        if desc.get("plen") > 0 {
            count = 1 + self.pieces.iter().position(|p| p.get("last") == 1)?;
        }
        let desc = self.descs.pop_front().unwrap();
        self.left.push_back(desc.clone());
        let pieces: Vec<_> = self.pieces.drain(..count).collect();
        if let Some(first) = pieces.first() {
            assert!(first.get("first") == 1 && pieces.iter().skip(1).all(|p| p.get("first") == 0));
            let ext = match desc.get("opcode") & 0x1f {
                3 | 5 => 4,
                6 | 10 => 16,
                11 => 20,
                9 => 4,
                _ => 0,
            };
            assert_eq!(
                first.get("lane"),
                (54 + ext) % 64,
                "opcode {:#x}",
                desc.get("opcode")
            );
        }
        // fields of a header that the packet does not have mean nothing
        let opcode = desc.get("opcode") & 0x1f;
        let reth = matches!(opcode, 6 | 10 | 11);
        let packet = Packet {
            opcode,
            plen: desc.get("plen") as u32,
            va: if reth { desc.get("va") } else { 0 },
            dma_len: if reth { desc.get("dma_len") as u32 } else { 0 },
            imm: desc.get("imm") as u32,
            solicited: desc.get("solicited") == 1,
            pieces: pieces
                .iter()
                .map(|p| (p.get("addr"), p.get("len") as u32))
                .collect(),
        };
        Some((
            desc.get("qpn"),
            desc.get("psn") as u32,
            desc.get("ack_req") == 1,
            packet,
        ))
    }

    /// The peer's responder.
    pub(super) fn arrive(&mut self, (qpn, psn, ack_req, packet): (u64, u32, bool, Packet)) {
        let peer = self.peer;
        let rng = self.bench.rng();
        let lost = peer.no_answer || Chance::new(peer.loss).hit(rng);
        let answer_lost = Chance::new(peer.loss).hit(rng);
        let rnr = Chance::new(peer.rnr).hit(rng);
        let qp = &mut self.qps[qpn as usize];
        let at = psn.wrapping_sub(qp.first_psn) & 0xff_ffff;
        qp.sent += 1;
        let due = self.bench.cycle() + self.read_delay;
        for _ in &packet.pieces {
            assert!(
                at as usize >= qp.completed,
                "qp {qpn} packet {at}: read after its completion"
            );
            self.unread.push_back((due, qpn, at as usize));
        }
        assert_eq!(
            Some(&packet),
            qp.packets.get(at as usize),
            "qp {qpn} psn {psn:#x}, packet {at} of the queue"
        );
        if lost {
            return;
        }
        let expected = qp.first_psn.wrapping_add(qp.expected as u32) & 0xff_ffff;
        let answer = if at as usize > qp.expected {
            if std::mem::replace(&mut qp.nak_sent, true) {
                return;
            }
            (expected, 0x60)
        } else if (at as usize) < qp.expected {
            if !ack_req {
                return;
            }
            (expected.wrapping_sub(1) & 0xff_ffff, 0x1f)
        } else if rnr && qp.starts[at as usize] {
            qp.nak_sent = true;
            (expected, 0x21)
        } else if let Some((_, syndrome)) = peer.refuse.filter(|(p, _)| *p == psn) {
            (psn, syndrome)
        } else {
            qp.expected += 1;
            qp.nak_sent = false;
            if !ack_req {
                return;
            }
            (psn, 0x1f)
        };
        if !answer_lost {
            self.answers
                .push_back((self.bench.cycle() + peer.delay, qpn, answer.0, answer.1));
        }
    }
}
