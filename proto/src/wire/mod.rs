//! What the peer sees: RoCEv2 frames, header by header.
//!
//! Each header has its own file with its field table, a checked view `Header` over bytes and a plain
//! value `Repr`. `Header::new_checked` refuses bytes too few; no getter or setter panics afterwards.
//! `Repr` holds what its own layer decides; what depends on the bytes that follow (EtherType, lengths,
//! PadCnt) is an argument of `emit`. Each `field` module gives the place of every field in bits, and
//! the hardware takes its offsets from there.
//!
//! Sources: **IB1** is the InfiniBand Architecture Specification, Volume 1; **A17** its Annex A17,
//! RoCEv2 (2014).

#[macro_use]
mod header;

pub mod aeth;
pub mod atomic;
pub mod bth;
pub mod cnp;
pub mod deth;
pub mod error;
pub mod eth;
pub mod extensions;
pub mod field;
pub mod gid;
pub mod icrc;
pub mod imm;
pub mod ip;
pub mod ipv4;
pub mod ipv6;
pub mod mtu;
pub mod opcode;
pub mod packet;
pub mod psn;
pub mod reth;
pub mod timeout;
pub mod udp;

#[cfg(test)]
mod samples;

pub use aeth::{Header as AethHeader, NakCode, Repr as AethRepr, Syndrome};
pub use atomic::{
    Header as AtomicEthHeader, Repr as AtomicEthRepr, ack::Header as AtomicAckEthHeader,
    ack::Repr as AtomicAckEthRepr,
};
pub use bth::{Header as BthHeader, Repr as BthRepr};
pub use deth::{Header as DethHeader, Repr as DethRepr};
pub use error::{BuildError, Error};
pub use eth::{Header as EthHeader, Mac, Repr as EthRepr};
pub use extensions::Extensions;
pub use field::Field;
pub use gid::Gid;
pub use ip::Ip;
pub use ipv4::{Header as Ipv4Header, Repr as Ipv4Repr};
pub use ipv6::{Header as Ipv6Header, Repr as Ipv6Repr};
pub use mtu::Mtu;
pub use opcode::{Class, Ext, Opcode, Operation, Position, Suffix};
pub use packet::{Headers, Packet};
pub use psn::Psn;
pub use reth::{Header as RethHeader, Repr as RethRepr};
pub use udp::{Header as UdpHeader, Repr as UdpRepr};
