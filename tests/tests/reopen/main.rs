//! Queue pairs that end in the midst of traffic, on a wire that is slow or stands, and whose numbers go to other peers on
//! other kinds of path at once: no byte, no packet and no completion of the former life is seen in the next.

mod traffic;

use std::rc::Rc;

use fastrand::Rng;
use ferroce_proto::abi::cmd::{CmdCpl, CmdHead, GidEntry, opcode, status};
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::{AvCtx, RqCtx, SqCtx, qp_type, state};
use ferroce_proto::wire::{Gid, Mac, Mtu};
use ferroce_sim::memory::HostMemory;
use ferroce_sim::nic::Nic;
use ferroce_sim::rtl::{Options, build};
use ferroce_sim::testhost::{Host, Mr, Peer, QpOptions, Rights};
use ferroce_sim::verilator;
use ferroce_system::pool;
use ferroce_tests::world::World;

/// Incarnations of queue pairs that a seed has, and how many run beside each other.
const INCARNATIONS: u32 = 50;
const BESIDE: usize = 3;
/// Bytes of a region.
const BYTES: usize = 8192;
/// Frames of a life that may leave behind the answer of its end, as they were meant: those that started before and are on their
/// way through the port, of a beat each at worst.
const LEAVING: usize = 24;
/// Cycles that no command takes.
const PATIENCE: u64 = 400_000;

/// A queue pair between RESET and RESET.
struct Life {
    qpn: u32,
    qp_type: u8,
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
    /// The PSN that the peer sends next.
    next: u32,
}

struct Test {
    host: Host,
    rng: Rng,
    incarnations: Vec<Life>,
    /// Peers of incarnations that ended, with the frames that came since.
    ended: Vec<(Life, usize)>,
    gids: [Gid; 2],
    /// Cycle in which the wire takes a frame again.
    takes: u64,
    pace: u64,
    marks: u32,
}

impl Test {
    fn new(width: usize, seed: u64) -> Self {
        let engine =
            build::model(width, &verilator::Options::default()).expect("the engine builds");
        let build = |memory: Rc<dyn HostMemory>| -> Box<dyn Nic> {
            let options = Options {
                tx_room: 2,
                ..World::of(seed).options(seed)
            };
            Box::new(build::engine(&engine, memory, &options).expect("there is memory"))
        };
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
            takes: 0,
            pace: 0,
            marks: 0,
        }
    }

    /// `cycles` cycles in which the wire takes what it likes.
    fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.host.nic.step();
            let now = self.host.nic.now();
            if now >= self.takes
                && let Some(frame) = self.host.nic.transmit()
            {
                self.check(&frame);
                self.takes = now + self.rng.u64(..=self.pace);
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

    fn region(&mut self, mark: u32) -> Mr {
        let words = (0..BYTES as u32 / 8).flat_map(|word| [mark, word]);
        let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        let addr = self.host.alloc(BYTES);
        self.host.write(addr, &bytes);
        let mr = self.host.plan_region(addr, BYTES as u64);
        let ctx = self.host.region(&mr, Rights::ALL);
        self.command(Self::head(opcode::WRITE_MR, mr.key >> 8), &[ctx.emit()]);
        mr
    }

    /// An incarnation of a queue pair with a new peer.
    fn open(&mut self, qpn: u32) {
        let qp_type = [qp_type::RC, qp_type::RC, qp_type::UC][self.rng.usize(..3)];
        let ipv6 = self.rng.bool();
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
        let (source, target) = (self.region(mark), self.region(!mark));
        let mtu = Mtu::ALL[self.rng.usize(..3)];
        let options = QpOptions {
            qp_type,
            mtu,
            timeout: 0,
            psn: self.rng.u32(..1 << 24),
            vlan: self.rng.bool().then(|| self.rng.u16(1..4095)),
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
            peer,
            vlan: options.vlan,
            mtu,
            mark,
            source,
            target,
            posted: 0,
            acked: 0,
            ends: Vec::new(),
            next: peer.psn,
        });
        // Nothing was asked for yet.
        if self.rng.u8(..3) == 0 {
            self.run(400);
            for cqe in self.completions() {
                assert_ne!(cqe.qpn, qpn, "completion in a life without work: {cqe:?}");
            }
        }
        for _ in 0..4 {
            self.host.post_recv(qpn, &[target.sge(0, 2048)]);
        }
    }

    /// Ends a life: RESET, or ERR and RESET behind it.
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
        let regions = [life.source, life.target];
        self.ended.push((life, 0));
        for mr in regions {
            let head = Self::head(opcode::WRITE_MR, mr.key >> 8);
            if self.rng.bool() {
                self.command(head, &[MrCtx::default().emit()]);
                self.host.took_back(&mr);
            }
        }
    }
}

fn incarnations(width: usize, seed: u64) {
    let mut test = Test::new(width, seed);
    let mut next = 2;
    for _ in 0..INCARNATIONS {
        while test.incarnations.len() < BESIDE {
            test.open(next);
            next = 2 + (next - 1) % (BESIDE as u32 + 1);
            while test.incarnations.iter().any(|life| life.qpn == next) {
                next = 2 + (next - 1) % (BESIDE as u32 + 1);
            }
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
        test.close(index);
        let failures = test.host.nic.failures();
        assert!(failures.is_empty(), "{}", failures.join("; "));
    }
}

#[test]
fn nothing_of_a_former_life_is_seen() {
    let jobs = (1..=10).flat_map(|seed| [64, 512].map(|width| (width, seed)));
    pool::each(pool::processors(), jobs, || {
        |(width, seed)| {
            let result = std::panic::catch_unwind(|| incarnations(width, seed));
            assert!(result.is_ok(), "{width} bits, seed {seed}");
        }
    });
}
