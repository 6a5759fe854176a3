//! Partitions, MAC and IP addresses, GID table, VLAN, queue pair numbers. What does not fit is dropped silently.

use ferroce_proto::abi::cmd::{GidEntry, opcode};
use ferroce_proto::abi::regs::{self, feature};
use ferroce_proto::wire::{Gid, Headers, Ip, Mac, Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, Conn, MTU};
use super::script::{QKEY, Script, syndromes};
use super::{RC, UD, cases, check, check_bytes, ud};

/// IPv6 on top of RC.
const V6: u32 = RC | feature::IPV6;
/// VLAN tags on top of RC.
const VLAN: u32 = RC | feature::VLAN;

cases! {
    pkey_full_and_full, RC, "IB1 10.9", "Two full members of a partition talk.";
    pkey_full_and_limited, RC, "IB1 10.9", "A full and a limited member of a partition talk, whichever of the two is which.";
    pkey_limited_and_limited, RC, "IB1 10.9", "Two limited members do not hear each other.";
    pkey_of_another_partition, RC, "IB1 9.6.1", "A packet of another partition is dropped and counted.";
    pkey_is_sent, RC, "IB1 9.2", "The P_Key of the queue pair stands in requests and acknowledgements.";
    pkey_of_a_datagram, UD, "IB1 10.9", "The P_Key of a datagram is that of its address handle.";
    mac_of_another_port, RC, "IEEE 802.3 3.2", "A frame to another MAC address is not for this port.";
    mac_of_a_group, RC, "IEEE 802.3 3.2", "A frame to a group address is taken; its IP address decides.";
    ip_destination_unknown, RC, "A17.9", "A packet to an IP address that is not in the GID table is dropped.";
    ip_destination_of_another_entry, RC, "A17.9", "A packet to an entry of the GID table that is not the queue pair's is dropped.";
    ip_source_of_another_peer, RC, "A17.9", "A packet from another address than the peer's is dropped.";
    gid_entry_other_than_0, RC, "A17.9", "A queue pair may use any entry of the GID table; its packets come from there.";
    gid_entry_removed, RC, "A17.9", "A GID that was taken out of the table is no address of this port any more.";
    gid_entry_twice, RC, "abi cmd", "Of two equal entries of the GID table the lower one is the address of a packet.";
    ipv6_connection, V6, "A17 CA17-1", "SEND, WRITE and acknowledgements travel over IPv6.";
    ipv6_header, V6, "A17.3", "The IPv6 header carries traffic class, flow label and hop limit of the address vector.";
    ipv4_header, RC, "A17 CA17-3 to CA17-8", "The IPv4 header has no options, is not to be fragmented and has the lengths and TTL it should have.";
    udp_header, RC, "A17.3.2", "UDP goes to port 4791 from the port of the address vector, with checksum 0.";
    vlan_is_sent, VLAN, "IEEE 802.1Q 9", "The tag of the address vector stands in every frame.";
    vlan_is_taken, VLAN, "IEEE 802.1Q 9", "A tagged frame is taken like one without, if the queue pair is not told to look at it.";
    vlan_of_another, VLAN, "abi qpc", "A connection takes frames of its own VLAN alone: whatever their priority, and untagged ones if it has none. The rest is dropped silently, responses too.";
    qp_0_hears_nothing, RC, "A17 CA17-33", "Queue pair 0 does not exist on a RoCEv2 port.";
    qp_unknown, RC, "IB1 9.6.1", "A packet to a queue pair that does not exist is dropped and counted.";
    qp_number_outside_the_table, RC, "IB1 9.6.1", "All 24 bits of the number count: none beyond the table falls on one within.";
    wrong_transport, RC, "IB1 9.6.1", "A packet of another transport than the queue pair's is dropped.";
    variant_fields, RC, "A17 CA17-22", "TTL, DSCP, ECN and the reserved byte of the BTH may change on the way; other reserved bits are ignored.";
}

/// A WRITE from the script with headers changed by `spoil` is dropped and counted under `counter`.
fn dropped(s: &mut Script, counter: &str, spoil: impl FnOnce(&mut Headers)) {
    let mut request = s.request(Opcode::RcWriteOnly);
    spoil(&mut request);
    let answers = s.counts(counter, 1, |s| s.send(&request, &[1; 8]));
    check("answers", answers.len(), 0);
    s.untouched("after a packet that is to be dropped");
}

