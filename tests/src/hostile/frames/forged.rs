//! Frames as the attacker makes them.

use ferroce_proto::wire::{
    AethRepr, AtomicAckEthRepr, AtomicEthRepr, BthRepr, DethRepr, EthRepr, Extensions, Gid,
    Headers, Ip, Opcode, Psn, RethRepr, Syndrome, UdpRepr,
};
use ferroce_sim::packet;
use ferroce_sim::scoreboard::icrc::Roce;
use ferroce_sim::testhost::{EXPERIMENTAL, Host, QpOptions};

use super::{ATTACKER, ATTACKER_IP, Attack};

/// Headers of a packet of the attacker to a host, without extension headers.
fn headers(to: &Host, vlan: Option<u16>, tclass: u8, src_port: u16, bth: BthRepr) -> Headers {
    let from = Gid::from(std::net::IpAddr::from(ATTACKER_IP));
    Headers {
        eth: EthRepr {
            dst: to.mac,
            src: ATTACKER,
            vlan,
        },
        ip: Ip::between(from, to.gid, tclass, 0, 64).expect("both are IPv4"),
        udp: UdpRepr { src_port },
        bth,
        ext: Extensions::default(),
    }
}

impl Attack {
    /// A frame of another protocol, of any length.
    fn exception(&mut self) {
        let lens = [60, 1984, 1985, 16_320, 16_321, 65_535, 65_536, 65_537];
        let len = match self.rng.u8(..2) {
            0 => lens[self.rng.usize(..lens.len())],
            _ => self.rng.usize(60..2000),
        };
        let mut frame = vec![self.rng.u8(..); len];
        frame[..6].copy_from_slice(&self.pair.a.mac.0);
        frame[12..14].copy_from_slice(&EXPERIMENTAL);
        self.hand(&frame);
    }

    /// A message of two or three packets, as a peer sends it; its region may go meanwhile.
    fn long_message(&mut self) {
        use Opcode::{
            RcSendFirst, RcSendLastImm, RcSendMiddle, RcWriteFirst, RcWriteLastImm, RcWriteMiddle,
            UcSendFirst, UcSendLastImm, UcSendMiddle, UcWriteFirst, UcWriteLastImm, UcWriteMiddle,
        };
        let kinds = [
            (0, [RcWriteFirst, RcWriteMiddle, RcWriteLastImm]),
            (0, [RcSendFirst, RcSendMiddle, RcSendLastImm]),
            (1, [UcWriteFirst, UcWriteMiddle, UcWriteLastImm]),
            (1, [UcSendFirst, UcSendMiddle, UcSendLastImm]),
        ];
        let (victim, [first, middle, last]) = kinds[self.rng.usize(..kinds.len())];
        let all = [first, middle, last];
        let opcodes = if self.rng.bool() {
            &all[..]
        } else {
            &[first, last]
        };
        let rest = self.rng.usize(1..=1024);
        let dma_len = (opcodes.len() as u32 - 1) * 1024 + rest as u32;
        let (va, rkey) = (self.open.addr, self.open.key);
        for opcode in opcodes {
            let psn = self.psns[victim];
            self.psns[victim] = psn.wrapping_add(1);
            let bth = BthRepr::new(*opcode, self.victims[victim].0, Psn::new(psn));
            let headers = Headers {
                ext: Extensions {
                    reth: opcode.has_reth().then_some(RethRepr { va, rkey, dma_len }),
                    imm: opcode.has_imm().then_some(psn),
                    ..Extensions::default()
                },
                ..headers(&self.pair.a, None, 0, 0xc123, bth)
            };
            let len = if opcode.is_end() { rest } else { 1024 };
            self.hand(&packet::frame(&headers, &vec![0x42; len]));
            if self.rng.u8(..4) == 0 {
                self.change();
            }
        }
    }

    fn hand(&mut self, frame: &[u8]) {
        self.exceptions.sent(frame);
        self.pair.a.nic.receive(frame);
        self.report.frames += 1;
        let wait = [4, 20, 60][self.rng.usize(..3)];
        self.pair.run(wait);
    }

