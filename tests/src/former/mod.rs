//! Queue pairs that end in the midst of traffic, on a wire that is slow or stands, and whose numbers go to other peers on
//! other kinds of path at once: no byte, no packet and no completion of the former life is seen in the next, whatever the
//! former peer goes on to send.
//!
//! A round is a life, from its opening to its end.

mod traffic;

use std::collections::BTreeMap;
use std::rc::Rc;

use fastrand::Rng;
use ferroce_proto::abi::cmd::{CmdCpl, CmdHead, GidEntry, opcode, status};
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::{AvCtx, RqCtx, SqCtx, qp_type, state};
use ferroce_proto::wire::{Gid, Mac, Mtu};
use ferroce_sim::memory::HostMemory;
use ferroce_sim::rtl::Options;
use ferroce_sim::testhost::{Host, Mr, Peer, QpOptions, Rights};

use crate::conformance::run::Target;
use crate::quiet;
use crate::world::World;

/// Queue pairs that are open at once.
const BESIDE: usize = 3;
/// Bytes of a region, and of one in eight.
const BYTES: usize = 8192;
const LONG: usize = 1 << 16;
/// Frames of a life that may leave behind the answer of its end, as they were meant: those that started before and are on their
/// way through the port, of a beat each at worst, or of 8 where a beat has 8 bytes.
const LEAVING: usize = 24;
const LEAVING_NARROW: usize = 8;
/// Receives of a life.
const RECEIVES: u16 = 4;
/// Cycles that no command takes.
const PATIENCE: u64 = 400_000;

/// A queue pair between RESET and RESET.
struct Life {
    qpn: u32,
    qp_type: u8,
    /// Its completion queue: that of all queue pairs, or one that ends with it.
    cqn: u16,
    peer: Peer,
    vlan: Option<u16>,
    mtu: Mtu,
    /// In each word of its memory and each immediate value sent to it.
    mark: u32,
    source: Mr,
    target: Mr,
    /// Sends posted, and those acknowledged.
    posted: u16,
    acked: u16,
    /// Last PSN of each send, from the first.
    ends: Vec<u32>,
    /// PSNs that left, from the first.
    left: u32,
    /// The PSN that the peer sends next.
    next: u32,
    /// WQE indices of the last completion of either queue.
    completed: [Option<u16>; 2],
}

/// A life that ended.
struct Ended {
    life: Life,
    /// Frames of it that came since.
    late: usize,
    /// Its target then.
    memory: Vec<u8>,
}

