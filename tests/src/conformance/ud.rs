//! Unreliable datagram.

use ferroce_proto::abi::cmd::{self, CmdHead};
use ferroce_proto::abi::cq::{opcode, status};
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_proto::abi::regs::feature;
use ferroce_proto::abi::wqe;
use ferroce_proto::wire::ip::GRH_LEN;
use ferroce_proto::wire::{DethRepr, Ip, Mac, Opcode};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, Conn, MTU, Sent};
use super::script::{QKEY, Script, TARGET, build};
use super::{UD, cases, check, check_bytes};

cases! {
    ud_send, UD, "IB1 9.8.3", "A datagram arrives behind the 40 bytes of its IP header; its CQE counts them and names the sender.";
    ud_grh_of_ipv4, UD, "A17.4.5.1", "An IPv4 header stands in the last 20 of the 40 bytes, as received.";
    ud_grh_of_ipv6, UD | feature::IPV6, "A17.4.5.1", "An IPv6 header fills the 40 bytes, as received.";
    ud_immediate, UD, "IB1 9.2", "Immediate data travels with a datagram; its CQE has it.";
    ud_solicited, UD, "IB1 9.2", "The solicited event bit travels with a datagram.";
    ud_scatters, UD, "IB1 10.7", "IP header and payload fill the pieces of the scatter list like one message.";
    ud_deth_is_sent, UD, "IB1 9.3", "The DETH has the Q_Key of the WQE and the number of the sending queue pair.";
    ud_is_not_answered, UD, "IB1 9.8.3", "Nothing is ever answered, AckReq or not.";
    ud_qkey_wrong, UD, "IB1 9.6.1", "A datagram with another Q_Key is dropped and counted; its buffer receives the next.";
    ud_from_anyone, UD, "IB1 9.8.3", "A datagram is taken from any address.";
    ud_any_psn, UD, "IB1 9.8.3", "The PSN of a datagram is not looked at.";
    ud_pkey, UD, "IB1 9.6.1", "The partition is checked, and the P_Key of the packet stands in the CQE.";
    ud_wrong_transport, UD, "IB1 9.6.1", "Packets of connections are dropped by a datagram queue pair.";
    ud_without_a_wqe, UD, "IB1 9.8.3", "A datagram without a receive WQE is dropped; the queue pair goes on.";
    ud_longer_than_the_mtu, UD, "IB1 9.8.3", "A datagram longer than the path MTU is dropped.";
    ud_buffer_too_short, UD, "IB1 9.9.3", "A datagram longer than its buffer, the 40 bytes counted, completes it with a local length error; the queue pair receives the next.";
    ud_send_longer_than_the_mtu, UD, "IB1 9.8.3", "A datagram of more than the path MTU is a local length error; nothing is sent.";
    ud_other_operations, UD, "IB1 9.8.3", "WRITE, READ, atomics and invalidate are no operations of datagrams: a local error.";
    ud_error_stops_the_send_queue, UD, "IB1 10.3.1", "A local error puts the send queue into SQE; the receive queue goes on.";
    ud_loses_a_completion, UD, "IB1 10.2", "A queue pair that only receives, its send queue in RESET, goes to the error state when a completion of it is lost.";
}

pub(super) fn options() -> QpOptions {
    QpOptions {
        qp_type: qp_type::UD,
        qkey: QKEY,
        ..QpOptions::default()
    }
}

/// Two datagram queue pairs; handle 3 of A leads to B.
fn connect(bench: &mut Bench) -> Conn {
    let mut c = bench.connect(options());
    let peer = c.b.peer(c.qb);
    c.a.write_ah(3, &peer, |_| {});
    c
}

