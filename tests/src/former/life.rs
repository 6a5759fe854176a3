//! The lives of queue pairs: how they open, change their path and end.

use std::ops::Range;

use ferroce_proto::abi::cmd::{CmdHead, opcode};
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::{AvCtx, RqCtx, SqCtx, qp_type, state};
use ferroce_proto::wire::{Gid, Mac, Mtu, Psn};
use ferroce_sim::testhost::{Mr, Peer, QpOptions, Rights};

use super::traffic::words;
use super::{RECEIVES, Test};

/// Bytes of a region, and of one in eight.
const BYTES: usize = 8192;
const LONG: usize = 1 << 16;
/// Where no memory is: the target of one life in four stands there.
const NOWHERE: u64 = 0x7ead_0000_0000;

/// A queue pair between RESET and RESET.
pub(super) struct Life {
    pub(super) qpn: u32,
    pub(super) qp_type: u8,
    /// Its completion queue: that of all queue pairs, or one that ends with it.
    pub(super) cqn: u16,
    pub(super) peer: Peer,
    /// Its paths so far. That of datagrams is an address handle of the same number, which the host writes anew.
    pub(super) paths: Vec<Path>,
    /// The path of the last frame.
    pub(super) seen: usize,
    /// Sends that were posted when the card confirmed the second path, the third and so on.
    pub(super) confirmed: Vec<u32>,
    /// Frames that left behind the end of the life.
    pub(super) late: usize,
    pub(super) mtu: Mtu,
    /// In each word of its memory and each immediate value sent to it.
    pub(super) mark: u32,
    pub(super) source: Mr,
    pub(super) target: Mr,
    /// Host memory refuses its target.
    pub(super) refused: bool,
    /// PSN of the peer's first SEND that is refused: the ACK of a WRITE may leave before.
    pub(super) spoilt: Option<u32>,
    /// It was sent what ends it.
    pub(super) fails: bool,
    pub(super) sends: Vec<Posted>,
    /// Sends that the peer acknowledged or answered.
    pub(super) acked: u16,
    /// The first PSN, and PSNs that left from it on.
    pub(super) first: Psn,
    pub(super) left: u32,
    /// The PSN that the peer sends next, and its READs and atomics that are not answered.
    pub(super) next: u32,
    pub(super) asked: u8,
    /// WQE indices of the last completion of either queue.
    pub(super) completed: [Option<u16>; 2],
}

/// A send that was posted.
pub(super) struct Posted {
    /// PSN of its last packet, from the first of the life.
    pub(super) end: u32,
    /// Bytes of the target that a READ fills.
    pub(super) reads: Option<Range<usize>>,
}

/// What the headers below the BTH say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) gid: Gid,
    pub(super) vlan: Option<u16>,
    /// UDP source port, another for each path of a life.
    pub(super) port: u16,
}

/// A life that ended.
pub(super) struct Ended {
    pub(super) life: Life,
    /// Its target then.
    pub(super) memory: Vec<u8>,
}

pub(super) fn head(opcode: u8, index: u32) -> CmdHead {
    CmdHead {
        opcode,
        index,
        ..CmdHead::default()
    }
}

/// Both sides of a queue pair to a state.
pub(super) fn modify(qpn: u32, state: u8, reset: bool) -> CmdHead {
    CmdHead {
        qp_sq_state: true,
        sq_reset: reset,
        sq_state: state,
        qp_rq_state: true,
        rq_reset: reset,
        rq_state: state,
        ..head(opcode::MODIFY_QP, qpn)
    }
}

/// Q_Key of a life's datagrams, without the highest bit: that asks for the Q_Key of the sending queue pair.
const fn qkey(mark: u32) -> u32 {
    mark & 0x7fff_ffff
}

/// The address of the `number`-th peer.
fn gid(number: u16, ipv6: bool) -> Gid {
    let [high, low] = number.to_be_bytes();
    Gid::from(match ipv6 {
        true => std::net::IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 2, number]),
        false => std::net::IpAddr::from([10, 1, high, low]),
    })
}

impl Path {
    /// It, in a context or an address handle.
    fn write(self, av: AvCtx) -> AvCtx {
        AvCtx {
            dgid: self.gid.to_le_bits(),
            ipv6: !self.gid.is_ipv4(),
            sgid_index: u8::from(!self.gid.is_ipv4()),
            vlan_valid: self.vlan.is_some(),
            vlan: self.vlan.unwrap_or(0),
            udp_sport: self.port,
            ..av
        }
    }
}

