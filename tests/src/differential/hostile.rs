//! Frames and commands of an attacker.

use ferroce_proto::abi::cmd::{CmdHead, GidEntry, opcode};
use ferroce_proto::abi::cq::CqCtx;
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::{RqCtx, SqCtx, state};
use ferroce_proto::abi::regs::Params;
use ferroce_proto::wire::{
    AethRepr, BthRepr, DethRepr, Extensions, Headers, Ip, Mac, Opcode, Psn, RethRepr, Syndrome, psn,
};
use ferroce_sim::packet;
use ferroce_sim::testhost::{Host, PD, Side, pattern};

use super::bench::{Bench, other};
use super::scenario::{Command, Connection, Forgery, Noise, Spoil, region};

/// Immediate data of forged packets.
const IMM: u32 = 0xf04e_d000;

/// Headers of a packet to `side` as its peer sends them.
fn headers(bench: &Bench, connection: usize, side: Side, opcode: Opcode, psn: u32) -> Headers {
    let link = &bench.links[connection];
    let (to, from) = (
        &bench.hosts[side as usize],
        &bench.hosts[other(side) as usize],
    );
    let target = link.regions[side as usize][region::TARGET];
    let qpn = link.qpn[side as usize];
    let plain = packet::headers(
        (from.mac, from.gid),
        (to.mac, to.gid),
        qpn,
        opcode,
        Psn::new(psn),
    );
    Headers {
        bth: BthRepr {
            ack_req: true,
            pkey: bench.numbers.paths[connection].pkey,
            ..plain.bth
        },
        ext: Extensions {
            reth: opcode.has_reth().then_some(RethRepr {
                va: target.addr,
                rkey: target.key,
                dma_len: 0,
            }),
            aeth: opcode.has_aeth().then_some(AethRepr {
                syndrome: Syndrome::ACK,
                msn: 1,
            }),
            imm: opcode.has_imm().then_some(IMM),
            ieth: opcode.has_ieth().then_some(target.key),
            deth: opcode.has_deth().then_some(DethRepr { qkey: 1, src_qp: 2 }),
            ..plain.ext
        },
        ..plain
    }
}

/// A frame to be dropped.
pub(super) fn noise(bench: &Bench, side: Side, noise: &Noise) -> Vec<u8> {
    let (connection, mut opcode, len, spoil) = match noise {
        Noise::Bytes(bytes) => return bytes.clone(),
        Noise::Spoilt {
            connection,
            opcode,
            len,
            spoil,
        } => (*connection, *opcode, usize::from(*len), *spoil),
    };
    match spoil {
        Spoil::Transport(other) => opcode = other,
        Spoil::Cnp => opcode = Opcode::Cnp,
        _ => {}
    }
    let payload = pattern(if opcode.has_payload() { len } else { 0 }, 0x5a);
    let mut headers = headers(bench, connection, side, opcode, 0);
    match spoil {
        Spoil::UnknownQp(qpn) => headers.bth.dest_qp = qpn,
        Spoil::Pkey => headers.bth.pkey ^= 1,
        Spoil::Source => headers.ip = readdress(&headers.ip, true),
        Spoil::Destination => headers.ip = readdress(&headers.ip, false),
        Spoil::Mac => headers.eth.dst = Mac([0x52, 0x54, 0, 0, 0, 0x77]),
        _ => {}
    }
    let mut frame = packet::frame(&headers, &payload);
    match spoil {
        Spoil::Icrc(bit) => {
            let end = frame.len();
            frame[end - 4 + usize::from(bit / 8)] ^= 1 << (bit % 8);
        }
        Spoil::Truncated(share) => {
            frame.truncate((frame.len() * usize::from(share) / 256).max(14));
        }
        // The destination port stands behind Ethernet 14, IPv4 20 and the source port 2.
        Spoil::Port => frame[37] ^= 1,
        _ => {}
    }
    frame
}

fn readdress(ip: &Ip, source: bool) -> Ip {
    let mut ip = *ip;
    // Others than those of the hosts: no station's address begins with 0.
    match &mut ip {
        Ip::V4(header) if source => header.src = [0, 0, 0, 99].into(),
        Ip::V4(header) => header.dst = [0, 0, 0, 99].into(),
        Ip::V6(header) if source => header.src = 99.into(),
        Ip::V6(header) => header.dst = 99.into(),
    }
    ip
}

