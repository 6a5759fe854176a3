//! Notification point: marked packets draw CNPs.

use ferroce_proto::abi::qpc::qp_type;
use ferroce_proto::abi::regs::{self, feature};
use ferroce_proto::wire::{Gid, Headers, Ip, Opcode, Packet, Psn, cnp, icrc};
use ferroce_sim::testhost::{QpOptions, Rights, Side, Work, pattern};

use super::bench::{Bench, Conn, IP, Sent};
use super::script::{Script, build};
use super::{cases, check, check_bytes, ud};

/// A notification point for RC.
pub(super) const NP: u32 = feature::RC | feature::CNP;

cases! {
    cnp_form, NP, "A17 figure 6", "A marked packet draws a CNP: a BTH with the peer's queue pair, BECN and nothing else, and 16 bytes of 0.";
    cnp_of_a_path, NP | feature::IPV6 | feature::VLAN, "A17.9.3", "A CNP goes the path of its queue pair, over IPv6 with a tag too; only DSCP, ECN and PCP are its own.";
    cnp_dscp_and_priority, NP | feature::VLAN, "abi regs", "DSCP and PCP of CNPs are those of CNP_CONFIG; a CNP is not ECN-capable itself.";
    cnp_of_responses, NP | feature::READ, "A17.9.3", "A marked acknowledgement or READ response draws a CNP as a request does.";
    cnp_of_what_is_refused, NP, "A17.9.3", "A mark tells of the path: a duplicate or a packet that is refused draws a CNP too.";
    cnp_of_uc, feature::UC | feature::CNP, "A17.9.3", "A marked packet of a UC queue pair draws a CNP.";
    cnp_interval, NP, "abi regs", "Two marks within MIN_TIME_BETWEEN_CNPS draw one CNP, a third one after it the next.";
    cnp_interval_of_0, NP, "abi regs", "With a MIN_TIME_BETWEEN_CNPS of 0 every marked packet draws a CNP.";
    cnp_interval_of_each_queue_pair, NP, "abi regs", "The CNP of one queue pair holds up no other's.";
    cnp_of_the_next_life, NP, "IBA 10.3.1", "The interval of a queue pair is none of the next one of its number.";
    cnp_switched_off, NP, "abi regs", "With CNP_CONFIG.enable = 0 marks are counted and not answered.";
    cnp_without_a_mark, NP, "RFC 3168 5", "What is not marked, whether ECN-capable or not, draws no CNP.";
    cnp_for_a_cnp, NP, "A17.9.3", "A marked CNP draws none.";
    cnp_of_strangers, NP, "A17.9.3", "What is not of the connection draws no CNP: another address, partition or transport, no queue pair, a bad ICRC.";
    cnp_of_datagrams, feature::UD | feature::CNP, "A17.9.3", "A marked datagram draws no CNP.";
    cnp_before_data, NP | feature::READ, "abi regs", "A CNP leaves before responses that wait.";
}

/// Microseconds that no case waits.
pub(super) const LONG: u32 = 10_000;
const CYCLES_PER_US: u64 = 250;

/// The frame of a packet with congestion experienced.
pub(crate) fn mark(frame: &[u8]) -> Vec<u8> {
    with_ecn(frame, 3)
}

fn with_ecn(frame: &[u8], ecn: u8) -> Vec<u8> {
    let Packet {
        mut headers,
        payload,
    } = Packet::parse(frame).expect("a good packet");
    match &mut headers.ip {
        Ip::V4(ip) => ip.tos = ip.tos & !3 | ecn,
        Ip::V6(ip) => ip.traffic_class = ip.traffic_class & !3 | ecn,
    }
    build(&headers, &frame[payload])
}

/// A card and a script; CNPs of a queue pair are at least `us` microseconds apart.
pub(super) fn script(bench: &mut Bench, us: u32) -> Script {
    let s = bench.script(QpOptions::default());
    apart(s, us)
}

fn apart(mut s: Script, us: u32) -> Script {
    s.host.write32(regs::MIN_TIME_BETWEEN_CNPS, us);
    s
}

/// Hands the card a marked packet; how many CNPs it draws.
fn drawn(s: &mut Script, headers: &Headers, payload: &[u8]) -> usize {
    let answers = s.give(&mark(&build(headers, payload)));
    cnps(&answers)
}

fn cnps(sent: &[Sent]) -> usize {
    let cnps = sent.iter().filter(|packet| packet.opcode() == Opcode::Cnp);
    cnps.count()
}