impl Life {
    pub(super) fn is_rc(&self) -> bool {
        self.qp_type == qp_type::RC
    }

    pub(super) fn qkey(&self) -> u32 {
        qkey(self.mark)
    }

    /// The first PSN of the last READ that was posted.
    fn last_read(&self) -> Option<Psn> {
        let sent = self.sends.iter().rfind(|sent| sent.reads.is_some())?;
        let bytes = sent.reads.as_ref().map_or(0, ExactSizeIterator::len);
        let packets = self.mtu.packets(bytes as u32);
        Some(self.first.add(sent.end + 1 - packets))
    }

    pub(super) fn posted(&self) -> u16 {
        self.sends.len() as u16
    }
}

impl Test {
    /// A region full of a mark; the memory of one that is `refused` is not there.
    pub(super) fn region(&mut self, mark: u32, len: usize, refused: bool) -> Mr {
        let addr = if refused {
            NOWHERE + u64::from(self.marks) * LONG as u64
        } else {
            let addr = self.host.alloc(len);
            self.host.write(addr, &words(mark, len));
            addr
        };
        let mr = self.host.plan_region(addr, len as u64);
        let ctx = self.host.region(&mr, Rights::ALL);
        self.command(head(opcode::WRITE_MR, mr.key >> 8), &[ctx.emit()]);
        mr
    }

    pub(super) fn invalidate(&mut self, mr: &Mr) {
        self.command(
            head(opcode::WRITE_MR, mr.key >> 8),
            &[MrCtx::default().emit()],
        );
        self.host.took_back(mr);
    }

    /// A new path of peer `number`, its `nth`.
    fn path(&mut self, number: u16, (ipv6, tagged): (bool, bool), nth: usize) -> Path {
        Path {
            gid: gid(number, ipv6),
            vlan: tagged.then(|| self.rng.u16(1..4095)),
            port: 0xc000 + nth as u16,
        }
    }

