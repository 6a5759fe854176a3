//! Whole messages.

use std::os::fd::OwnedFd;

use crate::header::{Command, Header, Kind};
use crate::payload::{DeviceInfo, Dma, DmaMap, DmaUnmap, IrqInfo, Region, RegionInfo, SetIrqs};
use crate::version::Version;
use crate::{Errno, MAX_TRANSFER, ProtocolError};

/// A message as it arrived.
#[derive(Debug)]
pub struct Message {
    /// Its header.
    pub header: Header,
    /// What follows the header.
    pub body: Vec<u8>,
    /// File descriptors that came with it.
    pub fds: Vec<OwnedFd>,
}

/// A command with its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// VERSION.
    Version(Version),
    /// DMA_MAP.
    DmaMap(DmaMap),
    /// DMA_UNMAP.
    DmaUnmap(DmaUnmap),
    /// DEVICE_GET_INFO.
    DeviceInfo(DeviceInfo),
    /// DEVICE_GET_REGION_INFO.
    RegionInfo(RegionInfo),
    /// DEVICE_GET_IRQ_INFO.
    IrqInfo(IrqInfo),
    /// DEVICE_SET_IRQS with its data.
    SetIrqs(SetIrqs, Vec<u8>),
    /// REGION_READ.
    RegionRead(Region),
    /// REGION_WRITE with its data.
    RegionWrite(Region, Vec<u8>),
    /// DMA_READ.
    DmaRead(Dma),
    /// DMA_WRITE with its data.
    DmaWrite(Dma, Vec<u8>),
    /// DEVICE_RESET.
    DeviceReset,
}

impl Request {
    /// Its command.
    #[must_use]
    pub fn command(&self) -> Command {
        match self {
            Self::Version(_) => Command::Version,
            Self::DmaMap(_) => Command::DmaMap,
            Self::DmaUnmap(_) => Command::DmaUnmap,
            Self::DeviceInfo(_) => Command::DeviceInfo,
            Self::RegionInfo(_) => Command::RegionInfo,
            Self::IrqInfo(_) => Command::IrqInfo,
            Self::SetIrqs(..) => Command::SetIrqs,
            Self::RegionRead(_) => Command::RegionRead,
            Self::RegionWrite(..) => Command::RegionWrite,
            Self::DmaRead(_) => Command::DmaRead,
            Self::DmaWrite(..) => Command::DmaWrite,
            Self::DeviceReset => Command::DeviceReset,
        }
    }

    /// Reads the command of a message.
    ///
    /// # Errors
    /// [`ProtocolError`]: an unknown command, or a payload that does not fit it.
    pub fn parse(message: &Message) -> Result<Self, ProtocolError> {
        let body = message.body.as_slice();
        Ok(match Command::parse(message.header.command)? {
            Command::Version => Self::Version(Version::parse(body)?),
            Command::DmaMap => Self::DmaMap(DmaMap::parse(body)?.0),
            Command::DmaUnmap => Self::DmaUnmap(DmaUnmap::parse(body)?.0),
            Command::DeviceInfo => Self::DeviceInfo(DeviceInfo::parse(body)?.0),
            Command::RegionInfo => Self::RegionInfo(RegionInfo::parse(body)?.0),
            Command::IrqInfo => Self::IrqInfo(IrqInfo::parse(body)?.0),
            Command::SetIrqs => {
                let (fixed, data) = SetIrqs::parse(body)?;
                Self::SetIrqs(fixed, data.to_vec())
            }
            Command::RegionRead => {
                let (fixed, _) = Region::parse(body)?;
                transfer(fixed.count.into())?;
                Self::RegionRead(fixed)
            }
            Command::RegionWrite => {
                let (fixed, data) = Region::parse(body)?;
                Self::RegionWrite(fixed, exactly(data, fixed.count.into())?)
            }
            Command::DmaRead => {
                let (fixed, _) = Dma::parse(body)?;
                transfer(fixed.count)?;
                Self::DmaRead(fixed)
            }
            Command::DmaWrite => {
                let (fixed, data) = Dma::parse(body)?;
                Self::DmaWrite(fixed, exactly(data, fixed.count)?)
            }
            Command::DeviceReset => Self::DeviceReset,
        })
    }

    fn emit(&self, to: &mut Vec<u8>) {
        match self {
            Self::Version(version) => version.emit(to),
            Self::DmaMap(fixed) => fixed.emit(to),
            Self::DmaUnmap(fixed) => fixed.emit(to),
            Self::DeviceInfo(fixed) => fixed.emit(to),
            Self::RegionInfo(fixed) => fixed.emit(to),
            Self::IrqInfo(fixed) => fixed.emit(to),
            Self::RegionRead(fixed) => fixed.emit(to),
            Self::DmaRead(fixed) => fixed.emit(to),
            Self::SetIrqs(fixed, data) => {
                fixed.emit(to);
                to.extend_from_slice(data);
            }
            Self::RegionWrite(fixed, data) => {
                fixed.emit(to);
                to.extend_from_slice(data);
            }
            Self::DmaWrite(fixed, data) => {
                fixed.emit(to);
                to.extend_from_slice(data);
            }
            Self::DeviceReset => {}
        }
    }
}

/// A command as it is sent.
///
/// # Panics
/// If it is longer than a message can be.
#[must_use]
pub fn request(id: u16, request: &Request, no_reply: bool) -> Vec<u8> {
    let kind = Kind::Command { no_reply };
    whole(id, request.command() as u16, kind, |to| request.emit(to))
}

/// The reply to `command`, with what `payload` appends.
///
/// # Panics
/// If it is longer than a message can be.
#[must_use]
pub fn reply(command: &Header, payload: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let kind = Kind::Reply { error: None };
    whole(command.id, command.command, kind, payload)
}

/// The reply to a `command` that failed.
#[must_use]
pub fn failure(command: &Header, error: Errno) -> Vec<u8> {
    let error = Some(error.raw_os_error().unsigned_abs());
    whole(command.id, command.command, Kind::Reply { error }, |_| {})
}

fn whole(id: u16, command: u16, kind: Kind, payload: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![0; Header::BYTES];
    payload(&mut bytes);
    assert!(
        bytes.len() <= crate::MAX_MESSAGE,
        "a message of {} bytes is longer than any may be",
        bytes.len()
    );
    let header = Header {
        id,
        command,
        size: bytes.len() as u32,
        kind,
    };
    bytes[..Header::BYTES].copy_from_slice(&header.emit());
    bytes
}

/// Checks that a transfer is not too long.
fn transfer(count: u64) -> Result<(), ProtocolError> {
    if count > MAX_TRANSFER as u64 {
        return Err(ProtocolError::Transfer { count });
    }
    Ok(())
}

/// Data of a transfer, which is all there is behind the fixed part.
pub fn exactly(data: &[u8], count: u64) -> Result<Vec<u8>, ProtocolError> {
    transfer(count)?;
    if data.len() as u64 != count {
        return Err(ProtocolError::Data {
            found: data.len(),
            expected: count,
        });
    }
    Ok(data.to_vec())
}
