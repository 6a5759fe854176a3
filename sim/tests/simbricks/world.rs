//! Two hosts and the network between them, which the driver sees as cards.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use ferroce_driver::{Backend, BackendError, DmaAccess, Opened, eventfd};
use ferroce_proto::abi::{pci, regs};
use ferroce_sim::memory::{HostMemory, ProcessMemory};

use crate::peer::{ETHERNET, PCIE, Peer, Received};

/// Longest that the cards may take in our time until something moves.
const PATIENCE: Duration = Duration::from_secs(60);

/// Something that a host or the network saw: when, where, what, how much of it.
pub(crate) type Seen = (u64, usize, &'static str, usize);

struct Host {
    link: Peer,
    memory: Rc<ProcessMemory>,
    requests: u64,
    /// What the card answered.
    answers: HashMap<u64, Vec<u8>>,
    vectors: VecDeque<u16>,
}

pub(crate) struct World {
    hosts: Vec<Host>,
    ports: Vec<Peer>,
    sync: bool,
    now: u64,
    start: Instant,
    pub(crate) seen: Vec<Seen>,
}

impl World {
    /// Connects to the cards `a` and `b` of a folder, as hosts, and as the network unless there is another one.
    pub(crate) fn connect(folder: &Path, sync: bool, latency: u64, has_network: bool) -> Self {
        let connect =
            |name: &str, protocol| Peer::connect(&folder.join(name), protocol, sync, latency);
        let port = |name: &str| has_network.then(|| connect(name, ETHERNET));
        // A network before its host, and a host before its network.
        let port_a = port("a.eth");
        let links = [connect("a.pci", PCIE), connect("b.pci", PCIE)];
        let port_b = port("b.eth");
        let hosts = links.map(|link| Host {
            link,
            memory: Rc::new(ProcessMemory::new()),
            requests: 0,
            answers: HashMap::new(),
            vectors: VecDeque::new(),
        });
        Self {
            hosts: hosts.into(),
            ports: port_a.into_iter().chain(port_b).collect(),
            sync,
            now: 0,
            start: Instant::now(),
            seen: Vec::new(),
        }
    }

    /// What a card said of itself to its host.
    pub(crate) fn device(&self, host: usize) -> &[u8] {
        &self.hosts[host].link.upper
    }

    fn links(&mut self) -> impl Iterator<Item = &mut Peer> {
        let hosts = self.hosts.iter_mut().map(|host| &mut host.link);
        hosts.chain(&mut self.ports)
    }

    /// Everything at one time, and on to the next.
    fn turn(&mut self) {
        let started = Instant::now();
        let now = self.now;
        self.links().for_each(|link| link.keep_time(now));
        loop {
            let mut moved = false;
            for at in 0..2 {
                while let Some(message) = self.hosts[at].link.receive(now) {
                    self.host(at, &message);
                    moved = true;
                }
            }
            for at in 0..self.ports.len() {
                while let Some(message) = self.ports[at].receive(now) {
                    assert_eq!(message.kind, 0x40, "a frame");
                    let len = usize::from(message.u16(0));
                    self.seen.push((now, at, "frame", len));
                    let head = &message.header[..3];
                    self.ports[1 - at].send(now, 0x40, head, &message.data[..len]);
                    moved = true;
                }
            }
            let horizon = self.links().map(|link| link.horizon()).min().unwrap();
            if self.sync && horizon <= now {
                assert!(started.elapsed() < PATIENCE, "a card stands still");
                thread::sleep(Duration::from_micros(5));
                continue;
            }
            if !moved {
                thread::sleep(Duration::from_micros(if self.sync { 0 } else { 20 }));
            }
            if self.sync {
                let sync_at = self.links().map(|link| link.sync_at()).min().unwrap();
                self.now = horizon.min(sync_at);
            }
            return;
        }
    }

    /// A message from a card to its host.
    fn host(&mut self, at: usize, message: &Received) {
        let now = self.now;
        let host = &mut self.hosts[at];
        let (id, address) = (message.u64(0), message.u64(8));
        let len = usize::from(message.u16(16));
        match message.kind {
            0x40 => {
                let mut data = vec![0; len];
                host.memory.read(address, &mut data).expect("mapped");
                host.link.send(now, 0x62, &id.to_le_bytes(), &data);
            }
            0x41 => {
                let written = host.memory.write(address, &message.data[..len]);
                written.expect("mapped");
                host.link.send(now, 0x63, &id.to_le_bytes(), &[]);
            }
            0x42 => {
                assert_eq!(message.header[2], 3, "MSI-X");
                host.vectors.push_back(message.u16(0));
                self.seen.push((now, at, "interrupt", 0));
            }
            0x43 => drop(host.answers.insert(id, message.data[..4].to_vec())),
            0x44 => drop(host.answers.insert(id, Vec::new())),
            kind => panic!("a message of type {kind:#x}"),
        }
    }

    /// An access of a host to BAR 0, and its answer.
    fn access(&mut self, at: usize, kind: u8, offset: u64, data: &[u8]) -> Vec<u8> {
        let now = self.now;
        let host = &mut self.hosts[at];
        host.requests += 1;
        let id = host.requests;
        let mut head = id.to_le_bytes().to_vec();
        head.extend(offset.to_le_bytes());
        head.extend([4, 0, pci::REGISTER_BAR]);
        host.link.send(now, kind, &head, data);
        let started = Instant::now();
        loop {
            if let Some(answer) = self.hosts[at].answers.remove(&id) {
                return answer;
            }
            assert!(started.elapsed() < PATIENCE, "a register does not answer");
            self.turn();
        }
    }
}

/// A host's view of its card.
pub(crate) struct HostCard {
    world: Rc<RefCell<World>>,
    at: usize,
    memory: Rc<ProcessMemory>,
    events: RefCell<BTreeMap<u32, OwnedFd>>,
    opened: Opened,
}

impl HostCard {
    pub(crate) fn new(world: &Rc<RefCell<World>>, at: usize) -> Self {
        Self {
            world: world.clone(),
            at,
            memory: world.borrow().hosts[at].memory.clone(),
            events: RefCell::default(),
            opened: Opened::default(),
        }
    }

    fn deliver(&self) {
        let vectors = std::mem::take(&mut self.world.borrow_mut().hosts[self.at].vectors);
        for vector in vectors {
            if let Some(fd) = self.events.borrow().get(&vector.into()) {
                eventfd::raise(fd).unwrap();
            }
        }
    }
}

impl Backend for HostCard {
    fn read32(&self, offset: u64) -> u32 {
        let answer = self.world.borrow_mut().access(self.at, 0x60, offset, &[]);
        u32::from_le_bytes(answer.try_into().unwrap())
    }

    unsafe fn write32(&self, offset: u64, value: u32) {
        let data = value.to_le_bytes();
        let mut world = self.world.borrow_mut();
        assert!(world.access(self.at, 0x61, offset, &data).is_empty());
    }

    unsafe fn map(&self, addr: *mut u8, len: usize, access: DmaAccess) -> Result<(), BackendError> {
        // SAFETY: the caller promises that the memory stays until `unmap`.
        unsafe { self.memory.map(addr, len, access) }.map_err(|_| BackendError::Overlap {
            addr: addr.addr(),
            len,
        })
    }

    unsafe fn unmap(&self, addr: *mut u8, _: usize) -> Result<(), BackendError> {
        assert!(self.memory.unmap(addr.addr() as u64));
        Ok(())
    }

    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn seed(&self) -> Option<u64> {
        Some(0)
    }

    fn relax(&self) {
        self.world.borrow_mut().turn();
        self.deliver();
    }

    fn now_ns(&self) -> u64 {
        let world = self.world.borrow();
        if world.sync {
            world.now / 1000
        } else {
            // Bounds of waits are those of a card in hardware.
            world.start.elapsed().as_nanos() as u64 / pci::SIMULATED_SLOWDOWN
        }
    }

    fn page_size(&self) -> usize {
        4096
    }

    fn bar_len(&self) -> u64 {
        regs::BAR0_BYTES
    }

    fn vectors(&self) -> u32 {
        pci::MSIX_VECTORS.into()
    }

    fn interrupt(&self, vector: u32) -> Result<OwnedFd, BackendError> {
        let mut events = self.events.borrow_mut();
        let fd = events
            .entry(vector)
            .or_insert_with(|| eventfd::create().unwrap());
        Ok(fd.try_clone().unwrap())
    }

    fn wait_readable(&self, fd: BorrowedFd<'_>, timeout_ns: u64) -> bool {
        let end = self.now_ns().saturating_add(timeout_ns);
        while !eventfd::wait(fd, 0) {
            if self.now_ns() >= end {
                return false;
            }
            self.relax();
        }
        true
    }
}
