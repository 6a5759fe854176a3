//! Datagrams to groups. The card has none (IB1 10.5.2: optional), and is as a station that has joined none: soft-RoCE
//! (`rxe_rcv_mcast_pkt`) drops a datagram of a group that no queue pair has joined.

use std::net::IpAddr;

use ferroce_proto::abi::regs::feature;
use ferroce_proto::wire::{Headers, Ip, Mac, Opcode};
use ferroce_sim::testhost::ExceptionQueue;

use super::bench::Bench;
use super::script::{TARGET, build};
use super::{UD, cases, check, check_bytes, ud};

cases! {
    ud_to_a_group, UD, "IB1 10.5.2", "A datagram to queue pair 0xffffff is for a group: it is dropped and counted, and takes no buffer.";
    ud_to_a_group_address, UD | feature::IPV6 | feature::EXCEPTION, "IB1 10.5.2", "A datagram to the address of a group is dropped and counted, whatever its queue pair: it takes no buffer and is not the host's. UDP of another port to that group is.";
}

fn ud_to_a_group(bench: &mut Bench) {
    let mut s = bench.script(ud::options());
    s.recv();
    let received = s.counts("rx_unknown_qp", 1, |s| {
        ud::give(s, |h| h.bth.dest_qp = 0xff_ffff)
    });
    check("received", received, 0);
    check_bytes("the buffer", &s.contents(), &[0; TARGET]);
    check("received", ud::give(&mut s, |_| {}), 1);
}

/// Addresses of groups, and of a sender.
const GROUPS: [(Mac, &str, &str); 2] = [
    (Mac([1, 0, 0x5e, 1, 2, 3]), "239.1.2.3", "10.0.0.1"),
    (Mac([0x33, 0x33, 0, 0, 2, 3]), "ff0e::203", "fe80::1"),
];

/// Sends a packet to a group instead.
fn address(headers: &mut Headers, (mac, group, from): (Mac, &str, &str)) {
    let gid = |ip: &str| ip.parse::<IpAddr>().expect("an address").into();
    headers.eth.dst = mac;
    headers.ip = Ip::between(gid(from), gid(group), 0, 0, 1).expect("of one kind");
}

fn ud_to_a_group_address(bench: &mut Bench) {
    let mut s = bench.script(ud::options());
    ExceptionQueue::open(&mut s.host, 2, false);
    s.recv();
    let own = s.qpn;
    for (count, group) in (1..).zip(GROUPS) {
        for qpn in [0xff_ffff, own] {
            let received = s.counts("rx_wrong_address", 1, |s| {
                ud::give(s, |h| {
                    address(h, group);
                    h.bth.dest_qp = qpn;
                })
            });
            check(&format!("received of {group:?}"), received, 0);
        }
        check(
            "handed to the host",
            s.host.stat("rx_exceptions"),
            count - 1,
        );
        let mut request = s.request(Opcode::UdSendOnly);
        address(&mut request, group);
        let mut frame = build(&request, &[7; 8]);
        let port = 14 + request.ip.header_len() + 2;
        frame[port..][..2].copy_from_slice(&5353_u16.to_be_bytes());
        s.give(&frame);
        check("handed to the host", s.host.stat("rx_exceptions"), count);
    }
    check_bytes("the buffer", &s.contents(), &[0; TARGET]);
    check("received", ud::give(&mut s, |_| {}), 1);
}