/// A WRITE from the script with headers changed by `change` is executed.
fn taken(s: &mut Script, change: impl FnOnce(&mut Headers)) {
    let mut request = s.request(Opcode::RcWriteOnly);
    change(&mut request);
    let answers = s.next(&request, &[1; 8]);
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    check_bytes("the target", &s.contents()[..8], &[1; 8]);
    s.host.write(s.target.addr, &[0; 8]);
}

fn pkeys(bench: &mut Bench, own: u16, accepted: &[u16], dropped_keys: &[u16]) {
    let mut s = bench.script(QpOptions::default());
    s.reopen(|contexts| contexts.rq.pkey = own);
    for &pkey in accepted {
        taken(&mut s, |h| h.bth.pkey = pkey);
    }
    for &pkey in dropped_keys {
        dropped(&mut s, "rx_pkey_violations", |h| h.bth.pkey = pkey);
    }
}

fn pkey_full_and_full(bench: &mut Bench) {
    pkeys(bench, 0xffff, &[0xffff], &[]);
    pkeys(bench, 0x8123, &[0x8123], &[]);
}

fn pkey_full_and_limited(bench: &mut Bench) {
    pkeys(bench, 0xffff, &[0x7fff], &[]);
    pkeys(bench, 0x7fff, &[0xffff], &[]);
}

fn pkey_limited_and_limited(bench: &mut Bench) {
    pkeys(bench, 0x7fff, &[], &[0x7fff]);
    pkeys(bench, 0x0123, &[], &[0x0123]);
}

fn pkey_of_another_partition(bench: &mut Bench) {
    pkeys(bench, 0xffff, &[], &[0x8000, 0x7ffe, 0xfffe, 0xbfff, 0]);
}

fn pkey_is_sent(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    s.reopen(|contexts| (contexts.av.pkey, contexts.rq.pkey) = (0x9234, 0x9234));
    let mut request = s.request(Opcode::RcWriteOnly);
    request.bth.pkey = 0x9234;
    let mut sent = s.next(&request, &[1; 8]);
    sent.extend(s.post(&Work::send(&[])));
    let keys: Vec<_> = sent.iter().map(|p| p.headers.bth.pkey).collect();
    check("P_Keys of an ACK and a SEND", keys, vec![0x9234; 2]);
}

fn pkey_of_a_datagram(bench: &mut Bench) {
    let mut s = bench.script(ud::options());
    let (peer, keys) = (s.peer, [0x9234, 0x7fff]);
    for (ah, pkey) in (0..).zip(keys) {
        s.host.write_ah(ah, &peer, |av| av.pkey = pkey);
    }
    for (ah, pkey) in [(0, keys[0]), (1, keys[1]), (0, keys[0])] {
        let sent = s.post(&Work::datagram(&[], ah, 5, QKEY));
        check("P_Key", sent[0].headers.bth.pkey, pkey);
    }
}

fn mac_of_another_port(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for i in 0..6 {
        dropped(&mut s, "rx_wrong_address", |h| h.eth.dst.0[i] ^= 2);
    }
}

fn mac_of_a_group(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    taken(&mut s, |h| h.eth.dst = Mac([0x33, 0x33, 0, 0, 0, 1]));
    taken(&mut s, |h| h.eth.dst = Mac([0xff; 6]));
}

/// Changes a byte of an IPv4 address.
fn change(headers: &mut Headers, source: bool, byte: usize) {
    let Ip::V4(ip) = &mut headers.ip else {
        panic!("the script is at an IPv4 address")
    };
    let address = if source { &mut ip.src } else { &mut ip.dst };
    let mut octets = address.octets();
    octets[byte] ^= 4;
    *address = octets.into();
}

fn ip_destination_unknown(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for byte in 0..4 {
        dropped(&mut s, "rx_wrong_address", |h| change(h, false, byte));
    }
}

fn ip_source_of_another_peer(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for byte in 0..4 {
        dropped(&mut s, "rx_wrong_address", |h| change(h, true, byte));
    }
}

/// Entry 3 of the GID table becomes 10.0.0.6, the destination that `change` makes of 10.0.0.2.
fn second_gid(s: &mut Script) -> Gid {
    let gid: Gid = std::net::Ipv4Addr::new(10, 0, 0, 6).into();
    let entry = GidEntry {
        gid: gid.to_le_bits(),
        valid: true,
        ipv6: false,
    };
    s.host.expect(opcode::SET_GID, 3, &entry.emit());
    gid
}

fn ip_destination_of_another_entry(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    second_gid(&mut s);
    dropped(&mut s, "rx_wrong_address", |h| change(h, false, 3));
    taken(&mut s, |_| {});
}

