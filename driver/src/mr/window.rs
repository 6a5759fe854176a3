//! Memory windows: parts of a region to which a peer is given rights, and loses them, without registering.
//!
//! The host binds and invalidates by commands, at once; a request that sends nothing ([`SendOp::BindMw`],
//! [`SendOp::LocalInv`]) tells of it in the order of the send queue.

use std::sync::Arc;

use ferroce_proto::abi::mr::MrCtx;
use thiserror::Error;

use super::{Access, Mr};
use crate::card::Kind;
use crate::card::{Bound, Windows, write_window};
use crate::command::CommandError;
use crate::host::lock;
use crate::pd::PdNumber;
use crate::{AnyBackend, Backend, Pd};
use crate::{Features, PostError};

/// Bits of a key that are not the place in the table.
const VARIANT: u32 = 0xff;

/// What kind of window (`enum ibv_mw_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MwType {
    /// Every queue pair of its protection domain reaches it; the driver chooses its key with each bind.
    Type1,
    /// Only the queue pair that bound it reaches it (2B: and only in its domain); the caller of a bind chooses the
    /// lowest 8 bits of the key. It is bound again only after it was invalidated.
    Type2,
}

/// What a window is bound to.
pub struct MwBind<'a, B: Backend = AnyBackend> {
    /// The region; may be left out of what has no bytes.
    pub mr: Option<&'a Mr<B>>,
    /// First address.
    pub addr: u64,
    /// Bytes; of type 1 none ends the window.
    pub len: u64,
    /// Rights of the peer; others do not count.
    pub access: Access,
}

impl<B: Backend> Clone for MwBind<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for MwBind<'_, B> {}

/// A window could not be allocated or bound.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MwError {
    /// The card has no windows.
    #[error("this build of the card has no memory windows: load one with feature MEM_WINDOW")]
    Unsupported,
    /// The table is full.
    #[error("all {limit} memory regions and windows of the card are in use: drop some")]
    Full {
        /// Entries of the table.
        limit: u32,
    },
    /// The request could not be posted; nothing was bound.
    #[error(transparent)]
    Post(#[from] PostError),
    /// The card refused.
    #[error(transparent)]
    Command(#[from] CommandError),
}

/// A memory window. After its drop no peer reaches memory through it.
pub struct Mw<B: Backend = AnyBackend> {
    pd: Arc<PdNumber<B>>,
    mw_type: MwType,
    place: u32,
    key: u32,
}

impl<B: Backend> Pd<B> {
    /// A memory window, bound to nothing.
    ///
    /// # Errors
    /// [`MwError`]: the card has none, or none is left.
    pub fn alloc_mw(&self, mw_type: MwType) -> Result<Mw<B>, MwError> {
        Mw::new(self.inner(), mw_type)
    }
}

impl<B: Backend> Mw<B> {
    pub(crate) fn new(pd: &Arc<PdNumber<B>>, mw_type: MwType) -> Result<Self, MwError> {
        if !pd.card.info.features.contains(Features::MEM_WINDOW) {
            return Err(MwError::Unsupported);
        }
        let limit = pd.card.info.max_mr;
        let (place, key) = lock(&pd.card.keys)
            .take(Kind::Promised)
            .ok_or(MwError::Full { limit })?;
        Ok(Self {
            pd: pd.clone(),
            mw_type,
            place,
            key,
        })
    }

    /// What kind it is.
    #[must_use]
    pub fn mw_type(&self) -> MwType {
        self.mw_type
    }

    /// Key for a peer, once it is bound; of type 2 before that one whose lowest 8 bits may be chosen anew.
    #[must_use]
    pub fn rkey(&self) -> u32 {
        self.key
    }

    /// As [`bind`](Self::bind), for the queue pair of that domain and number.
    pub(crate) fn bind_for(
        &mut self,
        qp: (&Arc<PdNumber<B>>, u32),
        bind: &MwBind<'_, B>,
        key: Option<u32>,
    ) -> Result<bool, MwError> {
        let card = self.pd.card.clone();
        let mut keys = lock(&card.keys);
        let key = match (self.mw_type, key) {
            (MwType::Type1, _) | (_, None) => keys.next(self.place, Kind::Promised),
            (MwType::Type2, Some(key)) => {
                let key = self.key & !VARIANT | key & VARIANT;
                keys.choose(key);
                key
            }
        };
        drop(keys);
        let mut windows = lock(&card.windows);
        let Some(entry) = self.entry(&windows, qp, bind, key) else {
            return Ok(false);
        };
        write_window(&card, self.place, entry)?;
        self.key = key;
        match bind.mr.filter(|_| entry.valid) {
            None => drop(windows.0.remove(&self.place)),
            Some(mr) => {
                let bound = Bound {
                    key,
                    pd: self.pd.number,
                    region: mr.place(),
                    qpn: entry.qp_only.then_some(entry.qpn),
                    invalidated: false,
                };
                windows.0.insert(self.place, bound);
            }
        }
        Ok(true)
    }

    /// The entry of the window once it is bound; `None` if it may not be.
    fn entry(
        &self,
        windows: &Windows,
        (pd, qpn): (&Arc<PdNumber<B>>, u32),
        bind: &MwBind<'_, B>,
        key: u32,
    ) -> Option<MrCtx> {
        let is_2 = self.mw_type == MwType::Type2;
        let bound = windows.0.get(&self.place);
        let is_bound = bound.is_some_and(|bound| !bound.invalidated);
        if !Arc::ptr_eq(pd, &self.pd) || is_2 && (is_bound || bind.len == 0) {
            return None;
        }
        let writes = Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
        let Some(more) = bind.len.checked_sub(1) else {
            return Some(MrCtx::default());
        };
        let mr = bind.mr?;
        let (first, end) = (mr.addr(), mr.addr() + (mr.len() as u64 - 1));
        let last = bind.addr.checked_add(more)?;
        let may = Arc::ptr_eq(mr.pd(), &self.pd)
            && mr.access().contains(Access::MW_BIND)
            && (!bind.access.intersects(writes) || mr.access().contains(Access::LOCAL_WRITE))
            && bind.addr >= first
            && last <= end;
        may.then(|| MrCtx {
            base: bind.addr,
            last,
            key,
            pd: self.pd.number,
            valid: true,
            window: true,
            remote_write: bind.access.contains(Access::REMOTE_WRITE),
            remote_read: bind.access.contains(Access::REMOTE_READ),
            remote_atomic: bind.access.contains(Access::REMOTE_ATOMIC),
            qp_only: is_2,
            qpn: if is_2 { qpn } else { 0 },
            ..MrCtx::default()
        })
    }
}

impl<B: Backend> Drop for Mw<B> {
    fn drop(&mut self) {
        let card = &self.pd.card;
        let mut windows = lock(&card.windows);
        // What was never bound, or a peer invalidated, may have an entry all the same.
        match write_window(card, self.place, MrCtx::default()) {
            Ok(()) => {
                windows.0.remove(&self.place);
                lock(&card.keys).put(self.place);
            }
            Err(e) => tracing::error!("the table entry stays taken: {e}"),
        }
    }
}
