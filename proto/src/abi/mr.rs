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
        /// Entry in use.
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
    }
}