fn gid_entry_other_than_0(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let gid = second_gid(&mut s);
    s.reopen(|contexts| (contexts.av.sgid_index, contexts.rq.sgid_index) = (3, 3));
    dropped(&mut s, "rx_wrong_address", |_| {});
    taken(&mut s, |h| change(h, false, 3));
    let sent = s.post(&Work::send(&[]));
    check("source address", sent[0].headers.ip.src_gid(), gid);
}

fn gid_entry_removed(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    taken(&mut s, |_| {});
    s.host
        .expect(opcode::SET_GID, 0, &GidEntry::default().emit());
    dropped(&mut s, "rx_wrong_address", |_| {});
}

fn gid_entry_twice(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let gid = second_gid(&mut s);
    let entry = GidEntry {
        gid: gid.to_le_bits(),
        valid: true,
        ipv6: false,
    };
    s.reopen(|contexts| (contexts.av.sgid_index, contexts.rq.sgid_index) = (3, 3));
    s.host.expect(opcode::SET_GID, 5, &entry.emit());
    taken(&mut s, |h| change(h, false, 3));
    s.host.expect(opcode::SET_GID, 1, &entry.emit());
    dropped(&mut s, "rx_wrong_address", |h| change(h, false, 3));
    s.host
        .expect(opcode::SET_GID, 1, &GidEntry::default().emit());
    taken(&mut s, |h| change(h, false, 3));
}

/// Two hosts with link-local IPv6 addresses.
pub(super) fn over_ipv6(bench: &mut Bench) -> Conn {
    let ip = ["fe80::5054:ff:fe00:1", "fe80::5054:ff:fe00:2"];
    let ip = ip.map(|ip| ip.parse().expect("an address"));
    let options = QpOptions::default();
    Conn::new(bench.pair(ip), options, options)
}

fn ipv6_connection(bench: &mut Bench) {
    let mut c = over_ipv6(bench);
    let source = c.a.create_mr(&pattern(3000, 1), Rights::NONE);
    let target = c.b.create_mr(&[0; 6000], Rights::ALL);
    let taken = c.recv(&[target.sge(0, 3000)]);
    c.execute(&Work::send(&[source.all()]));
    c.succeeds(Side::B, taken);
    c.execute(&Work::write(&[source.all()], &target, 3000));
    let expected = [pattern(3000, 1), pattern(3000, 1)].concat();
    check_bytes("the target", &c.b.contents(&target), &expected);
    for side in [Side::A, Side::B] {
        let packets = c.packets(side);
        let all = packets.iter().all(|p| p.headers.ip.ethertype() == 0x86dd);
        check("all over IPv6", all && !packets.is_empty(), true);
    }
}

fn ipv6_header(bench: &mut Bench) {
    let mut c = over_ipv6(bench);
    c.reconnect(Side::A, |contexts| {
        contexts.av.tclass = 0xb6;
        contexts.av.flow_label = 0xa_bcde;
        contexts.av.hop_limit = 0x42;
    });
    c.recv(&[]);
    c.execute(&Work::send(&[]));
    let Ip::V6(ip) = c.packets(Side::A)[0].headers.ip else {
        panic!("expected IPv6, got IPv4")
    };
    let got = (ip.traffic_class, ip.flow_label, ip.hop_limit);
    check("class, label, hop limit", got, (0xb6, 0xa_bcde, 0x42));
    check("source", Gid::from(ip.src), c.a.gid);
    check("destination", Gid::from(ip.dst), c.b.gid);
}

fn ipv4_header(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    c.reconnect(Side::A, |contexts| {
        contexts.av.tclass = 0x6a;
        contexts.av.hop_limit = 0x33;
    });
    let source = c.a.create_mr(&pattern(MTU + 2, 1), Rights::NONE);
    let target = c.b.create_mr(&[0; MTU + 2], Rights::ALL);
    c.execute(&Work::write(&[source.all()], &target, 0));
    let frames: Vec<_> = c.sent.iter().filter(|(side, _)| *side == Side::A).collect();
    check("frames", frames.len(), 2);
    for (_, frame) in frames {
        let ip = &frame[14..34];
        check("version, IHL and TOS", (ip[0], ip[1]), (0x45, 0x6a));
        let total = u16::from_be_bytes([ip[2], ip[3]]);
        check("total length", usize::from(total), frame.len() - 14);
        check("flags and fragment offset", (ip[6], ip[7]), (0x40, 0));
        check("TTL and protocol", (ip[8], ip[9]), (0x33, 17));
    }
}

