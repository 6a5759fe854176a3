//! A card behind a vfio-user socket, driven by this very process: [`VfioUser`].
//!
//! Registers are messages. The card reaches memory by messages too: a thread of this process reads and writes for it,
//! and touches mapped ranges only. Interrupts are eventfds. What is at the other end of the socket is most often a
//! simulated card (`docs/simnic.md`), whose time is slower than ours: waits last longer by as much.

mod error;
mod link;
mod memory;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ferroce_proto::abi::{pci, regs};
use ferroce_vfio_user::message::Request;
use ferroce_vfio_user::payload::{
    DeviceInfo, DmaMap, DmaUnmap, IrqInfo, Region, RegionInfo, SetIrqs, device, dma, irq, region,
};
use ferroce_vfio_user::version::{Capabilities, Version};
use ferroce_vfio_user::{MAJOR, MAX_TRANSFER, MINOR};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::host::lock;
use crate::{Backend, BackendError, DmaAccess, Opened, eventfd};

pub use error::VfioUserError;
use link::Link;

/// Bytes of a page that is mapped.
const PAGE: usize = 4096;
/// Nanoseconds that a turn of a wait loop takes on a card that is gone: a bounded wait ends soon.
const LOST_WAIT_NS: u64 = 1_000_000;
/// Pause of a turn of a wait loop.
const RELAX: Duration = Duration::from_micros(50);

/// Offset of the command register in configuration space.
const COMMAND: u64 = 4;
/// Command register: memory space and bus mastering on.
const MEMORY_AND_MASTER: u16 = 0x6;
/// Offset of subsystem vendor and device in configuration space.
const SUBSYSTEM: u64 = 0x2c;

/// A card behind a vfio-user socket.
///
/// When the other end is lost, registers read as all ones, writes go nowhere, and waits run out at once.
pub struct VfioUser {
    link: Arc<Link>,
    reader: Option<JoinHandle<()>>,
    /// eventfds of the vectors asked for.
    events: Mutex<Vec<Option<OwnedFd>>>,
    started: Instant,
    /// Bytes of BAR0.
    bar_len: u64,
    /// How many times slower than ours the time of the card is.
    slowdown: u64,
    opened: Opened,
    /// Nanoseconds of the card that waits took since it is gone.
    lost_ns: AtomicU64,
}

impl VfioUser {
    /// Connects to the socket at `path`, checks what is there, and enables memory access and bus mastering.
    ///
    /// # Errors
    /// [`VfioUserError`]: no server listens, another client has the card, or it is no such card.
    pub fn connect(path: &Path) -> Result<Self, VfioUserError> {
        let link = Arc::new(Link::connect(path)?);
        let reader = thread::Builder::new().name("vfio-user".into()).spawn({
            let link = link.clone();
            move || link.serve()
        });
        let mut card = Self {
            link,
            reader: Some(reader.map_err(VfioUserError::Thread)?),
            events: Mutex::default(),
            started: Instant::now(),
            opened: Opened::default(),
            bar_len: 0,
            slowdown: 1,
            lost_ns: AtomicU64::new(0),
        };
        card.agree()?;
        card.identify()?;
        Ok(card)
    }

    /// Resets the card as a function-level reset does. Mapped memory stays mapped.
    ///
    /// # Errors
    /// [`VfioUserError`]: the card is gone or refused.
    pub fn reset(&self) -> Result<(), VfioUserError> {
        self.link.call(&Request::DeviceReset, &[])?;
        self.enable()
    }

