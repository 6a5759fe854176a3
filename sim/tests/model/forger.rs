//! A peer that sends what it likes.

use ferroce_proto::abi::qpc::state;
use ferroce_proto::wire::{AtomicEthRepr, Extensions, Headers, Opcode, Packet, RethRepr, Syndrome};
use ferroce_sim::testhost::{Mr, Pair, QpOptions, Rights, Side, Work};

use crate::{assert_success, connected};

/// A connection whose A side is played by the test: headers of a SEND Only of A's next PSN, target of B.
pub(crate) struct Forger {
    pub(crate) pair: Pair,
    pub(crate) qb: u32,
    pub(crate) headers: Headers,
    pub(crate) target: Mr,
}

impl Forger {
    pub(crate) fn new() -> Self {
        let (mut pair, qa, qb) = connected(QpOptions::default());
        let target = pair.b.create_mr(&[0; 4096], Rights::ALL);
        pair.b.post_recv(qb, &[]);
        let index = pair.a.post_send(qa, &Work::send(&[]));
        assert_success(&pair.wait(Side::A, 0), index);
        assert_success(&pair.wait(Side::B, 0), 0);
        let mut headers = pair.packets(Side::A)[0].headers;
        headers.bth.psn = headers.bth.psn.next();
        pair.sent.clear();
        Self {
            pair,
            qb,
            headers,
            target,
        }
    }

    /// Hands a frame to B and gives B's answers.
    pub(crate) fn receive(&mut self, frame: &[u8]) -> Vec<Packet> {
        self.pair.sent.clear();
        self.pair.b.nic.receive(frame);
        self.pair.run(300);
        self.pair.packets(Side::B)
    }

    /// Hands B a packet, answers the syndromes of what comes back.
    pub(crate) fn send(&mut self, headers: &Headers, payload: &[u8]) -> Vec<Syndrome> {
        let answers = self.receive(&build(headers, payload));
        answers
            .iter()
            .map(|p| p.headers.ext.aeth.unwrap().syndrome)
            .collect()
    }

    /// Headers of another opcode with the extension headers it needs.
    pub(crate) fn of(&self, opcode: Opcode) -> Headers {
        let mut headers = self.headers;
        headers.bth.opcode = opcode;
        let (va, rkey) = (self.target.addr, self.target.key);
        headers.ext = Extensions {
            reth: opcode.has_reth().then_some(RethRepr {
                va,
                rkey,
                dma_len: 8,
            }),
            atomic: opcode.has_atomic_eth().then_some(AtomicEthRepr {
                va,
                rkey,
                swap_add: 1,
                compare: 0,
            }),
            imm: opcode.has_imm().then_some(7),
            ieth: opcode.has_ieth().then_some(rkey),
            ..Extensions::default()
        };
        headers
    }

    /// B is as it was: it still takes the packet that is due.
    pub(crate) fn assert_untouched(&mut self, what: &str) {
        assert_eq!(
            self.pair.b.query(self.qb).rq_psn,
            self.headers.bth.psn.value(),
            "{what}"
        );
        assert_eq!(self.pair.b.query(self.qb).rq_state, state::RTS, "{what}");
        assert_eq!(self.pair.b.contents(&self.target), [0; 4096], "{what}");
        self.pair.assert_no_faults();
    }
}

/// The frame of a packet, with its ICRC.
pub(crate) fn build(headers: &Headers, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; headers.frame_len(payload.len())];
    headers.build(payload, &mut frame).unwrap();
    frame
}
