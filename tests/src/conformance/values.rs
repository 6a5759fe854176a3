//! Fields over their whole range: addresses, numbers and times that differ in every bit.

use ferroce_proto::abi::cmd::{GidEntry, opcode};
use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::regs::{self, Params, feature};
use ferroce_proto::wire::{Gid, Headers, Ip, Mac, Opcode, Syndrome};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, Conn, Sent};
use super::script::{Script, build, syndromes};
use super::{ATOMIC, RC, READ, UC, UD, address, cases, check, check_bytes};

/// IPv6 on top of RC.
const V6: u32 = RC | feature::IPV6;
/// Both kinds of header at once.
const V6_VLAN: u32 = V6 | feature::VLAN;

cases! {
    gid_table_of_all_entries, V6, "A17.9", "Every entry of the GID table is an address of the port, IPv4 or IPv6, until it is written anew.";
    gid_of_all_bits, V6, "A17.9", "An address that differs from the GID in any bit is not the port's.";
    ipv6_with_a_tag, V6_VLAN, "A17.3", "SEND, WRITE and acknowledgements travel over IPv6 in tagged frames.";
    ipv6_hop_limit_of_0, V6, "RFC 8200 3", "A host takes a packet whose hop limit is 0.";
    timeout_of_all_codes, RC, "IB1 9.7.6.1.3", "An answer that comes in time ends the timer, whatever its code.";
    rnr_timer_of_all_codes, RC, "IB1 9.7.5.2.8", "The RNR NAK carries the timer code of the responder, whichever it is.";
    migrated_in_all_packets, ATOMIC, "IB1 17.2.8", "Every packet has MigReq 1, requests, responses and acknowledgements; what comes with 0 is taken too.";
    migrated_in_uc, UC, "IB1 17.2.8", "So it is on an unreliable connection.";
    migrated_in_ud, UD, "IB1 17.2.8", "And in datagrams.";
    immediate_of_all_bits, RC, "IB1 9.2", "All 32 bits of immediate data arrive.";
    psn_of_all_bits, READ, "IB1 9.7.2", "PSNs are 24 bits, on both sides.";
    write_of_a_long_message, RC, "IB1 9.7.4.1", "A WRITE may announce up to 2^31 bytes, at any address of its region.";
    read_of_a_long_message, READ, "IB1 9.7.4.1", "A READ may ask for up to 2^31 bytes, from any address; it is sent in one packet.";
    macs_of_all_bits, RC, "IEEE 802.3 3.2", "Frames go to the MAC address of the address vector, from that of the port.";
}

/// Values that take every bit both ways, twice.
const WIDE: [u128; 5] = [
    0x2b91_53fa_07cd_6e38_91c4_7d02_e5ab_369f,
    0x346e_ac05_f832_91c7_6e3b_82fd_1a54_c960,
    0x2000_0000_0000_0000_0000_0000_0000_0001,
    0x3fff_ffff_ffff_ffff_ffff_ffff_ffff_fffe,
    0x2b91_53fa_07cd_6e38_91c4_7d02_e5ab_369f,
];

/// All of the packets have MigReq 1, and there are `count`.
fn migrated(packets: &[Sent], count: usize) {
    check("packets", packets.len(), count);
    for packet in packets {
        let what = format!("MigReq of {:?}", packet.opcode());
        check(&what, packet.headers.bth.mig_req, true);
    }
}

