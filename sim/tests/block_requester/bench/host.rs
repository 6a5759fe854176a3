//! The host: contexts, commands, work queue entries, doorbells.

use ferroce_hdl::transport::requester::event::SqEventKind;
use ferroce_proto::abi::qpc::{AvCtx, SqCtx};
use ferroce_proto::abi::wqe::{SendWqe, Sge};

use super::peer::Packet;
use super::{Qp, RING, Rig, mtu_bytes};

const DOORBELL: u64 = SqEventKind::Doorbell as u64;
const COMMAND: u64 = SqEventKind::Command as u64;
const FAILED: u64 = SqEventKind::Failed as u64;
const UNREAD: u64 = SqEventKind::Unread as u64;

impl Rig {
    /// Brings queue pair `qpn` to RTS.
    pub(crate) fn open(&mut self, qpn: u64, ctx: SqCtx, psn: u32) {
        let ctx = SqCtx {
            sq_log: 8,
            ot_log: RING.ilog2() as u8,
            ot_base: (qpn * RING) as u32,
            sq_base: 0x1000_0000 + (qpn << 16),
            cqn: 5,
            ..ctx
        };
        let words = |bytes: &[u8], n: usize| -> Vec<u32> {
            bytes
                .chunks(4)
                .take(n)
                .map(|c| u32::from_le_bytes(c.try_into().unwrap()))
                .collect()
        };
        for (port, we, bytes) in [
            ("sq_image", "sq_we", ctx.emit()),
            ("av_image", "av_we", AvCtx::default().emit()),
        ] {
            let dut = self.bench.dut_mut();
            let image = dut.input(port).unwrap();
            let mut words = words(&bytes, image.width().div_ceil(32));
            if !image.width().is_multiple_of(32) {
                *words.last_mut().unwrap() &= (1 << (image.width() % 32)) - 1;
            }
            dut.write(image, &words);
            dut.set(dut.input("image_qpn").unwrap(), qpn);
            dut.set(dut.input(we).unwrap(), 1);
            self.step();
            let dut = self.bench.dut_mut();
            dut.set(dut.input(we).unwrap(), 0);
        }
        self.modify(qpn, 3, Some(psn));
        self.qps[qpn as usize] = Qp {
            mtu: ctx.mtu,
            first_psn: psn,
            ..Qp::default()
        };
        self.run(20);
    }

    /// Sets the state of the send queue, `reset` to start afresh with this PSN.
    pub(crate) fn modify(&mut self, qpn: u64, state: u8, reset: Option<u32>) {
        self.command.push(
            self.command
                .item()
                .with("kind", COMMAND)
                .with("qpn", qpn)
                .with("psn", reset.unwrap_or(0).into())
                .with("set", 1)
                .with("reset", reset.is_some().into())
                .with("image", reset.is_some().into())
                .with("state", state.into()),
        );
    }

    /// The queue pair failed elsewhere.
    pub(crate) fn fail(&mut self, qpn: u64) {
        let item = self.failure.item();
        self.failure
            .push(item.with("kind", FAILED).with("qpn", qpn));
    }

    /// The payload of packet `psn` could not be read, in an incarnation of the queue pair.
    pub(crate) fn unread(&mut self, qpn: u64, psn: u32, incarnation: u64) {
        let item = self.failure.item();
        self.failure.push(
            item.with("kind", UNREAD)
                .with("qpn", qpn)
                .with("psn", psn.into())
                .with("generation", incarnation),
        );
    }

    /// The peer answers.
    pub(crate) fn answer(&mut self, qpn: u64, psn: u32, syndrome: u8) {
        self.answers.push_back((0, qpn, psn, syndrome));
    }

    /// Writes a WQE that becomes no packet into the ring; answers its address.
    pub(crate) fn post_bad(&mut self, qpn: u64, wqe: SendWqe, sges: [Sge; 2]) -> u64 {
        let qp = &mut self.qps[qpn as usize];
        let addr = slot_addr(qpn, qp.producer);
        self.memory.words.insert(addr, slot(wqe, sges));
        qp.producer = qp.producer.wrapping_add(1);
        addr
    }

    /// Writes over the WQE at `index` as soon as it was read.
    pub(crate) fn rewrite(&mut self, qpn: u64, index: u16, wqe: SendWqe, sges: [Sge; 2]) {
        let addr = slot_addr(qpn, index);
        self.memory.then.insert(addr, slot(wqe, sges));
    }

    /// Writes a WQE into the ring and notes the packets it should become.
    pub(crate) fn post(&mut self, qpn: u64, wqe: SendWqe, sges: [Sge; 2]) {
        let addr = self.post_bad(qpn, wqe, sges);
        let qp = &mut self.qps[qpn as usize];
        let mtu = mtu_bytes(qp.mtu);
        let (write, imm) = (wqe.opcode >= 3, wqe.opcode == 1 || wqe.opcode == 4);
        let count = wqe.length.div_ceil(mtu).max(1);
        qp.lasts.push((
            qp.producer.wrapping_sub(1),
            qp.packets.len() + count as usize - 1,
        ));
        let sges = match (wqe.inline_data, wqe.num_sge) {
            (true, _) => vec![(addr + 32, wqe.length)],
            (_, n) => sges[..n.min(2).into()]
                .iter()
                .map(|s| (s.addr, s.length))
                .collect(),
        };
        for i in 0..count {
            let (first, last) = (i == 0, i + 1 == count);
            let position = [[1, 2], [0, 4]][usize::from(first)][usize::from(last)];
            let (from, to) = (i * mtu, ((i + 1) * mtu).min(wqe.length));
            let mut at = 0;
            let mut pieces = Vec::new();
            for &(addr, len) in &sges {
                let (lo, hi) = (from.max(at), to.min(at + len));
                if lo < hi {
                    pieces.push((addr + u64::from(lo - at), hi - lo));
                }
                at += len;
            }
            qp.starts.push(first);
            qp.packets.push(Packet {
                opcode: position + if write { 6 } else { 0 } + u64::from(last && imm),
                plen: to - from,
                va: if write && first { wqe.remote_addr } else { 0 },
                dma_len: if write && first { wqe.length } else { 0 },
                imm: wqe.imm,
                solicited: last && wqe.solicited && (!write || imm),
                pieces,
            });
        }
    }

    /// The same of a WQE of several slots, with its list in the first.
    pub(crate) fn post_wide(&mut self, qpn: u64, wqe: SendWqe, sges: [Sge; 2]) {
        self.post(qpn, wqe, sges);
        self.qps[qpn as usize].producer += u16::from(wqe.slots) - 1;
    }

    /// Slots read so far.
    pub(crate) fn slots_read(&self) -> u64 {
        self.memory.read
    }

    /// Rings the doorbell of `qpn`.
    pub(crate) fn ring(&mut self, qpn: u64) {
        let index = self.qps[qpn as usize].producer;
        self.doorbell.push(
            self.doorbell
                .item()
                .with("kind", DOORBELL)
                .with("qpn", qpn)
                .with("index", index.into()),
        );
    }
}

fn slot_addr(qpn: u64, index: u16) -> u64 {
    0x1000_0000 + (qpn << 16) + u64::from(index % 256) * 64
}

fn slot(wqe: SendWqe, sges: [Sge; 2]) -> [u8; 64] {
    let mut slot = [0; 64];
    slot[..32].copy_from_slice(&wqe.emit());
    slot[32..48].copy_from_slice(&sges[0].emit());
    slot[48..].copy_from_slice(&sges[1].emit());
    slot
}
