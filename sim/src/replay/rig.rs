//! The device under test, set up as one end of a connection.

use std::rc::Rc;

use fastrand::Rng;
use ferroce_proto::abi::cmd::{CmdHead, opcode, status};
use ferroce_proto::abi::cq::Cqe;
use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::qpc::{AvCtx, SqCtx, state};
use ferroce_proto::abi::regs::{self, Params, Params2, feature};
use ferroce_proto::wire::{Headers, Ip, Psn};

use super::flow::End;
use super::input::{Frame, Refusal};
use super::regions::Target;
use super::{Difference, malformed};
use crate::memory::Ranges;
use crate::nic::{NS_PER_CYCLE, Nic};
use crate::scoreboard::icrc::Roce;
use crate::testhost::{Host, PD, Peer, QpOptions};
use crate::world::Direction;

/// Cycles after the last frame, in or out, after which the device has said all that it has to say.
const QUIET_CYCLES: u64 = 2_000;

/// A frame at the port of the device under test.
#[derive(Clone, Debug)]
pub struct Passed {
    /// Simulated time in ns.
    pub ns: u64,
    /// Which way, seen from the device.
    pub direction: Direction,
    /// The frame.
    pub bytes: Vec<u8>,
}

/// What the end that the device plays is made of.
pub(super) struct Setup<'a> {
    /// The end it plays.
    pub(super) local: End,
    /// The other one.
    pub(super) remote: End,
    /// A packet that the recorded one sent: the device's path is made like its.
    pub(super) like: &'a Frame,
    /// Feature bits that it takes, with their names.
    pub(super) needs: Vec<(u32, &'static str)>,
    pub(super) options: QpOptions,
    /// First PSN of the other end.
    pub(super) remote_psn: Psn,
    pub(super) memory: Rc<Ranges>,
    pub(super) regions: &'a [Target],
    /// Seed of malformed packets to feed, one before each of the capture.
    pub(super) malformed: Option<u64>,
    /// Entries of the completion queue, at least.
    pub(super) completions: usize,
}

/// The device under test and its host.
pub(super) struct Rig {
    pub(super) host: Host,
    /// Its queue pair: that of the capture, unless the build has too few.
    pub(super) qpn: u32,
    pub(super) cq: u16,
    /// Everything that passed its port.
    pub(super) passed: Vec<Passed>,
    /// Table places of memory regions in use.
    places: Vec<u32>,
    log_mr: u8,
    rng: Option<Rng>,
    malformed: u64,
    /// Bytes of a beat.
    lanes: usize,
    /// Cycles that the frames fed since the device was quiet take to enter it.
    entering: u64,
}

impl Rig {
    /// Sets up `nic`, whose DMA reaches the memory of `setup`.
    pub(super) fn new(nic: Box<dyn Nic>, setup: &Setup<'_>) -> Result<Self, Refusal> {
        let (local, remote) = (setup.local, setup.remote);
        let memory = setup.memory.clone();
        let mut host = Host::with_memory(|_| nic, memory, local.mac, local.gid.ip());
        let params = Params::parse(&host.read32(regs::PARAMS).to_le_bytes());
        let params2 = Params2::parse(&host.read32(regs::PARAMS2).to_le_bytes());
        let lanes = usize::from(params2.data_width / 8).max(1);
        let features = host.read32(regs::FEATURES);
        let like = &setup.like.packet.headers;
        let mut needs = setup.needs.clone();
        needs.extend((!local.gid.is_ipv4()).then_some((feature::IPV6, "IPv6")));
        needs.extend(like.eth.vlan.map(|_| (feature::VLAN, "VLAN tags")));
        if let Some((_, name)) = needs.iter().find(|(bit, _)| features & bit == 0) {
            return Err(Refusal::Lacking((*name).to_owned()));
        }
        // Numbers 0 and 1 are not those of ordinary queue pairs.
        let qpns = 1u32 << params.log_qp;
        let qpn = match local.qpn {
            own if own < qpns => own,
            other => (other % qpns).max(2),
        };
        let cq = host.create_cq(log2(setup.completions + 1).max(1));
        host.create_qp_as(qpn, setup.options);
        let mut rig = Self {
            host,
            qpn,
            cq,
            passed: Vec::new(),
            places: Vec::new(),
            log_mr: params.log_mr,
            rng: setup.malformed.map(Rng::with_seed),
            malformed: 0,
            lanes,
            entering: 0,
        };
        for target in setup.regions {
            rig.register(target)?;
        }
        rig.connect(setup, &remote, like);
        Ok(rig)
    }