fn udp_header(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    c.reconnect(Side::A, |contexts| contexts.av.udp_sport = 0xd0d1);
    for _ in 0..2 {
        c.recv(&[]);
        c.execute(&Work::send(&[]));
    }
    for (_, frame) in c.sent.iter().filter(|(side, _)| *side == Side::A) {
        let udp = &frame[34..42];
        check("ports", &udp[..4], &[0xd0, 0xd1, 0x12, 0xb7][..]);
        let len = u16::from_be_bytes([udp[4], udp[5]]);
        check("length", usize::from(len), frame.len() - 34);
        check("checksum", &udp[6..], &[0, 0][..]);
    }
}

fn vlan_is_sent(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions {
        vlan: Some(0xa064),
        ..QpOptions::default()
    });
    c.recv(&[]);
    c.execute(&Work::send(&[]));
    for side in [Side::A, Side::B] {
        check("tag", c.packets(side)[0].headers.eth.vlan, Some(0xa064));
    }
}

fn vlan_is_taken(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    taken(&mut s, |h| h.eth.vlan = Some(0x0005));
    taken(&mut s, |h| h.eth.vlan = None);
}

fn vlan_of_another(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    // VLAN identifiers that differ in the first and in the last bit
    let tags = [
        None,
        Some(0xf000),
        Some(0x0064),
        Some(0xa064),
        Some(0x0065),
        Some(0x0864),
    ];
    for own in [0, 0x064] {
        s.reopen(|contexts| (contexts.rq.check_vlan, contexts.rq.vlan) = (true, own));
        for tag in tags {
            if tag.unwrap_or(0) & 0xfff == own {
                taken(&mut s, |h| h.eth.vlan = tag);
            } else {
                dropped(&mut s, "rx_wrong_address", |h| h.eth.vlan = tag);
            }
        }
    }
    s.post(&Work::write(&[s.target.sge(0, 8)], &s.target, 0));
    let psn = QpOptions::default().psn;
    for (tag, done) in [(0x0065, vec![]), (0x3064, vec![(0, 0)])] {
        let mut ack = s.response(Opcode::RcAck, psn, Syndrome::ACK);
        ack.eth.vlan = Some(tag);
        s.send(&ack, &[]);
        check("completions", s.results(), done);
    }
}

fn qp_0_hears_nothing(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    // Its contexts are written all the same.
    let zero = s.host.create_qp_as(0, QpOptions::default());
    let peer = s.peer;
    s.host.connect(zero, &peer);
    dropped(&mut s, "rx_unknown_qp", |h| h.bth.dest_qp = 0);
}

fn qp_unknown(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for qpn in [1, 77, 255] {
        dropped(&mut s, "rx_unknown_qp", |h| h.bth.dest_qp = qpn);
    }
}

fn qp_number_outside_the_table(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for bit in [8, 12, 16, 23] {
        dropped(&mut s, "rx_unknown_qp", |h| h.bth.dest_qp |= 1 << bit);
    }
    dropped(&mut s, "rx_unknown_qp", |h| h.bth.dest_qp = 0xff_ffff);
}

fn wrong_transport(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    dropped(&mut s, "rx_wrong_transport", |h| {
        h.bth.opcode = Opcode::UcWriteOnly;
    });
    let mut request = s.request(Opcode::UdSendOnly);
    request.ext.deth = Some(ferroce_proto::wire::DethRepr { qkey: 0, src_qp: 1 });
    let answers = s.counts("rx_wrong_transport", 1, |s| s.send(&request, &[1; 8]));
    check("answers", answers.len(), 0);
    s.untouched("after a packet of UD");
}

fn variant_fields(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    // A mark is to draw nothing here.
    s.host.write32(regs::CNP_CONFIG, 0);
    taken(&mut s, |h| {
        if let Ip::V4(ip) = &mut h.ip {
            (ip.ttl, ip.tos) = (1, 0xff);
        }
    });
    // ECN marks and reserved bits that change behind the ICRC.
    let mut frame = super::script::build(&s.request(Opcode::RcWriteOnly), &[1; 8]);
    frame[46] = 0xff;
    let answers = s.give(&frame);
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    s.psn = s.psn.next();
    // The seven bits beside AckReq are covered, and ignored.
    let mut frame = super::script::build(&s.request(Opcode::RcWriteOnly), &[1; 8]);
    frame[50] |= 0x7f;
    ferroce_proto::wire::icrc::seal(&mut frame[14..]).expect("whole");
    let answers = s.give(&frame);
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
}
