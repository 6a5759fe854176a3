//! Address handles.

use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::regs::{self, Params3};
use ferroce_proto::wire::ip::GRH_LEN;
use ferroce_proto::wire::{Ip, Mac};
use ferroce_sim::testhost::{PD, QpOptions, Rights, Side, Work};

use super::bench::{Bench, Conn, IP};
use super::script::QKEY;
use super::ud::options;
use super::{UD, cases, check, check_bytes};

cases! {
    ud_address_handle, UD, "A17.9", "Addresses, hop limit, traffic class, port and tag of a datagram are those of its address handle.";
    ud_address_handle_unknown, UD, "abi wqe", "An address handle beyond the table is a local operation error.";
    ud_address_handle_of_another_domain, UD, "IB1 10.2.3", "An address handle of another protection domain than the queue pair's is a local operation error; nothing is sent. By one of its own it sends again.";
    ud_address_handle_of_before_reset, UD, "abi regs", "A reset of the card takes all address handles away: the next owner cannot name one.";
    ud_several_destinations, UD, "IB1 9.8.3", "A queue pair sends to any number of others; each WQE names its own.";
}

fn ud_address_handle(bench: &mut Bench) {
    let mut s = bench.script(options());
    let peer = s.peer;
    for (ah, last) in [(0, 1), (7, 9)] {
        s.host.write_ah(ah, &peer, |av| {
            av.dmac = Mac([2, 4, 6, 8, 10, last]).to_le_bits();
            let ip = std::net::Ipv4Addr::new(192, 168, 0, last);
            av.dgid = ferroce_proto::wire::Gid::from(ip).to_le_bits();
            (av.tclass, av.hop_limit, av.udp_sport) = (0x10 + last, 0x20 + last, 0xd000);
            (av.vlan_valid, av.vlan, av.pkey) = (true, 0x0100 + u16::from(last), 0xffff);
        });
    }
    for (ah, last) in [(0, 1), (7, 9), (0, 1)] {
        let headers = s.post(&Work::datagram(&[], ah, 5, QKEY))[0].headers;
        let Ip::V4(ip) = headers.ip else {
            panic!("expected IPv4, got IPv6")
        };
        check(
            "MAC, IP, tag",
            (headers.eth.dst, ip.dst.octets(), headers.eth.vlan),
            (
                Mac([2, 4, 6, 8, 10, last]),
                [192, 168, 0, last],
                Some(0x0100 + u16::from(last)),
            ),
        );
        check(
            "TOS, TTL, port",
            (ip.tos, ip.ttl, headers.udp.src_port),
            (0x10 + last, 0x20 + last, 0xd000),
        );
    }
}

fn ud_address_handle_unknown(bench: &mut Bench) {
    let mut s = bench.script(options());
    let params = s.host.read32(regs::PARAMS3).to_le_bytes();
    for ah in [1 << Params3::parse(&params).log_ah, u32::MAX] {
        s.reopen(|_| {});
        check("sent", s.post(&Work::datagram(&[], ah, 5, QKEY)).len(), 0);
        check("completions", s.results(), vec![(0, status::LOC_QP_OP_ERR)]);
    }
}

/// As soft-RoCE has it (`rxe_get_av`).
fn ud_address_handle_of_another_domain(bench: &mut Bench) {
    let mut s = bench.script(options());
    let peer = s.peer;
    for (pd, sent) in [(PD + 1, 0), (PD, 1), (PD | 1 << 23, 0), (0, 0), (PD, 1)] {
        s.reopen(|_| {});
        s.host.write_ah(3, &peer, |av| av.pd = pd);
        let work = Work::datagram(&[], 3, 5, QKEY);
        check("sent", s.post(&work).len(), sent);
        let status = [status::LOC_QP_OP_ERR, status::SUCCESS][sent];
        check("completions", s.results(), vec![(0, status)]);
    }
}

fn ud_address_handle_of_before_reset(bench: &mut Bench) {
    let mut c = bench.connect(options());
    let peer = c.b.peer(c.qb);
    for (written, result) in [(true, status::SUCCESS), (false, status::LOC_QP_OP_ERR)] {
        if written {
            c.a.write_ah(3, &peer, |_| {});
        }
        c.post(&Work::datagram(&[], 3, 5, QKEY));
        check("status", c.wait(Side::A).status, result);
        c.a.restart();
        c.a.create_cq(6);
        c.qa = c.a.create_qp(options());
        let qpn = c.qa;
        c.a.connect(qpn, &peer);
    }
}

fn ud_several_destinations(bench: &mut Bench) {
    let mut c = Conn::new(bench.pair(IP), options(), options());
    let other = c.b.create_qp(QpOptions {
        qkey: QKEY + 1,
        ..options()
    });
    let (first, peer) = (c.b.peer(c.qb), c.a.peer(c.qa));
    c.b.connect(other, &peer);
    c.a.write_ah(1, &first, |_| {});
    let target = c.b.create_mr(&[0; 256], Rights::ALL);
    let (qa, qb) = (c.qa, c.qb);
    for i in 0..4u8 {
        let (to, qkey) = [(qb, QKEY), (other, QKEY + 1)][usize::from(i % 2)];
        c.b.post_recv(to, &[target.all()]);
        c.execute(&Work::datagram(&[], 1, to, qkey).inline(&[i; 4]));
        let cqe = c.wait(Side::B);
        check("CQE", (cqe.qpn, cqe.src_qpn, cqe.status), (to, qa, 0));
        let data = c.b.read(target.addr + GRH_LEN as u64, 4);
        check_bytes("data", &data, &[i; 4]);
    }
}
