//! Flows of the scenarios that fabrics are judged by.

use fastrand::Rng;

use super::flow::{ENDLESS, Flow, Start};
use super::{MS, Time};

/// `senders` hosts send `bytes` each to the host after them, all at once.
#[must_use]
pub fn incast(senders: usize, bytes: u64) -> Vec<Flow> {
    (0..senders)
        .map(|src| Flow::at(0, src, senders, bytes))
        .collect()
}

/// Each flow that starts at a time starts later, by up to `within` at random: of frames that reach a switch in the same picosecond
/// that of the lowest port goes first.
pub fn stagger(flows: &mut [Flow], within: Time, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    for flow in flows {
        if let Start::At(time) = &mut flow.start {
            *time += rng.u64(..=within);
        }
    }
}

/// Hosts 1 to `senders` send into one, and host 0, the victim, to another: it shares switches with them, not the port. Its flow is
/// the last.
#[must_use]
pub fn victim(senders: usize, bytes: u64) -> Vec<Flow> {
    let incast = (1..=senders).map(|src| Flow::at(0, src, senders + 1, bytes));
    incast.chain([Flow::at(0, 0, senders + 2, bytes)]).collect()
}

/// Each host sends to one other, and receives from one other, at random.
#[must_use]
pub fn permutation(hosts: usize, bytes: u64, seed: u64) -> Vec<Flow> {
    let mut order: Vec<usize> = (0..hosts).collect();
    Rng::with_seed(seed).shuffle(&mut order);
    // A single ring through all hosts: no host sends to itself.
    (0..hosts)
        .map(|at| Flow::at(0, order[at], order[(at + 1) % hosts], bytes))
        .collect()
}

/// Each host sends `bytes` to each other.
#[must_use]
pub fn all_to_all(hosts: usize, bytes: u64) -> Vec<Flow> {
    let pairs = (0..hosts).flat_map(|src| (1..hosts).map(move |step| (src, (src + step) % hosts)));
    pairs
        .map(|(src, dst)| Flow::at(0, src, dst, bytes))
        .collect()
}

/// All-reduce of `bytes` in a ring: 2(n-1) steps of `bytes`/n to the next host, each when that of the host before has come.
#[must_use]
pub fn ring_allreduce(hosts: usize, bytes: u64) -> Vec<Flow> {
    let part = (bytes / hosts as u64).max(1);
    let mut flows = Vec::new();
    for step in 0..2 * (hosts - 1) {
        for src in 0..hosts {
            let start = match step.checked_sub(1) {
                None => Start::At(0),
                Some(before) => Start::After(vec![before * hosts + (src + hosts - 1) % hosts]),
            };
            flows.push(Flow {
                start,
                ..Flow::at(0, src, (src + 1) % hosts, part)
            });
        }
    }
    flows
}

/// All-reduce of `bytes` in a binary tree: up to host 0 when both below have come, then down.
#[must_use]
pub fn tree_allreduce(hosts: usize, bytes: u64) -> Vec<Flow> {
    // Flow i-1 leads up from host i, flow hosts-2+i down to it.
    let up = |host: usize| host - 1;
    let down = |host: usize| hosts - 2 + host;
    let below = |host: usize| {
        [2 * host + 1, 2 * host + 2]
            .into_iter()
            .filter(|&b| b < hosts)
    };
    let after = |needs: Vec<usize>| match needs.is_empty() {
        true => Start::At(0),
        false => Start::After(needs),
    };
    let mut flows = Vec::new();
    for host in 1..hosts {
        flows.push(Flow {
            start: after(below(host).map(up).collect()),
            ..Flow::at(0, host, (host - 1) / 2, bytes)
        });
    }
    for host in 1..hosts {
        let parent = (host - 1) / 2;
        let needs = match parent {
            0 => below(0).map(up).collect(),
            _ => vec![down(parent)],
        };
        flows.push(Flow {
            start: after(needs),
            ..Flow::at(0, parent, host, bytes)
        });
    }
    flows
}

/// Flow sizes: bytes and the share, in thousandths, of flows that are no larger. Between two points the size is drawn evenly.
pub type Sizes = &'static [(u64, u32)];

/// Web search (Alizadeh et al., SIGCOMM 2010), as simulations of RDMA congestion control have it.
pub const WEB_SEARCH: Sizes = &[
    (1, 0),
    (10_000, 150),
    (20_000, 200),
    (30_000, 300),
    (50_000, 400),
    (80_000, 530),
    (200_000, 600),
    (1_000_000, 700),
    (2_000_000, 800),
    (5_000_000, 900),
    (10_000_000, 970),
    (30_000_000, 1000),
];

