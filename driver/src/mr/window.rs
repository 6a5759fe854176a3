//! Memory windows: a part of a region, opened to peers by a request in the send queue.
//!
//! The card binds a window, and invalidates its key, when it reaches the request.

use std::sync::Arc;

use ferroce_proto::abi::mr::MrCtx;
use ferroce_proto::abi::wqe::WindowBind;
use thiserror::Error;

use super::{Access, Mr};
use crate::card::{Card, Kind};
use crate::command::CommandError;
use crate::host::lock;
use crate::pd::PdNumber;
use crate::wr::Binding;
use crate::{AnyBackend, Backend, Features, Pd, PostError};

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
        let card = &pd.card;
        if !card.info.features.contains(Features::MEM_WINDOW) {
            return Err(MwError::Unsupported);
        }
        let limit = card.info.max_mr;
        let (place, key) = lock(&card.keys)
            .take(Kind::Promised)
            .ok_or(MwError::Full { limit })?;
        let entry = MrCtx {
            key,
            pd: pd.number,
            window: true,
            qp_only: mw_type == MwType::Type2,
            ..MrCtx::default()
        };
        if let Err(e) = lock(&card.windows).allocate(card, entry) {
            lock(&card.keys).put(place);
            return Err(e.into());
        }
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

    /// Place in the table.
    pub(crate) fn place(&self) -> u32 {
        self.place
    }

    /// It is of this card.
    pub(crate) fn is_of(&self, card: &Arc<Card<B>>) -> bool {
        Arc::ptr_eq(&self.pd.card, card)
    }

    /// The bind, under a key of which the lowest 8 bits count, as a request says it, and the place of the region.
    pub(crate) fn binding(&self, bind: &MwBind<'_, B>, key: Option<u32>) -> (Binding, Option<u32>) {
        let card = &self.pd.card;
        let key = match (self.mw_type, key) {
            (MwType::Type1, _) | (_, None) => lock(&card.keys).next(self.place, Kind::Promised),
            (MwType::Type2, Some(key)) => {
                let key = self.key & !VARIANT | key & VARIANT;
                lock(&card.keys).choose(key);
                key
            }
        };
        // Of another card there is none: no key is 0.
        let mr = bind.mr.filter(|mr| Arc::ptr_eq(&mr.pd().card, card));
        let bound = WindowBind {
            addr: bind.addr,
            lkey: mr.map_or(0, Mr::lkey),
            remote_write: bind.access.contains(Access::REMOTE_WRITE),
            remote_read: bind.access.contains(Access::REMOTE_READ),
            remote_atomic: bind.access.contains(Access::REMOTE_ATOMIC),
            length: bind.len,
            ..WindowBind::default()
        };
        (Binding(bound, key), mr.map(Mr::place))
    }

    /// A bind to this was posted.
    pub(crate) fn note(&mut self, Binding(_, key): Binding) {
        self.key = key;
    }
}

impl<B: Backend> Drop for Mw<B> {
    fn drop(&mut self) {
        let card = &self.pd.card;
        match lock(&card.windows).free(card, self.place) {
            Ok(()) => lock(&card.keys).put(self.place),
            Err(e) => tracing::error!("the table entry stays taken: {e}"),
        }
    }
}