/// Hands the card the marked WRITE of the next PSN; how many CNPs it draws.
fn write(s: &mut Script) -> usize {
    let request = s.request(Opcode::RcWriteOnly);
    s.psn = s.psn.next();
    drawn(s, &request, &[1; 8])
}

/// A connection on whose link the packets of `side` are marked.
pub(super) fn marked(mut c: Conn, side: Side) -> Conn {
    for host in [&mut c.pair.a, &mut c.pair.b] {
        host.write32(regs::MIN_TIME_BETWEEN_CNPS, LONG);
    }
    c.pair.wire = Box::new(move |from, frame| {
        vec![match from == side {
            true => mark(frame),
            false => frame.to_vec(),
        }]
    });
    c
}

/// A writes to B, which sees marks: the ACK and the CNP, as frames.
fn write_and_see(c: &mut Conn) -> [Vec<u8>; 2] {
    let source = c.a.create_mr(&pattern(64, 1), Rights::NONE);
    let target = c.b.create_mr(&[0; 64], Rights::ALL);
    c.execute(&Work::write(&[source.all()], &target, 0));
    c.settle();
    let sent = c.pair.sent.iter().filter(|(from, _)| *from == Side::B);
    let frames: Vec<_> = sent.map(|(_, frame)| frame.clone()).collect();
    let of = |opcode| {
        let mut found = frames.iter().filter(|f| Sent::parse(f).opcode() == opcode);
        let frame = found.next().unwrap_or_else(|| panic!("no {opcode:?}"));
        check(&format!("more {opcode:?}"), found.count(), 0);
        frame.clone()
    };
    [of(Opcode::RcAck), of(Opcode::Cnp)]
}

fn cnp_form(bench: &mut Bench) {
    let mut c = marked(bench.connect(QpOptions::default()), Side::A);
    let [ack, cnp] = write_and_see(&mut c);
    let mut expected = Vec::new();
    expected.extend(&ack[..14]);
    // DSCP 48, not ECN-capable; 60 bytes; not to be fragmented
    expected.extend([0x45, 0xc0, 0, 60, 0, 0, 0x40, 0, ack[22], 17, 0, 0]);
    expected.extend(&ack[26..34]);
    let words = expected[14..].chunks(2);
    let sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    expected[24..26].copy_from_slice(&sum.to_be_bytes());
    expected.extend(&ack[34..36]);
    expected.extend([0x12, 0xb7, 0, 40, 0, 0]);
    expected.extend([0x81, 0, 0xff, 0xff, 0x40, 0, 0, c.qa as u8, 0, 0, 0, 0]);
    expected.extend([0; 20]);
    icrc::seal(&mut expected[14..]).expect("whole");
    check_bytes("the CNP", &cnp, &expected);
    check("marks", c.b.stat("np_ecn_marked_roce_packets"), 1);
    check("CNPs sent", c.b.stat("np_cnp_sent"), 1);
    check("CNPs handled", c.a.stat("rp_cnp_handled"), 1);
    check("frames", c.b.stat("tx_frames"), 2);
    check("acknowledgements", c.b.stat("tx_acks"), 1);
}

fn cnp_of_a_path(bench: &mut Bench) {
    let ip = ["fd00::1", "fd00::2"].map(|ip| ip.parse().expect("an address"));
    for (ip, vlan) in [(ip, None), (ip, Some(0x3123)), (IP, Some(0xf005))] {
        let options = QpOptions {
            vlan,
            ..QpOptions::default()
        };
        let pair = bench.pair(ip);
        let mut c = marked(Conn::new(pair, options, options), Side::A);
        c.reconnect(Side::B, |contexts| {
            (contexts.av.tclass, contexts.av.hop_limit) = (0x6a, 7);
            contexts.av.flow_label = 0xabcde;
        });
        let [ack, cnp] = write_and_see(&mut c).map(|frame| Sent::parse(&frame));
        let mut expected = ack.headers;
        expected.eth.vlan = vlan.map(|tag| tag & 0x1fff | 6 << 13);
        match &mut expected.ip {
            Ip::V4(ip) => ip.tos = 48 << 2,
            Ip::V6(ip) => ip.traffic_class = 48 << 2,
        }
        expected.bth = cnp::bth(c.qa, 0xffff);
        expected.ext.aeth = None;
        check("the CNP", cnp.headers, expected);
    }
}

