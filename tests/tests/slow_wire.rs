//! A wire of 100 Gb/s, 0.78 beats of 64 bytes a cycle, behind an engine of 250 MHz and host memory of 1 us: one class fills it, with
//! WRITEs and with responses to READs.
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use ferroce_proto::abi::regs;
use ferroce_proto::wire::{BthRepr, EthRepr, Extensions, Headers, Ip, Mtu, Opcode, Psn, UdpRepr};
use ferroce_sim::memory::HostMemory;
use ferroce_sim::nic::Nic;
use ferroce_sim::packet;
use ferroce_sim::random::Pauses;
use ferroce_sim::rtl::{Options, build};
use ferroce_sim::testhost::{Mr, Pair, QpOptions, Rights, Side, Work, pattern};
use ferroce_sim::verilator;

/// Chance that the wire takes no beat in a cycle.
const IDLE: f64 = 0.22;
const QUEUE_PAIRS: usize = 16;
/// Traffic class of the class with a small share, class 1.
const SMALL: u8 = 0x60;

const IPV4: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
];
const IPV6: [IpAddr; 2] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)),
];

/// Behind a wire that takes no beat with the chance `idle`.
fn world(idle: f64) -> Options {
    Options {
        tx: Pauses::new(idle, 1),
        ..Options::host(1)
    }
}

/// Two cards, and 16 queue pairs between them; with the memory of both.
fn cards(engine: &verilator::Model, ip: [IpAddr; 2], world: &Options) -> (Pair, Vec<u32>, [Mr; 2]) {
    let card = |memory: Rc<dyn HostMemory>| -> Box<dyn Nic> {
        Box::new(build::engine(engine, memory, world).expect("there is memory"))
    };
    let mut pair = Pair::with_ip(card, ip);
    let options = QpOptions {
        mtu: Mtu::Mtu4096,
        ..options()
    };
    let qpns = (0..QUEUE_PAIRS).map(|_| pair.connect(options, options).0);
    let qpns = qpns.collect();
    let near = pair.a.create_mr(&pattern(1 << 16, 1), Rights::ALL);
    let far = pair.b.create_mr(&pattern(1 << 16, 2), Rights::ALL);
    (pair, qpns, [near, far])
}

fn options() -> QpOptions {
    QpOptions {
        sq_log: 5,
        timeout: 20,
        max_rd_atomic: 16,
        ..QpOptions::default()
    }
}

/// Beats of 64 bytes a cycle on the wire from `from`, with WRITEs by it or READs of it of `length` bytes; so many of each queue pair wait.
fn rate(engine: &verilator::Model, from: Side, length: u32, depth: usize) -> f64 {
    let (mut pair, qpns, [near, far]) = cards(engine, IPV4, &world(IDLE));
    let list = [near.sge(0, length)];
    let work = match from {
        Side::A => Work::write(&list, &far, 0),
        Side::B => Work::read(&list, &far, 0),
    };
    for _ in 0..depth {
        for &qpn in &qpns {
            pair.a.post_send(qpn, &work);
        }
    }
    let messages = depth * QUEUE_PAIRS;
    let mut start = 0;
    // the first of each begin together
    for done in 0..2 * messages {
        if done == messages / 2 {
            start = pair.a.nic.now();
            pair.sent.clear();
        }
        let cqe = pair.wait(Side::A, 0);
        assert_eq!(cqe.status, 0);
        pair.a.post_send(cqe.qpn, &work);
    }
    let cycles = pair.a.nic.now() - start;
    let frames = pair.sent.iter().filter(|(side, _)| *side == from);
    let beats: usize = frames.map(|(_, frame)| frame.len().div_ceil(64)).sum();
    beats as f64 / cycles as f64
}