    /// Takes the queue pair to RTS, with the path of the recorded packet.
    fn connect(&mut self, setup: &Setup<'_>, remote: &End, like: &Headers) {
        let peer = Peer {
            mac: remote.mac,
            gid: remote.gid,
            qpn: remote.qpn,
            psn: setup.remote_psn.value(),
        };
        let [sq, av, rq] = self.host.images(self.qpn, &peer);
        let sq = SqCtx {
            ot_base: 0,
            ..SqCtx::parse(&sq)
        };
        let mut av = AvCtx::parse(&av);
        path(like, &mut av);
        let head = CmdHead {
            opcode: opcode::MODIFY_QP,
            index: self.qpn,
            qp_sq: true,
            qp_av: true,
            qp_rq: true,
            qp_sq_state: true,
            sq_reset: true,
            sq_state: state::RTS,
            sq_psn: setup.options.psn,
            qp_rq_state: true,
            rq_reset: true,
            rq_state: state::RTS,
            rq_psn: setup.remote_psn.value(),
            ..CmdHead::default()
        };
        let images = [sq.emit(), av.emit(), rq];
        assert_eq!(self.host.command(head, &images).status, status::OK);
    }

    /// Makes address handle 0 the way to `remote`, as the recorded packet took it.
    pub(super) fn address_handle(&mut self, remote: &End, like: &Headers) {
        let peer = Peer {
            mac: remote.mac,
            gid: remote.gid,
            qpn: remote.qpn,
            psn: 0,
        };
        self.host.write_ah(0, &peer, |av| {
            av.vlan_valid = like.eth.vlan.is_some();
            av.vlan = like.eth.vlan.unwrap_or(0);
            path(like, av);
        });
    }

    /// Registers a region under the key of the capture.
    fn register(&mut self, target: &Target) -> Result<(), Refusal> {
        let place = target.rkey >> 8 & ((1 << self.log_mr) - 1);
        if self.places.contains(&place) {
            return Err(Refusal::Lacking(format!(
                "second place for rkey {:#x} in its table of {} memory regions",
                target.rkey,
                1u32 << self.log_mr
            )));
        }
        self.places.push(place);
        let ctx = MrCtx {
            base: target.addr,
            last: target.addr + (target.len - 1),
            key: target.rkey,
            pd: PD,
            valid: true,
            local_write: true,
            remote_write: true,
            remote_read: true,
            remote_atomic: true,
            invalidate: true,
            ..MrCtx::default()
        };
        self.host.expect(opcode::WRITE_MR, place, &ctx.emit());
        Ok(())
    }

    /// A buffer of the host's own, filled with `data`, that the peer has no right to; its address and lkey.
    pub(super) fn buffer(&mut self, data: &[u8]) -> Result<(u64, u32), Refusal> {
        let addr = self.host.alloc(data.len());
        self.host.write(addr, data);
        let place = (0..1 << self.log_mr).find(|place| !self.places.contains(place));
        let place = place.ok_or_else(|| Refusal::Lacking("memory region left".into()))?;
        self.places.push(place);
        let ctx = MrCtx {
            base: addr,
            last: addr + (data.len().max(1) as u64 - 1),
            key: place << 8 | 0x5d,
            pd: PD,
            valid: true,
            local_write: true,
            ..MrCtx::default()
        };
        self.host.expect(opcode::WRITE_MR, place, &ctx.emit());
        Ok((addr, ctx.key))
    }