struct Test {
    host: Host,
    rng: Rng,
    incarnations: Vec<Life>,
    ended: Vec<Ended>,
    gids: [Gid; 2],
    /// Whether the last life of a number had an IPv6 path, and a tag.
    paths: BTreeMap<u32, (bool, bool)>,
    /// Frames that may leave behind the answer of an end.
    leaving: usize,
    /// Cycle in which the wire takes a frame again.
    takes: u64,
    pace: u64,
    marks: u32,
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
        Self {
            host,
            rng: Rng::with_seed(seed),
            incarnations: Vec::new(),
            ended: Vec::new(),
            gids,
            paths: BTreeMap::new(),
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

    fn head(opcode: u8, index: u32) -> CmdHead {
        CmdHead {
            opcode,
            index,
            ..CmdHead::default()
        }
    }

    fn region(&mut self, mark: u32, len: usize) -> Mr {
        let words = (0..len as u32 / 8).flat_map(|word| [mark, word]);
        let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        let addr = self.host.alloc(len);
        self.host.write(addr, &bytes);
        let mr = self.host.plan_region(addr, len as u64);
        let ctx = self.host.region(&mr, Rights::ALL);
        self.command(Self::head(opcode::WRITE_MR, mr.key >> 8), &[ctx.emit()]);
        mr
    }

    /// An incarnation of a queue pair with a new peer.
    fn open(&mut self, qpn: u32) {
        let qp_type = [qp_type::RC, qp_type::RC, qp_type::UC][self.rng.usize(..3)];
        let mut path = (self.rng.bool(), self.rng.bool());
        while self.paths.get(&qpn) == Some(&path) {
            path = (self.rng.bool(), self.rng.bool());
        }
        self.paths.insert(qpn, path);
        let (ipv6, tagged) = path;
        let cqn = match self.rng.u8(..4) {
            0 => self.open_cq(qpn),
            _ => 0,
        };
        self.marks += 1;
        let last = self.marks as u16;
        let gid = if ipv6 {
            Gid::from(std::net::IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 2, last]))
        } else {
            Gid::from(std::net::IpAddr::from([
                10,
                1,
                (last >> 8) as u8,
                last as u8,
            ]))
        };
        let peer = Peer {
            mac: Mac([0x52, 0x54, 1, 0, (last >> 8) as u8, last as u8]),
            gid,
            qpn: 0x1000 + self.marks,
            psn: self.rng.u32(..1 << 24),
        };
        let mark = 0xa500_0000 | self.marks;
        let len = if self.rng.u8(..8) == 0 { LONG } else { BYTES };
        let (source, target) = (self.region(mark, len), self.region(!mark, len));
        let mtu = Mtu::ALL[self.rng.usize(..3)];
        let options = QpOptions {
            qp_type,
            mtu,
            timeout: 0,
            psn: self.rng.u32(..1 << 24),
            vlan: tagged.then(|| self.rng.u16(1..4095)),
            // A turn of one packet or two, of what the rate allows, or of 32 kB.
            window: [0, 0, 0, 4, 8][self.rng.usize(..5)],
            rate_limit: [0, 0, 0, 10_000][self.rng.usize(..4)],
            send_cq: cqn,
            recv_cq: cqn,
            ..QpOptions::default()
        };
        self.host.create_qp_as(qpn, options);
        let [sq, av, rq] = self.host.images(qpn, &peer);
        let sgid_index = u8::from(ipv6);
        let av = AvCtx {
            sgid_index,
            ..AvCtx::parse(&av)
        };
        let rq = RqCtx {
            sgid_index,
            ..RqCtx::parse(&rq)
        };
        let head = self.host.opening(qpn, &peer);
        self.command(head, &[SqCtx::parse(&sq).emit(), av.emit(), rq.emit()]);
        self.incarnations.push(Life {
            qpn,
            qp_type,
            cqn,
            peer,
            vlan: options.vlan,
            mtu,
            mark,
            source,
            target,
            posted: 0,
            acked: 0,
            ends: Vec::new(),
            left: 0,
            next: peer.psn,
            completed: [None; 2],
        });
        // Nothing was asked for yet.
        if self.rng.u8(..3) == 0 {
            self.run(400);
            for cqe in self.completions() {
                assert_ne!(cqe.qpn, qpn, "completion in a life without work: {cqe:?}");
                self.check_completion(&cqe);
            }
        }
        for _ in 0..RECEIVES {
            self.host.post_recv(qpn, &[target.sge(0, 2048)]);
        }
    }

    /// The owner of a number that fails before it has an image: nothing is done with that of the owner before.
    fn fail_to_open(&mut self, qpn: u32) {
        let state = |state, reset| CmdHead {
            qp_sq_state: true,
            sq_state: state,
            sq_reset: reset,
            qp_rq_state: true,
            rq_state: state,
            rq_reset: reset,
            ..Self::head(opcode::MODIFY_QP, qpn)
        };
        self.command(state(state::INIT, true), &[]);
        let posted = self.rng.u32(1..4);
        self.host.nic.write32(doorbell::sq(qpn), posted);
        self.host.nic.write32(doorbell::rq(qpn), posted);
        self.command(state(state::ERR, false), &[]);
        let wait = self.rng.u64(..600);
        self.run(wait);
        self.command(state(state::RESET, true), &[]);
        self.host.nic.write32(doorbell::sq(qpn), 0);
        self.host.nic.write32(doorbell::rq(qpn), 0);
        for cqe in self.completions() {
            self.check_completion(&cqe);
        }
    }

    /// A completion queue for one life of a queue pair.
    fn open_cq(&mut self, qpn: u32) -> u16 {
        self.host.create_cq_as(qpn as u16, 7)
    }

    /// Ends a life: RESET, or ERR and RESET behind it, and the end of what was made for it.
    fn close(&mut self, index: usize) {
        let qpn = self.incarnations[index].qpn;
        let modify = |state, reset| CmdHead {
            qp_sq_state: true,
            sq_reset: reset,
            sq_state: state,
            qp_rq_state: true,
            rq_reset: reset,
            rq_state: state,
            ..Self::head(opcode::MODIFY_QP, qpn)
        };
        if self.rng.bool() {
            self.command(modify(state::ERR, false), &[]);
            let wait = self.rng.u64(..300);
            self.run(wait);
        }
        self.command(modify(state::RESET, true), &[]);
        for cqe in self.completions() {
            self.check_completion(&cqe);
        }
        self.host.was_reset(qpn);
        let life = self.incarnations.remove(index);
        self.check_memory(&life);
        let memory = self.host.contents(&life.target);
        let (cqn, regions) = (life.cqn, [life.source, life.target]);
        self.ended.push(Ended {
            memory,
            life,
            late: 0,
        });
        if cqn != 0 {
            self.command(Self::head(opcode::DESTROY_CQ, cqn.into()), &[]);
            self.host.cq_was_destroyed(cqn);
        }
        for mr in regions {
            let head = Self::head(opcode::WRITE_MR, mr.key >> 8);
            if self.rng.bool() {
                self.command(head, &[MrCtx::default().emit()]);
                self.host.took_back(&mr);
            }
        }
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
            for cqe in test.completions() {
                test.check_completion(&cqe);
            }
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
        test.close(index);
        let failures = test.host.nic.failures();
        assert!(failures.is_empty(), "{}", failures.join("; "));
    }
    test.pace = 0;
    test.run(2000);
    test.check_ended();
}
