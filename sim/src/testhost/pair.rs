//! Two hosts and the link between them.

use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use ferroce_proto::abi::cq::Cqe;
use ferroce_proto::wire::{Mac, Packet};

use super::{Host, QpOptions};
use crate::memory::HostMemory;
use crate::nic::Nic;

/// Cycles after which a completion that is waited for does not come any more.
const COMPLETION_CYCLES: u64 = 50_000_000;

/// Cycles without a frame or a step that must be taken after which a link counts as quiet.
const QUIET_CYCLES: u64 = 2_000;

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that mostly requests, 10.0.0.2 in the captures.
    A,
    /// The one that mostly responds.
    B,
}

/// What a link does with a frame from a host: the frames that arrive in its place, in order.
pub type Wire = Box<dyn FnMut(Side, &[u8]) -> Vec<Vec<u8>>>;

/// Two hosts joined by a link without delay.
pub struct Pair {
    /// The one that mostly requests.
    pub a: Host,
    /// The one that mostly responds.
    pub b: Host,
    /// What the link does with a frame; passes it at first.
    pub wire: Wire,
    /// The frames that left the hosts, in order.
    pub sent: Vec<(Side, Vec<u8>)>,
}

impl Pair {
    /// Two hosts at 10.0.0.1 and 10.0.0.2 with the cards that `build` makes, each with completion queue 0.
    pub fn new(build: impl FnMut(Rc<dyn HostMemory>) -> Box<dyn Nic>) -> Self {
        Self::with_ip(
            build,
            [
                Ipv4Addr::new(10, 0, 0, 1).into(),
                Ipv4Addr::new(10, 0, 0, 2).into(),
            ],
        )
    }

    /// Two hosts at the addresses of `ip`.
    pub fn with_ip(
        mut build: impl FnMut(Rc<dyn HostMemory>) -> Box<dyn Nic>,
        ip: [IpAddr; 2],
    ) -> Self {
        let mut host = |last, ip| {
            let mut host = Host::new(&mut build, Mac([0x52, 0x54, 0, 0, 0, last]), ip);
            host.create_cq(6);
            host
        };
        let (a, b) = (host(1, ip[0]), host(2, ip[1]));
        Self {
            a,
            b,
            wire: Box::new(|_, frame| vec![frame.to_vec()]),
            sent: Vec::new(),
        }
    }

    /// A pair of connected queue pairs; each side's options.
    pub fn connect(&mut self, a: QpOptions, b: QpOptions) -> (u32, u32) {
        let (qa, qb) = (self.a.create_qp(a), self.b.create_qp(b));
        self.join(qa, qb);
        (qa, qb)
    }

    /// Connects a queue pair of A with one of B.
    pub fn join(&mut self, qa: u32, qb: u32) {
        let (peer_a, peer_b) = (self.a.peer(qa), self.b.peer(qb));
        self.a.connect(qa, &peer_b);
        self.b.connect(qb, &peer_a);
    }

    /// A host.
    pub fn host(&mut self, side: Side) -> &mut Host {
        match side {
            Side::A => &mut self.a,
            Side::B => &mut self.b,
        }
    }

    /// One cycle of both cards, or as many as both do nothing in, up to `limit`. Whether a frame passed.
    fn step(&mut self, limit: u64) -> bool {
        match (self.a.nic.idle_until(), self.b.nic.idle_until()) {
            (Some(a), Some(b)) => {
                // The two count their own cycles.
                let skip = (a - self.a.nic.now()).min(b - self.b.nic.now()).min(limit);
                self.a.nic.run_until(self.a.nic.now() + skip);
                self.b.nic.run_until(self.b.nic.now() + skip);
            }
            _ => {
                self.a.nic.step();
                self.b.nic.step();
            }
        }
        let mut moved = false;
        for side in [Side::A, Side::B] {
            while let Some(frame) = self.host(side).nic.transmit() {
                moved = true;
                let arrived = (self.wire)(side, &frame);
                self.sent.push((side, frame));
                let to = if side == Side::A {
                    &mut self.b
                } else {
                    &mut self.a
                };
                for frame in arrived {
                    to.nic.receive(&frame);
                }
            }
        }
        moved
    }

    /// Runs for `cycles`.
    pub fn run(&mut self, cycles: u64) {
        let end = self.a.nic.now() + cycles;
        while self.a.nic.now() < end {
            self.step(end - self.a.nic.now());
        }
    }

    /// Runs until the link is quiet.
    pub fn settle(&mut self) {
        let mut quiet_since = self.a.nic.now();
        while self.a.nic.now() < quiet_since + QUIET_CYCLES {
            if self.step(quiet_since + QUIET_CYCLES - self.a.nic.now()) {
                quiet_since = self.a.nic.now();
            }
        }
    }

    /// The next CQE of a completion queue of a host, which must come.
    pub fn wait(&mut self, side: Side, cqn: u16) -> Cqe {
        let end = self.a.nic.now() + COMPLETION_CYCLES;
        loop {
            if let Some(cqe) = self.host(side).poll(cqn) {
                return cqe;
            }
            let now = self.a.nic.now();
            assert!(
                now < end,
                "no completion on {side:?} in {COMPLETION_CYCLES} cycles"
            );
            self.step(end - now);
        }
    }

    /// The packets that left a host.
    #[must_use]
    pub fn packets(&self, side: Side) -> Vec<Packet> {
        let frames = self.sent.iter().filter(|(from, _)| *from == side);
        frames
            .map(|(_, frame)| Packet::parse(frame).expect("a card sends good packets"))
            .collect()
    }

    /// Panics if a card reached for memory that is not there.
    pub fn assert_no_faults(&self) {
        for host in [&self.a, &self.b] {
            assert_eq!(host.memory.faults(), [], "DMA faults");
        }
    }
}
