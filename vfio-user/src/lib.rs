//! The vfio-user protocol: a PCIe device in one process, its user in another, an AF_UNIX stream between them.
//!
//! Source: `docs/interop/vfio-user.rst` of QEMU. Numbers are in the byte order of the host. The messages here are those
//! that a card without migration and without mappable regions needs.
//!
//! | module | what |
//! |---|---|
//! | [`header`] | the 16 bytes in front of every message, and the commands |
//! | [`payload`] | what follows them, a struct each |
//! | [`version`] | the first message: version and capabilities |
//! | [`message`] | whole messages, parsed and encoded |
//! | [`stream`] | messages and their file descriptors on a socket |
//!
//! Whatever arrives is checked; what is malformed is a [`ProtocolError`], never a panic.
//!
//! ```
//! use ferroce_vfio_user::message::{self, Request};
//! use ferroce_vfio_user::payload::Region;
//! use ferroce_vfio_user::stream::{Receiver, Wait, send};
//! use std::os::unix::net::UnixStream;
//!
//! let (client, server) = UnixStream::pair()?;
//! let read = Request::RegionRead(Region { offset: 0, region: 0, count: 4 });
//! send(&client, &message::request(7, &read, false), &[])?;
//!
//! let message = Receiver::new().receive(&server, Wait::Forever)?.expect("waits for one");
//! assert_eq!(Request::parse(&message)?, read);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod error;
pub mod header;
pub mod message;
pub mod payload;
pub mod stream;
pub mod version;

pub use error::ProtocolError;
pub use rustix::io::Errno;

/// Major version of the protocol spoken here.
pub const MAJOR: u16 = 0;
/// Minor version of the protocol spoken here.
pub const MINOR: u16 = 1;
/// Longest transfer of one message in bytes, unless negotiated (capability `max_data_xfer_size`).
pub const MAX_TRANSFER: usize = 1 << 20;
/// Bytes of the header of every message, the shortest one.
pub const MIN_MESSAGE: usize = 16;
/// Longest message in bytes: a transfer, the largest payload before it, and room for a version's JSON.
pub const MAX_MESSAGE: usize = MAX_TRANSFER + 4096;
/// Most file descriptors taken with one message; QEMU refuses a server that says more.
pub const MAX_FDS: usize = 16;
