//! The messages of each operation: posted, received.

use std::ops::Range;

use anyhow::{Result, ensure};
use ferroce_driver::{
    Access, Destination, MrBuf, Pd, Qp, RecvWr, Remote, SendOp, SendWr, Sge, Wc, WcOpcode,
};
use ferroce_proto::wire::ip::GRH_LEN;
use ferroce_sim::card::SimCard;

use super::plan::{Part, Plan, WORD};
use crate::demo::options::{Op, Options, Transport};
use crate::demo::pair::Host;

/// What the operations work on.
pub(super) struct Memory {
    op: Op,
    transport: Transport,
    /// The file at the sender, and what is behind it.
    source: MrBuf<SimCard>,
    /// The file at the receiver, and its guard.
    pub(super) target: MrBuf<SimCard>,
    /// Where messages are received before the host puts them where they belong: a place for each.
    scratch: Option<(MrBuf<SimCard>, usize)>,
    /// What atomics found, a word each.
    found: Option<MrBuf<SimCard>>,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Memory {
    /// Both sides of a file that is `new` at the sender, in whose place the receiver has `old`.
    pub(super) fn new(
        [a, b]: [&Pd<SimCard>; 2],
        plan: &Plan,
        options: &Options,
        old: Vec<u8>,
        new: Vec<u8>,
    ) -> Result<Self> {
        let mut source = a.alloc_mr(new.len(), Access::REMOTE_READ)?;
        source.write(0, &new);
        let rights = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
        let mut target = b.alloc_mr(old.len(), rights)?;
        target.write(0, &old);
        let longest = plan
            .queues
            .iter()
            .flatten()
            .map(|part| part.range.len())
            .max();
        let place = GRH_LEN + longest.unwrap_or(0);
        let scratch = (options.op == Op::Send)
            .then(|| {
                b.alloc_mr(
                    place * plan.receives as usize * plan.queues.len(),
                    Access::LOCAL_WRITE,
                )
            })
            .transpose()?;
        let found = (options.op == Op::Atomic)
            .then(|| a.alloc_mr(new.len(), Access::LOCAL_WRITE))
            .transpose()?;
        Ok(Self {
            op: options.op,
            transport: options.transport,
            source,
            target,
            scratch: scratch.map(|scratch| (scratch, place)),
            found,
            old,
            new,
        })
    }

    /// Posts the receives that the messages of all queue pairs need.
    pub(super) fn post_receives(&self, b: &mut Host, plan: &Plan) -> Result<()> {
        for (queue, qp) in b.qps.iter_mut().enumerate() {
            for i in 0..plan.receives {
                let number = queue * plan.receives as usize + i as usize;
                let list = self
                    .scratch
                    .as_ref()
                    .map(|(scratch, place)| [scratch.sge(number * place..(number + 1) * place)]);
                let list = list.as_ref().map_or(&[][..], |list| &list[..]);
                qp.post_recv(&[RecvWr::new(number as u64, list)])?;
            }
        }
        Ok(())
    }

    /// Posts a request for each part, of queue pair `place`.
    pub(super) fn post(
        &self,
        qp: &mut Qp<SimCard>,
        place: usize,
        parts: &[Part],
        to: Option<Destination>,
    ) -> Result<()> {
        let lists: Vec<[Sge; 1]> = parts
            .iter()
            .map(|Part { range, .. }| match (&self.found, self.op) {
                (Some(found), _) => [found.sge(range.clone())],
                (None, Op::Read) => [self.target.sge(range.clone())],
                (None, _) => [self.source.sge(range.clone())],
            })
            .collect();
        let wr = |(part, list): (&Part, _)| {
            let id = (place as u64) << 32 | u64::from(part.index);
            SendWr::new(self.operation(part, to), list)
                .wr_id(id)
                .signaled()
        };
        let lists = lists.iter().map(|list| &list[..]);
        let wrs: Vec<_> = parts.iter().zip(lists).map(wr).collect();
        Ok(qp.post_send(&wrs)?)
    }

    fn operation(&self, Part { index, range }: &Part, to: Option<Destination>) -> SendOp {
        let at = |mr: &MrBuf<SimCard>| Remote {
            addr: mr.addr() + range.start as u64,
            rkey: mr.rkey(),
        };
        let target = at(&self.target);
        match (self.op, self.transport, to) {
            (Op::Send, _, Some(to)) => SendOp::DatagramImm(to, *index),
            (Op::Send, _, None) => SendOp::SendImm(*index),
            (Op::Write, Transport::Rc, _) => SendOp::Write(target),
            (Op::Write, _, _) => SendOp::WriteImm(target, *index),
            (Op::Read, _, _) => SendOp::Read(at(&self.source)),
            (Op::Atomic, _, _) => {
                let (old, new) = (word(&self.old, range), word(&self.new, range));
                if index % 2 == 0 {
                    SendOp::CmpSwap {
                        remote: target,
                        compare: old,
                        swap: new,
                    }
                } else {
                    SendOp::FetchAdd {
                        remote: target,
                        add: new.wrapping_sub(old),
                    }
                }
            }
        }
    }

    /// A message was received: the part it says it is. What was sent goes to its place.
    pub(super) fn received(&mut self, wc: &Wc, parts: &[Part]) -> Result<u32> {
        let index = wc
            .imm_data()
            .filter(|&index| (index as usize) < parts.len());
        ensure!(
            index.is_some(),
            "the receiver got {wc:?}, which is no part of the file"
        );
        let part = &parts[index.unwrap_or(0) as usize];
        let Some((scratch, place)) = &self.scratch else {
            ensure!(
                wc.opcode == WcOpcode::RecvRdmaWithImm && wc.byte_len as usize == part.range.len(),
                "the receiver of {part:?} got {wc:?}"
            );
            return Ok(part.index);
        };
        let head = if self.transport == Transport::Ud {
            GRH_LEN
        } else {
            0
        };
        ensure!(
            wc.opcode == WcOpcode::Recv && wc.byte_len as usize == head + part.range.len(),
            "the receiver of {part:?} got {wc:?}"
        );
        let at = wc.wr_id as usize * place + head;
        let bytes = scratch.to_vec(at, part.range.len());
        self.target.write(part.range.start, &bytes);
        Ok(part.index)
    }

    /// What atomics found must be what was there before: each was executed once.
    pub(super) fn check_found(&self, len: usize) -> Result<()> {
        let Some(found) = &self.found else {
            return Ok(());
        };
        let len = len.next_multiple_of(WORD);
        let found = found.to_vec(0, len);
        let words = found.chunks(WORD).zip(self.old.chunks(WORD)).enumerate();
        for (at, (found, old)) in words {
            ensure!(
                found == old,
                "the atomic on word {at} found {found:02x?}, {old:02x?} was there"
            );
        }
        Ok(())
    }

    /// Messages that did not arrive left what was there; a WRITE may have come in part.
    pub(super) fn check_missing(&self, Part { range, index }: &Part) -> Result<()> {
        let is = self.target.to_vec(range.start, range.len());
        let (old, new) = (&self.old[range.clone()], &self.new[range.clone()]);
        let in_part = self.op == Op::Write;
        let wrong = (0..is.len()).find(|&i| is[i] != old[i] && !(in_part && is[i] == new[i]));
        ensure!(
            wrong.is_none(),
            "message {index} did not arrive, and changed byte {wrong:?}"
        );
        Ok(())
    }

    /// A message that arrived is whole.
    pub(super) fn check_arrived(&self, Part { range, index }: &Part) -> Result<()> {
        let is = self.target.to_vec(range.start, range.len());
        ensure!(
            is == self.new[range.clone()],
            "message {index} arrived with other bytes"
        );
        Ok(())
    }
}

fn word(bytes: &[u8], range: &Range<usize>) -> u64 {
    u64::from_le_bytes(
        *bytes[range.start..]
            .first_chunk()
            .expect("the guard is longer"),
    )
}
