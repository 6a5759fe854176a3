//! The simulated card under the driver.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;

use ferroce_driver::{Backend, BackendError, DmaAccess, Opened, eventfd};
use ferroce_proto::abi::{pci, regs};

use crate::link::Config;
use crate::memory::{HostMemory, ProcessMemory};
use crate::model::{DEFAULT_PARAMS, Model};
use crate::nic::{NS_PER_CYCLE, Nic};
use crate::world::{NodeId, World};

/// Bytes of a page of the simulated IOMMU.
pub const PAGE: usize = 4096;

/// Cycles after which a register read counts as not answered. The card then reads as all ones until
/// the answer comes after all.
pub const READ_TIMEOUT: u64 = 10_000;

/// Nanoseconds that a wait takes on a card that was unplugged: a bounded wait ends soon.
const UNPLUGGED_WAIT_NS: u64 = 1_000_000;

/// A card of a [`World`] as the driver's [`Backend`].
///
/// Time advances only while the host waits: in register reads and in [`relax`](Backend::relax), for all
/// cards of the world. What the host computes takes no time. Its eventfds are written when one of its own
/// methods is called: a host that sleeps on one elsewhere has another task call [`relax`](Backend::relax).
pub struct SimCard {
    world: Rc<RefCell<World>>,
    node: NodeId,
    memory: Rc<ProcessMemory>,
    /// Length of each mapped range by its address.
    mapped: RefCell<BTreeMap<usize, usize>>,
    relax_cycles: Cell<u64>,
    /// A read was given up and its answer has not come yet.
    no_answer: Cell<bool>,
    /// Time in ns since the card was unplugged, if it was.
    unplugged: Cell<Option<u64>>,
    /// Eventfds of the vectors that were asked for.
    interrupts: RefCell<BTreeMap<u32, OwnedFd>>,
    opened: Opened,
}

impl SimCard {
    /// The card `node` of `world`, whose DMA reaches `memory`.
    #[must_use]
    pub fn new(world: Rc<RefCell<World>>, node: NodeId, memory: Rc<ProcessMemory>) -> Self {
        Self {
            world,
            node,
            memory,
            mapped: RefCell::new(BTreeMap::new()),
            relax_cycles: Cell::new(16),
            no_answer: Cell::new(false),
            unplugged: Cell::new(None),
            interrupts: RefCell::default(),
            opened: Opened::default(),
        }
    }

    /// Two cards on a wire of 100 Gb/s, in a world of their own; `nic` makes each, with the memory it reaches.
    ///
    /// # Errors
    /// Those of `nic`.
    pub fn pair<N: Nic + 'static, E>(
        mut nic: impl FnMut(Rc<dyn HostMemory>) -> Result<N, E>,
    ) -> Result<[Self; 2], E> {
        let world = Rc::new(RefCell::new(World::new()));
        let mut add = |name: &str| {
            let memory = Rc::new(ProcessMemory::new());
            let node = world.borrow_mut().add(name, nic(memory.clone())?);
            Ok::<_, E>(Self::new(world.clone(), node, memory))
        };
        let cards = [add("host1")?, add("host2")?];
        let wire = Config::ethernet_100g();
        let [a, b] = [cards[0].node, cards[1].node];
        world.borrow_mut().connect(a, b, wire.clone(), wire);
        Ok(cards)
    }

    /// A [`pair`](Self::pair) of golden models.
    #[must_use]
    pub fn models() -> [Self; 2] {
        let model = |memory| Ok::<_, Infallible>(Model::new(DEFAULT_PARAMS, memory));
        let Ok(cards) = Self::pair(model);
        cards
    }

    /// The world that it is part of.
    #[must_use]
    pub fn world(&self) -> &Rc<RefCell<World>> {
        &self.world
    }

    /// Sets the cycles that one [`relax`](Backend::relax) takes: the granularity in which the host
    /// polls, 16 unless set.
    ///
    /// # Panics
    /// If `cycles` is 0: time would stand still.
    pub fn set_relax_cycles(&self, cycles: u64) {
        assert!(cycles > 0, "a wait of 0 cycles never ends");
        self.relax_cycles.set(cycles);
    }

    /// Removes the card from under the driver, as a surprise removal does: reads answer all ones,
    /// writes go nowhere, and the world stands still from here, with all its cards as they are. Waits
    /// of the driver run out at once, so that what it holds can be dropped however stuck the card is.
    pub fn unplug(&self) {
        self.unplugged.set(Some(self.unplugged.get().unwrap_or(0)));
    }

    /// Hands the interrupts that the card raised to their waiters.
    fn deliver(&self, world: &mut World) {
        while let Some(vector) = world.nic(self.node).interrupt() {
            if let Some(fd) = self.interrupts.borrow().get(&vector.into()) {
                eventfd::raise(fd).expect("an eventfd can be written");
            }
        }
    }
}

