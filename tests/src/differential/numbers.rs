//! What of a scenario no rule depends on: addresses, numbers of objects, fields of headers. Drawn from its seed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fastrand::Rng;
use ferroce_proto::abi::qpc::AvCtx;
use ferroce_proto::abi::regs::Params;
use ferroce_proto::wire::Mac;

use super::scenario::{Scenario, region};

/// The lowest number of a queue pair, and two that scenarios use for what is not there.
const FIRST: u32 = 2;
const UNUSED: [u32; 2] = [14, 15];
/// Slots for the outstanding messages of a connection.
const POOL: u32 = 16;

/// The draw; arrays by side.
pub(super) struct Numbers {
    /// MAC address of the ports.
    pub(super) mac: [Mac; 2],
    /// Addresses of the hosts, both of one kind.
    pub(super) ip: [IpAddr; 2],
    /// Where these stand in the GID tables.
    pub(super) gid: [u8; 2],
    /// Completion queues.
    pub(super) cqn: [Vec<u16>; 2],
    /// Queue pairs of the connections.
    pub(super) qpn: [Vec<u32>; 2],
    /// First region of each connection.
    pub(super) region: [Vec<u32>; 2],
    /// First slot for outstanding messages of each connection.
    pub(super) pool: [Vec<u32>; 2],
    /// Of the connections.
    pub(super) paths: Vec<Path>,
}

/// What a connection has in its headers and contexts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// Protection domain; another one is next to it.
    pub(super) pd: u32,
    /// P_Key of a full member.
    pub(super) pkey: u16,
    tclass: u8,
    hop_limit: u8,
    flow_label: u32,
    udp_sport: u16,
}

impl Numbers {
    pub(super) fn draw(scenario: &Scenario, params: &Params) -> Self {
        let mut rng = Rng::with_seed(!scenario.seed);
        let count = scenario.connections.len();
        let v6 = scenario.ipv6;
        Self {
            mac: both(|| mac(&mut rng)),
            ip: both(|| ip(&mut rng, v6)),
            gid: both(|| rng.u8(..1 << params.log_gid)),
            cqn: both(|| {
                let cqns = different(&mut rng, scenario.cqs.into(), 0..1 << params.log_cq, &[]);
                cqns.into_iter().map(|cqn| cqn as u16).collect()
            }),
            // The last is unused.
            qpn: both(|| {
                let end = (1 << params.log_qp) - 1;
                different(&mut rng, count, FIRST..end, &UNUSED)
            }),
            region: both(|| {
                let kinds = region::COUNT as u32;
                let places = ((1 << params.log_mr) - 1) / kinds;
                let blocks = different(&mut rng, count, 0..places, &[]);
                blocks.into_iter().map(|block| 1 + block * kinds).collect()
            }),
            pool: both(|| {
                let blocks = different(
                    &mut rng,
                    count,
                    0..(1 << params.log_outstanding) / POOL,
                    &[],
                );
                blocks.into_iter().map(|block| block * POOL).collect()
            }),
            paths: (0..count).map(|_| Path::draw(&mut rng)).collect(),
        }
    }
}

impl Path {
    fn draw(rng: &mut Rng) -> Self {
        Self {
            pd: rng.u32(..(1 << 24) - 1),
            pkey: rng.u16(..) | 0x8000,
            // No mark of congestion.
            tclass: rng.u8(..) & !1,
            hop_limit: rng.u8(1..),
            flow_label: rng.u32(..1 << 20),
            udp_sport: rng.u16(..),
        }
    }

    /// An address vector as the connection has it.
    pub(super) fn of(&self, av: AvCtx, sgid_index: u8) -> AvCtx {
        AvCtx {
            sgid_index,
            tclass: self.tclass,
            hop_limit: self.hop_limit,
            flow_label: if av.ipv6 { self.flow_label } else { 0 },
            udp_sport: self.udp_sport,
            pkey: self.pkey,
            ..av
        }
    }
}

fn both<T>(mut draw: impl FnMut() -> T) -> [T; 2] {
    [draw(), draw()]
}

/// Numbers of a range, all different and none of `without`.
fn different(
    rng: &mut Rng,
    count: usize,
    range: std::ops::Range<u32>,
    without: &[u32],
) -> Vec<u32> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let number = rng.u32(range.clone());
        if !numbers.contains(&number) && !without.contains(&number) {
            numbers.push(number);
        }
    }
    numbers
}

/// Of one station.
fn mac(rng: &mut Rng) -> Mac {
    let mut bytes = std::array::from_fn(|_| rng.u8(..));
    bytes[0] &= !1;
    Mac(bytes)
}

/// Of one host.
fn ip(rng: &mut Rng, v6: bool) -> IpAddr {
    if v6 {
        let bytes = rng.u128(..) >> 3 | 1 << 125;
        return Ipv6Addr::from(bytes).into();
    }
    loop {
        let address = Ipv4Addr::from(rng.u32(1 << 24..224 << 24));
        if !address.is_loopback() {
            return address.into();
        }
    }
}
