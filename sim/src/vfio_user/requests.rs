//! What a client asks for.

use std::os::fd::OwnedFd;

use ferroce_proto::abi::{pci, regs};
use ferroce_vfio_user::header::Header;
use ferroce_vfio_user::message::{self, Request};
use ferroce_vfio_user::payload::{
    DeviceInfo, DmaUnmap, IrqInfo, Region, RegionInfo, device, dma, irq, region,
};
use ferroce_vfio_user::version::{Capabilities, Version};
use ferroce_vfio_user::{Errno, MAJOR, MAX_FDS, MAX_TRANSFER, MINOR};

use super::irqs::Irqs;
use super::{Device, config_space};

/// File descriptors of a message beyond which QEMU takes the capability for malformed.
const MOST_FDS: usize = 16;

/// Bytes of the longest access to a BAR: what a processor does at once.
const MAX_ACCESS: u32 = 8;
/// Shortest longest transfer that a client may ask for: the card's own are not cut.
const MIN_TRANSFER: u64 = 64 << 10;
/// Bytes of an entry of the MSI-X table.
const TABLE_ENTRY: usize = 16;

/// What comes of a request.
pub(super) enum Outcome {
    /// Data of the reply.
    Reply(Vec<u8>),
    /// The reply comes when the card has answered.
    Later,
    /// The card is to be reset before the reply, which has no data.
    Reset,
    /// As `Reset`, with the data of the reply.
    ResetAndReply(Vec<u8>),
}

/// Bytes of a region of the device; 0: there is none.
fn region_bytes(index: u32) -> u64 {
    const REGISTERS: u32 = pci::REGISTER_BAR as u32;
    const MSIX: u32 = pci::MSIX_BAR as u32;
    match index {
        REGISTERS => regs::BAR0_BYTES,
        MSIX => pci::MSIX_BAR_BYTES,
        region::CONFIG => config_space::BYTES as u64,
        _ => 0,
    }
}

/// The reply to a read of a region, with what was read.
pub(super) fn region_reply(((header, region), data): &((Header, Region), Vec<u8>)) -> Vec<u8> {
    message::reply(header, |to| {
        region.emit(to);
        to.extend_from_slice(data);
    })
}

fn emit(emit: impl FnOnce(&mut Vec<u8>)) -> Result<Outcome, Errno> {
    let mut data = Vec::new();
    emit(&mut data);
    Ok(Outcome::Reply(data))
}

/// The answer to a version: the client's, or ours if that is older.
///
/// # Errors
/// Another major version, or transfers that are too short.
pub(super) fn agree(theirs: &Version) -> Result<Vec<u8>, Errno> {
    let transfer = theirs.capabilities.max_data_xfer_size;
    if theirs.major != MAJOR || transfer.is_some_and(|bytes| bytes < MIN_TRANSFER) {
        return Err(Errno::NOTSUP);
    }
    let ours = Version {
        major: MAJOR,
        minor: theirs.minor.min(MINOR),
        capabilities: Capabilities {
            max_msg_fds: Some(MOST_FDS.min(MAX_FDS) as u64),
            max_data_xfer_size: Some(MAX_TRANSFER as u64),
            ..Capabilities::default()
        },
    };
    let mut data = Vec::new();
    ours.emit(&mut data);
    Ok(data)
}

impl Device {
    /// Carries out a request other than the version.
    pub(super) fn request(
        &mut self,
        header: &Header,
        request: Request,
        mut fds: Vec<OwnedFd>,
    ) -> Result<Outcome, Errno> {
        match request {
            Request::DmaMap(map) => {
                self.dma.map(&map, fds.pop())?;
                emit(|_| {})
            }
            Request::DmaUnmap(unmap) => {
                let size = if unmap.flags & dma::UNMAP_ALL != 0 {
                    self.dma.unmap_all()
                } else {
                    self.dma.unmap(unmap.address, unmap.size)?
                };
                let unmap = DmaUnmap { size, ..unmap };
                emit(|to| unmap.emit(to))
            }
            Request::DeviceInfo(_) => emit(|to| {
                let info = DeviceInfo {
                    argsz: DeviceInfo::BYTES as u32,
                    flags: device::RESET | device::PCI,
                    num_regions: region::COUNT,
                    num_irqs: irq::COUNT,
                };
                info.emit(to);
            }),
            Request::RegionInfo(ask) if ask.index < region::COUNT => emit(|to| {
                let size = region_bytes(ask.index);
                let rights = region::READ | region::WRITE;
                let info = RegionInfo {
                    argsz: RegionInfo::BYTES as u32,
                    flags: if size > 0 { rights } else { 0 },
                    index: ask.index,
                    size,
                    ..RegionInfo::default()
                };
                info.emit(to);
            }),
            Request::IrqInfo(ask) if ask.index < irq::COUNT => emit(|to| {
                let count = Irqs::count(ask.index);
                let info = IrqInfo {
                    argsz: IrqInfo::BYTES as u32,
                    flags: if count > 0 { irq::EVENTFD } else { 0 },
                    index: ask.index,
                    count,
                };
                info.emit(to);
            }),
            Request::SetIrqs(set, data) => {
                self.irqs.set(&set, &data, fds)?;
                emit(|_| {})
            }
            Request::RegionRead(at) => self.region_read(header, &at),
            Request::RegionWrite(at, data) => self.region_write(&at, &data),
            Request::DeviceReset => Ok(Outcome::Reset),
            Request::RegionInfo(_) | Request::IrqInfo(_) => Err(Errno::INVAL),
            Request::Version(_) | Request::DmaRead(_) | Request::DmaWrite(..) => Err(Errno::NOTSUP),
        }
    }

