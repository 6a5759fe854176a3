//! Queue pairs that end in the midst of traffic, on a wire that is slow or stands, and whose numbers go to other peers on
//! other kinds of path at once: no byte, no packet, no completion and no event of the former life is seen in the next, whatever
//! the former peer goes on to send.
//!
//! A round is a life, from its opening to its end.
//!
//! | module | it has |
//! |---|---|
//! | `life` | how a life opens, changes its path and ends |
//! | `traffic` | what it posts, and what its peer sends |
//! | `crowd` | queue pairs that fail together, and their ends |
//! | `recovery` | a send queue that leaves SQE |
//! | `overrun` | a queue pair that loses a completion |
//! | `checks` | what must be true of frames, completions, events and memory |

mod checks;
mod crowd;
mod life;
mod overrun;
mod recovery;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use fastrand::Rng;
use ferroce_proto::abi::cmd::{CmdCpl, CmdHead, GidEntry, opcode, status};
use ferroce_proto::wire::{Gid, Mac};
use ferroce_sim::memory::HostMemory;
use ferroce_sim::rtl::Options;
use ferroce_sim::testhost::{Host, Peer};

use self::life::{Ended, Life};
use crate::conformance::event_queue::Eq;
use crate::conformance::run::Target;
use crate::quiet;
use crate::world::World;

/// Queue pairs that are open at once.
const BESIDE: usize = 3;
/// Frames of a life that may leave behind the answer of its end, as they were meant: those that started before and are on their
/// way through the port, of a beat each at worst, or of 8 where a beat has 8 bytes.
const LEAVING: usize = 24;
const LEAVING_NARROW: usize = 8;
/// Receives of a life.
const RECEIVES: u16 = 4;
/// READs and atomics that a peer has under way at most.
const READS: u8 = 4;
/// The peer of a queue pair that is no life has this number.
const PEER: u32 = 0xc0_0000;
/// Cycles that no command takes.
const PATIENCE: u64 = 400_000;

struct Test {
    host: Host,
    rng: Rng,
    incarnations: Vec<Life>,
    ended: Vec<Ended>,
    events: Eq,
    /// The shared receive queue of a crowd.
    srqn: u16,
    /// Those of a crowd that are open.
    crowd: BTreeSet<u32>,
    gids: [Gid; 2],
    /// Whether the last life of a number had an IPv6 path, and a tag.
    paths: BTreeMap<u32, (bool, bool)>,
    /// The first PSNs of its two sides, or that of its last READ.
    psns: BTreeMap<u32, [u32; 2]>,
    /// Frames that may leave behind the answer of an end.
    leaving: usize,
    /// Cycle in which the wire takes a frame again.
    takes: u64,
    pace: u64,
    marks: u32,
}

/// The peer of those.
fn stranger(psn: u32) -> Peer {
    Peer {
        mac: Mac([0x52, 0x54, 2, 0, 0, 1]),
        gid: Gid::from(std::net::IpAddr::from([10, 2, 0, 1])),
        qpn: PEER,
        psn,
    }
}

impl Test {
    fn new(target: Target, seed: u64) -> Self {
        let options = |seed| Options {
            tx_room: 2,
            ..World::of(seed).options(seed)
        };
        let (card, _) = target.card_in(options).expect("the engine builds");
        let build = |memory: Rc<dyn HostMemory>| (card.build)(memory, seed);
        let ip = [[10, 0, 0, 1].into(), "fd00::1".parse().expect("an address")];
        let mut host = Host::new(build, Mac([0x52, 0x54, 0, 0, 0, 1]), ip[0]);
        let gids = ip.map(Gid::from);
        let entry = GidEntry {
            gid: gids[1].to_le_bits(),
            valid: true,
            ipv6: true,
        };
        host.expect(opcode::SET_GID, 1, &entry.emit());
        host.create_cq(8);
        let srqn = host.create_srq(3, 0, 0);
        Self {
            events: Eq::new(&mut host, 0, 10, 0),
            host,
            rng: Rng::with_seed(seed),
            incarnations: Vec::new(),
            ended: Vec::new(),
            srqn,
            crowd: BTreeSet::new(),
            gids,
            paths: BTreeMap::new(),
            psns: BTreeMap::new(),
            leaving: match target {
                Target::Model => 1,
                Target::Rtl(512) => LEAVING,
                Target::Rtl(_) | Target::Seeded(_) => LEAVING_NARROW,
            },
            takes: 0,
            pace: 0,
            marks: 0,
        }
    }

