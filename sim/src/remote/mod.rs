//! Host memory that answers later, because it is in another process.
//!
//! An access is started, and its answer taken when it is there; time passes between. Behind `m_axi` of an engine that is
//! all there is to it ([`axi::remote`](crate::axi::remote)). The golden model reaches memory in the middle of a step:
//! [`RemoteModel`] does such a step again and again until all its answers are known, and only then keeps it.

mod model;

pub use model::RemoteModel;

/// An access under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(pub u64);

/// The other side refused an access: its address is not mapped, or there is no client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host refused the access")]
pub struct Refused;

/// What a read brought (nothing for a write), or that it was refused.
pub type Answer = Result<Vec<u8>, Refused>;

/// Host memory that answers later. Accesses take effect in the order in which they were started.
pub trait RemoteMemory {
    /// Starts reading `len` bytes, 1 or more.
    fn start_read(&self, addr: u64, len: usize) -> Ticket;

    /// Starts writing `data`, 1 byte or more.
    fn start_write(&self, addr: u64, data: &[u8]) -> Ticket;

    /// The answer, once, when it is there.
    fn take(&self, ticket: Ticket) -> Option<Answer>;

    /// The answer will not be taken.
    fn discard(&self, ticket: Ticket);
}