/// A packet from the peer's address. `expected` is the PSN that the queue pair expects, `oldest` the oldest it waits for an
/// acknowledgement of; nothing is under way.
pub(super) fn forgery(
    bench: &Bench,
    (connection, side): (usize, Side),
    c: &Connection,
    forgery: Forgery,
    (expected, oldest): (u32, u32),
) -> Vec<u8> {
    let mtu = c.mtu.bytes();
    let request = |opcode, psn| headers(bench, connection, side, opcode, psn);
    let ack = |psn, bits| {
        let mut ack = request(Opcode::RcAck, psn);
        ack.ext.aeth = Some(AethRepr {
            syndrome: Syndrome::from_bits(bits),
            msn: 3,
        });
        ack
    };
    let with_len = |mut headers: Headers, dma_len: usize| {
        if let Some(reth) = &mut headers.ext.reth {
            reth.dma_len = dma_len as u32;
        }
        headers
    };
    let (headers, len) = match forgery {
        Forgery::Ahead(by) => (
            request(Opcode::RcSendOnly, expected.wrapping_add(by.into())),
            5,
        ),
        Forgery::Behind(by) => {
            let psn = sent_plain(
                bench,
                connection,
                other(side),
                expected.wrapping_sub(by.into()),
            );
            (request(Opcode::RcSendOnly, psn), 5)
        }
        Forgery::GhostAck(syndrome) => (ack(oldest.wrapping_add(7), syndrome), 0),
        Forgery::OldAck(by, syndrome) => (ack(oldest.wrapping_sub(by.into()), syndrome), 0),
        Forgery::OutOfOrder(opcode) => (request(opcode, expected), mtu),
        Forgery::Oversized => (
            with_len(request(Opcode::RcWriteOnly, expected), mtu + 1),
            mtu + 1,
        ),
        Forgery::Undersized => (
            with_len(request(Opcode::RcWriteFirst, expected), mtu + 9),
            mtu - 4,
        ),
        Forgery::WrongLength(by) => (
            with_len(request(Opcode::RcWriteOnly, expected), 8 + usize::from(by)),
            8,
        ),
        Forgery::BadKey => {
            let mut headers = with_len(request(Opcode::RcWriteOnly, expected), 8);
            let foreign = bench.links[connection].regions[side as usize][region::FOREIGN];
            if let Some(reth) = &mut headers.ext.reth {
                (reth.va, reth.rkey) = (foreign.addr, foreign.key);
            }
            (headers, 8)
        }
        Forgery::Unsupported(opcode) => (with_len(request(opcode, expected), 8), 0),
    };
    packet::frame(&headers, &pattern(len, 0xa5))
}

/// This PSN, or the latest before it that no READ or atomic took: no peer repeats one as a SEND.
fn sent_plain(bench: &Bench, connection: usize, from: Side, psn: u32) -> u32 {
    let (flows, _) = bench.tap.borrow().flows(&bench.links);
    let of = |(c, _, side): &(usize, u32, usize)| (*c, *side) == (connection, from as usize);
    let latest = flows.iter().rfind(|(key, _)| of(key));
    let taken = |psn: u32| latest.is_some_and(|(_, flow)| flow.is_answered(Psn::new(psn)));
    let mut back = (0..=psn::MASK).map(|by| psn.wrapping_sub(by) & psn::MASK);
    back.find(|&psn| !taken(psn))
        .expect("most PSNs were not sent")
}

/// Gives a command that must be refused; answers its status.
pub(super) fn command(host: &mut Host, params: &Params, command: Command) -> u8 {
    // A queue pair that no scenario uses.
    let idle = (1 << params.log_qp) - 1;
    let head = |opcode, index| CmdHead {
        opcode,
        index,
        ..CmdHead::default()
    };
    let cq = CqCtx {
        log_size: 4,
        ..CqCtx::default()
    };
    let mr = MrCtx {
        base: 0x1000,
        last: 0x1fff,
        key: 0x1_0100,
        pd: PD,
        valid: true,
        ..MrCtx::default()
    };
    let sq = SqCtx {
        mtu: 3,
        sq_log: 2,
        ..SqCtx::default()
    };
    let modify = CmdHead {
        qp_sq: true,
        ..head(opcode::MODIFY_QP, idle)
    };
    let open = CmdHead {
        qp_sq_state: true,
        sq_reset: true,
        sq_state: state::RTS,
        ..head(opcode::MODIFY_QP, idle)
    };
    let blank = [0; 64];
    let (head, image) = match command {
        Command::Opcode(opcode) => (head(opcode, 0), blank),
        Command::ModifyIndex => (
            CmdHead {
                index: idle + 1,
                ..modify
            },
            sq.emit(),
        ),
        Command::QueryIndex => (head(opcode::QUERY_QP, idle + 1), blank),
        Command::CqIndex => (head(opcode::CREATE_CQ, 1 << params.log_cq), cq.emit()),
        Command::MrIndex => (head(opcode::WRITE_MR, 1 << params.log_mr), mr.emit()),
        Command::GidIndex => (
            head(opcode::SET_GID, 1 << params.log_gid),
            GidEntry::default().emit(),
        ),
        Command::CqSize(log_size) => (head(opcode::CREATE_CQ, 3), CqCtx { log_size, ..cq }.emit()),
        Command::CqAlignment(by) => (
            head(opcode::CREATE_CQ, 3),
            CqCtx {
                base: by.into(),
                ..cq
            }
            .emit(),
        ),
        Command::CqRecord(by) => (
            head(opcode::CREATE_CQ, 3),
            CqCtx {
                consumer: by.into(),
                ..cq
            }
            .emit(),
        ),
        Command::MrKey => (head(opcode::WRITE_MR, 60), mr.emit()),
        Command::MrBounds => (
            head(opcode::WRITE_MR, 60),
            MrCtx {
                key: 60 << 8,
                last: mr.base - 1,
                ..mr
            }
            .emit(),
        ),
        Command::State(sq_state) => (CmdHead { sq_state, ..open }, blank),
        Command::NoContext => (open, blank),
        Command::Mtu(mtu) => (modify, SqCtx { mtu, ..sq }.emit()),
        Command::SqAlignment(by) => (
            modify,
            SqCtx {
                sq_base: by.into(),
                ..sq
            }
            .emit(),
        ),
        Command::Pool => (
            modify,
            SqCtx {
                ot_base: 1 << params.log_outstanding,
                ..sq
            }
            .emit(),
        ),
    };
    host.command(head, &[image, [0; 64], RqCtx::default().emit()])
        .status
}