    /// The other end is gone.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.link.is_lost()
    }

    /// Version and capabilities.
    fn agree(&self) -> Result<(), VfioUserError> {
        let proposal = Version {
            major: MAJOR,
            minor: MINOR,
            capabilities: Capabilities {
                max_msg_fds: Some(1),
                max_data_xfer_size: Some(MAX_TRANSFER as u64),
                ..Capabilities::default()
            },
        };
        let reply = self.link.call(&Request::Version(proposal), &[])?;
        let version = Version::parse(&reply.body)?;
        if version.major != MAJOR || version.minor > MINOR {
            return Err(VfioUserError::Version {
                major: version.major,
                minor: version.minor,
            });
        }
        Ok(())
    }

    /// Checks that this is a card of ours, and enables it.
    fn identify(&mut self) -> Result<(), VfioUserError> {
        let ask = DeviceInfo {
            argsz: DeviceInfo::BYTES as u32,
            ..DeviceInfo::default()
        };
        let reply = self.link.call(&Request::DeviceInfo(ask), &[])?;
        let (info, _) = DeviceInfo::parse(&reply.body)?;
        if info.flags & device::PCI == 0 || info.num_regions <= region::CONFIG {
            return Err(VfioUserError::NotPci);
        }
        let id = self.config_read(0)?;
        let expected = u32::from(pci::DEVICE) << 16 | u32::from(pci::VENDOR);
        if id != expected {
            return Err(VfioUserError::Device {
                vendor: id as u16,
                device: (id >> 16) as u16,
            });
        }
        if (self.config_read(SUBSYSTEM)? >> 16) as u16 == pci::SUBSYSTEM_SIMULATED {
            self.slowdown = pci::SIMULATED_SLOWDOWN;
        }

        let ask = RegionInfo {
            argsz: RegionInfo::BYTES as u32,
            index: pci::REGISTER_BAR.into(),
            ..RegionInfo::default()
        };
        let reply = self.link.call(&Request::RegionInfo(ask), &[])?;
        let (info, _) = RegionInfo::parse(&reply.body)?;
        if info.size < regs::BAR0_BYTES {
            return Err(VfioUserError::Bar { bytes: info.size });
        }
        self.bar_len = info.size;

        let ask = IrqInfo {
            argsz: IrqInfo::BYTES as u32,
            index: irq::MSIX,
            ..IrqInfo::default()
        };
        let reply = self.link.call(&Request::IrqInfo(ask), &[])?;
        let (info, _) = IrqInfo::parse(&reply.body)?;
        let vectors = info.count.min(pci::MSIX_VECTORS.into());
        *lock(&self.events) = (0..vectors).map(|_| None).collect();
        self.enable()
    }

    /// Switches memory access and bus mastering on.
    fn enable(&self) -> Result<(), VfioUserError> {
        let command = self.config_read(COMMAND)? as u16 | MEMORY_AND_MASTER;
        let at = Region {
            offset: COMMAND,
            region: region::CONFIG,
            count: 2,
        };
        let data = command.to_le_bytes().to_vec();
        self.link.call(&Request::RegionWrite(at, data), &[])?;
        Ok(())
    }

    fn config_read(&self, offset: u64) -> Result<u32, VfioUserError> {
        self.link.read32(region::CONFIG, offset)
    }
}

impl Drop for VfioUser {
    fn drop(&mut self) {
        self.link.close();
        if let Some(reader) = self.reader.take()
            && reader.join().is_err()
        {
            tracing::error!("the thread of a vfio-user card panicked");
        }
    }
}

impl Backend for VfioUser {
    fn read32(&self, offset: u64) -> u32 {
        let bar = u32::from(pci::REGISTER_BAR);
        self.link.read32(bar, offset).unwrap_or_else(|error| {
            tracing::debug!("register {offset:#x} reads as all ones: {error}");
            u32::MAX
        })
    }

    unsafe fn write32(&self, offset: u64, value: u32) {
        let at = Region {
            offset,
            region: pci::REGISTER_BAR.into(),
            count: 4,
        };
        let write = Request::RegionWrite(at, value.to_le_bytes().to_vec());
        if let Err(error) = self.link.post(&write) {
            tracing::debug!("a write to register {offset:#x} went nowhere: {error}");
        }
    }

