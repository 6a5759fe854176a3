//! Two hosts with neighbour handling, and frames written by hand.

use std::cell::RefCell;
use std::error::Error;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use ferroce_driver::{Backend, Context, Gid, Mac, NeighbourConfig, Neighbours};
use ferroce_sim::card::SimCard;
use ferroce_sim::link::Config;
use ferroce_sim::memory::{HostMemory, ProcessMemory};
use ferroce_sim::model::{DEFAULT_PARAMS, Model};
use ferroce_sim::nic::Nic;
use ferroce_sim::rtl::{Options, build};
use ferroce_sim::verilator;
use ferroce_sim::world::{Event, NodeId, Observer, World};

pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

pub(crate) const MAC: [Mac; 2] = [Mac([2, 0, 0, 0, 0, 0xa]), Mac([2, 0, 0, 0, 0, 0xb])];
/// Of a station that exists in frames only.
pub(crate) const OTHER: Mac = Mac([2, 0, 0, 0, 0, 0xee]);
pub(crate) const BROADCAST: Mac = Mac([0xff; 6]);
/// Short times: what is tested is their number and order.
pub(crate) const CONFIG: NeighbourConfig = {
    NeighbourConfig {
        slots: 16,
        jumbo: false,
        vlan: None,
        tries: 3,
        retry_ns: 20_000,
        reachable_ns: 1_000_000,
        entries: 8,
        queue: 3,
    }
};

/// What a card is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Model,
    /// The standard build with a data path of so many bits.
    Rtl(usize),
}

pub(crate) fn v4(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 1 + host as u8)
}

pub(crate) fn v6(host: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0x12, 0x3401 + host as u16)
}

/// Entry of the GID table: link-local, IPv4, IPv6.
pub(crate) fn gid(host: usize, index: u8) -> Gid {
    match index {
        0 => Gid::link_local(MAC[host]),
        1 => v4(host).into(),
        _ => v6(host).into(),
    }
}

/// All frames that left a card.
#[derive(Default)]
pub(crate) struct Sent(pub(crate) Vec<Vec<u8>>);

impl Observer for Sent {
    fn frame(&mut self, event: &Event<'_>) {
        if event.direction == ferroce_sim::world::Direction::Transmit {
            self.0.push(event.frame.to_vec());
        }
    }
}

/// Hosts on a wire; a single one is on none.
pub(crate) struct Rig {
    pub(crate) world: Rc<RefCell<World>>,
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) hosts: Vec<Context<SimCard>>,
    pub(crate) sent: Rc<RefCell<Sent>>,
}

impl Rig {
    pub(crate) fn new(kind: Kind, count: usize) -> Result<Self> {
        let model = match kind {
            Kind::Model => None,
            Kind::Rtl(width) => Some(build::model(width, &verilator::Options::default())?),
        };
        let nic = |memory: Rc<dyn HostMemory>| -> Result<Box<dyn Nic>> {
            Ok(match &model {
                None => Box::new(Model::new(DEFAULT_PARAMS, memory)),
                Some(model) => Box::new(build::engine(model, memory, &Options::host(7))?),
            })
        };
        let world = Rc::new(RefCell::new(World::new()));
        let mut cards = Vec::new();
        for i in 0..count {
            let memory = Rc::new(ProcessMemory::new());
            let nic = nic(memory.clone())?;
            let node = world.borrow_mut().add(format!("host{i}"), nic);
            cards.push((node, memory));
        }
        let nodes: Vec<_> = cards.iter().map(|(node, _)| *node).collect();
        if let [a, b] = nodes[..] {
            let wire = Config::ethernet_100g();
            world.borrow_mut().connect(a, b, wire.clone(), wire);
        }
        let sent = Rc::new(RefCell::new(Sent::default()));
        world.borrow_mut().observe(sent.clone());
        let mut hosts = Vec::new();
        for (i, (node, memory)) in cards.into_iter().enumerate() {
            let host = Context::open(SimCard::new(world.clone(), node, memory))?;
            host.set_mac(MAC[i])?;
            for index in 0..3 {
                host.set_gid(index, gid(i, index))?;
            }
            hosts.push(host);
        }
        Ok(Self {
            world,
            nodes,
            hosts,
            sent,
        })
    }

    pub(crate) fn neighbours(&self, host: usize) -> Result<Neighbours<SimCard>> {
        Ok(Neighbours::new(&self.hosts[host], CONFIG)?)
    }

