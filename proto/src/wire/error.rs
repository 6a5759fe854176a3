//! Why a receiver drops a frame.

use super::{Ext, Opcode};

/// Reason to drop a received frame silently (A17 CA17-24: nothing is answered, only counted).
///
/// The order of the variants is the order in which [`Packet::parse`](super::Packet::parse) looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes end inside a header.
    #[error("{header} needs {need} bytes, {have} are left")]
    Truncated {
        /// Name of the header.
        header: &'static str,
        /// Its length in bytes.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// Neither IPv4 nor IPv6 follows the Ethernet header (and its 802.1Q tag).
    #[error("EtherType {0:#06x}: RoCEv2 expects 0x0800 (IPv4) or 0x86dd (IPv6)")]
    EtherType(u16),
    /// The version field of the IP header is not that of its EtherType.
    #[error("IP version {found} where {expected} was expected")]
    Version {
        /// Version the EtherType announces.
        expected: u8,
        /// Version field.
        found: u8,
    },
    /// The IPv4 header has options, or a length below its minimum (CA17-3).
    #[error("IPv4 header of {0} words: RoCEv2 expects 5, no options")]
    HeaderLength(u8),
    /// The IPv4 header checksum does not match.
    #[error("IPv4 header checksum {found:#06x}, computed {computed:#06x}")]
    HeaderChecksum {
        /// Checksum field.
        found: u16,
        /// Checksum of the header as received.
        computed: u16,
    },
    /// The datagram is a fragment (CA17-8).
    #[error(
        "IPv4 fragment at offset {offset} (more fragments: {more}): RoCEv2 is never fragmented"
    )]
    Fragment {
        /// Offset in units of 8 bytes.
        offset: u16,
        /// The more-fragments flag.
        more: bool,
    },
    /// The IP payload is not UDP; for IPv6 that includes extension headers.
    #[error("IP protocol {0}: RoCEv2 expects 17 (UDP)")]
    Protocol(u8),
    /// The IP length runs beyond the end of the frame.
    #[error("IP datagram of {need} bytes in {have} bytes of frame")]
    FrameTruncated {
        /// Length of the datagram according to its IP header, in bytes.
        need: usize,
        /// Bytes behind the Ethernet header.
        have: usize,
    },
    /// The UDP destination port is not that of RoCEv2.
    #[error("UDP port {0}: RoCEv2 expects 4791")]
    Port(u16),
    /// The UDP length disagrees with the IP length (CA17-6, CA17-21).
    #[error("UDP length {udp} in an IP payload of {ip} bytes: they must be equal")]
    UdpLength {
        /// UDP length in bytes.
        udp: usize,
        /// Length of the IP payload in bytes.
        ip: usize,
    },
    /// The transport version is not 0.
    #[error("BTH transport version {0}: 0 is expected")]
    TransportVersion(u8),
    /// The opcode is reserved, or belongs to a transport that is not supported (RD, XRC).
    #[error("BTH opcode {0:#04x} is reserved or of an unsupported transport")]
    Opcode(u8),
    /// The datagram ends before the extension headers of its opcode and the ICRC.
    #[error("{opcode:?} needs {need} bytes of headers and ICRC, {have} are present")]
    ExtensionTruncated {
        /// The opcode.
        opcode: Opcode,
        /// BTH, extension headers and ICRC in bytes.
        need: usize,
        /// Bytes behind the UDP header.
        have: usize,
    },
    /// The opcode carries no payload, but bytes stand between its headers and the ICRC.
    #[error("{opcode:?} carries no payload, {have} bytes are present")]
    UnexpectedPayload {
        /// The opcode.
        opcode: Opcode,
        /// Bytes between headers and ICRC.
        have: usize,
    },
    /// Payload and pad together are not a multiple of 4 bytes.
    #[error("payload and pad of {0} bytes: a multiple of 4 is expected")]
    PayloadAlignment(usize),
    /// PadCnt is more than the bytes there are.
    #[error("PadCnt {pad} with {have} bytes of payload and pad")]
    Pad {
        /// PadCnt.
        pad: usize,
        /// Bytes between headers and ICRC.
        have: usize,
    },
    /// The payload exceeds the largest path MTU.
    #[error("payload of {0} bytes: the largest path MTU is 4096")]
    PayloadTooLong(usize),
    /// The invariant CRC does not match.
    #[error("ICRC {found:#010x}, computed {computed:#010x}")]
    Icrc {
        /// ICRC field.
        found: u32,
        /// ICRC of the datagram as received.
        computed: u32,
    },
}

/// Reason why a frame cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The buffer cannot hold the frame.
    #[error("frame of {need} bytes, buffer of {have}: pass a larger buffer")]
    Buffer {
        /// Length of the frame in bytes.
        need: usize,
        /// Length of the buffer in bytes.
        have: usize,
    },
    /// An extension header of the opcode is not given.
    #[error("{opcode:?} needs a {ext:?}: set it")]
    MissingExtension {
        /// The opcode.
        opcode: Opcode,
        /// The extension header.
        ext: Ext,
    },
    /// An extension header is given that the opcode does not have.
    #[error("{opcode:?} has no {ext:?}: leave it out")]
    UnexpectedExtension {
        /// The opcode.
        opcode: Opcode,
        /// The extension header.
        ext: Ext,
    },
    /// The opcode carries no payload.
    #[error("{opcode:?} carries no payload, {len} bytes are given")]
    UnexpectedPayload {
        /// The opcode.
        opcode: Opcode,
        /// Length of the payload in bytes.
        len: usize,
    },
    /// The payload exceeds the largest path MTU.
    #[error("payload of {0} bytes: at most 4096 fit the largest path MTU")]
    PayloadTooLong(usize),
}