fn ud_send(bench: &mut Bench) {
    let mut c = connect(bench);
    let (qa, qb) = (c.qa, c.qb);
    let source = c.a.create_mr(&pattern(MTU, 5), Rights::NONE);
    let target = c.b.create_mr(&[0; MTU + 64], Rights::ALL);
    for len in [0, 1, 2, 3, 4, 24, 25, 63, 64, 1000, MTU] {
        c.b.write(target.addr, &[0xee; MTU + 64]);
        let taken = c.recv(&[target.all()]);
        let work = Work::datagram(&[source.sge(0, len as u32)], 3, qb, QKEY);
        let cqe = c.execute(&work);
        check("send CQE", (cqe.opcode, cqe.recv), (opcode::SEND, false));
        let cqe = c.succeeds(Side::B, taken);
        check(
            "receive CQE",
            (
                cqe.opcode,
                cqe.byte_len as usize,
                cqe.src_qpn,
                cqe.pkey,
                cqe.grh,
            ),
            (opcode::RECV, GRH_LEN + len, qa, 0xffff, true),
        );
        let data = c.b.read(target.addr + GRH_LEN as u64, MTU + 24);
        let what = format!("{len} bytes");
        check_bytes(&what, &data[..len], &pattern(MTU, 5)[..len]);
        check_bytes("behind them", &data[len..], &vec![0xee; MTU + 24 - len]);
    }
    let only = c.opcodes(Side::A).iter().all(|&o| o == Opcode::UdSendOnly);
    check("all SEND Only", only, true);
}

/// The IP header of the only frame of A and the first 40 bytes at B.
fn grh(mut c: Conn, ip_len: usize) {
    let qb = c.qb;
    let peer = c.b.peer(qb);
    c.a.write_ah(3, &peer, |av| {
        (av.tclass, av.hop_limit, av.flow_label) = (0x6a, 0x17, 0x5_4321);
    });
    let target = c.b.create_mr(&[0xee; 64], Rights::ALL);
    let taken = c.recv(&[target.all()]);
    c.execute(&Work::datagram(&[], 3, qb, QKEY).inline(&[7; 8]));
    c.succeeds(Side::B, taken);
    let header = c.sent[0].1[14..14 + ip_len].to_vec();
    let got = c.b.read(target.addr, GRH_LEN);
    check_bytes("the header", &got[GRH_LEN - ip_len..], &header);
    check_bytes(
        "behind it",
        &c.b.read(target.addr + GRH_LEN as u64, 8),
        &[7; 8],
    );
}

fn ud_grh_of_ipv4(bench: &mut Bench) {
    let c = connect(bench);
    grh(c, 20);
}

fn ud_grh_of_ipv6(bench: &mut Bench) {
    let ip = ["2001:db8::7", "2001:db8::8"];
    let ip = ip.map(|ip| ip.parse().expect("an address"));
    let pair = bench.pair(ip);
    grh(Conn::new(pair, options(), options()), 40);
}

fn ud_immediate(bench: &mut Bench) {
    let mut c = connect(bench);
    let qb = c.qb;
    let target = c.b.create_mr(&[0; 64], Rights::ALL);
    for imm in [0, 0xa0b0_c0d0] {
        let taken = c.recv(&[target.all()]);
        c.execute(&Work::datagram(&[], 3, qb, QKEY).inline(&[7; 8]).imm(imm));
        let cqe = c.succeeds(Side::B, taken);
        check(
            "CQE",
            (cqe.with_imm, cqe.imm, cqe.byte_len),
            (true, imm, 48),
        );
    }
}

fn ud_solicited(bench: &mut Bench) {
    let mut c = connect(bench);
    let qb = c.qb;
    let target = c.b.create_mr(&[0; 64], Rights::ALL);
    for solicited in [true, false] {
        let taken = c.recv(&[target.all()]);
        let mut work = Work::datagram(&[], 3, qb, QKEY);
        work.head.solicited = solicited;
        c.execute(&work);
        check("CQE", c.succeeds(Side::B, taken).solicited, solicited);
    }
}

fn ud_scatters(bench: &mut Bench) {
    let mut s = bench.script(options());
    let mr = s.target;
    for (first, second) in [(40, 100), (17, 50), (39, 30), (41, 1)] {
        s.host.write(mr.addr, &[0; TARGET]);
        let list = [mr.sge(0, first), mr.sge(1000, second), mr.sge(3000, 500)];
        s.host.post_recv(s.qpn, &list);
        let frame = build(&s.request(Opcode::UdSendOnly), &pattern(200, 9));
        check("answers", s.give(&frame).len(), 0);
        check("byte_len", s.cqes()[0].byte_len, 240);
        let mut all: Vec<u8> = list
            .iter()
            .flat_map(|sge| s.host.read(sge.addr, sge.length as usize))
            .collect();
        all.truncate(240);
        check_bytes("the IP header", &all[20..40], &frame[14..34]);
        check_bytes("the payload", &all[40..], &pattern(200, 9));
    }
}

