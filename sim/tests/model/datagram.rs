//! Unreliable datagram: addresses, Q_Key, the GRH, and what is dropped.

use std::net::IpAddr;

use ferroce_proto::abi::cq::{Cqe, status};
use ferroce_proto::abi::qpc::{qp_type, state};
use ferroce_proto::abi::wqe::opcode;
use ferroce_proto::wire::ip::GRH_LEN;
use ferroce_proto::wire::{Ip, Opcode};
use ferroce_sim::model::{DEFAULT_PARAMS, Model};
use ferroce_sim::testhost::{Pair, QpOptions, Rights, Side, Work, pattern};

use crate::{assert_status, assert_success, connected};

const QKEY: u32 = 0x8001_0203;

fn options() -> QpOptions {
    QpOptions {
        qp_type: qp_type::UD,
        qkey: QKEY,
        ..QpOptions::default()
    }
}

/// A datagram of `data` from A through handle 3 to B, which has posted a buffer of `room` bytes.
fn send(pair: &mut Pair, (qa, qb): (u32, u32), data: &[u8], room: usize, qkey: u32) -> Vec<u8> {
    let peer = pair.b.peer(qb);
    pair.a.write_ah(3, &peer, |_| {});
    let source = pair.a.create_mr(data, Rights::NONE);
    let target = pair.b.create_mr(&vec![0xee; room], Rights::ALL);
    pair.b.post_recv(qb, &[target.all()]);
    let work = Work::datagram(&[source.all()], 3, qb, qkey).imm(77);
    let index = pair.a.post_send(qa, &work);
    assert_success(&pair.wait(Side::A, 0), index);
    pair.settle();
    pair.b.contents(&target)
}

fn assert_received(cqe: &Cqe, qa: u32, len: usize) {
    let expected = (
        status::SUCCESS,
        qa,
        (GRH_LEN + len) as u32,
        77,
        0xffff,
        true,
    );
    let found = (
        cqe.status,
        cqe.src_qpn,
        cqe.byte_len,
        cqe.imm,
        cqe.pkey,
        cqe.grh,
    );
    assert_eq!(found, expected, "{cqe:?}");
}

#[test]
fn a_datagram_brings_its_ip_header() {
    let v6: IpAddr = "2001:db8::7".parse().unwrap();
    let v4: IpAddr = "10.0.0.1".parse().unwrap();
    for ip in [v4, v6] {
        let other = if ip.is_ipv4() {
            "10.0.0.2"
        } else {
            "2001:db8::8"
        };
        let build = |memory| Box::new(Model::new(DEFAULT_PARAMS, memory)) as _;
        let mut pair = Pair::with_ip(build, [ip, other.parse().unwrap()]);
        let (qa, qb) = pair.connect(options(), options());
        let buffer = send(&mut pair, (qa, qb), &pattern(1000, 5), 1100, QKEY);
        assert_eq!(buffer[GRH_LEN..][..1000], pattern(1000, 5));
        assert_eq!(buffer[GRH_LEN + 1000..], [0xee; 60]);
        let cqe = pair.b.poll(0).expect("a completion");
        assert_received(&cqe, qa, 1000);
        let packet = &pair.packets(Side::A)[0];
        assert_eq!(packet.headers.bth.opcode, Opcode::UdSendOnlyImm);
        let header = match packet.headers.ip {
            Ip::V4(_) => {
                assert_eq!(buffer[..20], [0; 20]);
                assert_eq!(buffer[20], 0x45);
                &buffer[20 + 12..]
            }
            Ip::V6(_) => {
                assert_eq!(buffer[0] >> 4, 6);
                &buffer[8..]
            }
        };
        let octets = match ip {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        assert_eq!(header[..octets.len()], octets, "source address");
        assert!(pair.packets(Side::B).is_empty(), "nothing is answered");
        pair.assert_no_faults();
    }
}

#[test]
fn a_wrong_qkey_and_a_missing_buffer_drop_the_datagram() {
    let (mut pair, qa, qb) = connected(options());
    let buffer = send(&mut pair, (qa, qb), &[1; 8], 64, QKEY + 1);
    assert_eq!(buffer, [0xee; 64]);
    assert_eq!(pair.b.stat("rx_qkey_violations"), 1);
    // the buffer is still there for the next; the one behind it finds none
    let index = pair.a.post_send(qa, &Work::datagram(&[], 3, qb, QKEY));
    assert_success(&pair.wait(Side::A, 0), index);
    let index = pair.a.post_send(qa, &Work::datagram(&[], 3, qb, QKEY));
    assert_success(&pair.wait(Side::A, 0), index);
    pair.settle();
    let cqe = pair.b.poll(0).expect("a completion");
    assert_eq!((cqe.byte_len, cqe.wqe_index), (GRH_LEN as u32, 0));
    assert_eq!(pair.b.poll(0), None);
    assert_eq!(pair.b.query(qb).rq_state, state::RTS);
}

#[test]
fn a_short_buffer_ends_its_datagram_alone() {
    for room in [8, GRH_LEN + 7] {
        let (mut pair, qa, qb) = connected(options());
        send(&mut pair, (qa, qb), &[1; 8], room, QKEY);
        let cqe = pair.b.poll(0).expect("a completion");
        assert_status(&cqe, 0, status::LOC_LEN_ERR);
        assert_eq!(pair.b.query(qb).rq_state, state::RTS);
    }
}

#[test]
fn what_a_datagram_cannot_be_stops_the_send_queue() {
    for (work, expected) in [
        (Work::datagram(&[], 1 << 8, 2, QKEY), status::LOC_QP_OP_ERR),
        (Work::new(opcode::WRITE, &[]), status::LOC_QP_OP_ERR),
        (Work::new(opcode::READ, &[]), status::LOC_QP_OP_ERR),
        (Work::new(opcode::SEND_INV, &[]), status::LOC_QP_OP_ERR),
    ] {
        let (mut pair, qa, _) = connected(options());
        let index = pair.a.post_send(qa, &work);
        assert_status(&pair.wait(Side::A, 0), index, expected);
        assert_eq!(pair.a.query(qa).sq_state, state::SQE);
    }
    let (mut pair, qa, qb) = connected(options());
    let peer = pair.b.peer(qb);
    pair.a.write_ah(0, &peer, |_| {});
    let source = pair.a.create_mr(&[0; 1025], Rights::NONE);
    let index = pair
        .a
        .post_send(qa, &Work::datagram(&[source.all()], 0, qb, QKEY));
    assert_status(&pair.wait(Side::A, 0), index, status::LOC_LEN_ERR);
}

#[test]
fn a_datagram_to_the_own_address_comes_back() {
    let (mut pair, qa, _) = connected(options());
    let me = pair.a.peer(qa);
    pair.a.write_ah(0, &me, |_| {});
    let source = pair.a.create_mr(&pattern(100, 3), Rights::NONE);
    let target = pair.a.create_mr(&[0; 200], Rights::ALL);
    pair.a.post_recv(qa, &[target.all()]);
    pair.a
        .post_send(qa, &Work::datagram(&[source.all()], 0, qa, QKEY));
    let cqes = [pair.wait(Side::A, 0), pair.wait(Side::A, 0)];
    assert_eq!(cqes.iter().filter(|cqe| cqe.recv).count(), 1);
    assert_eq!(pair.a.contents(&target)[GRH_LEN..][..100], pattern(100, 3));
    assert!(pair.packets(Side::A).is_empty(), "the frame did not leave");
}