fn migrated_in_all_packets(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let target = c.b.create_mr(&[0; 4096], Rights::ALL);
    let local = c.a.create_mr(&[0; 4096], Rights::ALL);
    c.execute(&Work::write(&[local.sge(0, 3000)], &target, 0));
    c.execute(&Work::read(&[local.sge(0, 3000)], &target, 0));
    c.execute(&Work::fetch_add(local.sge(0, 8), &target, 0, 1));
    migrated(&c.packets(Side::A), 5);
    let answers = c.packets(Side::B);
    migrated(&answers, answers.len());
    let mut s = bench.script(QpOptions::default());
    let mut write = s.request(Opcode::RcWriteOnly);
    write.bth.mig_req = false;
    let answers = s.next(&write, &[1; 8]);
    check("answer", syndromes(&answers), vec![Syndrome::ACK]);
    migrated(&answers, 1);
    // RNR NAK, NAK of a gap, NAK that ends the queue pair
    let send = s.request(Opcode::RcSendOnly);
    migrated(&s.send(&send, &[1; 8]), 1);
    let write = s.request(Opcode::RcWriteOnly);
    s.next(&write, &[1; 8]);
    let mut ahead = s.request(Opcode::RcWriteOnly);
    ahead.bth.psn = s.psn.next();
    migrated(&s.send(&ahead, &[1; 8]), 1);
    let middle = s.request(Opcode::RcSendMiddle);
    migrated(&s.send(&middle, &[1; 1024]), 1);
}

/// A script whose queue pair is of this type sends a message.
fn sends_migrated(bench: &mut Bench, qp_type: u8, work: &Work) {
    let mut s = bench.script(QpOptions {
        qp_type,
        ..QpOptions::default()
    });
    let peer = s.peer;
    s.host.write_ah(0, &peer, |_| {});
    migrated(&s.post(work), 1);
}

fn migrated_in_uc(bench: &mut Bench) {
    sends_migrated(bench, qp_type::UC, &Work::send(&[]));
}

fn migrated_in_ud(bench: &mut Bench) {
    sends_migrated(bench, qp_type::UD, &Work::datagram(&[], 0, 5, 0));
}

fn entries(s: &mut Script) -> u8 {
    let params = s.host.read32(regs::PARAMS);
    1 << Params::parse(&params.to_le_bytes()).log_gid
}

/// The port has `gid` at `entry` of its table, the peer has the address next to it.
fn readdress(s: &mut Script, entry: u8, gid: Gid, peer: Gid) {
    let image = GidEntry {
        gid: gid.to_le_bits(),
        valid: true,
        ipv6: !gid.is_ipv4(),
    };
    s.host.expect(opcode::SET_GID, entry.into(), &image.emit());
    (s.host.gid, s.peer.gid) = (gid, peer);
    s.reopen(|contexts| {
        contexts.av.sgid_index = entry;
        contexts.rq.sgid_index = entry;
    });
}

/// A pair of addresses made of a number.
fn addresses(number: u128, v6: bool) -> [Gid; 2] {
    if v6 {
        return [number, number ^ 4].map(|n| std::net::Ipv6Addr::from(n).into());
    }
    let low = number as u32 & 0x3fff_ffff | 0x4000_0000;
    [low, low ^ 4].map(|n| std::net::Ipv4Addr::from(n).into())
}

fn gid_table_of_all_entries(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let count = entries(&mut s);
    for (round, number) in WIDE.into_iter().enumerate() {
        for entry in 0..count {
            let v6 = (round + usize::from(entry)) % 4 != 3;
            let [own, peer] = addresses(number.rotate_left(entry.into()) >> 3 | 1 << 125, v6);
            readdress(&mut s, entry, own, peer);
            let request = s.request(Opcode::RcWriteOnly);
            let answers = s.next(&request, &[1; 8]);
            check("answer", syndromes(&answers), vec![Syndrome::ACK]);
            let ip = answers[0].headers.ip;
            check("addresses", (ip.src_gid(), ip.dst_gid()), (own, peer));
        }
    }
}