fn ud_deth_is_sent(bench: &mut Bench) {
    let mut s = bench.script(options());
    let peer = s.peer;
    s.host.write_ah(3, &peer, |_| {});
    for qkey in [0, 0x1234_5678, u32::MAX] {
        let sent = s.post(&Work::datagram(&[], 3, 0x12_3456, qkey));
        let expected = DethRepr {
            qkey,
            src_qp: s.qpn,
        };
        check("DETH", sent[0].headers.ext.deth, Some(expected));
        check("destination", sent[0].headers.bth.dest_qp, 0x12_3456);
    }
    let psns: Vec<_> = (0..2)
        .map(|_| s.post(&Work::datagram(&[], 3, 5, QKEY))[0].psn())
        .collect();
    check("PSNs follow each other", psns[1], psns[0] + 1);
}

/// A datagram of 8 bytes with headers changed by `change`; how many completions it brings.
pub(super) fn give(
    s: &mut Script,
    change: impl FnOnce(&mut ferroce_proto::wire::Headers),
) -> usize {
    let mut request = s.request(Opcode::UdSendOnly);
    change(&mut request);
    check("answers", s.send(&request, &[7; 8]).len(), 0);
    s.cqes().len()
}

fn ud_is_not_answered(bench: &mut Bench) {
    let mut s = bench.script(options());
    s.recv();
    check("received", give(&mut s, |h| h.bth.ack_req = true), 1);
    check("without a WQE", give(&mut s, |h| h.bth.ack_req = true), 0);
}

fn ud_qkey_wrong(bench: &mut Bench) {
    let mut s = bench.script(options());
    s.recv();
    for wrong in [0, QKEY + 1, QKEY ^ 0x8000_0000] {
        let received = s.counts("rx_qkey_violations", 1, |s| {
            give(s, |h| {
                h.ext.deth = Some(DethRepr {
                    qkey: wrong,
                    src_qp: 1,
                });
            })
        });
        check("received", received, 0);
    }
    check_bytes("the buffer", &s.contents(), &[0; TARGET]);
    check("received", give(&mut s, |_| {}), 1);
}

fn ud_from_anyone(bench: &mut Bench) {
    let mut s = bench.script(options());
    s.recv();
    let received = give(&mut s, |h| {
        if let Ip::V4(ip) = &mut h.ip {
            ip.src = std::net::Ipv4Addr::new(172, 16, 9, 9);
        }
        h.eth.src = Mac([2, 0, 0, 0, 9, 9]);
    });
    check("received", received, 1);
}

fn ud_any_psn(bench: &mut Bench) {
    let mut s = bench.script(options());
    for psn in [0, 5, 5, 0xff_ffff, 0x80_0000, 6] {
        s.recv();
        let psn = ferroce_proto::wire::Psn::new(psn);
        check("received", give(&mut s, |h| h.bth.psn = psn), 1);
    }
}

fn ud_pkey(bench: &mut Bench) {
    let mut s = bench.script(options());
    s.recv();
    for pkey in [0x8000, 0x7ffe] {
        let received = s.counts("rx_pkey_violations", 1, |s| give(s, |h| h.bth.pkey = pkey));
        check("received", received, 0);
    }
    let mut request = s.request(Opcode::UdSendOnly);
    request.bth.pkey = 0x7fff;
    s.send(&request, &[7; 8]);
    let keys: Vec<_> = s.cqes().iter().map(|cqe| cqe.pkey).collect();
    check("P_Key in the CQE", keys, vec![0x7fff]);
}

fn ud_wrong_transport(bench: &mut Bench) {
    let mut s = bench.script(options());
    s.recv();
    for opcode in [Opcode::RcSendOnly, Opcode::UcSendOnly, Opcode::RcWriteOnly] {
        let request = s.request(opcode);
        let answers = s.counts("rx_wrong_transport", 1, |s| s.send(&request, &[1; 8]));
        check("answers", answers.len(), 0);
    }
    check("completions", s.results(), vec![]);
    check_bytes("the buffer", &s.contents(), &[0; TARGET]);
}

fn ud_without_a_wqe(bench: &mut Bench) {
    let mut s = bench.script(options());
    check("received", give(&mut s, |_| {}), 0);
    check("state", s.host.query(s.qpn).rq_state, state::RTS);
    s.recv();
    check("received", give(&mut s, |_| {}), 1);
}

