//! Every queue pair of a card with a rate of its own, all together the rate of the port: does each keep it?

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use ferroce_proto::abi::qpc::{RATE_HEADERS, qp_type};
use ferroce_proto::wire::{Mac, Mtu, Packet};
use ferroce_sim::nic::NS_PER_CYCLE;
use ferroce_sim::testhost::{Peer, QpOptions, Rights, Work};

use super::rig::{Rig, Setup};

/// Bytes of a WRITE.
const BYTES: u32 = 1000;
/// Rate of all queue pairs together, Mb/s.
const LINE: u64 = 100_000;
/// Messages of a queue pair, and the first of them, which are not measured: all queue pairs begin at once, and the port is late for them.
const MESSAGES: u64 = 64;
const BEGIN: u64 = 8;
/// Cycles without a packet after which something is lost: the lowest rate has a packet in 2 ms.
const PATIENCE: u64 = 4_000_000;

/// What came out, in percent.
pub(super) struct Paced {
    /// The largest difference of a queue pair from its rate.
    pub(super) worst: f64,
    /// What all send, of the sum of their rates, while all do.
    pub(super) sum: f64,
}

/// A queue pair: its rate, and when its packets left.
#[derive(Clone, Default)]
struct Sender {
    mbps: u32,
    left: u64,
    first: u64,
    last: u64,
}

/// Queue pairs 2 and up write to a peer that says nothing (UC), each as fast as its limit lets it.
pub(super) fn run(setup: &Setup) -> Result<Paced> {
    let mut rig = Rig::new(setup, 1)?;
    let mut rng = Rng::with_seed(setup.seed);
    let numbers = 2..1u32 << setup.build.tables.log_qp;
    let mut senders = vec![Sender::default(); numbers.end as usize];
    let weights: Vec<_> = numbers.clone().map(|_| 0.6 + 0.8 * rng.f64()).collect();
    let all: f64 = weights.iter().sum();
    let host = &mut rig.hosts[0];
    let memory = host.create_mr(&[1; BYTES as usize], Rights::ALL);
    for (qpn, weight) in numbers.clone().zip(&weights) {
        let mbps = (weight / all * LINE as f64) as u32;
        senders[qpn as usize].mbps = mbps;
        let options = QpOptions {
            qp_type: qp_type::UC,
            mtu: Mtu::Mtu1024,
            sq_log: MESSAGES.ilog2() as u8,
            rq_log: 0,
            ot_log: 2,
            rate_limit: mbps,
            ..QpOptions::default()
        };
        host.create_qp_as(qpn, options);
        let peer = Peer {
            mac: Mac([2, 0, 0, 0, 0, 2]),
            gid: Ipv4Addr::new(10, 0, 0, 2).into(),
            qpn,
            psn: 0,
        };
        host.connect(qpn, &peer);
    }
    let write = Work::write(&[memory.all()], &memory, 0).unsignaled();
    for qpn in numbers.clone() {
        for _ in 1..MESSAGES {
            host.write_slots(qpn, &write.slots());
        }
        host.post_send(qpn, &write);
    }
    rig.kept[0] = Some(Vec::new());
    let count = MESSAGES * numbers.len() as u64;
    let (mut left, mut latest) = (0, rig.now);
    // packets up to the first queue pair that is done, from the last one that began
    let (mut begun, mut window, mut open) = (0, (0, 0, 0), true);
    while left < count {
        rig.step();
        let now = rig.now;
        for frame in rig.kept[0].as_mut().expect("kept").drain(..) {
            let qpn = Packet::parse(&frame)
                .context("a WRITE")?
                .headers
                .bth
                .dest_qp;
            let sender = &mut senders[qpn as usize];
            if sender.left == BEGIN {
                sender.first = now;
                begun += 1;
            }
            sender.left += 1;
            sender.last = now;
            open &= sender.left < MESSAGES;
            if begun == numbers.len() && open {
                if window.0 == 0 {
                    window.0 = now;
                }
                window = (window.0, now, window.2 + 1);
            }
            (left, latest) = (left + 1, now);
        }
        ensure!(now - latest < PATIENCE, "{left} of {count} packets left");
    }
    rig.check()?;
    let bits = u64::from(BYTES + RATE_HEADERS) * 8;
    let mbps = |packets: u64, cycles: u64| {
        (packets * bits) as f64 * 1000.0 / (cycles * NS_PER_CYCLE) as f64
    };
    let off = |sender: &Sender| {
        let rate = mbps(MESSAGES - 1 - BEGIN, sender.last - sender.first);
        (rate / f64::from(sender.mbps) - 1.0).abs() * 100.0
    };
    let asked: u64 = senders.iter().map(|sender| u64::from(sender.mbps)).sum();
    let sent = mbps(window.2 - 1, window.1 - window.0);
    Ok(Paced {
        worst: senders[2..].iter().map(off).fold(0.0, f64::max),
        sum: sent / asked as f64 * 100.0,
    })
}
