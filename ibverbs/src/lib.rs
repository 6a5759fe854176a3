//! The verbs library of rdma-core, `libibverbs.so.1`, on a Ferroce card: programs that know nothing of the card run on it
//! unchanged. `docs/ibverbs.md` says how, and what is refused.
//!
//! The C functions are thin: each finds the objects behind the pointers it is given, calls the driver, and makes an
//! error number of what went wrong. They may be called from any thread. An object has a lock of its own; no lock is held
//! while another object's is waited for, but in the creation of a queue pair, which takes its completion queues in order
//! of address.

mod ah;
mod async_box;
mod card;
mod context;
mod cq;
mod device;
mod errno;
mod events;
mod limits;
mod list;
mod mr;
mod mw;
mod open;
pub mod opener;
mod pd;
mod qp;
mod srq;
mod symbols;
mod text;
mod turn;
mod using;

use ferroce_cabi::{abi, handle, mailbox};
pub use symbols::{SYMBOLS, version_script};

/// Name of the library, as programs look for it.
pub const SONAME: &str = "libibverbs.so.1";
