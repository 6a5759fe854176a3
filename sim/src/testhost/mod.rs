//! A host without a driver, for tests: rings and contexts built by hand through the host contract.
//!
//! [`Host`] owns one card behind [`Nic`] and its memory; [`Pair`] joins two by a link that a test can
//! harm. Nothing here knows whether the card is the golden model or the engine. Whatever a healthy
//! card would not do (no answer, a status a test did not ask for) panics.

mod cq;
mod datagram;
mod exceptions;
mod pair;
mod queue;
mod region;
mod work;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use ferroce_proto::abi::cmd::{CMD_BYTES, CmdCpl, CmdHead, GidEntry, PortConfig, opcode, status};
use ferroce_proto::abi::regs;
use ferroce_proto::wire::{Gid, Mac};

use crate::memory::{HostMemory, Ranges, Watched};
use crate::nic::Nic;

pub use exceptions::{EXPERIMENTAL, ExceptionQueue, experimental};
pub use pair::{Pair, Side, Wire};
pub use queue::{Peer, QpOptions};
pub use region::{Mr, Rights};
pub use work::Work;

/// Cycles after which a card that does not answer a register read or a command is broken.
const ANSWER_CYCLES: u64 = 100_000;

/// Log2 of the entries of the command rings.
const CMD_LOG_SIZE: u32 = 4;

/// Addresses that are handed out, anywhere in 64 bits but for the ends.
const ADDRESSES: std::ops::Range<u64> = 1 << 32..u64::MAX - (1 << 40);

/// Protection domain of everything that does not name another.
pub const PD: u32 = 0x2a;

/// A command whose completion may not be there yet.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// How many were given before it.
    number: u32,
    /// Where its completion comes.
    at: u64,
    owner: bool,
    head: CmdHead,
}

impl Command {
    /// Register CMD_CI says that its completion is there.
    #[must_use]
    pub const fn is_counted(&self, cmd_ci: u32) -> bool {
        (cmd_ci.wrapping_sub(self.number) & 0xffff).wrapping_sub(1) < 0x8000
    }
}

/// A card and the host it sits in.
pub struct Host {
    /// The card.
    pub nic: Box<dyn Nic>,
    /// The host's memory.
    pub memory: Rc<Ranges>,
    /// What the card may reach of it.
    reach: Rc<Watched>,
    /// Regions that were registered and not taken back.
    live: Vec<Mr>,
    /// MAC address of the port.
    pub mac: Mac,
    /// GID table entry 0.
    pub gid: Gid,
    /// Protection domain of what is made next.
    pub pd: u32,
    /// Rings and consumer records begin wherever they may, not at pages as a driver has them.
    pub packed: bool,
    /// Where memory is; follows from the MAC address.
    places: fastrand::Rng,
    commands: u64,
    completions: u64,
    issued: u32,
    regions: u32,
    cqs: BTreeMap<u16, cq::Cq>,
    qps: BTreeMap<u32, queue::Qp>,
    srqs: Vec<datagram::Srq>,
}

impl Host {
    /// Brings up the card that `build` makes: command rings, enable, MAC address, GID 0.
    pub fn new(
        build: impl FnOnce(Rc<dyn HostMemory>) -> Box<dyn Nic>,
        mac: Mac,
        ip: IpAddr,
    ) -> Self {
        Self::with_memory(build, Rc::new(Ranges::new()), mac, ip)
    }

    /// As [`new`](Self::new), with memory of which the caller has mapped some.
    pub fn with_memory(
        build: impl FnOnce(Rc<dyn HostMemory>) -> Box<dyn Nic>,
        memory: Rc<Ranges>,
        mac: Mac,
        ip: IpAddr,
    ) -> Self {
        let Mac([a, b, c, d, e, f]) = mac;
        let seed = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
        let reach = Rc::new(Watched::new(Rc::clone(&memory)));
        let mut host = Self {
            nic: build(Rc::<Watched>::clone(&reach)),
            memory,
            reach,
            live: Vec::new(),
            mac,
            gid: ip.into(),
            pd: PD,
            packed: false,
            places: fastrand::Rng::with_seed(seed),
            commands: 0,
            completions: 0,
            issued: 0,
            regions: 0,
            cqs: BTreeMap::new(),
            qps: BTreeMap::new(),
            srqs: Vec::new(),
        };
        host.bring_up();
        host
    }

