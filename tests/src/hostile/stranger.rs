//! The other end of an owner's queue pairs: it answers as a peer does, or as it likes.

use fastrand::Rng;
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::wire::{
    AethRepr, AtomicAckEthRepr, AtomicEthRepr, DethRepr, Extensions, Gid, Headers, NakCode, Opcode,
    Psn, RethRepr, Syndrome,
};
use ferroce_sim::packet;
use ferroce_sim::testhost::{Host, QpOptions};

use super::tenant::{STRANGER, STRANGER_IP, Tenant};
use super::victim::Victim;

/// Bytes of a packet of the owner's connections.
const MTU: u32 = 256;
/// Longest READ that is answered.
const READ: u32 = 8192;

/// A frame to a queue pair of the card.
pub(super) fn frame(
    host: &Host,
    opcode: Opcode,
    qpn: u32,
    psn: Psn,
    ext: Extensions,
    len: usize,
) -> Vec<u8> {
    let from = Gid::from(std::net::IpAddr::from(STRANGER_IP));
    let mut headers = packet::headers((STRANGER, from), (host.mac, host.gid), qpn, opcode, psn);
    headers.bth.ack_req = true;
    headers.ext = ext;
    packet::frame(&headers, &vec![0x42; len])
}

fn aeth(syndrome: Syndrome) -> Extensions {
    Extensions {
        aeth: Some(AethRepr { syndrome, msn: 0 }),
        ..Extensions::default()
    }
}

fn ack() -> Syndrome {
    Syndrome::from_bits(0x1f)
}

/// What a peer answers to a request.
pub(super) fn answers(host: &Host, qpn: u32, request: &Headers) -> Vec<Vec<u8>> {
    let psn = request.bth.psn;
    if let Some(reth) = request.ext.reth
        && request.bth.opcode == Opcode::RcReadRequest
    {
        if reth.dma_len > READ {
            let ext = aeth(Syndrome::Nak(NakCode::RemoteAccess));
            return vec![frame(host, Opcode::RcAck, qpn, psn, ext, 0)];
        }
        let packets = reth.dma_len.div_ceil(MTU).max(1);
        return (0..packets)
            .map(|packet| {
                let opcode = match (packet, packet + 1 == packets) {
                    (0, true) => Opcode::RcReadResponseOnly,
                    (0, false) => Opcode::RcReadResponseFirst,
                    (_, true) => Opcode::RcReadResponseLast,
                    _ => Opcode::RcReadResponseMiddle,
                };
                let len = (reth.dma_len - packet * MTU).min(MTU);
                let mut ext = Extensions::default();
                if opcode.has_aeth() {
                    ext = aeth(ack());
                }
                frame(
                    host,
                    opcode,
                    qpn,
                    Psn::new(psn.value().wrapping_add(packet) & 0xff_ffff),
                    ext,
                    len as usize,
                )
            })
            .collect();
    }
    if request.bth.opcode.has_atomic_eth() {
        let ext = Extensions {
            atomic_ack: Some(AtomicAckEthRepr { original: 7 }),
            ..aeth(ack())
        };
        return vec![frame(host, Opcode::RcAtomicAck, qpn, psn, ext, 0)];
    }
    match request.bth.ack_req {
        true => vec![frame(host, Opcode::RcAck, qpn, psn, aeth(ack()), 0)],
        false => Vec::new(),
    }
}

/// An answer to whatever, about the PSN `near`.
pub(super) fn lie(host: &Host, victim: &Victim, near: u32, rng: &mut Rng) -> Vec<u8> {
    let psn = Psn::new(near.wrapping_sub(3).wrapping_add(rng.u32(..24)) & 0xff_ffff);
    let responses = [
        Opcode::RcAck,
        Opcode::RcAck,
        Opcode::RcReadResponseOnly,
        Opcode::RcReadResponseFirst,
        Opcode::RcReadResponseMiddle,
        Opcode::RcReadResponseLast,
        Opcode::RcAtomicAck,
    ];
    let opcode = responses[rng.usize(..responses.len())];
    let mut ext = Extensions::default();
    if opcode.has_aeth() {
        ext = aeth(Syndrome::from_bits(rng.u8(..)));
    }
    if opcode.has_atomic_ack() {
        ext.atomic_ack = Some(AtomicAckEthRepr {
            original: rng.u64(..),
        });
    }
    let len = match opcode.has_payload() {
        true => [0, 1, 256, 257, rng.usize(..256)][rng.usize(..5)],
        false => 0,
    };
    frame(host, opcode, victim.qpn, psn, ext, len)
}

/// The end of a message that did not begin, to each queue pair of RC: it fails, unless a message is under way or a PSN is missing.
pub(super) fn ends(host: &Host, tenant: &Tenant) -> Vec<Vec<u8>> {
    let of_rc = tenant.victims.iter().filter(|v| v.kind == qp_type::RC);
    let end = |victim: &Victim| {
        let (psn, ext) = (Psn::new(victim.psn), Extensions::default());
        frame(host, Opcode::RcSendLast, victim.qpn, psn, ext, 16)
    };
    of_rc.map(end).collect()
}

/// A request to a queue pair of the owner, sensible or not.
pub(super) fn request(host: &Host, tenant: &mut Tenant, rng: &mut Rng) -> Vec<u8> {
    let region = tenant.region;
    let victim = &mut tenant.victims[rng.usize(..3)];
    let opcode = loop {
        let opcode = Opcode::ALL[rng.usize(..Opcode::ALL.len())];
        if opcode.class() as u8 == victim.kind && opcode.is_request() {
            break opcode;
        }
    };
    let off = rng.u8(..16) == 0;
    let psn = Psn::new(victim.psn.wrapping_add(u32::from(off)) & 0xff_ffff);
    victim.psn = psn.next().value();
    let len = if opcode.has_payload() { 256 } else { 0 };
    let len = if opcode.is_end() {
        rng.usize(..=len)
    } else {
        len
    };
    let va = (region.addr + rng.u64(..region.len)) & !7;
    let rkey = if rng.u8(..8) == 0 {
        rng.u32(..)
    } else {
        region.key
    };
    let ext = Extensions {
        deth: (victim.kind == qp_type::UD).then(|| DethRepr {
            qkey: QpOptions::default().qkey,
            src_qp: 0x99,
        }),
        reth: opcode.has_reth().then(|| RethRepr {
            va,
            rkey,
            dma_len: if rng.u8(..4) == 0 {
                rng.u32(..)
            } else {
                len.max(8) as u32
            },
        }),
        atomic: opcode.has_atomic_eth().then_some(AtomicEthRepr {
            va,
            rkey,
            swap_add: 1,
            compare: 0,
        }),
        imm: opcode.has_imm().then(|| rng.u32(..)),
        ieth: opcode.has_ieth().then_some(rkey),
        ..Extensions::default()
    };
    frame(host, opcode, victim.qpn, psn, ext, len)
}
