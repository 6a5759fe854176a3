//! A wire that stands: what waits for it when a queue pair is reset belongs to the peer of then, and to no other.
use std::rc::Rc;

use ferroce_proto::abi::cmd::{CmdHead, opcode, status};
use ferroce_proto::abi::qpc::{AvCtx, qp_type};
use ferroce_proto::wire::{
    AethRepr, BthRepr, EthRepr, Extensions, Headers, Ip, Opcode, Packet, Psn, Syndrome, UdpRepr,
};
use ferroce_sim::memory::HostMemory;
use ferroce_sim::nic::Nic;
use ferroce_sim::rtl::{Options, build};
use ferroce_sim::testhost::{Host, Pair, Peer, QpOptions, Rights, Work, pattern};
use ferroce_sim::verilator;

/// Cycles in which a card without work answers a RESET.
const PROMPT: u64 = 5000;
const OTHER: u32 = 777;
/// Cycles of ACK timeout code 1: 4.096 us * 2.
const TIMEOUT: u64 = 2048;

/// Two hosts with engines whose ports take two frames and then wait.
fn pair(width: usize) -> Pair {
    let engine = build::model(width, &verilator::Options::default()).expect("the engine builds");
    Pair::new(|memory: Rc<dyn HostMemory>| -> Box<dyn Nic> {
        let options = Options {
            tx_room: 2,
            ..Options::default()
        };
        Box::new(build::engine(&engine, memory, &options).expect("there is memory"))
    })
}

fn steps(host: &mut Host, cycles: u64) {
    (0..cycles).for_each(|_| host.nic.step());
}

/// Queue pair and PSN of each frame that leaves within `cycles`.
fn frames(host: &mut Host, cycles: u64) -> Vec<(u32, u32)> {
    let mut seen = vec![];
    for _ in 0..cycles {
        host.nic.step();
        while let Some(frame) = host.nic.transmit() {
            let packet = Packet::parse(&frame).expect("a RoCEv2 packet");
            let bth = packet.headers.bth;
            seen.push((bth.dest_qp, bth.psn.into()));
        }
    }
    seen
}

/// The first host, its queue pair, that of the second one, and what stands at that end.
fn connected(pair: &mut Pair, options: QpOptions) -> (&mut Host, u32, u32, Peer) {
    let (qa, qb) = pair.connect(options, options);
    let peer = pair.b.peer(qb);
    (&mut pair.a, qa, qb, peer)
}

/// Frames leave until `wanted` does.
fn drain(host: &mut Host, wanted: (u32, u32)) {
    let left = (0..100_000).any(|_| frames(host, 1).last() == Some(&wanted));
    assert!(left, "{wanted:?} never left");
}

#[test]
fn nothing_of_before_a_reset_leaves_after_it() {
    for width in [64, 512] {
        let mut pair = pair(width);
        let options = QpOptions::default();
        let (qa, qb) = pair.connect(options, options);
        let host = &mut pair.a;
        let packets = 192;
        let bytes = packets * 1024;
        let mr = host.create_mr(&pattern(bytes, 1), Rights::ALL);
        host.post_send(qa, &Work::send(&[mr.all()]));
        steps(host, PROMPT);

        let reset = CmdHead {
            opcode: opcode::MODIFY_QP,
            index: qa,
            qp_sq_state: true,
            sq_reset: true,
            qp_rq_state: true,
            rq_reset: true,
            ..CmdHead::default()
        };
        let command = host.start(reset, &[]);
        steps(host, PROMPT);
        assert!(host.answer(&command).is_none(), "packets wait for the wire");
        let mut before = vec![];
        while host.answer(&command).is_none() {
            before.extend(frames(host, 1));
            assert!(before.len() <= packets, "more than was posted");
        }
        assert_eq!(host.answer(&command).expect("answered").status, status::OK);
        assert!(before.iter().all(|frame| frame.0 == qb));
        assert!(before.len() < packets, "what was not built yet is dropped");

        // its number goes to another peer, with PSNs of its own
        let peer = Peer {
            qpn: OTHER,
            psn: 9,
            ..pair.b.peer(qb)
        };
        let host = &mut pair.a;
        host.connect(qa, &peer);
        let late = frames(host, 20_000);
        assert!(late.iter().all(|frame| frame.0 == qb), "{late:?}");
        assert!(late.len() <= 2, "those that were leaving: {late:?}");
        host.post_send(qa, &Work::send(&[]));
        let after = frames(host, 1000);
        assert_eq!(after, [(OTHER, options.psn)], "the new connection");
    }
}

