//! What happens to a life, and what must be true of its frames and completions.

use ferroce_proto::abi::cq::{Cqe, status as cq_status};
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::wire::{
    AethRepr, BthRepr, EthRepr, Extensions, Gid, Headers, Ip, Opcode, Packet, Psn, RethRepr,
    Syndrome, UdpRepr,
};
use ferroce_sim::testhost::{Work, pattern};

use crate::{BYTES, LEAVING, Test};

impl Test {
    pub(crate) fn completions(&mut self) -> Vec<Cqe> {
        std::iter::from_fn(|| self.host.poll(0)).collect()
    }

    pub(crate) fn check_completion(&self, cqe: &Cqe) {
        let life = self.incarnations.iter().find(|life| life.qpn == cqe.qpn);
        let life = life.unwrap_or_else(|| panic!("completion of no life: {cqe:?}"));
        if cqe.status != cq_status::SUCCESS {
            return;
        }
        if cqe.recv {
            assert_eq!(cqe.imm, life.mark, "a message to another life: {cqe:?}");
        } else {
            assert!(
                cqe.wqe_index < life.posted,
                "{cqe:?} of {} posted",
                life.posted
            );
            let acked = life.qp_type != qp_type::RC || cqe.wqe_index < life.acked;
            assert!(
                acked,
                "nobody acknowledged it: {cqe:?} of {} sends",
                life.acked
            );
        }
    }

    /// A frame is of the life that its address names, all of it.
    pub(crate) fn check(&mut self, frame: &[u8]) {
        let Packet { headers, payload } = Packet::parse(frame).expect("a RoCEv2 packet");
        let qpn = headers.bth.dest_qp;
        let life = match self.incarnations.iter().find(|life| life.peer.qpn == qpn) {
            Some(life) => life,
            None => {
                let ended = self.ended.iter_mut().find(|(life, _)| life.peer.qpn == qpn);
                let (life, late) = ended.unwrap_or_else(|| panic!("{headers:?} is for nobody"));
                *late += 1;
                assert!(*late <= LEAVING, "frames of a life that ended: {headers:?}");
                life
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

    /// Something happens to a life.
    pub(crate) fn act(&mut self, index: usize) {
        let Self {
            rng,
            host,
            incarnations,
            gids,
            ..
        } = self;
        let life = &mut incarnations[index];
        let is_rc = life.qp_type == qp_type::RC;
        if rng.u8(..3) > 0 {
            if life.posted > 40 {
                return;
            }
            let len = 8 * rng.u32(..BYTES as u32 / 8);
            let list = [life
                .source
                .sge(u64::from(8 * rng.u32(..=(BYTES as u32 - len) / 8)), len)];
            let work = if rng.bool() {
                Work::send(&list)
            } else {
                Work::write(&list, &life.target, 0)
            };
            let before = life.ends.last().map_or(0, |end| end + 1);
            life.ends.push(before + life.mtu.packets(len) - 1);
            host.post_send(life.qpn, &work);
            life.posted += 1;
            return;
        }
        let mut ext = Extensions::default();
        let mut payload = Vec::new();
        let (opcode, psn) = match (is_rc, rng.u8(..3)) {
            (true, 0) if life.acked < life.posted => {
                life.acked += 1;
                let end = life.ends[usize::from(life.acked) - 1];
                ext.aeth = Some(AethRepr {
                    syndrome: Syndrome::ACK,
                    msn: life.acked.into(),
                });
                let first = host.peer(life.qpn).psn;
                (Opcode::RcAck, first.wrapping_add(end))
            }
            (true, 1) => {
                let len = 8 * rng.u32(1..BYTES as u32 / 8);
                ext.reth = Some(RethRepr {
                    va: life.source.addr,
                    rkey: life.source.key,
                    dma_len: len,
                });
                let psn = life.next;
                life.next = psn.wrapping_add(life.mtu.packets(len));
                (Opcode::RcReadRequest, psn)
            }
            _ => {
                ext.imm = Some(life.mark);
                payload = pattern(rng.usize(..200), 3);
                life.next = life.next.wrapping_add(1);
                let opcode = if is_rc {
                    Opcode::RcSendOnlyImm
                } else {
                    Opcode::UcSendOnlyImm
                };
                (opcode, life.next.wrapping_sub(1))
            }
        };
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
        let mut frame = vec![0; headers.frame_len(payload.len())];
        headers
            .build(&payload, &mut frame)
            .expect("extension headers follow the opcode");
        host.nic.receive(&frame);
    }
}