#[test]
fn one_class_fills_it() {
    let engine = build::model(512, &verilator::Options::default()).expect("the engine builds");
    for (from, length, depth) in [
        (Side::A, 4096, 24),
        (Side::A, 1 << 16, 3),
        (Side::B, 4096, 16),
        (Side::B, 1 << 16, 3),
    ] {
        let beats = rate(&engine, from, length, depth);
        println!("{length} bytes from {from:?}: {beats:.3} beats a cycle");
        assert!(
            beats > 0.97 * (1.0 - IDLE),
            "{length} bytes from {from:?}: {beats:.3} beats a cycle"
        );
    }
}

/// Responses to READs, or short requests, fill the queue of their class. Beside them requests of any length leave, and acknowledgements.
#[test]
fn what_fills_a_class_leaves_room() {
    const CYCLES: u64 = 70_000;
    let engine = build::model(512, &verilator::Options::default()).expect("the engine builds");
    // half of what there is of both
    for (beside, side, length, least_writes, least_loads) in [
        ("READs", Side::A, 8, 7, 20),
        ("READs", Side::B, 8, 11, 20),
        ("READs", Side::B, 1 << 14, 9, 18),
        ("READs", Side::B, 1 << 16, 6, 13),
        ("WRITEs", Side::A, 1 << 16, 2, 300),
    ] {
        let (mut pair, qpns, [near, far]) = cards(&engine, IPV4, &world(IDLE));
        // parts of 64 packets need the most room
        let (qa, qb) = pair.connect(options(), options());
        let (own, from, to) = match side {
            Side::A => (qa, &near, &far),
            Side::B => (qb, &far, &near),
        };
        let write = Work::write(&[from.sge(0, length)], to, 0);
        let load = match beside {
            "READs" => Work::read(&[near.sge(0, 1 << 16)], &far, 0),
            _ => Work::write(&[near.sge(0, 4096)], &far, 0),
        };
        for _ in 0..16 {
            for &qpn in &qpns {
                pair.a.post_send(qpn, &load);
            }
        }
        let (start, mut loads, mut writes) = (pair.a.nic.now(), 0, 0);
        for cycle in start..start + CYCLES {
            pair.run(1);
            // when they fill the queue
            if cycle == start + 10_000 {
                pair.host(side).post_send(own, &write);
                loads = 0;
            }
            for at in [Side::A, Side::B] {
                while let Some(cqe) = pair.host(at).poll(0) {
                    assert_eq!(cqe.status, 0);
                    let is_own = (at, cqe.qpn) == (side, own);
                    let (count, work) = if is_own {
                        (&mut writes, &write)
                    } else {
                        (&mut loads, &load)
                    };
                    *count += 1;
                    pair.host(at).post_send(cqe.qpn, work);
                }
            }
        }
        println!("{writes} of {length} bytes from {side:?} beside {loads} {beside}");
        assert!(
            writes >= least_writes && loads >= least_loads,
            "{writes} beside {loads}"
        );
    }
}

/// A request without payload that came before, of B to a queue pair of A.
fn duplicate(pair: &Pair, qpn: u32) -> Vec<u8> {
    let earlier = Psn::new(QpOptions::default().psn).prev();
    let headers = Headers {
        eth: EthRepr {
            dst: pair.a.mac,
            src: pair.b.mac,
            vlan: None,
        },
        ip: Ip::between(pair.b.gid, pair.a.gid, 0, 0, 64).expect("both are of one family"),
        udp: UdpRepr { src_port: 0xc000 },
        bth: BthRepr::new(Opcode::RcSendOnly, qpn, earlier),
        ext: Extensions::default(),
    };
    packet::frame(&headers, &[])
}