    /// A life of a queue pair with a new peer.
    pub(super) fn open(&mut self, qpn: u32) {
        use qp_type::{RC, UC, UD};
        let qp_type = [RC, RC, RC, UC, UD][self.rng.usize(..5)];
        let mut kind = (self.rng.bool(), self.rng.bool());
        while self.paths.get(&qpn) == Some(&kind) {
            kind = (self.rng.bool(), self.rng.bool());
        }
        self.paths.insert(qpn, kind);
        let cqn = match self.rng.u8(..4) {
            0 => self.host.create_cq_as(qpn as u16, 7),
            _ => 0,
        };
        self.marks += 1;
        let number = self.marks as u16;
        let path = self.path(number, kind, 0);
        let [high, low] = number.to_be_bytes();
        // What is left of the life before is about the same PSNs.
        let former = self.psns.get(&qpn).filter(|_| self.rng.bool());
        let psns = former.copied();
        let psns = psns.unwrap_or_else(|| [(); 2].map(|()| self.rng.u32(..1 << 24)));
        self.psns.insert(qpn, psns);
        let peer = Peer {
            mac: Mac([0x52, 0x54, 1, 0, high, low]),
            gid: path.gid,
            qpn: 0x1000 + self.marks,
            psn: psns[1],
        };
        let mark = 0xa500_0000 | self.marks;
        let len = if self.rng.u8(..8) == 0 { LONG } else { BYTES };
        let refused = self.rng.u8(..4) == 0;
        let source = self.region(mark, len, false);
        let target = self.region(!mark, len, refused);
        let mtu = Mtu::ALL[self.rng.usize(..3)];
        let options = QpOptions {
            qp_type,
            mtu,
            timeout: 0,
            psn: psns[0],
            // A turn of one packet or two, of what the rate allows, or of 32 kB.
            window: [0, 0, 0, 4, 8][self.rng.usize(..5)],
            rate_limit: [0, 0, 0, 10_000][self.rng.usize(..4)],
            send_cq: cqn,
            recv_cq: cqn,
            qkey: qkey(mark),
            ..QpOptions::default()
        };
        self.host.create_qp_as(qpn, options);
        let [sq, av, rq] = self.host.images(qpn, &peer);
        let av = path.write(AvCtx::parse(&av));
        let rq = RqCtx {
            sgid_index: av.sgid_index,
            ..RqCtx::parse(&rq)
        };
        if qp_type == UD {
            self.write_handle(qpn, &peer, path);
        }
        let opening = self.host.opening(qpn, &peer);
        self.command(opening, &[SqCtx::parse(&sq).emit(), av.emit(), rq.emit()]);
        self.incarnations.push(Life {
            qpn,
            qp_type,
            cqn,
            peer,
            paths: vec![path],
            seen: 0,
            confirmed: Vec::new(),
            late: 0,
            mtu,
            mark,
            source,
            target,
            refused,
            spoilt: None,
            fails: refused,
            sends: Vec::new(),
            acked: 0,
            first: Psn::new(options.psn),
            left: 0,
            next: peer.psn,
            asked: 0,
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

    fn write_handle(&mut self, qpn: u32, peer: &Peer, path: Path) {
        let av = path.write(self.host.handle(peer));
        self.command(head(opcode::WRITE_AH, qpn), &[av.emit()]);
    }

    /// The host writes the address handle of a life's datagrams anew amid them (docs/host-contract.md, WRITE_AH).
    pub(super) fn change_path(&mut self, index: usize) {
        let life = &self.incarnations[index];
        let (qpn, peer, nth) = (life.qpn, life.peer, life.paths.len());
        let kind = (self.rng.bool(), self.rng.bool());
        let path = self.path((life.mark & 0xffff) as u16, kind, nth);
        let life = &mut self.incarnations[index];
        // one that begins meanwhile may be laid out for the headers of before, and then fails
        let laid_out = |path: &Path| (path.gid.is_ipv4(), path.vlan.is_some());
        life.fails |= life.paths.last().map(laid_out) != Some(laid_out(&path));
        life.paths.push(path);
        self.write_handle(qpn, &peer, path);
        let life = &mut self.incarnations[index];
        life.confirmed.push(life.posted().into());
    }

    /// The owner of a number that fails before it has an image: nothing is done with that of the owner before.
    pub(super) fn fail_to_open(&mut self, qpn: u32) {
        self.command(modify(qpn, state::INIT, true), &[]);
        let posted = self.rng.u32(1..4);
        self.host.nic.write32(doorbell::sq(qpn), posted);
        self.host.nic.write32(doorbell::rq(qpn), posted);
        self.command(modify(qpn, state::ERR, false), &[]);
        let wait = self.rng.u64(..600);
        self.run(wait);
        self.command(modify(qpn, state::RESET, true), &[]);
        self.host.nic.write32(doorbell::sq(qpn), 0);
        self.host.nic.write32(doorbell::rq(qpn), 0);
        self.take_completions();
    }

    /// Ends a life: RESET, or ERR and RESET behind it, and the end of what was made for it.
    pub(super) fn close(&mut self, index: usize) {
        let qpn = self.incarnations[index].qpn;
        if self.rng.bool() {
            self.command(modify(qpn, state::ERR, false), &[]);
            let wait = self.rng.u64(..300);
            self.run(wait);
        }
        self.command(modify(qpn, state::RESET, true), &[]);
        self.take_completions();
        self.take_events();
        self.host.was_reset(qpn);
        let life = self.incarnations.remove(index);
        if let Some(psn) = life.last_read() {
            self.psns
                .entry(qpn)
                .and_modify(|psns| psns[0] = psn.value());
        }
        self.check_memory(&life);
        let memory = match life.refused {
            true => Vec::new(),
            false => self.host.contents(&life.target),
        };
        let (cqn, regions) = (life.cqn, [life.source, life.target]);
        self.ended.push(Ended { life, memory });
        if cqn != 0 {
            self.command(head(opcode::DESTROY_CQ, cqn.into()), &[]);
            self.host.cq_was_destroyed(cqn);
        }
        for mr in regions {
            if self.rng.bool() {
                self.invalidate(&mr);
            }
        }
    }

    /// Broken rules and accesses to memory that is not there, but for targets that are refused.
    pub(super) fn failures(&self) -> Vec<String> {
        let is_refusal = |what: &String| {
            let nowhere = format!(" at {:#x}", NOWHERE >> 32);
            what.contains(&nowhere) && !what.contains("took back")
        };
        let mut failures = self.host.nic.failures();
        failures.retain(|what| !is_refusal(what));
        failures
    }
}