#[test]
fn a_datagram_leaves_for_the_address_that_its_handle_had() {
    const QKEY: u32 = 0x1234;
    const DATAGRAMS: usize = 24;
    let unreliable = QpOptions {
        qp_type: qp_type::UD,
        qkey: QKEY,
        ..QpOptions::default()
    };
    for width in [64, 512] {
        let mut pair = pair(width);
        let (qa, qb) = pair.connect(unreliable, unreliable);
        let (peer, bystander) = (
            pair.b.peer(qb),
            pair.connect(QpOptions::default(), QpOptions::default()),
        );
        let host = &mut pair.a;
        host.write_ah(3, &peer, |_| {});
        let mr = host.create_mr(&pattern(256, 1), Rights::ALL);
        for _ in 0..DATAGRAMS {
            host.post_send(qa, &Work::datagram(&[mr.all()], 3, qb, QKEY));
        }
        host.post_send(bystander.0, &Work::send(&[mr.all()]));
        steps(host, PROMPT);

        // the handle gets a tag, which moves the payload
        let image = AvCtx {
            vlan_valid: true,
            ..host.handle(&peer)
        };
        let head = CmdHead {
            opcode: opcode::WRITE_AH,
            index: 3,
            ..CmdHead::default()
        };
        let command = host.start(head, &[image.emit()]);
        steps(host, PROMPT);
        assert!(
            host.answer(&command).is_none(),
            "datagrams wait for the wire"
        );
        let mut packets = vec![];
        while host.answer(&command).is_none() || packets.len() < DATAGRAMS + 1 {
            host.nic.step();
            packets.extend(host.nic.transmit());
            assert!(packets.len() <= DATAGRAMS + 1, "more than was posted");
        }
        host.post_send(qa, &Work::datagram(&[mr.all()], 3, qb, QKEY));
        while packets.len() < DATAGRAMS + 2 {
            host.nic.step();
            packets.extend(host.nic.transmit());
        }
        for (i, frame) in packets.iter().enumerate() {
            let packet = Packet::parse(frame).expect("a RoCEv2 packet");
            let tagged = packet.headers.eth.vlan.is_some();
            assert_eq!(tagged, i == DATAGRAMS + 1, "packet {i}");
            assert_eq!(frame[packet.payload], pattern(256, 1), "packet {i}");
        }
    }
}

/// An acknowledgement of `psn` from `peer`.
fn acknowledgement(host: &Host, qpn: u32, peer: &Peer, psn: u32) -> Vec<u8> {
    let headers = Headers {
        eth: EthRepr {
            dst: host.mac,
            src: peer.mac,
            vlan: None,
        },
        ip: Ip::between(peer.gid, host.gid, 0, 0, 64).expect("of one kind"),
        udp: UdpRepr { src_port: 0xc000 },
        bth: BthRepr::new(Opcode::RcAck, qpn, Psn::new(psn)),
        ext: Extensions {
            aeth: Some(AethRepr {
                syndrome: Syndrome::ACK,
                msn: 1,
            }),
            ..Extensions::default()
        },
    };
    let mut frame = vec![0; 128];
    let len = headers.build(&[], &mut frame).expect("a frame");
    frame.truncate(len);
    frame
}

#[test]
fn what_has_not_left_is_not_acknowledged() {
    for width in [64, 512] {
        let mut pair = pair(width);
        let options = QpOptions::default();
        let (qa, qb) = pair.connect(options, options);
        let peer = pair.b.peer(qb);
        let host = &mut pair.a;
        let mr = host.create_mr(&pattern(32 * 1024, 1), Rights::ALL);
        host.post_send(qa, &Work::send(&[mr.all()]));
        steps(host, PROMPT);
        let last = options.psn + 31;
        let ack = acknowledgement(host, qa, &peer, last);
        host.nic.receive(&ack);
        steps(host, PROMPT);
        assert_eq!(host.poll(options.send_cq), None, "nothing has left");
        assert_eq!(host.stat("rx_ghost_acks"), 1);

        let left = frames(host, 20_000);
        assert_eq!(left.last(), Some(&(qb, last)), "{left:?}");
        host.nic.receive(&ack);
        steps(host, PROMPT);
        let cqe = host.poll(options.send_cq).expect("acknowledged");
        assert_eq!(cqe.status, 0);
    }
}

/// Whatever the wire did before, a packet is sent again no sooner than a timeout after it left.
#[test]
fn a_timeout_counts_from_the_packet_that_left() {
    let options = QpOptions {
        timeout: 1,
        retry_cnt: 7,
        ..QpOptions::default()
    };
    for width in [64, 512] {
        let mut pair = pair(width);
        let (host, qa, qb, peer) = connected(&mut pair, options);
        let mr = host.create_mr(&pattern(16 * 1024, 1), Rights::ALL);
        let mut psn = options.psn;
        for stands in (0..6).map(|i| TIMEOUT + 100 + 401 * i) {
            host.post_send(qa, &Work::send(&[mr.all()]));
            steps(host, stands);
            psn += 16;
            drain(host, (qb, psn - 1));
            let waited = (0..3 * TIMEOUT).find(|_| !frames(host, 1).is_empty());
            let waited = waited.expect("a timeout");
            assert!(waited >= TIMEOUT, "{width}, {stands}: {waited}");
            host.nic.receive(&acknowledgement(host, qa, &peer, psn - 1));
            frames(host, 2 * TIMEOUT);
            assert_eq!(host.poll(options.send_cq).expect("done").status, 0);
        }
    }
}

#[test]
fn a_wire_that_stands_uses_no_retries() {
    let options = QpOptions {
        timeout: 1,
        retry_cnt: 2,
        ..QpOptions::default()
    };
    for width in [64, 512] {
        let mut pair = pair(width);
        let (host, qa, qb, peer) = connected(&mut pair, options);
        let mr = host.create_mr(&pattern(64 * 1024, 1), Rights::ALL);
        host.post_send(qa, &Work::send(&[mr.all()]));
        steps(host, 10 * TIMEOUT);
        assert_eq!(host.poll(options.send_cq), None, "it waits for the wire");
        assert_eq!(host.stat("local_ack_timeout_err"), 0);
        assert_eq!(host.stat("retransmissions"), 0);

        // once all has left the peer is to answer in time
        let last = options.psn + 63;
        drain(host, (qb, last));
        steps(host, 3 * TIMEOUT);
        assert_eq!(host.stat("local_ack_timeout_err"), 1);
        drain(host, (qb, last));
        host.nic.receive(&acknowledgement(host, qa, &peer, last));
        steps(host, 500);
        let cqe = host.poll(options.send_cq).expect("acknowledged");
        assert_eq!(cqe.status, 0);
    }
}