/// A peer fills the wire with duplicates, each of two beats, and each is acknowledged with two: data has half of the wire.
#[test]
fn acknowledgements_leave_data_a_half() {
    /// Duplicates in as many cycles: all that the wire takes.
    const DUPLICATES: usize = 15;
    const CYCLES: u64 = 100;
    let engine = build::model(512, &verilator::Options::default()).expect("the engine builds");
    let (mut pair, qpns, [near, far]) = cards(&engine, IPV6, &world(0.7));
    let flooded: Vec<_> = (0..64)
        .map(|_| pair.connect(options(), options()).0)
        .collect();
    let flood: Vec<_> = flooded.iter().map(|&qpn| duplicate(&pair, qpn)).collect();
    let is_ack = |frame: &[u8]| frame.len() < 100;
    // what they acknowledge was never sent
    pair.wire = Box::new(move |side, frame| match side {
        Side::A if is_ack(frame) => vec![],
        _ => vec![frame.to_vec()],
    });
    let write = Work::write(&[near.sge(0, 4096)], &far, 0);
    for _ in 0..16 {
        for &qpn in &qpns {
            pair.a.post_send(qpn, &write);
        }
    }
    let mut flood = flood.iter().cycle();
    for round in 0..250 {
        if round == 100 {
            pair.sent.clear();
        }
        for frame in flood.by_ref().take(DUPLICATES) {
            pair.a.nic.receive(frame);
        }
        pair.run(CYCLES);
        while let Some(cqe) = pair.a.poll(0) {
            assert_eq!(cqe.status, 0);
            pair.a.post_send(cqe.qpn, &write);
        }
    }
    let mut beats = [0, 0];
    for (_, frame) in pair.sent.iter().filter(|(side, _)| *side == Side::A) {
        beats[usize::from(is_ack(frame))] += frame.len().div_ceil(64);
    }
    let [data, acks] = beats;
    println!("{data} beats of data beside {acks} of acknowledgements");
    assert!(
        acks > 1000 && 5 * data > 4 * acks,
        "{data} beats of data beside {acks} of acknowledgements"
    );
}

/// A class with a small share waits most of the time. Its requests, which are tried again, take little of host memory from another.
#[test]
fn a_small_share_leaves_host_memory() {
    /// Chance that host memory gives no beat in a cycle.
    const BUSY: f64 = 0.15;
    const CYCLES: u64 = 60_000;
    let engine = build::model(512, &verilator::Options::default()).expect("the engine builds");
    let mut world = world(IDLE);
    world.memory.r = Pauses::new(BUSY, 1);
    let of_small = QpOptions {
        tclass: SMALL,
        ..options()
    };
    let [alone, beside] = [0, QUEUE_PAIRS].map(|small| {
        let (mut pair, qpns, [near, far]) = cards(&engine, IPV4, &world);
        pair.a.write32(regs::CLASS_WEIGHT, 0x0202_0278);
        // parts of 64 packets need the most room, and claim it from shorter ones
        let [write, short] = [1 << 16, 1 << 12].map(|n| Work::write(&[near.sge(0, n)], &far, 0));
        let mut works: BTreeMap<_, _> = qpns.into_iter().map(|qpn| (qpn, &write)).collect();
        for work in [&write, &short] {
            works.extend((0..small).map(|_| (pair.connect(of_small, of_small).0, work)));
        }
        for (&qpn, work) in &works {
            for _ in 0..8 {
                pair.a.post_send(qpn, work);
            }
        }
        for cycle in 0..CYCLES {
            // when they fill the queues
            if cycle == CYCLES / 3 {
                pair.sent.clear();
            }
            pair.run(1);
            while let Some(cqe) = pair.a.poll(0) {
                assert_eq!(cqe.status, 0);
                pair.a.post_send(cqe.qpn, works[&cqe.qpn]);
            }
        }
        let sent = |tclass: u8| -> usize {
            let frames = pair.sent.iter().filter(|(side, _)| *side == Side::A);
            let frames = frames.filter(|(_, frame)| frame[15] & 0xfc == tclass);
            frames.map(|(_, frame)| frame.len().div_ceil(64)).sum()
        };
        println!("{} beats beside {} of a small share", sent(0), sent(SMALL));
        sent(0)
    });
    assert!(beside * 5 > alone * 4, "{beside} beats, {alone} alone");
}