fn gid_of_all_bits(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let [own, peer] = addresses(WIDE[0], true);
    readdress(&mut s, 1, own, peer);
    let request = s.request(Opcode::RcWriteOnly);
    let flipped = |bit: u32| {
        let mut headers = request;
        let Ip::V6(ip) = &mut headers.ip else {
            panic!("over IPv6")
        };
        ip.dst = (u128::from(ip.dst) ^ 1 << bit).into();
        headers
    };
    let frames: Vec<_> = (0..128).map(|bit| build(&flipped(bit), &[1; 8])).collect();
    for frames in frames.chunks(16) {
        s.counts("rx_wrong_address", 16, |s| {
            for frame in frames {
                s.hand(frame);
            }
            check("answers", s.quiet().len(), 0);
        });
    }
    s.untouched("after packets to other addresses");
}

fn ipv6_with_a_tag(bench: &mut Bench) {
    let ip = ["fd12:3456:789a::1", "fd12:3456:789a::2"];
    let ip = ip.map(|ip| ip.parse().expect("an address"));
    let options = |vlan| QpOptions {
        vlan: Some(vlan),
        ..QpOptions::default()
    };
    let mut c = Conn::new(bench.pair(ip), options(0x2fff), options(0xd001));
    let source = c.a.create_mr(&pattern(3001, 1), Rights::NONE);
    let target = c.b.create_mr(&[0; 6002], Rights::ALL);
    let taken = c.recv(&[target.sge(0, 3001)]);
    c.execute(&Work::send(&[source.all()]));
    c.succeeds(Side::B, taken);
    c.execute(&Work::write(&[source.all()], &target, 3001));
    let expected = [pattern(3001, 1), pattern(3001, 1)].concat();
    check_bytes("the target", &c.b.contents(&target), &expected);
    for (side, tag) in [(Side::A, 0x2fff), (Side::B, 0xd001)] {
        for packet in c.packets(side) {
            let Headers { eth, ip, .. } = packet.headers;
            check(
                "tag and type",
                (eth.vlan, ip.ethertype()),
                (Some(tag), 0x86dd),
            );
        }
    }
}

fn ipv6_hop_limit_of_0(bench: &mut Bench) {
    let mut c = address::over_ipv6(bench);
    c.pair.wire = Box::new(|_, frame| {
        let mut last_hop = frame.to_vec();
        last_hop[21] = 0;
        vec![last_hop]
    });
    let taken = c.recv(&[]);
    c.execute(&Work::send(&[]));
    c.succeeds(Side::B, taken);
    check("sent again", c.packets(Side::A).len(), 1);
}

fn timeout_of_all_codes(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    let target = c.b.create_mr(&[0; 8], Rights::ALL);
    // Code 0 is no timer; those up to 3 are shorter than the way there and back may be.
    for code in (3..32).chain([0, 31]) {
        c.reconnect(Side::B, |_| {});
        c.reconnect(Side::A, |contexts| contexts.sq.timeout = code);
        let before = c.sent.len();
        c.execute(&Work::write(&[], &target, 0).inline(&[code; 8]));
        c.settle();
        check("packets", c.sent.len() - before, 2);
        check_bytes("the target", &c.b.contents(&target), &[code; 8]);
    }
}

fn rnr_timer_of_all_codes(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for code in 0..32 {
        s.reopen(|contexts| contexts.rq.min_rnr_timer = code);
        let request = s.request(Opcode::RcSendOnly);
        let answers = s.send(&request, &[1; 8]);
        check(
            "answer",
            syndromes(&answers),
            vec![Syndrome::RnrNak { timer: code }],
        );
    }
}

fn immediate_of_all_bits(bench: &mut Bench) {
    let mut c = bench.connect(QpOptions::default());
    for imm in [0xffff_ffff, 0, 0x5a96_33c1, 0xa569_cc3e, 0x5a96_33c1] {
        c.recv(&[]);
        let mut work = Work::send(&[]);
        work.head.opcode = ferroce_proto::abi::wqe::opcode::SEND_IMM;
        work.head.imm = imm;
        c.execute(&work);
        check("immediate data", c.wait(Side::B).imm, imm);
    }
}

