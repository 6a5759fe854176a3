//! What a life posts, and what its peer sends.

use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::wire::{
    AethRepr, AtomicEthRepr, DethRepr, Extensions, Gid, Headers, Opcode, Psn, RethRepr, Syndrome,
};
use ferroce_sim::packet;
use ferroce_sim::testhost::{Host, Mr, Peer, Work};

use super::life::{Life, Posted};
use super::{READS, Test};

/// Bytes that a READ of a life fetches at most, and where in its target they go.
const FETCHED: u32 = 2048;
const FETCHED_AT: usize = 4096;
/// Of five kinds of sends one is a READ.
const READ: u8 = 0;

/// What the peer of a life sends.
#[derive(Clone, Copy)]
enum Step {
    Ack,
    Read,
    Atomic,
    Write,
    Send,
}

impl Test {
    /// Something happens to a life: it posts, its path changes, its peer sends, or a former peer of its number does.
    pub(super) fn act(&mut self, index: usize) {
        match self.rng.u8(..12) {
            0 => return (0..24).for_each(|_| self.post(index, 8)),
            1..8 => return self.post(index, self.incarnations[index].source.len as u32 / 8),
            8 => return self.straggle(index),
            9 if self.incarnations[index].qp_type == qp_type::UD => return self.change_path(index),
            _ => {}
        }
        let Self {
            rng, incarnations, ..
        } = self;
        let life = &mut incarnations[index];
        let due = life.sends.get(usize::from(life.acked));
        let is_answer = due.is_some_and(|due| due.reads.is_some());
        let has_left = due.is_some_and(|due| due.end < life.left);
        let step = match (life.is_rc(), rng.u8(..6)) {
            (true, 0 | 4) if is_answer && has_left => return self.answer(index),
            (true, 0 | 4) if !is_answer && due.is_some() => Step::Ack,
            (true, 1) if life.asked < READS => Step::Read,
            (true, 2) => Step::Write,
            (true, 3) if life.asked < READS => Step::Atomic,
            _ => Step::Send,
        };
        self.take(index, step);
    }

    /// The peer's last words: atomics, and a SEND that completes behind them.
    pub(super) fn conclude(&mut self, index: usize) {
        while self.incarnations[index].is_rc() && self.incarnations[index].asked < READS {
            self.take(index, Step::Atomic);
        }
        self.take(index, Step::Send);
    }

    /// The peer of a life takes a step.
    fn take(&mut self, index: usize, step: Step) {
        let Self {
            rng, incarnations, ..
        } = self;
        let life = &mut incarnations[index];
        let (psn, packets, len) = match step {
            Step::Ack => {
                // The next, or whatever was posted up to a READ, though it has not left.
                let unacked = &life.sends[usize::from(life.acked)..];
                let all = unacked
                    .iter()
                    .take_while(|sent| sent.reads.is_none())
                    .count();
                life.acked += if rng.bool() { all as u16 } else { 1 };
                let end = life.sends[usize::from(life.acked) - 1].end;
                (life.first.add(end).value(), 0, 0)
            }
            Step::Read => {
                let len = 8 * rng.u32(1..life.source.len as u32 / 8);
                (life.next, life.mtu.packets(len), len)
            }
            Step::Atomic => (life.next, 1, 8),
            Step::Write | Step::Send => (life.next, 1, 8 * rng.u32(..25)),
        };
        life.next = life.next.wrapping_add(packets) & 0xff_ffff;
        match step {
            Step::Read | Step::Atomic => life.asked += 1,
            Step::Send if life.refused && len > 0 => {
                life.spoilt.get_or_insert(psn);
            }
            _ => {}
        }
        let frame = frame(&self.host, &self.gids, life, step, psn, len);
        self.host.nic.receive(&frame);
    }

    /// READs stand behind what others send as the life ends.
    pub(super) fn read_at_last(&mut self, index: usize) {
        for other in 0..self.incarnations.len() {
            self.post(other, self.incarnations[other].source.len as u32 / 8);
        }
        for _ in 0..READS {
            self.post_as(index, FETCHED / 8, READ);
        }
    }

    /// Posts a send of fewer than so many words. The first one meets what is left of a READ of the life before, if that had one.
    fn post(&mut self, index: usize, words: u32) {
        let is_first = self.incarnations[index].sends.is_empty();
        let kind = match is_first && self.rng.bool() {
            true => READ,
            false => self.rng.u8(..5),
        };
        self.post_as(index, words, kind);
    }

    fn post_as(&mut self, index: usize, words: u32, kind: u8) {
        let Self { rng, host, .. } = self;
        let life = &mut self.incarnations[index];
        if life.posted() > 40 {
            return;
        }
        let bytes = life.source.len as u32;
        let is_datagram = life.qp_type == qp_type::UD;
        let words = match is_datagram {
            true => words.min(life.mtu.bytes() as u32 / 8),
            false => words,
        };
        let mut len = 8 * rng.u32(..words);
        let list = [life
            .source
            .sge(u64::from(8 * rng.u32(..=(bytes - len) / 8)), len)];
        let mut reads = None;
        let mut work = match kind {
            _ if is_datagram => Work::datagram(&list, life.qpn, life.peer.qpn, life.qkey()),
            READ if life.is_rc() => {
                len = len.min(FETCHED);
                reads = Some(FETCHED_AT..FETCHED_AT + len as usize);
                let list = [life.target.sge(FETCHED_AT as u64, len)];
                Work::read(&list, &life.source, 0)
            }
            1 | 2 => Work::send(&list),
            _ => Work::write(&list, &life.target, 0),
        };
        work.head.signaled = rng.u8(..3) > 0;
        let before = life.sends.last().map_or(0, |sent| sent.end + 1);
        let end = before + life.mtu.packets(len) - 1;
        life.sends.push(Posted { end, reads });
        host.post_send(life.qpn, &work);
    }