    /// Checks that an access lies inside of its region.
    fn check(at: &Region) -> Result<(), Errno> {
        let end = at.offset.checked_add(at.count.into()).ok_or(Errno::INVAL)?;
        let is_bar = at.region < region::BARS;
        if end > region_bytes(at.region) || at.count == 0 || is_bar && at.count > MAX_ACCESS {
            return Err(Errno::INVAL);
        }
        Ok(())
    }

    fn region_read(&mut self, header: &Header, at: &Region) -> Result<Outcome, Errno> {
        Self::check(at)?;
        let data = match at.region {
            // As on PCIe: no region has the address.
            bar if bar != region::CONFIG && !self.config.has_memory() => {
                vec![0xff; at.count as usize]
            }
            region::CONFIG => {
                let data = self.config.read(at.offset, at.count);
                data.ok_or(Errno::INVAL)?.to_vec()
            }
            bar if bar == u32::from(pci::MSIX_BAR) => self.msix_read(at),
            _ => {
                self.registers.read((*header, *at), at.offset, at.count);
                return Ok(Outcome::Later);
            }
        };
        emit(|to| {
            at.emit(to);
            to.extend_from_slice(&data);
        })
    }

    fn region_write(&mut self, at: &Region, data: &[u8]) -> Result<Outcome, Errno> {
        Self::check(at)?;
        let mut reply = Vec::new();
        at.emit(&mut reply);
        if at.region == region::CONFIG {
            let resets = self.config.write(at.offset, data).ok_or(Errno::INVAL)?;
            self.follow_config();
            return Ok(if resets {
                Outcome::ResetAndReply(reply)
            } else {
                Outcome::Reply(reply)
            });
        }
        if self.config.has_memory() {
            if at.region == u32::from(pci::MSIX_BAR) {
                self.msix_write(at.offset, data);
            } else if !self.registers.write(at.offset, data) {
                return Err(Errno::INVAL);
            }
        }
        Ok(Outcome::Reply(reply))
    }

    /// The MSI-X table is memory; the pending bits are read from the vectors; the rest is 0.
    fn msix_read(&self, at: &Region) -> Vec<u8> {
        let (pending, pba) = (self.irqs.pending(), u64::from(pci::MSIX_PBA));
        let byte = |offset: u64| {
            let table = self.msix_table.get(offset as usize);
            let bits = offset.checked_sub(pba).map(|at| at as usize);
            let bits = bits.and_then(|at| pending.get(at));
            table.or(bits).copied().unwrap_or(0)
        };
        (at.offset..at.offset + u64::from(at.count))
            .map(byte)
            .collect()
    }

    fn msix_write(&mut self, offset: u64, data: &[u8]) {
        let cells = self.msix_table.iter_mut().skip(offset as usize);
        cells.zip(data).for_each(|(cell, byte)| *cell = *byte);
    }
}

/// The MSI-X table after reset: every vector masked.
pub(super) fn msix_table() -> Vec<u8> {
    let mut entry = [0; TABLE_ENTRY];
    entry[TABLE_ENTRY - 4] = 1;
    entry.repeat(pci::MSIX_VECTORS.into())
}

/// The reply to a request, unless it comes later or is not wanted.
pub(super) fn reply(header: &Header, result: &Result<Outcome, Errno>) -> Option<Vec<u8>> {
    match result {
        Ok(Outcome::Later) => None,
        Ok(Outcome::Reset) => Some(message::reply(header, |_| {})),
        Ok(Outcome::Reply(data) | Outcome::ResetAndReply(data)) => {
            Some(message::reply(header, |to| to.extend_from_slice(data)))
        }
        Err(errno) => Some(message::failure(header, *errno)),
    }
}