/// Hadoop at Facebook (Roy et al., SIGCOMM 2015), as simulations of RDMA congestion control have it.
pub const HADOOP: Sizes = &[
    (1, 0),
    (100, 10),
    (200, 20),
    (300, 50),
    (350, 150),
    (400, 200),
    (500, 300),
    (600, 400),
    (700, 500),
    (1_000, 600),
    (2_000, 670),
    (7_000, 700),
    (30_000, 720),
    (50_000, 820),
    (80_000, 870),
    (120_000, 900),
    (300_000, 950),
    (1_000_000, 975),
    (2_000_000, 990),
    (10_000_000, 1000),
];

/// Mean of a distribution, bytes.
#[must_use]
pub fn mean_size(sizes: Sizes) -> f64 {
    let pairs = sizes.windows(2);
    let parts = pairs.map(|pair| {
        let [(low, before), (high, after)] = [pair[0], pair[1]];
        (low + high) as f64 / 2.0 * f64::from(after - before) / 1000.0
    });
    parts.sum()
}

fn draw(sizes: Sizes, rng: &mut Rng) -> u64 {
    let share = rng.u32(..1000);
    let at = sizes.iter().position(|&(_, upto)| upto > share);
    let at = at.expect("the last share is all");
    rng.u64(sizes[at - 1].0..=sizes[at].0)
}

/// Flows between random hosts that come at random (Poisson) for `time`, and fill `load` of what the hosts can send at `mbps`.
#[must_use]
pub fn mix(sizes: Sizes, hosts: usize, mbps: u32, load: f64, time: Time, seed: u64) -> Vec<Flow> {
    let mut rng = Rng::with_seed(seed);
    let bytes_per_ps = hosts as f64 * f64::from(mbps) * load / 8e6;
    let gap = mean_size(sizes) / bytes_per_ps;
    let mut now = 0.0;
    let mut flows = Vec::new();
    loop {
        now += -(1.0 - rng.f64()).ln() * gap;
        if now >= time as f64 {
            return flows;
        }
        let src = rng.usize(..hosts);
        let dst = (src + rng.usize(1..hosts)) % hosts;
        flows.push(Flow::at(now as Time, src, dst, draw(sizes, &mut rng)));
    }
}

/// The five scenarios of the recorded DCQCN simulations, by number: hosts, flows and how long.
///
/// One flow; two, the second 10 ms later; four that come and go; incast of 16; incast of 8 with a victim.
///
/// # Panics
/// From number 6 on, and for 0.
#[must_use]
pub fn recorded(number: usize) -> (usize, Vec<Flow>, Time) {
    let endless = |start: Time, src, dst| Flow::at(start, src, dst, ENDLESS);
    match number {
        1 => (2, vec![endless(0, 0, 1)], 10 * MS),
        2 => (3, vec![endless(0, 0, 2), endless(10 * MS, 1, 2)], 30 * MS),
        3 => {
            let flows = (0..4u64).map(|at| Flow {
                stop: Some((35 - 5 * at) * MS),
                ..endless(5 * at * MS, at as usize, 4)
            });
            (5, flows.collect(), 35 * MS)
        }
        4 => (
            17,
            (0..16).map(|src| endless(0, src, 16)).collect(),
            20 * MS,
        ),
        5 => {
            let mut flows: Vec<_> = (0..8).map(|src| endless(0, src, 8)).collect();
            flows.push(endless(0, 9, 10));
            (11, flows, 20 * MS)
        }
        _ => panic!("scenario {number} of 5"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_sends_to_one_other() {
        let flows = permutation(16, 1, 7);
        let mut to: Vec<_> = flows.iter().map(|flow| flow.dst).collect();
        to.sort_unstable();
        assert_eq!(to, (0..16).collect::<Vec<_>>());
        assert!(flows.iter().all(|flow| flow.src != flow.dst));
    }

    #[test]
    fn a_collective_depends_on_what_its_senders_receive() {
        for flows in [ring_allreduce(5, 100), tree_allreduce(6, 100)] {
            for flow in &flows {
                if let Start::After(needs) = &flow.start {
                    assert!(!needs.is_empty());
                    assert!(needs.iter().all(|&need| flows[need].dst == flow.src));
                }
            }
        }
        assert_eq!(ring_allreduce(5, 100).len(), 40);
        assert_eq!(tree_allreduce(6, 100).len(), 10);
    }

    #[test]
    fn a_mix_fills_what_was_asked_for() {
        assert!((mean_size(WEB_SEARCH) - 1.71e6).abs() < 0.05e6);
        for sizes in [WEB_SEARCH, HADOOP] {
            let flows = mix(sizes, 16, 100_000, 0.5, 100 * MS, 3);
            let bytes: u64 = flows.iter().map(|flow| flow.bytes).sum();
            let expected = 16.0 * 0.5 * 100e9 / 8.0 * 0.1;
            assert!((bytes as f64 / expected - 1.0).abs() < 0.2, "{bytes}");
        }
    }
}
