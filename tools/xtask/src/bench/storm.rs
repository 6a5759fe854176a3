//! Short requests as fast as a wire brings them, without end, to one card: its peer is the bench, which never waits.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::wqe::{RecvWqe, Sge};
use ferroce_proto::wire::{
    Extensions, Headers, Ip, Mac, Mtu, Opcode, Packet, Psn, bth, eth, ipv4, reth, udp,
};
use ferroce_sim::link::{MIN_FRAME, OVERHEAD};
use ferroce_sim::rate::Rate;
use ferroce_sim::testhost::{Host, Mr, Peer, QpOptions, Rights};

use super::flood::Flood;
use super::load::Op;
use super::rig::{Rig, Setup};

/// Bytes of a message: a SEND of them makes a frame of 64 bytes with its FCS, less than the shortest is padded; a WRITE
/// one of 82.
const TINY: usize = 2;
/// Log2 of the receive WQEs of all queue pairs together.
const LOG_WQES: u8 = 12;
/// Cycles without a packet done after which a storm is over.
const PATIENCE: u64 = 20_000;
/// The wire: bytes a cycle.
const WIRE: Rate = Rate::ethernet(100);

/// When a packet comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// When fewer than so many packets are not done: what the engine takes.
    Window(u64),
    /// As a wire of 100 Gb/s brings them.
    Ethernet,
    /// Each beat follows the one before.
    BackToBack,
}

/// Packets of a storm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storm {
    /// WRITE, or SEND with a receive WQE and a CQE each.
    pub(super) op: Op,
    /// Queue pairs, in turn.
    pub(super) qps: u64,
    pub(super) packets: u64,
    pub(super) pace: Pace,
}

/// A queue pair in it.
struct Target {
    qpn: u32,
    psn: u32,
    /// Packets acknowledged, and receive WQEs to post again.
    acked: u64,
    used: u32,
}

impl Storm {
    /// Cycles of a packet, from the first one sent to the last one done, and packets lost.
    pub(super) fn run(&self, setup: &Setup) -> Result<Flood> {
        let mut rig = Rig::new(setup, 1)?;
        let host = &mut rig.hosts[0];
        let memory = host.create_mr(&[0; TINY], Rights::ALL);
        let list = [memory.sge(0, TINY as u32)];
        let mut targets = self.targets(host, &list);
        (0..PATIENCE).for_each(|_| rig.step());
        rig.kept[0] = Some(Vec::new());
        let (start, mut last) = (rig.now, rig.now);
        let (mut sent, mut done) = (0, 0);
        // Cycles of the wire that are taken, in parts of 1/50.
        let mut taken = 0;
        while done < self.packets {
            while sent < self.packets && self.may_send(sent - done, taken, rig.now - start) {
                let target = &mut targets[(sent % self.qps) as usize];
                let frame = self.frame(&rig.hosts[0], target, &memory)?;
                taken += self.cost(frame.len());
                rig.hosts[0].nic.receive(&frame);
                sent += 1;
            }
            rig.step();
            let before = done;
            done = self.done(&mut rig, &mut targets, &list, done)?;
            if done > before {
                last = rig.now;
            }
            // What is lost is never done, nor what follows it on its queue pair.
            if rig.now - last > PATIENCE {
                break;
            }
        }
        rig.check()?;
        let host = &mut rig.hosts[0];
        let dropped = host.stat("rx_overflow");
        ensure!(
            done == self.packets || dropped > 0,
            "{done} packets are done"
        );
        ensure!(host.stat("rnr_nak_sent") == 0, "a receive WQE was missing");
        Ok(Flood {
            cycles: (last - start) as f64 / done as f64,
            dropped,
        })
    }