    /// The peer answers the READ that is due.
    fn answer(&mut self, index: usize) {
        let Self { host, gids, .. } = self;
        let life = &mut self.incarnations[index];
        let due = &life.sends[usize::from(life.acked)];
        let len = due.reads.clone().map_or(0, |bytes| bytes.len());
        life.acked += 1;
        let packets = life.mtu.packets(len as u32);
        let first = due.end + 1 - packets;
        for packet in 0..packets {
            use Opcode::{RcReadResponseFirst, RcReadResponseLast};
            use Opcode::{RcReadResponseMiddle, RcReadResponseOnly};
            let opcode = match (packet == 0, packet + 1 == packets) {
                (true, true) => RcReadResponseOnly,
                (true, false) => RcReadResponseFirst,
                (false, false) => RcReadResponseMiddle,
                (false, true) => RcReadResponseLast,
            };
            let psn = life.first.add(first + packet);
            let mut headers = headers(host, gids, life.qpn, &life.peer, opcode, psn);
            headers.ext.aeth = (opcode != RcReadResponseMiddle).then_some(AethRepr {
                syndrome: Syndrome::ACK,
                msn: life.acked.into(),
            });
            let rest = len - packet as usize * life.mtu.bytes();
            let frame = packet::frame(&headers, &words(life.mark, rest.min(life.mtu.bytes())));
            host.nic.receive(&frame);
        }
    }

    /// The former peer of a number goes on, with the PSN that is expected now or one of then.
    fn straggle(&mut self, index: usize) {
        let Self { rng, host, .. } = self;
        let now = &self.incarnations[index];
        let mut former = self.ended.iter().rev();
        let Some(former) = former.find(|ended| ended.life.qpn == now.qpn) else {
            return;
        };
        let former = &former.life;
        let step = [Step::Ack, Step::Read, Step::Write, Step::Send][rng.usize(..4)];
        let psn = match (step, rng.u8(..4)) {
            (_, 0) => former.next,
            (Step::Ack, _) => {
                let ahead = now.sends.last().map_or(0, |sent| sent.end);
                now.first.add(ahead).value()
            }
            _ => now.next,
        };
        let frame = frame(host, &self.gids, former, step, psn, 64);
        host.nic.receive(&frame);
    }
}

/// `len` bytes with a mark in each word.
pub(super) fn words(mark: u32, len: usize) -> Vec<u8> {
    let words = (0..len as u32 / 8).flat_map(|word| [mark, word]);
    words.flat_map(u32::to_le_bytes).collect()
}

/// A packet of a peer without extension headers.
pub(super) fn headers(
    host: &Host,
    gids: &[Gid; 2],
    qpn: u32,
    peer: &Peer,
    opcode: Opcode,
    psn: Psn,
) -> Headers {
    let own = gids[usize::from(!peer.gid.is_ipv4())];
    let to = (host.mac, own);
    packet::headers((peer.mac, peer.gid), to, qpn, opcode, psn)
}

/// A frame of the peer of a life.
fn frame(host: &Host, gids: &[Gid; 2], life: &Life, step: Step, psn: u32, len: u32) -> Vec<u8> {
    let mut ext = Extensions::default();
    let at = |mr: &Mr| RethRepr {
        va: mr.addr,
        rkey: mr.key,
        dma_len: len,
    };
    let mut payload = 0;
    let opcode = match step {
        Step::Ack => {
            ext.aeth = Some(AethRepr {
                syndrome: Syndrome::ACK,
                msn: life.acked.into(),
            });
            Opcode::RcAck
        }
        Step::Read => {
            ext.reth = Some(at(&life.source));
            Opcode::RcReadRequest
        }
        Step::Atomic => {
            // It adds nothing: the word keeps its mark.
            ext.atomic = Some(AtomicEthRepr {
                va: life.source.addr,
                rkey: life.source.key,
                ..AtomicEthRepr::default()
            });
            Opcode::RcFetchAdd
        }
        Step::Write => {
            ext.reth = Some(at(&life.target));
            payload = len;
            if life.is_rc() {
                Opcode::RcWriteOnly
            } else {
                Opcode::UcWriteOnly
            }
        }
        Step::Send => {
            ext.imm = Some(life.mark);
            payload = len;
            match life.qp_type {
                qp_type::RC => Opcode::RcSendOnlyImm,
                qp_type::UC => Opcode::UcSendOnlyImm,
                _ => {
                    ext.deth = Some(DethRepr {
                        qkey: life.qkey(),
                        src_qp: life.peer.qpn,
                    });
                    Opcode::UdSendOnlyImm
                }
            }
        }
    };
    let headers = Headers {
        ext,
        ..headers(host, gids, life.qpn, &life.peer, opcode, Psn::new(psn))
    };
    packet::frame(&headers, &words(life.mark, payload as usize))
}
