//! What happens to a life, and what must be true of its frames, completions and memory.

use ferroce_proto::abi::cq::{Cqe, status as cq_status};
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::wire::{
    AethRepr, BthRepr, EthRepr, Extensions, Gid, Headers, Ip, Opcode, Packet, Psn, RethRepr,
    Syndrome, UdpRepr,
};
use ferroce_sim::packet;
use ferroce_sim::testhost::{Host, Mr, Work};

use super::{Life, RECEIVES, Test};

/// What the peer of a life sends.
#[derive(Clone, Copy)]
enum Step {
    Ack,
    Read,
    Write,
    Send,
}

impl Test {
    /// What all completion queues hold.
    pub(crate) fn completions(&mut self) -> Vec<Cqe> {
        let own = self.incarnations.iter().map(|life| life.cqn);
        let mut cqns: Vec<_> = own.chain([0]).collect();
        cqns.sort_unstable();
        cqns.dedup();
        let host = &mut self.host;
        let of = |cqn| std::iter::from_fn(|| host.poll(cqn)).collect::<Vec<_>>();
        cqns.into_iter().flat_map(of).collect()
    }

    /// A completion is of a WQE that its life posted, once and in order, and in success of what happened in it.
    pub(crate) fn check_completion(&mut self, cqe: &Cqe) {
        let life = self
            .incarnations
            .iter_mut()
            .find(|life| life.qpn == cqe.qpn);
        let life = life.unwrap_or_else(|| panic!("completion of no life: {cqe:?}"));
        let posted = if cqe.recv { RECEIVES } else { life.posted };
        assert!(cqe.wqe_index < posted, "{cqe:?} of {posted} posted");
        let before = life.completed[usize::from(cqe.recv)].replace(cqe.wqe_index);
        assert!(
            before.is_none_or(|before| before < cqe.wqe_index),
            "{cqe:?} behind {before:?}"
        );
        if cqe.status != cq_status::SUCCESS {
            return;
        }
        if cqe.recv {
            assert_eq!(cqe.imm, life.mark, "a message to another life: {cqe:?}");
        } else {
            let acked = life.qp_type != qp_type::RC || cqe.wqe_index < life.acked;
            assert!(
                acked,
                "it was not acknowledged: {cqe:?} of {} sends",
                life.acked
            );
            // Its memory is the host's again.
            let end = life.ends[usize::from(cqe.wqe_index)];
            let (left, leaving) = (life.left, self.leaving as u32);
            assert!(
                end < left + leaving,
                "{cqe:?} ends at PSN {end}, and {left} left"
            );
        }
    }

    /// The target of a life holds what it held at first, or what its own peer sent.
    pub(crate) fn check_memory(&self, life: &Life) {
        let memory = self.host.contents(&life.target);
        for (at, word) in memory.as_chunks::<8>().0.iter().enumerate() {
            let mark = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            assert!(
                [life.mark, !life.mark].contains(&mark),
                "{mark:#x} in word {at} of the memory of {:#x}",
                life.mark
            );
        }
    }

    /// Nothing reached the memory of a life that ended.
    pub(crate) fn check_ended(&self) {
        for ended in &self.ended {
            let memory = self.host.contents(&ended.life.target);
            assert!(memory == ended.memory, "{:#x}", ended.life.mark);
        }
    }

    /// A frame is of the life that its address names, all of it.
    pub(crate) fn check(&mut self, frame: &[u8]) {
        let Packet { headers, payload } = Packet::parse(frame).expect("a RoCEv2 packet");
        let qpn = headers.bth.dest_qp;
        let is_of = |life: &Life| life.peer.qpn == qpn;
        let life = match self.incarnations.iter_mut().find(|life| is_of(life)) {
            Some(life) => {
                if headers.bth.opcode.is_request() {
                    let first = Psn::new(self.host.peer(life.qpn).psn);
                    life.left = life.left.max((headers.bth.psn.since(first) + 1) as u32);
                }
                &*life
            }
            None => {
                let ended = self.ended.iter_mut().find(|ended| is_of(&ended.life));
                let ended = ended.unwrap_or_else(|| panic!("{headers:?} names no peer"));
                ended.late += 1;
                assert!(
                    ended.late <= self.leaving,
                    "frames of a life that ended: {headers:?}"
                );
                &ended.life
            }
        };
        let to = match headers.ip {
            Ip::V4(ip) => Gid::from(std::net::IpAddr::from(ip.dst)),
            Ip::V6(ip) => Gid::from(std::net::IpAddr::from(ip.dst)),
        };
        let path = (headers.eth.dst, headers.eth.vlan, to);
        assert_eq!(
            path,
            (life.peer.mac, life.vlan, life.peer.gid),
            "{headers:?}"
        );
        for word in frame[payload].as_chunks::<8>().0 {
            let mark = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            assert_eq!(mark, life.mark, "bytes of another life in {headers:?}");
        }
    }