    unsafe fn map(&self, addr: *mut u8, len: usize, access: DmaAccess) -> Result<(), BackendError> {
        let start = addr.addr();
        if !start.is_multiple_of(PAGE) || !len.is_multiple_of(PAGE) || len == 0 {
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
        let mut memory = self.link.memory();
        // SAFETY: the caller promises what `Memory::insert` asks for, until `unmap` takes it out again.
        if !unsafe { memory.insert(addr, len, access) } {
            return Err(BackendError::Overlap { addr: start, len });
        }
        drop(memory);
        let map = DmaMap {
            argsz: DmaMap::BYTES as u32,
            flags: match access {
                DmaAccess::Read => dma::READ,
                DmaAccess::ReadWrite => dma::READ | dma::WRITE,
            },
            offset: 0,
            address: start as u64,
            size: len as u64,
        };
        if let Err(error) = self.link.call(&Request::DmaMap(map), &[]) {
            self.link.memory().remove(start, len);
            return Err(BackendError::System {
                operation: "mapping",
                addr: start,
                len,
                source: error.into(),
            });
        }
        Ok(())
    }

    fn opened(&self) -> &Opened {
        &self.opened
    }

    unsafe fn unmap(&self, addr: *mut u8, len: usize) -> Result<(), BackendError> {
        let start = addr.addr();
        // From here on the thread touches none of it.
        if !self.link.memory().remove(start, len) {
            return Err(BackendError::NotMapped { addr: start, len });
        }
        let unmap = DmaUnmap {
            argsz: DmaUnmap::BYTES as u32,
            flags: 0,
            address: start as u64,
            size: len as u64,
        };
        match self.link.call(&Request::DmaUnmap(unmap), &[]) {
            Err(error) if !self.is_lost() => Err(BackendError::System {
                operation: "unmapping",
                addr: start,
                len,
                source: error.into(),
            }),
            _ => Ok(()),
        }
    }

    fn relax(&self) {
        if self.is_lost() {
            self.lost_ns.fetch_add(LOST_WAIT_NS, Ordering::Relaxed);
        } else {
            thread::sleep(RELAX);
        }
    }

    fn now_ns(&self) -> u64 {
        let passed = self.started.elapsed().as_nanos() as u64 / self.slowdown;
        passed + self.lost_ns.load(Ordering::Relaxed)
    }

    fn page_size(&self) -> usize {
        PAGE
    }
    fn bar_len(&self) -> u64 {
        self.bar_len
    }

    fn vectors(&self) -> u32 {
        lock(&self.events).len() as u32
    }

    fn interrupt(&self, vector: u32) -> Result<OwnedFd, BackendError> {
        let refused = |source| BackendError::Interrupt { vector, source };
        let mut events = lock(&self.events);
        let vectors = events.len() as u32;
        let slot = events
            .get_mut(vector as usize)
            .ok_or(BackendError::NoVector { vector, vectors })?;
        if slot.is_none() {
            let event = eventfd::create().map_err(refused)?;
            let set = SetIrqs {
                argsz: SetIrqs::BYTES as u32,
                flags: irq::DATA_EVENTFD | irq::ACTION_TRIGGER,
                index: irq::MSIX,
                start: vector,
                count: 1,
            };
            self.link
                .call(&Request::SetIrqs(set, Vec::new()), &[event.as_fd()])
                .map_err(|e| refused(e.into()))?;
            *slot = Some(event);
        }
        let event = slot.as_ref().map(OwnedFd::try_clone);
        event.expect("made above").map_err(refused)
    }

    fn wait_readable(&self, fd: BorrowedFd<'_>, timeout_ns: u64) -> bool {
        let end = Instant::now() + Duration::from_nanos(timeout_ns.saturating_mul(self.slowdown));
        loop {
            let lost = self.link.lost();
            let mut fds = [
                PollFd::from_borrowed_fd(fd, PollFlags::IN),
                PollFd::from_borrowed_fd(lost, PollFlags::IN),
            ];
            let left = end.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).ok();
            match poll(&mut fds, left.as_ref()) {
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
                Ok(_) => {
                    let is_readable = fds[0].revents().contains(PollFlags::IN);
                    if !is_readable && self.is_lost() {
                        self.lost_ns.fetch_add(timeout_ns, Ordering::Relaxed);
                    }
                    return is_readable;
                }
            }
        }
    }

    fn is_lost(&self) -> bool {
        self.link.is_lost()
    }
}