fn cnp_dscp_and_priority(bench: &mut Bench) {
    let options = QpOptions {
        vlan: Some(0x0005),
        ..QpOptions::default()
    };
    for (dscp, prio) in [(0, 0), (0x2a, 3), (0x3f, 7)] {
        let mut c = marked(bench.connect(options), Side::A);
        let config = 1 << 16 | u32::from(prio) << 8 | u32::from(dscp);
        c.b.write32(regs::CNP_CONFIG, config);
        let [_, cnp] = write_and_see(&mut c).map(|frame| Sent::parse(&frame));
        check("TOS", cnp.headers.ip.traffic_class(), dscp << 2);
        check("tag", cnp.headers.eth.vlan, Some(5 | prio << 13));
    }
}

fn cnp_of_responses(bench: &mut Bench) {
    for read in [false, true] {
        let mut c = marked(bench.connect(QpOptions::default()), Side::B);
        let source = c.a.create_mr(&pattern(3000, 1), Rights::ALL);
        let target = c.b.create_mr(&[0; 3000], Rights::ALL);
        c.execute(&match read {
            true => Work::read(&[source.all()], &target, 0),
            false => Work::write(&[source.all()], &target, 0),
        });
        c.settle();
        let sent = c.packets(Side::A);
        check("CNPs", cnps(&sent), 1);
        let marks = c.a.stat("np_ecn_marked_roce_packets");
        check("marks", marks, c.b.stat("tx_frames"));
        check("CNPs handled", c.b.stat("rp_cnp_handled"), 1);
    }
}

fn cnp_of_what_is_refused(bench: &mut Bench) {
    let mut s = script(bench, 0);
    check("CNPs of the first", write(&mut s), 1);
    s.psn = s.psn.sub(1);
    check("CNPs of a duplicate", write(&mut s), 1);
    let mut request = s.request(Opcode::RcWriteOnly);
    request.bth.psn = s.psn.add(5);
    check("CNPs of a later one", drawn(&mut s, &request, &[1; 8]), 1);
    let mut request = s.request(Opcode::RcWriteOnly);
    if let Some(reth) = &mut request.ext.reth {
        reth.rkey ^= 0x1234;
    }
    check("CNPs of a wrong key", drawn(&mut s, &request, &[1; 8]), 1);
    check("CNPs of a queue pair in error", write(&mut s), 1);
}

fn cnp_of_uc(bench: &mut Bench) {
    let options = QpOptions {
        qp_type: qp_type::UC,
        ..QpOptions::default()
    };
    let mut s = apart(bench.script(options), LONG);
    let request = s.request(Opcode::UcWriteOnly);
    check("CNPs", drawn(&mut s, &request, &[1; 8]), 1);
}

fn cnp_interval(bench: &mut Bench) {
    let us = 40;
    let mut s = script(bench, us);
    for _ in 0..2 {
        check("CNPs of the first", write(&mut s), 1);
        check("CNPs of one within the time", write(&mut s), 0);
        let answers = s.run(u64::from(us) * CYCLES_PER_US);
        check("CNPs of none", cnps(&answers), 0);
    }
    check("marks", s.host.stat("np_ecn_marked_roce_packets"), 4);
    check("CNPs sent", s.host.stat("np_cnp_sent"), 2);
}

fn cnp_interval_of_0(bench: &mut Bench) {
    let mut s = script(bench, 0);
    let mut frames = 0;
    for _ in 0..4 {
        s.run(16);
        let frame = mark(&build(&s.request(Opcode::RcWriteOnly), &[1; 8]));
        s.psn = s.psn.next();
        s.hand(&frame);
        frames += 1;
    }
    s.quiet();
    check("CNPs", s.host.stat("np_cnp_sent"), frames);
}

fn cnp_interval_of_each_queue_pair(bench: &mut Bench) {
    let mut s = script(bench, LONG);
    let beside = s.host.create_qp(QpOptions::default());
    let peer = s.peer;
    s.host.connect(beside, &peer);
    check("CNPs of one", write(&mut s), 1);
    let mut request = s.request(Opcode::RcWriteOnly);
    (request.bth.dest_qp, request.bth.psn) = (beside, Psn::new(peer.psn));
    check("CNPs of another", drawn(&mut s, &request, &[1; 8]), 1);
    check("CNPs of the first", write(&mut s), 0);
}

fn cnp_of_the_next_life(bench: &mut Bench) {
    let mut s = script(bench, LONG);
    check("CNPs of one", write(&mut s), 1);
    check("CNPs of one within the time", write(&mut s), 0);
    let (qpn, peer) = (s.qpn, s.peer);
    s.host.connect(qpn, &peer);
    s.psn = Psn::new(peer.psn);
    check("CNPs of the next life", write(&mut s), 1);
}