impl Backend for SimCard {
    fn read32(&self, offset: u64) -> u32 {
        if self.unplugged.get().is_some() {
            return u32::MAX;
        }
        let mut world = self.world.borrow_mut();
        if self.no_answer.get() {
            if world.nic(self.node).take_read32().is_none() {
                return u32::MAX;
            }
            self.no_answer.set(false);
        }
        let answer = world.read32(self.node, offset, READ_TIMEOUT);
        self.deliver(&mut world);
        self.no_answer.set(answer.is_err());
        answer.unwrap_or(u32::MAX)
    }

    unsafe fn write32(&self, offset: u64, value: u32) {
        if self.unplugged.get().is_some() {
            return;
        }
        self.world.borrow_mut().write32(self.node, offset, value);
    }

    unsafe fn map(&self, addr: *mut u8, len: usize, access: DmaAccess) -> Result<(), BackendError> {
        let start = addr.addr();
        if !start.is_multiple_of(PAGE) || !len.is_multiple_of(PAGE) {
            return Err(BackendError::Unaligned {
                addr: start,
                len,
                page: PAGE,
            });
        }
        if !access.is_permitted(start, len) {
            let addr = start;
            return Err(BackendError::Fault { addr, len, access });
        }
        // SAFETY: the caller promises what `ProcessMemory::map` asks for: the memory stays until
        // `unmap`, and no reference is held to what the card may write.
        unsafe { self.memory.map(addr, len, access) }
            .map_err(|_| BackendError::Overlap { addr: start, len })?;
        self.mapped.borrow_mut().insert(start, len);
        Ok(())
    }

    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn seed(&self) -> Option<u64> {
        // A simulation is the same each time.
        Some(0)
    }

    unsafe fn unmap(&self, addr: *mut u8, len: usize) -> Result<(), BackendError> {
        let start = addr.addr();
        let mut mapped = self.mapped.borrow_mut();
        if mapped.get(&start) != Some(&len) || !self.memory.unmap(start as u64) {
            return Err(BackendError::NotMapped { addr: start, len });
        }
        mapped.remove(&start);
        Ok(())
    }

    fn relax(&self) {
        match self.unplugged.get() {
            Some(ns) => self.unplugged.set(Some(ns + UNPLUGGED_WAIT_NS)),
            None => {
                let mut world = self.world.borrow_mut();
                world.run(self.relax_cycles.get());
                self.deliver(&mut world);
            }
        }
    }

    fn now_ns(&self) -> u64 {
        self.world.borrow().now() * NS_PER_CYCLE + self.unplugged.get().unwrap_or(0)
    }

    fn page_size(&self) -> usize {
        PAGE
    }
    fn bar_len(&self) -> u64 {
        regs::BAR0_BYTES
    }

    fn vectors(&self) -> u32 {
        pci::MSIX_VECTORS.into()
    }

    fn interrupt(&self, vector: u32) -> Result<OwnedFd, BackendError> {
        let vectors = self.vectors();
        if vector >= vectors {
            return Err(BackendError::NoVector { vector, vectors });
        }
        let refused = |source| BackendError::Interrupt { vector, source };
        // Earlier interrupts are not for this waiter.
        self.deliver(&mut self.world.borrow_mut());
        let mut interrupts = self.interrupts.borrow_mut();
        if let Some(fd) = interrupts.get(&vector) {
            return fd.try_clone().map_err(refused);
        }
        let fd = eventfd::create().map_err(refused)?;
        let copy = fd.try_clone().map_err(refused)?;
        interrupts.insert(vector, fd);
        Ok(copy)
    }

    fn wait_readable(&self, fd: BorrowedFd<'_>, timeout_ns: u64) -> bool {
        let end = self.now_ns().saturating_add(timeout_ns);
        self.deliver(&mut self.world.borrow_mut());
        loop {
            if eventfd::wait(fd, 0) {
                return true;
            }
            if self.now_ns() >= end {
                return false;
            }
            self.relax();
        }
    }
}