    /// The queue pairs, each with its receive WQEs.
    fn targets(&self, host: &mut Host, list: &[Sge]) -> Vec<Target> {
        let rq_log = LOG_WQES - self.qps.ilog2() as u8;
        let options = QpOptions {
            mtu: Mtu::Mtu4096,
            rq_log,
            ot_log: 2,
            ..QpOptions::default()
        };
        let target = |number| {
            let qpn = host.create_qp(options);
            let peer = Peer {
                mac: PEER,
                gid: PEER_IP.into(),
                qpn: 0x100 + number as u32,
                psn: options.psn,
            };
            host.connect(qpn, &peer);
            if self.op == Op::Send {
                (0..1 << rq_log).for_each(|_| post(host, qpn, list));
                host.ring_recv(qpn);
            }
            Target {
                qpn,
                psn: options.psn,
                acked: 0,
                used: 0,
            }
        };
        (0..self.qps).map(target).collect()
    }

    /// The next packet may come.
    fn may_send(&self, open: u64, taken: u64, now: u64) -> bool {
        match self.pace {
            Pace::Window(most) => open < most,
            _ => taken <= now * u64::from(WIRE.units()),
        }
    }

    /// What a frame takes of the wire.
    fn cost(&self, bytes: usize) -> u64 {
        match self.pace {
            Pace::Window(_) => 0,
            Pace::Ethernet => (bytes + OVERHEAD) as u64 * u64::from(WIRE.cycles()),
            Pace::BackToBack => bytes.div_ceil(64) as u64 * u64::from(WIRE.units()),
        }
    }

    fn frame(&self, host: &Host, target: &mut Target, memory: &Mr) -> Result<Vec<u8>> {
        let mut ext = Extensions::default();
        let opcode = match self.op {
            Op::Write => {
                ext.reth = Some(reth::Repr {
                    va: memory.addr,
                    rkey: memory.key,
                    dma_len: TINY as u32,
                });
                Opcode::RcWriteOnly
            }
            _ => Opcode::RcSendOnly,
        };
        let headers = Headers {
            eth: eth::Repr {
                dst: host.mac,
                src: PEER,
                vlan: None,
            },
            ip: Ip::V4(ipv4::Repr {
                src: PEER_IP,
                dst: HOST_IP,
                tos: 0,
                ident: 0,
                ttl: 64,
            }),
            udp: udp::Repr { src_port: 0xc000 },
            bth: bth::Repr {
                ack_req: true,
                ..bth::Repr::new(opcode, target.qpn, Psn::new(target.psn))
            },
            ext,
        };
        target.psn += 1;
        let mut frame = vec![0; headers.frame_len(TINY).max(MIN_FRAME)];
        headers.build(&[1; TINY], &mut frame).context("a request")?;
        Ok(frame)
    }

    /// Packets done: acknowledged, or completed.
    fn done(
        &self,
        rig: &mut Rig,
        targets: &mut [Target],
        list: &[Sge],
        mut done: u64,
    ) -> Result<u64> {
        let host = &mut rig.hosts[0];
        let answers = rig.kept[0].as_mut().expect("kept");
        if self.op == Op::Send {
            answers.clear();
            while let Some(cqe) = host.poll(0) {
                ensure!(cqe.status == status::SUCCESS, "status {}", cqe.status);
                done += 1;
                let place = targets.iter().position(|t| t.qpn == cqe.qpn);
                let target = &mut targets[place.context("a completion of another")?];
                target.used += 1;
                post(host, target.qpn, list);
                if target.used.is_multiple_of(16) {
                    host.ring_recv(target.qpn);
                }
            }
            return Ok(done);
        }
        for frame in answers.drain(..) {
            let bth = Packet::parse(&frame).context("an ACK")?.headers.bth;
            let target = &mut targets[(bth.dest_qp - 0x100) as usize];
            let first = QpOptions::default().psn;
            let newly_acked = bth.psn.value().wrapping_sub(target.acked as u32 + first) & 0xff_ffff;
            if newly_acked < 1 << 23 {
                target.acked += u64::from(newly_acked) + 1;
                done += u64::from(newly_acked) + 1;
            }
        }
        Ok(done)
    }
}

/// The peer.
const PEER: Mac = Mac([2, 0, 0, 0, 0, 2]);
const PEER_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const HOST_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

fn post(host: &mut Host, qpn: u32, list: &[Sge]) {
    let head = RecvWqe {
        num_sge: list.len() as u8,
        length: TINY as u32,
        ..RecvWqe::default()
    };
    host.write_recv_wqe(qpn, head, list);
}