    /// `cycles` cycles in which the wire takes what it likes.
    fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.host.nic.step();
            // The wire stands in front of an engine only: what the model sends has left it.
            while (self.host.nic.now() >= self.takes || self.leaving == 1)
                && let Some(frame) = self.host.nic.transmit()
            {
                self.check(&frame);
                self.takes = self.host.nic.now() + 1 + self.rng.u64(..=self.pace);
            }
        }
    }

    /// Executes a command while the wire goes on.
    fn command(&mut self, head: CmdHead, images: &[[u8; 64]]) -> CmdCpl {
        let command = self.host.start(head, images);
        for _ in 0..PATIENCE {
            if let Some(answer) = self.host.answer(&command) {
                assert_eq!(answer.status, status::OK, "{head:?}");
                return answer;
            }
            self.run(1);
        }
        panic!("no answer to {head:?} in {PATIENCE} cycles");
    }
}

/// The rounds of a seed on a card.
///
/// # Errors
/// What was seen of a former life, or broke.
pub fn rounds(target: Target, seed: u64, count: u64) -> Result<(), String> {
    quiet::caught(|| run(target, seed, count)).map_err(|what| format!("seed {seed}: {what}"))
}

fn run(target: Target, seed: u64, rounds: u64) {
    let mut test = Test::new(target, seed);
    // The number that ended last is taken again at once, mostly.
    let mut next = 2;
    for _ in 0..rounds {
        while test.incarnations.len() < BESIDE {
            while test.incarnations.iter().any(|life| life.qpn == next) {
                next = 2 + test.rng.u32(..=BESIDE as u32);
            }
            if test.rng.u8(..4) == 0 {
                test.fail_to_open(next);
            }
            test.open(next);
        }
        if test.rng.u8(..4) == 0 {
            // The wire stands while things happen.
            test.takes = test.host.nic.now() + test.rng.u64(500..4000);
        }
        for _ in 0..test.rng.usize(1..12) {
            let index = test.rng.usize(..test.incarnations.len());
            test.act(index);
            test.pace = [0, 0, 100, 400][test.rng.usize(..4)];
            let wait = test.rng.u64(..150);
            test.run(wait);
            test.take_completions();
            test.take_events();
        }
        if test.rng.u8(..3) == 0 {
            // The wire stands.
            test.takes = test.host.nic.now() + test.rng.u64(500..4000);
            let wait = test.rng.u64(..1500);
            test.run(wait);
        }
        let index = test.rng.usize(..test.incarnations.len());
        next = match test.rng.u8(..4) {
            0 => 2 + test.rng.u32(..=BESIDE as u32),
            _ => test.incarnations[index].qpn,
        };
        match test.rng.u8(..32) {
            0 => test.fail_together(index),
            1 => test.overrun(),
            2..4 => test.recover(),
            4..8 => test.read_at_last(index),
            8..20 => {
                // All at once, as the life ends.
                for _ in 0..test.rng.u8(..10) {
                    test.act(index);
                }
                if test.rng.bool() {
                    test.conclude(index);
                }
                let wait = test.rng.u64(..400);
                test.run(wait);
            }
            _ => {}
        }
        test.close(index);
        let failures = test.failures();
        assert!(failures.is_empty(), "{}", failures.join("; "));
    }
    test.pace = 0;
    test.run(2000);
    test.check_ended();
}
