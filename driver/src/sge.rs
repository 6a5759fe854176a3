//! Gather and scatter entries.

use ferroce_proto::abi::wqe;

/// A piece of registered memory in the list of a work request.
///
/// From a buffer of the driver's own, [`MrBuf::sge`](crate::MrBuf::sge), it is safe to make: such memory is never
/// referenced. Of other memory it is a promise about the time that a request uses it, so that [`Mr::sge`](crate::Mr::sge)
/// and [`from_raw_parts`](Self::from_raw_parts) are unsafe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Sge(pub(crate) wqe::Sge);

impl Sge {
    /// An entry of `length` bytes at `addr` of the region with key `lkey`.
    ///
    /// The card checks it against the region: a piece that is not wholly in it fails the request and touches nothing.
    ///
    /// # Safety
    /// From the posting of a request with this entry until it completed, or its queue pair was reset or dropped, the
    /// bytes are the card's: no other code writes them, and if the card writes them (receives, READs, atomics) no other
    /// code reads them or holds a reference to them.
    #[must_use]
    pub const unsafe fn from_raw_parts(addr: u64, length: u32, lkey: u32) -> Self {
        Self(wqe::Sge { addr, length, lkey })
    }

    /// First address.
    #[must_use]
    pub const fn addr(&self) -> u64 {
        self.0.addr
    }

    /// Bytes. An entry of 0 bytes is left out.
    #[must_use]
    pub const fn length(&self) -> u32 {
        self.0.length
    }

    /// Key of the region.
    #[must_use]
    pub const fn lkey(&self) -> u32 {
        self.0.lkey
    }
}
