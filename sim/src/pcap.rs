//! Captures to replay: classic pcap of both byte orders with microseconds or nanoseconds, and pcapng.
//!
//! Written here because the one crate that reads both, `pcap-file`, swaps the halves of time stamps in
//! little-endian pcapng in its release 2.0, and its next version is not released.

mod ng;

use std::fs;
use std::path::{Path, PathBuf};

/// Link type of Ethernet.
pub(crate) const ETHERNET: u16 = 1;

/// A capture of Ethernet frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// Names of the interfaces, empty where the file has none; one unnamed for classic pcap.
    pub interfaces: Vec<String>,
    /// Frames, in the order of the file.
    pub packets: Vec<Packet>,
}

/// A captured frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Time in ns since 1970, or since the start for a simulation; 0 if the file has none.
    pub ns: u64,
    /// Index of [`Capture::interfaces`].
    pub interface: usize,
    /// The frame, as far as it was captured.
    pub data: Vec<u8>,
    /// Its length on the wire in bytes.
    pub wire_len: usize,
    /// Comments, pcapng only.
    pub comments: Vec<String>,
}

impl Packet {
    /// Nothing of the frame was cut off by a snapshot length.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.data.len() == self.wire_len
    }
}

/// A capture that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The first bytes are those of no capture.
    #[error("not a capture: it starts with {0:02x?}; pcap or pcapng is expected (not compressed)")]
    NotACapture(Vec<u8>),
    /// The file ends within something.
    #[error(
        "capture ends within {what} at byte {offset}: {need} bytes are needed and {have} left; \
         capture again, or cut the file before it"
    )]
    Truncated {
        /// What is cut off.
        what: String,
        /// Where it starts.
        offset: usize,
        /// Its length in bytes.
        need: usize,
        /// Bytes from there to the end.
        have: usize,
    },
    /// Frames that are not Ethernet.
    #[error("link type {0} is not supported; Ethernet (1) is expected")]
    LinkType(u16),
    /// A length or reference that cannot be.
    #[error("capture is damaged at byte {offset}: {what}")]
    Damaged {
        /// Where.
        offset: usize,
        /// What was found and expected.
        what: String,
    },
}

/// Reads a capture file.
///
/// # Errors
/// See [`Error`].
pub fn read(path: impl AsRef<Path>) -> Result<Capture, Error> {
    let path = path.as_ref();
    let bytes = fs::read(path).map_err(|source| Error::Io {
        path: path.into(),
        source,
    })?;
    parse(&bytes)
}

/// Reads a capture in memory.
///
/// # Errors
/// See [`Error`].
pub fn parse(bytes: &[u8]) -> Result<Capture, Error> {
    let mut magic = [0; 4];
    let have = bytes.len().min(4);
    magic[..have].copy_from_slice(&bytes[..have]);
    match u32::from_le_bytes(magic) {
        0xa1b2_c3d4 => classic(bytes, Order::Little, 1000),
        0xd4c3_b2a1 => classic(bytes, Order::Big, 1000),
        0xa1b2_3c4d => classic(bytes, Order::Little, 1),
        0x4d3c_b2a1 => classic(bytes, Order::Big, 1),
        ng::SECTION => ng::parse(bytes),
        _ => Err(Error::NotACapture(bytes[..have].to_vec())),
    }
}

/// Byte order of a file.
#[derive(Clone, Copy, Debug)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let two = [bytes[at], bytes[at + 1]];
        match self {
            Self::Little => u16::from_le_bytes(two),
            Self::Big => u16::from_be_bytes(two),
        }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Self::Little => u32::from_le_bytes(four),
            Self::Big => u32::from_be_bytes(four),
        }
    }
}

/// `len` bytes at `offset`, which are `what`.
fn slice(bytes: &[u8], offset: usize, len: usize, what: impl Into<String>) -> Result<&[u8], Error> {
    let rest = bytes.get(offset..).unwrap_or_default();
    rest.get(..len).ok_or_else(|| Error::Truncated {
        what: what.into(),
        offset,
        need: len,
        have: rest.len(),
    })
}

/// A classic pcap whose fractions of a second count `unit` ns.
fn classic(bytes: &[u8], order: Order, unit: u64) -> Result<Capture, Error> {
    const FILE_HEADER: usize = 24;
    const PACKET_HEADER: usize = 16;
    let header = slice(bytes, 0, FILE_HEADER, "the file header")?;
    // Bits 31:26 hold the length of a FCS, bits 25:16 are reserved.
    let link_type = order.u32(header, 20) as u16;
    if link_type != ETHERNET {
        return Err(Error::LinkType(link_type));
    }
    let mut packets = Vec::new();
    let mut at = FILE_HEADER;
    while at < bytes.len() {
        let number = packets.len() + 1;
        let header = slice(
            bytes,
            at,
            PACKET_HEADER,
            format!("the header of packet {number}"),
        )?;
        let [seconds, fraction, kept, wire] = [0, 4, 8, 12].map(|at| order.u32(header, at));
        at += PACKET_HEADER;
        let data = slice(bytes, at, kept as usize, format!("packet {number}"))?;
        if kept > wire {
            return Err(Error::Damaged {
                offset: at - PACKET_HEADER,
                what: format!("packet {number} has {kept} bytes of {wire} on the wire"),
            });
        }
        at += data.len();
        packets.push(Packet {
            ns: u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * unit,
            interface: 0,
            data: data.to_vec(),
            wire_len: wire as usize,
            comments: Vec::new(),
        });
    }
    Ok(Capture {
        interfaces: vec![String::new()],
        packets,
    })
}
