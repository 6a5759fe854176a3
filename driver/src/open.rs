//! A card by its name: the backend that fits it.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use thiserror::Error;

use crate::vfio::{Vfio, VfioError};
use crate::vfio_user::{VfioUser, VfioUserError};
use crate::{Backend, BackendError, Mac, Opened};

/// The forms of a card's name.
pub const FORMS: &str =
    "the PCI address of a card bound to vfio-pci (0000:01:00.0), or unix:PATH of a simulated one";

/// A card could not be opened by its name.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenDeviceError {
    /// A name of neither form.
    #[error("unknown device `{name}`: expected {FORMS}")]
    Form {
        /// The name.
        name: String,
    },
    /// The card of this host cannot be used.
    #[error("{name}")]
    Vfio {
        /// Its address.
        name: String,
        /// Why not.
        #[source]
        source: VfioError,
    },
    /// The simulated card cannot be used.
    #[error("{name}")]
    VfioUser {
        /// Its name.
        name: String,
        /// Why not.
        #[source]
        source: VfioUserError,
    },
}

/// A card of any kind.
#[non_exhaustive]
pub enum AnyBackend {
    /// Of this host, through VFIO.
    Vfio(Vfio),
    /// Behind a vfio-user socket.
    VfioUser(VfioUser),
}

impl AnyBackend {
    /// Its time is not the host's: a simulated card.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        matches!(self, Self::VfioUser(_))
    }
}

/// Opens the card `name`, of one of [`FORMS`].
///
/// # Errors
/// [`OpenDeviceError`]: no such form, or what the backend says.
pub fn open(name: &str) -> Result<AnyBackend, OpenDeviceError> {
    let owned = || name.to_owned();
    match name.strip_prefix("unix:") {
        Some(path) if !path.is_empty() => match VfioUser::connect(Path::new(path)) {
            Ok(card) => Ok(AnyBackend::VfioUser(card)),
            Err(source) => Err(OpenDeviceError::VfioUser {
                name: owned(),
                source,
            }),
        },
        Some(_) => Err(OpenDeviceError::Form { name: owned() }),
        None => match Vfio::open(name) {
            Ok(card) => Ok(AnyBackend::Vfio(card)),
            Err(VfioError::Address { .. }) => Err(OpenDeviceError::Form { name: owned() }),
            Err(source) => Err(OpenDeviceError::Vfio {
                name: owned(),
                source,
            }),
        },
    }
}

/// The MAC address of a card that was given none: of local administration, and the same each time for a card in a host
/// (FNV-1a of both names).
#[must_use]
pub fn default_mac(name: &str) -> Mac {
    let host = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in host.bytes().chain(name.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let [a, b, c, d, e, ..] = hash.to_be_bytes();
    Mac([0x02, a, b, c, d, e])
}

/// Reads the MAC address of a station, six hexadecimal octets with colons.
///
/// # Errors
/// What is expected.
pub fn parse_mac(text: &str) -> Result<Mac, String> {
    let octets: Vec<_> = text.split(':').map(|o| u8::from_str_radix(o, 16)).collect();
    let octets: Result<Vec<_>, _> = octets.into_iter().collect();
    let octets = octets.ok().and_then(|o| <[u8; 6]>::try_from(o).ok());
    match octets {
        Some(octets) if octets != [0; 6] && octets[0] & 1 == 0 => Ok(Mac(octets)),
        _ => Err("expected the address of one station as in 02:00:00:00:00:01".into()),
    }
}

/// Passes a call on to the card.
macro_rules! each {
    ($self:ident, $card:ident => $call:expr) => {
        match $self {
            Self::Vfio($card) => $call,
            Self::VfioUser($card) => $call,
        }
    };
}

impl Backend for AnyBackend {
    fn read32(&self, offset: u64) -> u32 {
        each!(self, card => card.read32(offset))
    }

    unsafe fn write32(&self, offset: u64, value: u32) {
        // SAFETY: the rule is the caller's, unchanged.
        each!(self, card => unsafe { card.write32(offset, value) });
    }

    unsafe fn map(&self, addr: *mut u8, len: usize) -> Result<(), BackendError> {
        // SAFETY: the rule is the caller's, unchanged.
        each!(self, card => unsafe { card.map(addr, len) })
    }

    unsafe fn unmap(&self, addr: *mut u8, len: usize) -> Result<(), BackendError> {
        // SAFETY: the rule is the caller's, unchanged.
        each!(self, card => unsafe { card.unmap(addr, len) })
    }

    fn opened(&self) -> &Opened {
        each!(self, card => card.opened())
    }

    fn relax(&self) {
        each!(self, card => card.relax());
    }

    fn now_ns(&self) -> u64 {
        each!(self, card => card.now_ns())
    }

    fn page_size(&self) -> usize {
        each!(self, card => card.page_size())
    }

    fn bar_len(&self) -> u64 {
        each!(self, card => card.bar_len())
    }

    fn vectors(&self) -> u32 {
        each!(self, card => card.vectors())
    }

    fn interrupt(&self, vector: u32) -> Result<OwnedFd, BackendError> {
        each!(self, card => Backend::interrupt(card, vector))
    }

    fn wait_readable(&self, fd: BorrowedFd<'_>, timeout_ns: u64) -> bool {
        each!(self, card => card.wait_readable(fd, timeout_ns))
    }

    fn is_lost(&self) -> bool {
        each!(self, card => Backend::is_lost(card))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in [
            "",
            "mlx5_0",
            "unix:",
            "0000:01:00",
            "0000:01:00.8",
            "0000:01:00.00",
            "0000:g1:00.0",
        ] {
            let refused = open(name).err().expect(name);
            assert!(
                matches!(refused, OpenDeviceError::Form { .. }),
                "{name}: {refused}"
            );
            assert!(
                refused.to_string().contains("0000:01:00.0")
                    && refused.to_string().contains("unix:PATH")
            );
        }
        let absent = open("ffff:ff:1f.7").err().expect("no such card");
        assert!(matches!(absent, OpenDeviceError::Vfio { .. }), "{absent}");
        let absent = open("unix:/nonexistent/card")
            .err()
            .expect("nobody is there");
        assert!(
            matches!(absent, OpenDeviceError::VfioUser { .. }),
            "{absent}"
        );
    }
}
