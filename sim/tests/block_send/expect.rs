//! What must leave the block for a granted WQE.

use ferroce_proto::abi::cq::status::WR_FLUSH_ERR;
use ferroce_proto::abi::qpc::qp_type;

use super::setup::Setup;
use super::work::{Work, ctx};

/// Incarnation of the queue pair in the grant that begins with `psn`.
pub(super) fn incarnation(psn: u64) -> u64 {
    psn & 3
}

impl Setup {
    /// Expects the completion of a WQE that is flushed.
    pub(super) fn expect_flush(&mut self, work: &Work, index: u16) {
        let mut item = self.flushed.item();
        for (field, value) in [
            ("qpn", work.qpn.into()),
            ("cqn", ctx(work.qpn).cqn.into()),
            ("opcode", work.cqe_opcode().into()),
            ("wqe_index", index.into()),
            ("status", WR_FLUSH_ERR.into()),
        ] {
            item = item.with(field, value);
        }
        self.flushed.expect(item);
    }

    /// Expects the issue of a READ or atomic.
    pub(super) fn expect_issue(&mut self, work: &Work, index: u16, psn: u64) {
        let mut item = self.issue.item();
        for (field, value) in [
            ("qpn", work.qpn.into()),
            ("psn", psn),
            ("packets", work.packets().into()),
            ("atomic", u64::from(work.head.opcode >= 6)),
            ("length", work.head.length.into()),
            ("index", index.into()),
            ("slots", work.head.slots.into()),
        ] {
            item = item.with(field, value);
        }
        self.issue.expect(item);
    }

    /// Expects `count` packets of a WQE, granted in `round`.
    pub(super) fn expect(
        &mut self,
        (work, index, round): (&Work, u16, u64),
        psn: u64,
        from: u32,
        count: u32,
    ) {
        let (head, mtu) = (&work.head, 128 << ctx(work.qpn).mtu);
        let class = ctx(work.qpn).qp_type;
        for number in from..from + count {
            let opcode = work.opcode_of(number);
            let last = number + 1 == work.packets() || work.is_answered();
            let (low, high) = (number * mtu, ((number + 1) * mtu).min(head.length));
            let plen = if work.is_answered() { 0 } else { high - low };
            let imm_ends = matches!(head.opcode, 0..=2 | 4);
            let (mut va, rkey) = match work.address {
                Some(to) => (u64::from(to.remote_qpn) << 32 | u64::from(to.ah), to.qkey),
                None => (head.remote_addr, head.rkey),
            };
            va += u64::from(from * mtu);
            let span = if work.is_answered() {
                work.packets() - from
            } else {
                1
            };
            let bytes = work.bytes();
            let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            let mut item = self.desc.item().with("qpn", work.qpn.into());
            for (field, value) in [
                ("opcode", opcode.code().into()),
                ("psn", (psn + u64::from(number - from)) & 0xff_ffff),
                ("solicited", u64::from(last && head.solicited && imm_ends)),
                (
                    "ack_req",
                    u64::from(class == qp_type::RC && number + 1 == from + count),
                ),
                ("plen", plen.into()),
                ("path", work.path_kind().into()),
                ("va", va),
                ("rkey", rkey.into()),
                ("dma_len", (head.length - low).into()),
                ("imm", head.imm.into()),
                ("notify", u64::from(last && class != qp_type::RC)),
                ("round", round),
                ("incarnation", incarnation(psn)),
                (
                    "next_psn",
                    (psn + u64::from(span + number - from)) & 0xff_ffff,
                ),
            ] {
                item = item.with(field, value);
            }
            if work.operands.is_some() {
                item = item.with("swap_add", long(48)).with("compare", long(56));
            }
            self.packets.push_back((work.operands.is_some(), item));
            if plen > 0 {
                let pieces = work.pieces(index, low, high);
                for (n, &(addr, len)) in pieces.iter().enumerate() {
                    let item = self
                        .gather
                        .item()
                        .with("addr", addr)
                        .with("len", len.into());
                    let item = item.with("first", (n == 0).into());
                    let item = item.with("last", (n + 1 == pieces.len()).into());
                    let lane = work.header_len(opcode) as u64 % 64;
                    self.pieces.push_back(item.with("lane", lane));
                }
            }
        }
    }
}