    fn bring_up(&mut self) {
        assert_eq!(self.read32(regs::MAGIC), regs::MAGIC_VALUE);
        self.commands = self.alloc(CMD_BYTES << CMD_LOG_SIZE);
        self.completions = self.alloc(CmdCpl::BYTES << CMD_LOG_SIZE);
        self.write32(regs::CMD_BASE_LO, self.commands as u32);
        self.write32(regs::CMD_BASE_HI, (self.commands >> 32) as u32);
        self.write32(regs::CPL_BASE_LO, self.completions as u32);
        self.write32(regs::CPL_BASE_HI, (self.completions >> 32) as u32);
        self.write32(regs::CMD_LOG_SIZE, CMD_LOG_SIZE);
        self.write32(regs::CONTROL, regs::control::ENABLE);
        self.wait_ready();
        let Mac([a, b, c, d, e, f]) = self.mac;
        let mac = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
        let port = PortConfig {
            mac,
            ..PortConfig::default()
        };
        self.expect(opcode::SET_PORT, 0, &port.emit());
        let gid = GidEntry {
            gid: self.gid.to_le_bits(),
            valid: true,
            ipv6: !self.gid.is_ipv4(),
        };
        self.expect(opcode::SET_GID, 0, &gid.emit());
    }

    /// Waits until the card is ready after a reset.
    pub fn wait_ready(&mut self) {
        let end = self.nic.now() + ANSWER_CYCLES;
        while self.read32(regs::STATUS) & regs::status::READY == 0 {
            assert!(self.nic.now() < end, "the card does not become ready");
        }
    }

    /// Resets the card through register CONTROL and brings it up again, see [`start_again`](Self::start_again).
    pub fn restart(&mut self) {
        self.stop();
        self.start_again();
    }

    /// Resets the card through register CONTROL.
    pub fn stop(&mut self) {
        self.write32(regs::CONTROL, regs::control::ENGINE_RESET);
        self.wait_ready();
    }

    /// Brings the card up after a reset of any kind; what was made on it is gone, memory stays, and the card must not reach it.
    pub fn start_again(&mut self) {
        self.wait_ready();
        let regions = self.live.iter().map(|mr| (mr.addr, mr.len));
        let rings = self.qps.values().flat_map(queue::Qp::rings);
        let cqs = self.cqs.values().map(cq::Cq::ring);
        for (addr, len) in regions.chain(rings).chain(cqs) {
            self.reach.take_back(addr, len);
        }
        (self.issued, self.regions) = (0, 0);
        self.live.clear();
        self.cqs.clear();
        self.qps.clear();
        self.srqs.clear();
        self.bring_up();
    }

    /// Writes a register.
    pub fn write32(&mut self, register: u32, value: u32) {
        self.nic.write32(register.into(), value);
    }

    /// Reads a register.
    pub fn read32(&mut self, register: u32) -> u32 {
        self.nic.start_read32(register.into());
        for _ in 0..ANSWER_CYCLES {
            self.nic.step();
            if let Some(value) = self.nic.take_read32() {
                return value;
            }
        }
        panic!("no answer to a read of register {register:#x}");
    }

    /// The statistic of a name of [`regs::STATS`].
    pub fn stat(&mut self, name: &str) -> u64 {
        let place = regs::STATS.iter().position(|&stat| stat == name);
        let place = place.unwrap_or_else(|| panic!("no statistic {name}"));
        let offset = regs::STATS_BASE + 8 * place as u32;
        let low = self.read32(offset);
        u64::from(self.read32(offset + 4)) << 32 | u64::from(low)
    }