    /// Lets time pass while both sides handle their frames.
    pub(crate) fn run(&self, sides: &mut [&mut Neighbours<SimCard>], ns: u64) {
        let card = self.hosts[0].backend();
        let end = card.now_ns() + ns;
        while card.now_ns() < end {
            for side in &mut *sides {
                side.poll();
            }
            card.relax();
        }
    }

    /// Puts frames before the first card, which handles them.
    pub(crate) fn inject(&self, side: &mut Neighbours<SimCard>, frames: &[Vec<u8>]) {
        for frame in frames {
            self.world.borrow_mut().inject(self.nodes[0], frame);
            self.run(&mut [side], 4_000);
        }
    }

    /// Frames sent since the last call.
    pub(crate) fn take_sent(&self) -> Vec<Vec<u8>> {
        while self.nodes.len() == 1 && self.world.borrow_mut().take(self.nodes[0]).is_some() {}
        std::mem::take(&mut self.sent.borrow_mut().0)
    }

    pub(crate) fn assert_healthy(&self) {
        let failures = self.world.borrow().failures();
        assert!(failures.is_empty(), "{failures:?}");
    }
}

fn ethernet(dst: Mac, src: Mac, ethertype: u16) -> Vec<u8> {
    [&dst.0[..], &src.0, &ethertype.to_be_bytes()].concat()
}

/// An ARP packet (RFC 826) by hand.
pub(crate) fn arp(dst: Mac, op: u16, from: (Mac, Ipv4Addr), to: (Mac, Ipv4Addr)) -> Vec<u8> {
    let mut frame = ethernet(dst, from.0, 0x0806);
    frame.extend([0, 1, 8, 0, 6, 4]);
    frame.extend(op.to_be_bytes());
    for (mac, ip) in [from, to] {
        frame.extend(mac.0);
        frame.extend(ip.octets());
    }
    frame
}

/// The Internet checksum (RFC 1071).
pub(crate) fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let mut sum = 0;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// An ICMPv6 message in a frame, with its checksum.
pub(crate) fn icmpv6(
    (dst_mac, dst): (Mac, Ipv6Addr),
    (src_mac, src): (Mac, Ipv6Addr),
    hops: u8,
    mut message: Vec<u8>,
) -> Vec<u8> {
    let pseudo = [
        &src.octets()[..],
        &dst.octets(),
        &(message.len() as u32).to_be_bytes(),
        &[0, 0, 0, 58],
    ]
    .concat();
    message[2..4].fill(0);
    let sum = checksum(&[&pseudo, &message]);
    message[2..4].copy_from_slice(&sum);
    let mut frame = ethernet(dst_mac, src_mac, 0x86dd);
    frame.extend([0x60, 0, 0, 0]);
    frame.extend((message.len() as u16).to_be_bytes());
    frame.extend([58, hops]);
    frame.extend(src.octets());
    frame.extend(dst.octets());
    frame.extend(message);
    frame
}

/// Neighbour solicitation (135) or advertisement (136) with its link-layer address option.
pub(crate) fn nd(kind: u8, flags: u8, target: Ipv6Addr, mac: Option<Mac>) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 0, flags, 0, 0, 0];
    message.extend(target.octets());
    if let Some(mac) = mac {
        message.extend([kind - 134, 1]);
        message.extend(mac.0);
    }
    message
}

/// An echo request (8) or reply (0) over IPv4, with its checksums.
pub(crate) fn ping(
    (dst_mac, dst): (Mac, Ipv4Addr),
    (src_mac, src): (Mac, Ipv4Addr),
    kind: u8,
    data: &[u8],
) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 0, 0x12, 0x34, 0, 7];
    message.extend(data);
    let sum = checksum(&[&message]);
    message[2..4].copy_from_slice(&sum);
    let mut header = vec![0x45, 0];
    header.extend((20 + message.len() as u16).to_be_bytes());
    header.extend([0, 0, 0x40, 0, 64, 1, 0, 0]);
    header.extend(src.octets());
    header.extend(dst.octets());
    let sum = checksum(&[&header]);
    header[10..12].copy_from_slice(&sum);
    [ethernet(dst_mac, src_mac, 0x0800), header, message].concat()
}

/// Multicast MAC and address at which the host with an address hears solicitations.
pub(crate) fn solicited_node(ip: Ipv6Addr) -> (Mac, Ipv6Addr) {
    let [.., a, b, c] = ip.octets();
    let group = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c];
    (Mac([0x33, 0x33, 0xff, a, b, c]), group.into())
}