    /// Lets the card see the doorbells rung so far.
    pub(super) fn flush(&mut self) {
        self.host.read32(regs::STATUS);
    }

    /// Feeds a frame of the capture, to the queue pair that stands for the one recorded.
    pub(super) fn feed(&mut self, frame: &[u8]) {
        if let Some(rng) = &mut self.rng {
            let copy = malformed::copy(frame, rng);
            self.malformed += 1;
            self.receive(&copy);
        }
        let mut bytes = frame.to_vec();
        if let Some(roce) = Roce::locate(frame)
            && roce.dest_qp(frame) != self.qpn
        {
            let at = roce.bth() + 5;
            bytes[at..at + 3].copy_from_slice(&self.qpn.to_be_bytes()[1..]);
            roce.seal(&mut bytes);
        }
        self.receive(&bytes);
    }

    fn receive(&mut self, frame: &[u8]) {
        self.host.nic.receive(frame);
        self.entering += frame.len().div_ceil(self.lanes) as u64 + 1;
        self.note(Direction::Receive, frame.to_vec());
    }

    /// Runs until the device is quiet; what it sent meanwhile.
    pub(super) fn settle(&mut self) -> Vec<Vec<u8>> {
        self.settle_after(0)
    }

    /// Runs for `cycles` and until the device is quiet; what it sent meanwhile.
    pub(super) fn settle_after(&mut self, cycles: u64) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        let mut end = self.host.nic.now() + self.entering + cycles + QUIET_CYCLES;
        self.entering = 0;
        while self.host.nic.now() < end {
            match self.host.nic.idle_until() {
                Some(idle) => self.host.nic.run_until(idle.min(end)),
                None => self.host.nic.step(),
            }
            while let Some(frame) = self.host.nic.transmit() {
                end = end.max(self.host.nic.now() + QUIET_CYCLES);
                self.note(Direction::Transmit, frame.clone());
                sent.push(frame);
            }
        }
        sent
    }

    /// Malformed packets fed so far.
    pub(super) fn malformed(&self) -> u64 {
        self.malformed
    }

    /// What is wrong beyond packets: malformed ones that were not counted, rules of the ports, memory.
    pub(super) fn finish(&mut self) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut differ = |what: &str, expected: String, actual: String| {
            found.push(Difference {
                packet: None,
                what: what.to_owned(),
                expected,
                found: actual,
            });
        };
        let counters = malformed::COUNTERS.iter();
        let dropped: u64 = counters.map(|name| self.host.stat(name)).sum();
        if dropped != self.malformed {
            let what = "packets counted as dropped";
            differ(what, self.malformed.to_string(), dropped.to_string());
        }
        for failure in self.host.nic.failures() {
            differ("rules of the ports", "kept".to_owned(), failure);
        }
        found
    }

    /// The completions that have come.
    pub(super) fn completions(&mut self) -> Vec<Cqe> {
        std::iter::from_fn(|| self.host.poll(self.cq)).collect()
    }

    fn note(&mut self, direction: Direction, bytes: Vec<u8>) {
        self.passed.push(Passed {
            ns: self.host.nic.now() * NS_PER_CYCLE,
            direction,
            bytes,
        });
    }
}

/// What the path of `av` has in common with that of a recorded packet.
fn path(like: &Headers, av: &mut AvCtx) {
    let (hop_limit, flow_label) = match like.ip {
        Ip::V4(ip) => (ip.ttl, 0),
        Ip::V6(ip) => (ip.hop_limit, ip.flow_label),
    };
    av.udp_sport = like.udp.src_port;
    av.hop_limit = hop_limit;
    av.flow_label = flow_label;
    av.tclass = like.ip.traffic_class();
    av.pkey = like.bth.pkey;
}

/// Log2 of the least power of two that is not below `count`.
pub(super) fn log2(count: usize) -> u8 {
    count.next_power_of_two().trailing_zeros() as u8
}