    /// New memory of `len` bytes, all zero, 4096-byte aligned, far from everything else.
    pub fn alloc(&mut self, len: usize) -> u64 {
        self.alloc_at(len, 4096)
    }

    /// As [`alloc`](Self::alloc), for a ring: 64-byte aligned if [`packed`](Self::packed).
    pub fn alloc_ring(&mut self, len: usize) -> u64 {
        self.alloc_at(len, if self.packed { 64 } else { 4096 })
    }

    /// As [`alloc`](Self::alloc), for a consumer record of 4 bytes: 4-byte aligned if [`packed`](Self::packed).
    pub fn alloc_record(&mut self) -> u64 {
        self.alloc_at(4, if self.packed { 4 } else { 4096 })
    }

    fn alloc_at(&mut self, len: usize, alignment: u64) -> u64 {
        loop {
            let addr = self.places.u64(ADDRESSES) & !(alignment - 1);
            // What is mapped already may be in the way.
            if self.memory.map(addr, vec![0; len.max(1)]).is_ok() {
                return addr;
            }
        }
    }

    /// Notes that the card must not reach these bytes any more.
    pub fn take_back(&self, addr: u64, len: u64) {
        self.reach.take_back(addr, len);
    }

    /// Writes host memory.
    pub fn write(&self, addr: u64, data: &[u8]) {
        self.memory
            .write(addr, data)
            .expect("the test writes what it mapped");
    }

    /// Reads host memory.
    #[must_use]
    pub fn read(&self, addr: u64, len: usize) -> Vec<u8> {
        let mut data = vec![0; len];
        self.memory
            .read(addr, &mut data)
            .expect("the test reads what it mapped");
        data
    }

    /// Executes a command; `images` stand at bytes 64 and up.
    pub fn command(&mut self, head: CmdHead, images: &[[u8; 64]]) -> CmdCpl {
        let command = self.start(head, images);
        for _ in 0..ANSWER_CYCLES {
            self.nic.step();
            if let Some(completion) = self.answer(&command) {
                return completion;
            }
        }
        panic!("no completion of command {head:?}");
    }

    /// Gives a command and does not wait for its completion.
    pub fn start(&mut self, head: CmdHead, images: &[[u8; 64]]) -> Command {
        let entry = u64::from(self.issued) & ((1 << CMD_LOG_SIZE) - 1);
        let token = self.issued as u16 ^ 0x5a00;
        let at = self.commands + entry * CMD_BYTES as u64;
        self.write(at, &CmdHead { token, ..head }.emit());
        for (i, image) in images.iter().enumerate() {
            self.write(at + 64 * (1 + i as u64), image);
        }
        let owner = self.issued >> CMD_LOG_SIZE & 1 == 0;
        self.issued += 1;
        self.write32(regs::CMD_PI, self.issued);
        Command {
            number: self.issued - 1,
            at: self.completions + entry * CmdCpl::BYTES as u64,
            owner,
            head: CmdHead { token, ..head },
        }
    }

    /// The completion of a command, once it is there.
    #[must_use]
    pub fn answer(&self, command: &Command) -> Option<CmdCpl> {
        let bytes = self.read(command.at, CmdCpl::BYTES);
        let completion = CmdCpl::parse(bytes.first_chunk().expect("32 bytes"));
        let (head, found) = (&command.head, completion);
        (found.owner == command.owner).then(|| {
            assert_eq!((found.token, found.opcode), (head.token, head.opcode));
            assert_eq!(found.index, head.index);
            found
        })
    }

    /// Executes a command with one image that must succeed.
    pub fn expect(&mut self, opcode: u8, index: u32, image: &[u8; 64]) {
        let head = CmdHead {
            opcode,
            index,
            ..CmdHead::default()
        };
        let completion = self.command(head, &[*image]);
        assert_eq!(completion.status, status::OK, "command {opcode} on {index}");
    }
}

/// `len` bytes that differ from their neighbours and from those of another `seed`.
#[must_use]
pub fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|i| (i * 7 + (i >> 8) * 13) as u8 ^ seed)
        .collect()
}
