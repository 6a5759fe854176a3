//! Random headers built and parsed again, and hostile bytes.

extern crate std;

use proptest::prelude::*;

use super::tests::{build, parse};
use super::*;
use crate::wire::{
    AethRepr, AtomicAckEthRepr, AtomicEthRepr, BthRepr, DethRepr, EthRepr, Ipv4Repr, Ipv6Repr, Mac,
    Psn, RethRepr, Syndrome, UdpRepr, ipv4, samples,
};

fn any_eth() -> impl Strategy<Value = EthRepr> {
    any::<([u8; 6], [u8; 6], Option<u16>)>().prop_map(|(dst, src, vlan)| EthRepr {
        dst: Mac(dst),
        src: Mac(src),
        vlan,
    })
}

fn any_ip() -> impl Strategy<Value = Ip> {
    let v4 = any::<([u8; 4], [u8; 4], u8, u16, u8)>().prop_map(|(src, dst, tos, ident, ttl)| {
        Ip::V4(Ipv4Repr {
            src: src.into(),
            dst: dst.into(),
            tos,
            ident,
            ttl,
        })
    });
    let v6 =
        any::<([u8; 16], [u8; 16], u8, u32, u8)>().prop_map(|(src, dst, tclass, label, hops)| {
            Ip::V6(Ipv6Repr {
                src: src.into(),
                dst: dst.into(),
                traffic_class: tclass,
                flow_label: label >> 12,
                hop_limit: hops,
            })
        });
    prop_oneof![v4, v6]
}

fn any_bth() -> impl Strategy<Value = BthRepr> {
    let opcode = prop::sample::select(Opcode::ALL);
    (opcode, any::<([bool; 5], u16, u32, u32)>()).prop_map(|(opcode, (flags, pkey, qp, psn))| {
        let [solicited, mig_req, fecn, becn, ack_req] = flags;
        BthRepr {
            opcode,
            solicited,
            mig_req,
            pkey,
            fecn,
            becn,
            dest_qp: qp >> 8,
            ack_req,
            psn: Psn::new(psn),
        }
    })
}

fn any_ext(opcode: Opcode) -> impl Strategy<Value = Extensions> {
    any::<([u64; 3], [u32; 3], u8)>().prop_map(move |([va, swap_add, compare], [a, b, c], s)| {
        Extensions {
            deth: opcode.has_deth().then_some(DethRepr {
                qkey: a,
                src_qp: b >> 8,
            }),
            reth: opcode.has_reth().then_some(RethRepr {
                va,
                rkey: a,
                dma_len: b,
            }),
            atomic: opcode.has_atomic_eth().then_some(AtomicEthRepr {
                va,
                rkey: a,
                swap_add,
                compare,
            }),
            aeth: opcode.has_aeth().then_some(AethRepr {
                syndrome: Syndrome::from_bits(s),
                msn: a >> 8,
            }),
            atomic_ack: opcode
                .has_atomic_ack()
                .then_some(AtomicAckEthRepr { original: va }),
            imm: opcode.has_imm().then_some(c),
            ieth: opcode.has_ieth().then_some(c),
        }
    })
}

fn any_headers() -> impl Strategy<Value = Headers> {
    (any_eth(), any_ip(), any::<u16>(), any_bth()).prop_flat_map(|(eth, ip, src_port, bth)| {
        any_ext(bth.opcode).prop_map(move |ext| Headers {
            eth,
            ip,
            udp: UdpRepr { src_port },
            bth,
            ext,
        })
    })
}

proptest! {
    #[test]
    fn build_then_parse(
        headers in any_headers(),
        payload in prop::collection::vec(any::<u8>(), 0..600),
        trailing in 0usize..8,
    ) {
        let payload = if headers.bth.opcode.has_payload() { &payload[..] } else { &[] };
        let mut frame = build(&headers, payload);
        frame.resize(frame.len() + trailing, 0xa5);
        let packet = parse(&frame);
        prop_assert_eq!(packet.headers, headers);
        prop_assert_eq!(&frame[packet.payload], payload);
    }

    #[test]
    fn parse_of_any_bytes_never_panics(frame in prop::collection::vec(any::<u8>(), 0..200)) {
        // A frame of random bytes is RoCEv2 with a correct ICRC once in far more than 2^32 times.
        prop_assert!(Packet::parse(&frame).is_err());
    }

    #[test]
    fn parse_of_mutated_frames_never_panics(
        which in 0..samples::ALL.len(),
        edits in prop::collection::vec((0usize..80, any::<u8>()), 1..6),
        len in prop::option::of(0usize..160),
    ) {
        let mut frame = samples::ALL[which].to_vec();
        for (at, byte) in edits {
            if let Some(old) = frame.get_mut(at) {
                *old = byte;
            }
        }
        // With the checks made right again the edits reach the code behind them.
        let mut ip = ipv4::Header::new_checked(&mut frame[14..]).unwrap();
        if ip.version() == 4 {
            ip.set_checksum(ip.computed_checksum());
        }
        let _ = icrc::seal(&mut frame[14..]);
        frame.resize(len.unwrap_or(frame.len()), 0);
        if let Ok(packet) = Packet::parse(&frame) {
            // What is accepted can be sent on: built again it means the same.
            let again = build(&packet.headers, &frame[packet.payload.clone()]);
            prop_assert_eq!(parse(&again), packet);
        }
    }
}
