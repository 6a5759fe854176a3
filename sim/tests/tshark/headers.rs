//! Headers at random.

use fastrand::Rng;
use ferroce_proto::wire::{
    BthRepr, EthRepr, Headers, Ip, Ipv4Repr, Ipv6Repr, Mac as Address, Opcode, Psn, UdpRepr,
};
use ferroce_sim::random::extensions;

/// Those of an opcode in a layout.
pub(crate) fn headers(rng: &mut Rng, opcode: Opcode, vlan: bool, ipv6: bool) -> Headers {
    let mut ext = extensions(rng, opcode);
    // tshark reads a length of 31 bits
    if let Some(reth) = &mut ext.reth {
        reth.dma_len &= (1 << 31) - 1;
    }
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
        ext,
    }
}