fn cnp_switched_off(bench: &mut Bench) {
    let mut s = script(bench, 0);
    s.host.write32(regs::CNP_CONFIG, 6 << 8 | 48);
    check("CNPs", write(&mut s), 0);
    check("marks", s.host.stat("np_ecn_marked_roce_packets"), 1);
    s.host.write32(regs::CNP_CONFIG, 1 << 16 | 6 << 8 | 48);
    check("CNPs", write(&mut s), 1);
}

fn cnp_without_a_mark(bench: &mut Bench) {
    let mut s = script(bench, 0);
    for ecn in 0..3 {
        let frame = build(&s.request(Opcode::RcWriteOnly), &[1; 8]);
        s.psn = s.psn.next();
        let answers = s.give(&with_ecn(&frame, ecn));
        check("CNPs", cnps(&answers), 0);
    }
    check("marks", s.host.stat("np_ecn_marked_roce_packets"), 0);
}

/// A CNP of the peer.
pub(super) fn notice(s: &Script) -> Headers {
    let mut headers = s.request(Opcode::Cnp);
    headers.bth = cnp::bth(s.qpn, 0xffff);
    headers
}

fn cnp_for_a_cnp(bench: &mut Bench) {
    let mut s = script(bench, 0);
    let cnp = notice(&s);
    check("CNPs", drawn(&mut s, &cnp, &[]), 0);
    check("marks", s.host.stat("np_ecn_marked_roce_packets"), 0);
    check("CNPs handled", s.host.stat("rp_cnp_handled"), 1);
}

/// Changes headers so that they are another's.
type Spoil = fn(&mut Headers);

pub(super) const STRANGERS: [(&str, Spoil); 4] = [
    ("another source", |h| set_source(h, [10, 0, 0, 77])),
    ("another partition", |h| h.bth.pkey = 0x9234),
    ("an unused queue pair", |h| h.bth.dest_qp = 99),
    ("a queue pair beyond the table", |h| {
        h.bth.dest_qp |= 1 << 20;
    }),
];

pub(super) fn set_source(headers: &mut Headers, ip: [u8; 4]) {
    let source: Gid = std::net::Ipv4Addr::from(ip).into();
    let to = headers.ip.dst_gid();
    headers.ip = Ip::between(source, to, 0, 0, 64).expect("of one kind");
}

fn cnp_of_strangers(bench: &mut Bench) {
    let mut s = script(bench, 0);
    for (what, spoil) in STRANGERS {
        let mut request = s.request(Opcode::RcWriteOnly);
        spoil(&mut request);
        let drawn = drawn(&mut s, &request, &[1; 8]);
        check(&format!("CNPs of {what}"), drawn, 0);
    }
    let mut request = s.request(Opcode::UcWriteOnly);
    request.bth.ack_req = false;
    check(
        "CNPs of another transport",
        drawn(&mut s, &request, &[1; 8]),
        0,
    );
    let mut frame = mark(&build(&s.request(Opcode::RcWriteOnly), &[1; 8]));
    *frame.last_mut().expect("there is an ICRC") ^= 1;
    check("CNPs of a bad ICRC", cnps(&s.give(&frame)), 0);
    let qpn = s.qpn;
    s.host.reset_qp(qpn);
    check("CNPs of a queue pair in RESET", write(&mut s), 0);
    check("marks", s.host.stat("np_ecn_marked_roce_packets"), 0);
}

fn cnp_of_datagrams(bench: &mut Bench) {
    let mut s = apart(bench.script(ud::options()), 0);
    let request = s.request(Opcode::UdSendOnly);
    check("CNPs", drawn(&mut s, &request, &[1; 8]), 0);
    check("marks", s.host.stat("np_ecn_marked_roce_packets"), 0);
}

fn cnp_before_data(bench: &mut Bench) {
    let mut s = script(bench, LONG);
    let reads = 4;
    for _ in 0..reads {
        let mut request = s.request(Opcode::RcReadRequest);
        if let Some(reth) = &mut request.ext.reth {
            reth.dma_len = 4096;
        }
        let psn = s.psn;
        s.hand_next(&request, &[]);
        s.psn = psn.add(4);
    }
    let request = s.request(Opcode::RcWriteOnly);
    s.hand(&mark(&build(&request, &[1; 8])));
    let sent = s.quiet();
    check("packets", sent.len(), 4 * reads + 2);
    let at = sent.iter().position(|p| p.opcode() == Opcode::Cnp);
    let at = at.expect("a CNP");
    assert!(at <= 6, "{at} packets left before the CNP");
}
