//! The library of connections of rdma-core, `librdmacm.so.1`, on a Ferroce card: programs that know nothing of the card find
//! each other by it. `docs/rdmacm.md` says how, and what is refused.
//!
//! It stands on `libibverbs.so.1` of this project, by that library's C ABI, and does itself what the kernel does below
//! rdma-core's: the connection manager. The C functions may be called from any thread. An identifier has a lock of its own;
//! while it is held the tables of identifiers and the connection manager may be locked, and not the other way round.

pub mod abi;
mod api;
mod errno;
mod id;
mod port;
mod symbols;

// Its functions, which the library finds in libibverbs.so.1.
#[cfg(test)]
use ferroce_ibverbs as _;

pub use symbols::{SYMBOLS, version_script};

/// Name of the library, as programs look for it.
pub const SONAME: &str = "librdmacm.so.1";
