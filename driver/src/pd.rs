//! Protection domains.

use std::sync::Arc;

use crate::card::Card;
use crate::host::lock;
use crate::{AnyBackend, Backend, Context};

pub(crate) struct PdNumber<B: Backend> {
    pub(crate) card: Arc<Card<B>>,
    pub(crate) number: u32,
}

impl<B: Backend> Drop for PdNumber<B> {
    fn drop(&mut self) {
        lock(&self.card.pds).put(self.number);
    }
}

/// A protection domain: queue pairs reach memory regions of their own domain only.
///
/// Clones are handles of the same domain; it exists as long as anything in it.
pub struct Pd<B: Backend = AnyBackend> {
    inner: Arc<PdNumber<B>>,
}

impl<B: Backend> Clone for Pd<B> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

/// Handles of the same domain are equal.
impl<B: Backend> PartialEq for Pd<B> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl<B: Backend> Eq for Pd<B> {}

impl<B: Backend> Context<B> {
    /// A new protection domain.
    #[must_use]
    pub fn alloc_pd(&self) -> Pd<B> {
        Pd::new(&self.card)
    }
}

impl<B: Backend> Pd<B> {
    pub(crate) fn new(card: &Arc<Card<B>>) -> Self {
        let number = lock(&card.pds)
            .take()
            .expect("2^24 protection domains are in use");
        Self {
            inner: Arc::new(PdNumber {
                card: card.clone(),
                number,
            }),
        }
    }

    pub(crate) fn inner(&self) -> &Arc<PdNumber<B>> {
        &self.inner
    }

    /// Number of the domain in the card.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.inner.number
    }
}
