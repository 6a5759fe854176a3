//! Memory regions and memory windows: one table entry each; the IOMMU is the page table.

use super::layout::layout;

layout! { $
    /// Memory region entry. The table index is bits 8 and up of the key, modulo the table's size.
    pub struct MrCtx (with_mr_ctx) [64] {
        /// First address.
        base: u64 [64],
        /// Last address, inclusive; not below `base`.
        last: u64 [64],
        /// Whole key, compared bit for bit with the lkey or rkey of an access.
        key: u32 [32],
        /// Protection domain.
        pd: u32 [24],
        /// Entry in use. One of a window that is not bound has the fields that say which window it is, and not this bit.
        valid: bool [1],
        /// The card may write for local operations.
        local_write: bool [1],
        /// A peer may write.
        remote_write: bool [1],
        /// A peer may read.
        remote_read: bool [1],
        /// A peer may use atomics.
        remote_atomic: bool [1],
        /// A memory window: no local access; a peer does not invalidate it unless `qp_only`.
        window: bool [1],
        /// Only queue pair `qpn` reaches it (a type 2 window).
        qp_only: bool [1],
        /// A peer may invalidate it. No region that is registered for good has this right, nor one that windows may be bound to.
        invalidate: bool [1],
        /// Queue pair, see `qp_only`.
        qpn: u32 [24],
        /// Memory windows may be bound to it.
        bindable: bool [1],
    }
}

/// What an access wants to do with a region; the engine numbers them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// To send from it.
    LocalRead,
    /// To receive into it, or what a READ or atomic brings.
    LocalWrite,
    /// WRITE.
    RemoteWrite,
    /// READ.
    RemoteRead,
    /// Atomic.
    RemoteAtomic,
}

impl Right {
    /// All of them, in their order.
    pub const ALL: [Self; 5] = [
        Self::LocalRead,
        Self::LocalWrite,
        Self::RemoteWrite,
        Self::RemoteRead,
        Self::RemoteAtomic,
    ];
}

/// An access to host memory under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// lkey or rkey.
    pub key: u32,
    /// Protection domain of the queue pair.
    pub pd: u32,
    /// Queue pair.
    pub qpn: u32,
    /// First byte.
    pub addr: u64,
    /// Bytes.
    pub len: u32,
    /// What it wants to do.
    pub right: Right,
}

impl MrCtx {
    /// Whether the entry that the key of an access names permits it. No bytes are always permitted (IB1 9.7.4.1.5).
    #[must_use]
    pub fn permits(&self, access: &Access) -> bool {
        let Some(more) = access.len.checked_sub(1) else {
            return true;
        };
        let granted = match access.right {
            Right::LocalRead => !self.window,
            Right::LocalWrite => self.local_write,
            Right::RemoteWrite => self.remote_write,
            Right::RemoteRead => self.remote_read,
            Right::RemoteAtomic => self.remote_atomic,
        };
        let last = access.addr.checked_add(more.into());
        let inside = access.addr >= self.base && last.is_some_and(|last| last <= self.last);
        let reached = !self.qp_only || self.qpn == access.qpn;
        let named = self.valid && self.key == access.key && self.pd == access.pd;
        named && reached && granted && inside
    }
}
