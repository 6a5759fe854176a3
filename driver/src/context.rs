//! An opened card.

use std::sync::Arc;

use ferroce_proto::wire::{Gid, Mac};

use crate::card::{Card, GidError, OpenError};
use crate::command::CommandError;
use crate::device::{DeviceInfo, Status};
use crate::{AnyBackend, Backend};

/// An opened card. Clones are handles of the same card, which is reset when the last object on it is dropped.
pub struct Context<B: Backend = AnyBackend> {
    pub(crate) card: Arc<Card<B>>,
}

impl<B: Backend> Clone for Context<B> {
    fn clone(&self) -> Self {
        Self {
            card: self.card.clone(),
        }
    }
}

impl<B: Backend> Context<B> {
    /// Opens the card behind `backend`: checks what it is, waits until it is ready, hands over the
    /// command rings and enables it. A card that a driver left in use is reset.
    ///
    /// # Errors
    /// [`OpenError`]: no such card, versions or parameters do not fit, not ready within [`READY_LIMIT_NS`](crate::READY_LIMIT_NS), no memory, no answer.
    pub fn open(backend: B) -> Result<Self, OpenError> {
        Ok(Self {
            card: Arc::new(Card::open(backend)?),
        })
    }

    /// Identity and limits of the card.
    #[must_use]
    pub fn query_device(&self) -> DeviceInfo {
        self.card.info
    }

    /// State of the card.
    #[must_use]
    pub fn status(&self) -> Status {
        Status::read(&self.card.host.backend)
    }

    /// Looks whether the card is gone: it left the bus, what simulates it ended, or host memory refused the write of a
    /// completion or an event, which is missing then.
    ///
    /// A card that was found to be gone, here or by any wait on it, is gone for good, even if it answers again: it reaches
    /// no memory any more, what was posted completes with [`WcStatus::FatalErr`](crate::WcStatus::FatalErr), every command
    /// fails with [`CommandError::Lost`], [`AsyncEvent::DeviceFatal`](crate::AsyncEvent::DeviceFatal) reports it, and
    /// all waits return at once. Waits check by themselves; a program that sleeps on a file descriptor calls this now
    /// and then.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.card.host.look()
    }

    /// The statistics counters with their names.
    #[must_use]
    pub fn statistics(&self) -> Vec<(&'static str, u64)> {
        self.card.statistics()
    }

    /// Sets the MAC address of the port. Frames to others are not received. Paths keep whether they lead to the port itself: connect queue
    /// pairs and make address handles behind it.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn set_mac(&self, mac: Mac) -> Result<(), CommandError> {
        self.set_port(mac, false)
    }

    /// Sets the MAC address of the port, and whether frames to other addresses are received too.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn set_port(&self, mac: Mac, promiscuous: bool) -> Result<(), CommandError> {
        self.card.set_port(mac, promiscuous)
    }

    /// Sets entry `index` of the GID table; an IPv4 address is an IPv4-mapped GID.
    ///
    /// # Errors
    /// [`GidError`]: index or address family beyond what the card has, or another entry has the address.
    pub fn set_gid(&self, index: u8, gid: Gid) -> Result<(), GidError> {
        if !gid.is_ipv4() && !self.card.info.features.contains(crate::Features::IPV6) {
            return Err(GidError::Ipv6(gid));
        }
        self.card.write_gid(index, Some(gid))
    }

    /// Empties entry `index` of the GID table.
    ///
    /// # Errors
    /// [`GidError`]: index beyond the table.
    pub fn clear_gid(&self, index: u8) -> Result<(), GidError> {
        self.card.write_gid(index, None)
    }

    /// MAC address of the port, as it was set.
    #[must_use]
    pub fn mac(&self) -> Mac {
        self.card.mac()
    }

    /// Entry `index` of the GID table, as it was set.
    #[must_use]
    pub fn gid(&self, index: u8) -> Option<Gid> {
        self.card.gid(index)
    }

    /// The backend: to pass time in a wait loop of one's own, or to reach what the driver has no verb for.
    #[must_use]
    pub fn backend(&self) -> &B {
        &self.card.host.backend
    }
}