    /// Something happens to a life: it posts, its peer sends, or a former peer of its number does.
    pub(crate) fn act(&mut self, index: usize) {
        match self.rng.u8(..12) {
            0 => return (0..24).for_each(|_| self.post(index, 8)),
            1..8 => return self.post(index, self.incarnations[index].source.len as u32 / 8),
            8 => return self.straggle(index),
            _ => {}
        }
        let Self {
            rng,
            host,
            incarnations,
            ..
        } = self;
        let life = &mut incarnations[index];
        let step = match (life.qp_type == qp_type::RC, rng.u8(..5)) {
            (true, 0 | 4) if life.acked < life.posted => Step::Ack,
            (true, 1) => Step::Read,
            (true, 2) => Step::Write,
            _ => Step::Send,
        };
        let (psn, packets, len) = match step {
            Step::Ack => {
                // The next, or whatever was posted, though it has not left.
                let all = rng.bool();
                life.acked = if all { life.posted } else { life.acked + 1 };
                let end = life.ends[usize::from(life.acked) - 1];
                (host.peer(life.qpn).psn.wrapping_add(end), 0, 0)
            }
            Step::Read => {
                let len = 8 * rng.u32(1..life.source.len as u32 / 8);
                (life.next, life.mtu.packets(len), len)
            }
            Step::Write | Step::Send => (life.next, 1, 8 * rng.u32(..25)),
        };
        life.next = life.next.wrapping_add(packets);
        let frame = frame(host, &self.gids, life, step, psn, len);
        host.nic.receive(&frame);
    }

    /// Posts a send of fewer than so many words.
    fn post(&mut self, index: usize, words: u32) {
        let Self { rng, host, .. } = self;
        let life = &mut self.incarnations[index];
        if life.posted > 40 {
            return;
        }
        let bytes = life.source.len as u32;
        let len = 8 * rng.u32(..words);
        let list = [life
            .source
            .sge(u64::from(8 * rng.u32(..=(bytes - len) / 8)), len)];
        let mut work = if rng.bool() {
            Work::send(&list)
        } else {
            Work::write(&list, &life.target, 0)
        };
        work.head.signaled = rng.u8(..3) > 0;
        let before = life.ends.last().map_or(0, |end| end + 1);
        life.ends.push(before + life.mtu.packets(len) - 1);
        host.post_send(life.qpn, &work);
        life.posted += 1;
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
                let ahead = now.ends.last().copied().unwrap_or(0);
                host.peer(now.qpn).psn.wrapping_add(ahead)
            }
            _ => now.next,
        };
        let frame = frame(host, &self.gids, former, step, psn, 64);
        host.nic.receive(&frame);
    }
}

/// A frame of the peer of a life.
fn frame(host: &Host, gids: &[Gid; 2], life: &Life, step: Step, psn: u32, len: u32) -> Vec<u8> {
    let is_rc = life.qp_type == qp_type::RC;
    let mut ext = Extensions::default();
    let at = |mr: &Mr| RethRepr {
        va: mr.addr,
        rkey: mr.key,
        dma_len: len,
    };
    let mut words = 0;
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
        Step::Write => {
            ext.reth = Some(at(&life.target));
            words = len / 8;
            if is_rc {
                Opcode::RcWriteOnly
            } else {
                Opcode::UcWriteOnly
            }
        }
        Step::Send => {
            ext.imm = Some(life.mark);
            words = len / 8;
            if is_rc {
                Opcode::RcSendOnlyImm
            } else {
                Opcode::UcSendOnlyImm
            }
        }
    };
    let words = (0..words).flat_map(|word| [life.mark, word]);
    let payload: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    let own = gids[usize::from(!life.peer.gid.is_ipv4())];
    let headers = Headers {
        eth: EthRepr {
            dst: host.mac,
            src: life.peer.mac,
            vlan: None,
        },
        ip: Ip::between(life.peer.gid, own, 0, 0, 64).expect("of one kind"),
        udp: UdpRepr { src_port: 0xc123 },
        bth: BthRepr {
            ack_req: true,
            ..BthRepr::new(opcode, life.qpn, Psn::new(psn))
        },
        ext,
    };
    packet::frame(&headers, &payload)
}