fn psn_of_all_bits(bench: &mut Bench) {
    for psn in [[0xff_fffe, 0], [0x5a_96c3, 0xa5_693c]] {
        let [a, b] = psn.map(|psn| QpOptions {
            psn,
            ..QpOptions::default()
        });
        let mut c = bench.connect_each(a, b);
        let target = c.b.create_mr(&[0; 4096], Rights::ALL);
        let source = c.a.create_mr(&pattern(4096, 1), Rights::ALL);
        for _ in 0..3 {
            c.execute(&Work::write(&[source.all()], &target, 0));
            c.recv(&[target.all()]);
            c.execute(&Work::send(&[source.all()]));
            c.execute(&Work::read(&[source.all()], &target, 0));
        }
        let expected = (psn[0] + 36) & 0xff_ffff;
        check("PSN", c.query(Side::A).sq_psn, expected);
        check("PSN expected", c.query(Side::B).rq_psn, expected);
    }
}

/// Addresses in a region of almost everything.
const PLACES: [u64; 4] = [
    0x5a96_c33c_a569_1ee0,
    0xa569_3cc3_5a96_e11f,
    0x0000_0000_0000_2001,
    0xffff_fff0_0000_0003,
];

fn write_of_a_long_message(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let region = s.host.register(0x1000, u64::MAX - 0x2000, Rights::ALL);
    for (place, len) in PLACES
        .into_iter()
        .zip([1 << 31, 0x5a96_c33c, 0x2569_3cc3, 0x7fff_ffff])
    {
        if s.host.memory.map(place & !0xfff, vec![0; 0x2000]).is_err() {
            panic!("the place is free");
        }
        let mut request = s.request(Opcode::RcWriteFirst);
        let reth = request.ext.reth.as_mut().expect("a WRITE has it");
        (reth.va, reth.rkey, reth.dma_len) = (place, region.key, len);
        request.bth.ack_req = true;
        let data = pattern(1024, 9);
        let answers = s.next(&request, &data);
        check("answer", syndromes(&answers), vec![Syndrome::ACK]);
        check_bytes("the place", &s.host.read(place, 1024), &data);
        s.reopen(|_| {});
    }
}

fn read_of_a_long_message(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    let region = s.host.register(0x1000, u64::MAX - 0x2000, Rights::ALL);
    for (place, len) in PLACES
        .into_iter()
        .zip([1 << 31, 0x5a96_c33c, 0x2569_3cc3, 0x7fff_ffff])
    {
        let mut work = Work::read(&[], &region, 0);
        work.list = vec![ferroce_proto::abi::wqe::Sge {
            addr: 0x10_0000,
            length: len,
            lkey: region.key,
        }];
        work.head.remote_addr = place;
        work.head.rkey = !region.key;
        let sent = s.post(&work);
        let reth = sent[0].headers.ext.reth.expect("a READ has it");
        check(
            "RETH",
            (reth.va, reth.rkey, reth.dma_len),
            (place, !region.key, len),
        );
        s.reopen(|_| {});
    }
}

fn macs_of_all_bits(bench: &mut Bench) {
    let mut s = bench.script(QpOptions::default());
    for number in WIDE {
        let bytes = (number as u64 & !1).to_le_bytes();
        let own = Mac(bytes[..6].try_into().expect("six"));
        let peer = Mac(own.0.map(|byte| !byte & 0xfe));
        let port = ferroce_proto::abi::cmd::PortConfig {
            mac: u64::from_le_bytes(bytes) & ((1 << 48) - 1),
            ..Default::default()
        };
        s.host.expect(opcode::SET_PORT, 0, &port.emit());
        (s.host.mac, s.peer.mac) = (own, peer);
        s.reopen(|_| {});
        let request = s.request(Opcode::RcWriteOnly);
        let answers = s.next(&request, &[1; 8]);
        check("answer", syndromes(&answers), vec![Syndrome::ACK]);
        let eth = answers[0].headers.eth;
        check("addresses", (eth.src, eth.dst), (own, peer));
    }
}