    /// A frame of any kind.
    pub(super) fn frame(&mut self) {
        match self.rng.u8(..128) {
            0 => return self.exception(),
            1 | 2 => self.change(),
            3..=5 => return self.long_message(),
            _ => {}
        }
        let rng = &mut self.rng;
        let victim = rng.usize(..3);
        let (qpn, kind) = self.victims[victim];
        let opcode = loop {
            let opcode = Opcode::ALL[rng.usize(..Opcode::ALL.len())];
            if opcode.class() as u8 == kind || rng.u8(..8) == 0 {
                break opcode;
            }
        };
        let dest_qp = match rng.u8(..10) {
            0 => self.neighbour[0],
            1 => rng.u32(..1 << 24),
            _ => qpn,
        };
        let psn = self.psns[victim].wrapping_add(if rng.u8(..4) == 0 { rng.u32(..8) } else { 0 });
        self.psns[victim] = psn.wrapping_add(1);
        let regions = [
            self.open,
            self.open,
            self.kept,
            self.closed,
            self.source,
            self.target,
        ];
        let region = regions[rng.usize(..regions.len())];
        let rkey = if rng.u8(..8) == 0 {
            rng.u32(..)
        } else {
            region.key
        };
        let va = match rng.u8(..8) {
            0 => rng.u64(..),
            1 => region.addr.wrapping_sub(rng.u64(..16)),
            2 => region.addr + region.len - rng.u64(..16),
            _ => region.addr + rng.u64(..2048),
        };
        let len = if opcode.has_payload() {
            [0, 1, 256, 1024, 1025, rng.usize(..1100)][rng.usize(..6)]
        } else {
            0
        };
        let dma_len = if rng.u8(..4) == 0 {
            rng.u32(..)
        } else {
            len as u32
        };
        let base = headers(
            &self.pair.a,
            (rng.u8(..8) == 0).then(|| rng.u16(..)),
            rng.u8(..),
            rng.u16(..),
            BthRepr {
                solicited: rng.bool(),
                ack_req: rng.bool(),
                ..BthRepr::new(opcode, dest_qp, Psn::new(psn))
            },
        );
        let headers = Headers {
            ext: Extensions {
                deth: opcode.has_deth().then(|| DethRepr {
                    qkey: if rng.bool() {
                        QpOptions::default().qkey
                    } else {
                        rng.u32(..)
                    },
                    src_qp: rng.u32(..1 << 24),
                }),
                reth: opcode.has_reth().then_some(RethRepr { va, rkey, dma_len }),
                atomic: opcode.has_atomic_eth().then(|| AtomicEthRepr {
                    va: va & !7,
                    rkey,
                    swap_add: rng.u64(..),
                    compare: 0,
                }),
                aeth: opcode.has_aeth().then(|| AethRepr {
                    syndrome: Syndrome::from_bits(rng.u8(..)),
                    msn: rng.u32(..1 << 24),
                }),
                atomic_ack: opcode.has_atomic_ack().then(|| AtomicAckEthRepr {
                    original: rng.u64(..),
                }),
                imm: opcode.has_imm().then(|| rng.u32(..)),
                ieth: opcode.has_ieth().then_some(rkey),
            },
            ..base
        };
        let payload: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
        let mut frame = packet::frame(&headers, &payload);
        if rng.u8(..3) == 0 {
            // Any bit behind the addresses, and an ICRC that goes with it.
            for _ in 0..rng.usize(1..4) {
                let end = (frame.len() - 4).min(80);
                let bit = rng.usize(8 * 12..8 * end);
                frame[bit / 8] ^= 1 << (bit % 8);
            }
            if let Some(roce) = Roce::locate(&frame) {
                roce.seal(&mut frame);
            }
        }
        if rng.u8(..16) == 0 {
            frame.truncate(rng.usize(14..=frame.len()));
        }
        self.hand(&frame);
    }
}
