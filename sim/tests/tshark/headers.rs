//! Headers at random.

use fastrand::Rng;
use ferroce_proto::wire::{
    AethRepr, AtomicAckEthRepr, AtomicEthRepr, BthRepr, DethRepr, EthRepr, Ext, Extensions,
    Headers, Ip, Ipv4Repr, Ipv6Repr, Mac as Address, Opcode, Psn, RethRepr, Syndrome, UdpRepr,
};

/// Those of an opcode in a layout.
pub(crate) fn headers(rng: &mut Rng, opcode: Opcode, vlan: bool, ipv6: bool) -> Headers {
    let has = |ext| opcode.has(ext);
    Headers {
        eth: EthRepr {
            dst: Address([0x52, 0x54, 0, rng.u8(..), rng.u8(..), rng.u8(..)]),
            src: Address([0x52, 0x54, 1, rng.u8(..), rng.u8(..), rng.u8(..)]),
            vlan: vlan.then(|| rng.u16(..)),
        },
        ip: if ipv6 {
            Ip::V6(Ipv6Repr {
                src: (0x20 << 120 | rng.u128(..) >> 8).into(),
                dst: (0x20 << 120 | rng.u128(..) >> 8).into(),
                traffic_class: rng.u8(..),
                flow_label: rng.u32(..1 << 20),
                hop_limit: rng.u8(1..),
            })
        } else {
            Ip::V4(Ipv4Repr {
                src: rng.u32(1 << 24..100 << 24).into(),
                dst: rng.u32(1 << 24..100 << 24).into(),
                tos: rng.u8(..),
                ident: 0,
                ttl: rng.u8(1..),
            })
        },
        udp: UdpRepr {
            src_port: rng.u16(0xc000..),
        },
        bth: BthRepr {
            solicited: rng.bool(),
            mig_req: rng.bool(),
            pkey: rng.u16(..),
            ack_req: rng.bool(),
            becn: opcode == Opcode::Cnp,
            ..BthRepr::new(opcode, rng.u32(2..1 << 24), Psn::new(rng.u32(..1 << 24)))
        },
        ext: Extensions {
            deth: has(Ext::Deth).then(|| DethRepr {
                qkey: rng.u32(..),
                src_qp: rng.u32(..1 << 24),
            }),
            reth: has(Ext::Reth).then(|| RethRepr {
                va: rng.u64(..),
                rkey: rng.u32(..),
                dma_len: rng.u32(..1 << 31),
            }),
            atomic: has(Ext::AtomicEth).then(|| AtomicEthRepr {
                va: rng.u64(..),
                rkey: rng.u32(..),
                swap_add: rng.u64(..),
                compare: rng.u64(..),
            }),
            aeth: has(Ext::Aeth).then(|| AethRepr {
                syndrome: Syndrome::from_bits(rng.u8(..)),
                msn: rng.u32(..1 << 24),
            }),
            atomic_ack: has(Ext::AtomicAckEth).then(|| AtomicAckEthRepr {
                original: rng.u64(..),
            }),
            imm: has(Ext::ImmDt).then(|| rng.u32(..)),
            ieth: has(Ext::Ieth).then(|| rng.u32(..)),
        },
    }
}
