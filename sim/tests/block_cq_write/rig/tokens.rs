//! Tokens: sent to the block, and noted for the checks.

use ferroce_proto::abi::cq::{Cqe, status};

use super::{FROM_SEND, RECV, Rig, SEND, Token, is_judged};

impl Rig {
    /// Queues a token of success whose payload was refused from the count `since` on; by [`OLD`] and more, long ago.
    pub(crate) fn push_refused(&mut self, input: usize, cqn: u16, since: u64) {
        let from = if input == SEND { FROM_SEND } else { 0 };
        self.spoiled.insert(self.pushed[input] | from, since);
        self.push_as(input, cqn, Some((false, status::SUCCESS)));
    }

    /// Queues a token whose fence is `issued`.
    pub(crate) fn push(&mut self, input: usize, cqn: u16) -> u16 {
        self.push_as(input, cqn, None)
    }

    /// The same, with `solicited` and `status` as given.
    pub(crate) fn push_as(&mut self, input: usize, cqn: u16, as_is: Option<(bool, u8)>) -> u16 {
        let from = if input == SEND { FROM_SEND } else { 0 };
        let qpn = self.pushed[input] | from;
        self.pushed[input] += 1;
        assert!(self.pushed[input] < FROM_SEND, "numbers are unique");
        let rng = self.bench.rng();
        let mut cqe = Cqe {
            qpn: qpn.into(),
            opcode: rng.u8(..),
            wqe_index: rng.u16(..),
            byte_len: rng.u32(..),
            imm: rng.u32(..),
            status: rng.u8(..),
            vendor_err: rng.u8(..),
            with_imm: rng.bool(),
            with_inv: rng.bool(),
            solicited: rng.bool(),
            recv: input == RECV,
            src_qpn: rng.u32(..1 << 24),
            pkey: rng.u16(..),
            grh: rng.bool(),
            ..Cqe::default()
        };
        if let Some((solicited, status)) = as_is {
            (cqe.solicited, cqe.status) = (solicited, status);
        }
        // most sends have nothing to wait for, whatever their fence
        let fenced = input == RECV || self.fenced_sends && rng.u8(0..4) == 0;
        let (fence, port) = if fenced {
            (self.issued, self.issued as u16)
        } else {
            (0, rng.u16(..))
        };
        self.push_token(input, cqn, cqe, (fence, port), fenced)
    }

    /// A completion of a receive that invalidated a key, or did not.
    pub(crate) fn push_invalidating(&mut self, cqn: u16, with_inv: bool) {
        let cqe = Cqe {
            qpn: self.pushed[RECV].into(),
            recv: true,
            with_inv,
            ..Cqe::default()
        };
        self.pushed[RECV] += 1;
        self.push_token(RECV, cqn, cqe, (0, 0), false);
    }

    /// The next token, a receive, comes after `atomics` of its queue pair, of which `over` are over.
    pub(crate) fn set_atomics(&mut self, atomics: u64, over: u64) {
        self.own_atomics.insert(self.pushed[RECV], (atomics, over));
    }

    /// A token with a fence of any age.
    pub(crate) fn push_old(&mut self, cqn: u16, fence: u64) {
        let cqe = Cqe {
            qpn: (self.pushed[SEND] | FROM_SEND).into(),
            ..Cqe::default()
        };
        self.pushed[SEND] += 1;
        self.push_token(SEND, cqn, cqe, (fence, fence as u16), true);
    }

    fn push_token(
        &mut self,
        input: usize,
        cqn: u16,
        mut cqe: Cqe,
        (fence, port): (u64, u16),
        fenced: bool,
    ) -> u16 {
        let qpn = cqe.qpn as u16;
        let own = self.own_atomics.get(&qpn).copied();
        let source = &mut self.sources[input];
        source.push(
            source
                .item()
                .with("cqn", cqn.into())
                .with("fence", port.into())
                .with("fenced", fenced.into())
                .with("qpn", qpn.into())
                .with("opcode", cqe.opcode.into())
                .with("wqe_index", cqe.wqe_index.into())
                .with("byte_len", cqe.byte_len.into())
                .with("imm", cqe.imm.into())
                .with("status", cqe.status.into())
                .with("vendor_err", cqe.vendor_err.into())
                .with("with_imm", cqe.with_imm.into())
                .with("with_inv", cqe.with_inv.into())
                .with("solicited", cqe.solicited.into())
                .with("recv", cqe.recv.into())
                .with("src_qpn", cqe.src_qpn.into())
                .with("pkey", cqe.pkey.into())
                .with("grh", cqe.grh.into())
                .with("after_atomics", own.is_some().into())
                .with("atomics", own.map_or(0, |atomics| atomics.0 & 31))
                .with("judged", (input == SEND || is_judged(qpn)).into()),
        );
        if is_judged(qpn) {
            self.judged.push_back((qpn, cqn));
        }
        if self.is_refused(qpn, fence, fenced) && cqe.status == 0 {
            cqe.status = status::GENERAL_ERR;
            if input == SEND || is_judged(qpn) {
                self.due_refusals.insert(qpn);
            }
        }
        if input == SEND {
            // What only receives have does not count.
            cqe = Cqe {
                imm: 0,
                with_imm: false,
                with_inv: false,
                solicited: false,
                src_qpn: 0,
                pkey: 0,
                grh: false,
                ..cqe
            };
        }
        self.tokens[input].push_back(Token {
            qpn,
            cqn,
            fence,
            cqe,
            marker: false,
            passed: false,
            taken: None,
            begun: [0; 2],
        });
        self.rings[usize::from(cqn)].pending += 1;
        qpn
    }

    /// A marker behind the tokens of an input so far, and behind the payload that was issued.
    pub(crate) fn mark(&mut self, input: usize) {
        let qpn = self.pushed[input] | if input == SEND { FROM_SEND } else { 0 };
        self.pushed[input] += 1;
        let source = &mut self.sources[input];
        let mut item = source.item().with("qpn", qpn.into()).with("marker", 1);
        if input == RECV {
            let fence = self.issued & 0xffff;
            item = item.with("recv", 1).with("fenced", 1).with("fence", fence);
        }
        source.push(item);
        self.tokens[input].push_back(Token {
            qpn,
            cqn: 0,
            fence: self.issued,
            cqe: Cqe::default(),
            marker: true,
            passed: false,
            taken: None,
            begun: [0; 2],
        });
    }
}
