//! What must be true of frames, completions, events and memory.

use ferroce_proto::abi::cq::{Cqe, status as cq_status};
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::wire::ip::GRH_LEN;
use ferroce_proto::wire::{Gid, Ip, Opcode, Packet, Psn, Syndrome};

use super::life::{Life, Path};
use super::{PEER, RECEIVES, Test};
use crate::conformance::event_queue::Event;

/// The marks of words, an error if there is one of none of `marks`.
fn check_marks(bytes: &[u8], marks: &[u32]) -> Result<(), String> {
    for (at, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let mark = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        if !marks.contains(&mark) {
            return Err(format!("{mark:#x} in word {at} of {:#x}", marks[0]));
        }
    }
    Ok(())
}

impl Test {
    /// What all completion queues hold.
    pub(super) fn completions(&mut self) -> Vec<Cqe> {
        let own = self.incarnations.iter().map(|life| life.cqn);
        let mut cqns: Vec<_> = own.chain([0]).collect();
        cqns.sort_unstable();
        cqns.dedup();
        let host = &mut self.host;
        let of = |cqn| std::iter::from_fn(|| host.poll(cqn)).collect::<Vec<_>>();
        cqns.into_iter().flat_map(of).collect()
    }

    pub(super) fn take_completions(&mut self) {
        for cqe in self.completions() {
            self.check_completion(&cqe);
        }
    }

    /// A completion is of a WQE that its life posted, once and in order, and in success of what happened in it.
    pub(super) fn check_completion(&mut self, cqe: &Cqe) {
        let life = self
            .incarnations
            .iter_mut()
            .find(|life| life.qpn == cqe.qpn);
        let life = life.unwrap_or_else(|| panic!("completion of no life: {cqe:?}"));
        let posted = if cqe.recv { RECEIVES } else { life.posted() };
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
            let is_there = !life.refused || cqe.byte_len == 0;
            assert!(is_there, "host memory refused its data: {cqe:?}");
            return;
        }
        let acked = !life.is_rc() || cqe.wqe_index < life.acked;
        assert!(
            acked,
            "it was not acknowledged: {cqe:?} of {} sends",
            life.acked
        );
        // Its memory is the host's again.
        let sent = &life.sends[usize::from(cqe.wqe_index)];
        let (left, leaving) = (life.left, self.leaving as u32);
        assert!(
            sent.end < left + leaving,
            "{cqe:?} ends at PSN {}, and {left} left",
            sent.end
        );
        if let Some(bytes) = sent.reads.clone().filter(|bytes| !bytes.is_empty()) {
            assert!(!life.refused, "host memory refused its data: {cqe:?}");
            let target = self.host.contents(&life.target);
            check_marks(&target[bytes], &[life.mark])
                .unwrap_or_else(|what| panic!("what a READ fetched: {what}"));
        }
    }

    /// An event of a queue pair is of a life, and a failure of one that was sent what ends it.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        let events = self.events.all(&self.host);
        for &(kind, qpn, _) in &events {
            let fails = match self.incarnations.iter().find(|life| life.qpn == qpn) {
                Some(life) => life.fails,
                None => self.crowd.contains(&qpn),
            };
            let is_of_queue_pair = (event::QP_FATAL..=event::SQ_DRAINED).contains(&kind);
            assert!(fails || !is_of_queue_pair, "event {kind} of {qpn}");
        }
        self.events.give_back(&self.host);
        events
    }

    /// The target of a life holds what it held at first, or what its own peer sent.
    pub(super) fn check_memory(&self, life: &Life) {
        if life.refused {
            return;
        }
        let headers = if life.qp_type == qp_type::UD {
            GRH_LEN
        } else {
            0
        };
        let memory = &self.host.contents(&life.target)[headers..];
        check_marks(memory, &[life.mark, !life.mark])
            .unwrap_or_else(|what| panic!("memory of a life: {what}"));
    }

    /// Nothing reached the memory of a life that ended.
    pub(super) fn check_ended(&self) {
        for ended in self.ended.iter().filter(|ended| !ended.life.refused) {
            let memory = self.host.contents(&ended.life.target);
            assert!(memory == ended.memory, "{:#x}", ended.life.mark);
        }
    }

    /// A frame is of the life that its address names, all of it.
    pub(super) fn check(&mut self, frame: &[u8]) {
        let Packet { headers, payload } = Packet::parse(frame).expect("a RoCEv2 packet");
        let (qpn, opcode, psn) = (headers.bth.dest_qp, headers.bth.opcode, headers.bth.psn);
        if qpn == PEER {
            return;
        }
        let is_of = |life: &&mut Life| life.peer.qpn == qpn;
        let ended = self.ended.iter_mut().map(|ended| &mut ended.life);
        let (life, has_ended) = match self.incarnations.iter_mut().find(is_of) {
            Some(life) => (life, false),
            None => {
                let life = ended.rev().find(is_of);
                (
                    life.unwrap_or_else(|| panic!("{headers:?} names no peer")),
                    true,
                )
            }
        };
        let gid = match headers.ip {
            Ip::V4(ip) => Gid::from(std::net::IpAddr::from(ip.dst)),
            Ip::V6(ip) => Gid::from(std::net::IpAddr::from(ip.dst)),
        };
        let path = Path {
            gid,
            vlan: headers.eth.vlan,
            port: headers.udp.src_port,
        };
        assert_eq!(headers.eth.dst, life.peer.mac, "{headers:?}");
        let at = life.paths.iter().rposition(|known| *known == path);
        let at = at.unwrap_or_else(|| panic!("not a path of its life: {headers:?}"));
        assert!(at >= life.seen, "a path left before: {headers:?}");
        life.seen = at;
        life.late += usize::from(has_ended);
        assert!(
            life.late <= self.leaving,
            "frames of a life that ended: {headers:?}"
        );
        if opcode.is_request() {
            let asked = headers.ext.reth.filter(|_| opcode == Opcode::RcReadRequest);
            let packets = asked.map_or(1, |reth| life.mtu.packets(reth.dma_len));
            let sent = psn.since(life.first) as u32;
            life.left = life.left.max(sent + packets);
            // What was posted behind the answer to a new path takes it: a datagram is one packet.
            let least = life.confirmed.iter().filter(|&&posted| sent >= posted);
            assert!(at >= least.count(), "a path of before: {headers:?}");
        }
        let ends = [
            Opcode::RcReadResponseOnly,
            Opcode::RcReadResponseLast,
            Opcode::RcAtomicAck,
        ];
        if ends.contains(&opcode) {
            let asked = life.asked.checked_sub(1);
            life.asked =
                asked.unwrap_or_else(|| panic!("a response without a request: {headers:?}"));
        }
        if let Some(aeth) = headers.ext.aeth {
            let is_ack = matches!(aeth.syndrome, Syndrome::Ack { .. });
            let covers = life
                .spoilt
                .is_some_and(|spoilt| psn.since(Psn::new(spoilt)) >= 0);
            assert!(
                !(is_ack && covers),
                "host memory refused {:?}, and it is acknowledged: {headers:?}",
                life.spoilt
            );
        }
        if let Some(ack) = headers.ext.atomic_ack {
            assert_eq!(ack.original as u32, life.mark, "{headers:?}");
        }
        check_marks(&frame[payload], &[life.mark])
            .unwrap_or_else(|what| panic!("bytes of another life: {what}, {headers:?}"));
    }
}