fn ud_longer_than_the_mtu(bench: &mut Bench) {
    let mut s = bench.script(options());
    s.recv();
    for len in [MTU + 1, 4096] {
        let request = s.request(Opcode::UdSendOnly);
        check("answers", s.send(&request, &pattern(len, 1)).len(), 0);
        check("completions", s.results(), vec![]);
    }
    check("received", give(&mut s, |_| {}), 1);
}

fn ud_buffer_too_short(bench: &mut Bench) {
    for room in [8, 39, 40, 47] {
        let mut s = bench.script(options());
        let mr = s.target;
        s.host.post_recv(s.qpn, &[mr.sge(0, room)]);
        s.host.post_recv(s.qpn, &[mr.sge(0, 48)]);
        let request = s.request(Opcode::UdSendOnly);
        let answers = s.counts("invalid_request_errors", 1, |s| s.send(&request, &[7; 8]));
        check("answers", answers.len(), 0);
        check("completions", s.results(), vec![(0, status::LOC_LEN_ERR)]);
        let past = &s.contents()[room as usize..];
        check_bytes("behind the buffer", past, &vec![0; past.len()]);
        check("state", s.host.query(s.qpn).rq_state, state::RTS);
        s.send(&request, &[8; 8]);
        check("the next", s.results(), vec![(1, status::SUCCESS)]);
        check_bytes("its data", &s.contents()[GRH_LEN..48], &[8; 8]);
    }
}

/// What a work request at a datagram queue pair ends with; nothing may be sent for it. Address handle 0 is good.
fn refused(s: &mut Script, work: &Work) -> u8 {
    let peer = s.peer;
    s.host.write_ah(0, &peer, |_| {});
    s.reopen(|_| {});
    check("sent", s.post(work).len(), 0);
    let results = s.results();
    check("completions", results.len(), 1);
    results[0].1
}

fn ud_send_longer_than_the_mtu(bench: &mut Bench) {
    let mut s = bench.script(options());
    let mr = s.target;
    for len in [MTU as u32 + 1, 4096] {
        let work = Work::datagram(&[mr.sge(0, len)], 0, 5, QKEY);
        check("status", refused(&mut s, &work), status::LOC_LEN_ERR);
    }
}

fn ud_other_operations(bench: &mut Bench) {
    let mut s = bench.script(options());
    for opcode in [
        wqe::opcode::WRITE,
        wqe::opcode::WRITE_IMM,
        wqe::opcode::READ,
        wqe::opcode::SEND_INV,
        wqe::opcode::FETCH_ADD,
    ] {
        let status = refused(&mut s, &Work::new(opcode, &[]));
        check(
            &format!("operation {opcode}"),
            status,
            status::LOC_QP_OP_ERR,
        );
    }
}

fn ud_error_stops_the_send_queue(bench: &mut Bench) {
    let mut s = bench.script(options());
    refused(&mut s, &Work::new(wqe::opcode::WRITE, &[]));
    let query = s.host.query(s.qpn);
    let expected = (state::SQE, state::RTS);
    check("states", (query.sq_state, query.rq_state), expected);
    s.recv();
    check("received", give(&mut s, |_| {}), 1);
    s.host.modify_state(s.qpn, state::RTS);
    let sent: Vec<_> = s
        .post(&Work::datagram(&[], 0, 5, QKEY))
        .iter()
        .map(Sent::opcode)
        .collect();
    check("sent again", sent, vec![Opcode::UdSendOnly]);
}

fn ud_loses_a_completion(bench: &mut Bench) {
    let mut s = bench.script(options());
    let small = s.host.create_cq(1);
    s.reopen(|contexts| contexts.rq.cqn = small);
    let head = CmdHead {
        opcode: cmd::opcode::MODIFY_QP,
        index: s.qpn,
        qp_sq_state: true,
        sq_reset: true,
        sq_state: state::RESET,
        ..CmdHead::default()
    };
    check("RESET", s.host.command(head, &[]).status, cmd::status::OK);
    for expected in [state::RTS, state::RTS, state::ERR] {
        s.recv();
        give(&mut s, |_| {});
        check("state", s.host.query(s.qpn).rq_state, expected);
    }
}
