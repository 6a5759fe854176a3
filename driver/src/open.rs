//! A card by its name: the backend that fits it.

use std::net::IpAddr;
use std::path::Path;

use ferroce_proto::abi::pci;
use thiserror::Error;

use crate::sysfs::{PCI_DEVICES, link_name};
#[cfg(feature = "vfio")]
use crate::vfio::{Vfio, VfioError};
#[cfg(feature = "vfio-user")]
use crate::vfio_user::{VfioUser, VfioUserError};
use crate::{AnyBackend, Context, Gid, Mac, OpenError};

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
    #[cfg(feature = "vfio")]
    #[error("{name}")]
    Vfio {
        /// Its address.
        name: String,
        /// Why not.
        #[source]
        source: VfioError,
    },
    /// The simulated card cannot be used.
    #[cfg(feature = "vfio-user")]
    #[error("{name}")]
    VfioUser {
        /// Its name.
        name: String,
        /// Why not.
        #[source]
        source: VfioUserError,
    },
    /// The device cannot be used as a card.
    #[error("{name}")]
    Card {
        /// Its name.
        name: String,
        /// Why not.
        #[source]
        source: OpenError,
    },
}

/// Opens the card `name`, of one of [`FORMS`].
///
/// # Errors
/// [`OpenDeviceError`]: no such form, or what the backend says.
pub fn open(name: &str) -> Result<AnyBackend, OpenDeviceError> {
    match name.strip_prefix("unix:") {
        #[cfg(feature = "vfio-user")]
        Some(path) if !path.is_empty() => match VfioUser::connect(Path::new(path)) {
            Ok(card) => Ok(AnyBackend::VfioUser(card)),
            Err(source) => Err(OpenDeviceError::VfioUser {
                name: name.into(),
                source,
            }),
        },
        #[cfg(feature = "vfio")]
        None => match Vfio::open(name) {
            Ok(card) => Ok(AnyBackend::Vfio(card)),
            Err(VfioError::Address { .. }) => Err(OpenDeviceError::Form { name: name.into() }),
            Err(source) => Err(OpenDeviceError::Vfio {
                name: name.into(),
                source,
            }),
        },
        _ => Err(OpenDeviceError::Form { name: name.into() }),
    }
}

impl Context {
    /// Opens the card `name`, of one of [`FORMS`].
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let context = ferroce_driver::Context::open_device("unix:/tmp/card")?;
    /// println!("{:?}", context.query_device());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`OpenDeviceError`]: as of [`open`], or [`OpenDeviceError::Card`].
    pub fn open_device(name: &str) -> Result<Self, OpenDeviceError> {
        Self::open(open(name)?).map_err(|source| OpenDeviceError::Card {
            name: name.into(),
            source,
        })
    }
}

/// A card in this host, open or not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// Its PCI address: what [`Context::open_device`] takes.
    pub name: String,
    /// Kernel driver it is bound to; `vfio-pci` for use by this crate.
    pub driver: Option<String>,
}

impl Device {
    /// Opens it.
    ///
    /// # Errors
    /// As of [`Context::open_device`].
    pub fn open(&self) -> Result<Context, OpenDeviceError> {
        Context::open_device(&self.name)
    }
}

/// The cards on the PCI bus of this host, by address. Simulated cards behind a socket are on no bus: open them by name.
#[must_use]
pub fn devices() -> Vec<Device> {
    devices_in(Path::new(PCI_DEVICES))
}

/// Name of the card of this host that vfio-pci has, if there is one alone: what programs use that were given no name.
#[must_use]
pub fn only_device() -> Option<String> {
    let mut usable = devices()
        .into_iter()
        .filter(|card| card.driver.as_deref() == Some("vfio-pci"));
    let only = usable.next()?;
    usable.next().is_none().then_some(only.name)
}

/// Names the card of a program that was given none.
pub const DEVICE_VARIABLE: &str = "FERROCE_DEVICE";

/// Name of the card of a program that was given none: what [`DEVICE_VARIABLE`] says, or the [`only_device`].
#[must_use]
pub fn chosen_device() -> Option<String> {
    let named = std::env::var(DEVICE_VARIABLE).ok();
    named.filter(|name| !name.is_empty()).or_else(only_device)
}

/// The GID table that a card of these addresses has: the link-local address of its MAC address, then `ips` from GID 1 on.
pub fn gids(mac: Mac, ips: &[IpAddr]) -> impl Iterator<Item = (u8, Gid)> {
    let all = std::iter::once(Gid::link_local(mac));
    (0..=u8::MAX).zip(all.chain(ips.iter().map(|&ip| ip.into())))
}

/// The cards in a folder like that of the kernel.
fn devices_in(folder: &Path) -> Vec<Device> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let card = |entry: std::fs::DirEntry| {
        let id = |file| {
            let text = std::fs::read_to_string(entry.path().join(file)).ok()?;
            u16::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
        };
        let is_ours = id("vendor")? == pci::VENDOR && id("device")? == pci::DEVICE;
        let driver = link_name(&entry.path().join("driver"));
        let name = entry.file_name().into_string().ok()?;
        is_ours.then_some(Device { name, driver })
    };
    let mut found: Vec<_> = entries.filter_map(card).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_among_other_devices() {
        let folder = std::env::temp_dir().join(format!("ferroce-devices-{}", std::process::id()));
        let ours = (pci::VENDOR, pci::DEVICE);
        for (name, (vendor, device), driver) in [
            ("0000:02:00.0", ours, Some("vfio-pci")),
            ("0000:01:00.0", ours, None),
            ("0000:03:00.0", (pci::VENDOR, 1), None),
            ("0000:04:00.0", (0x8086, pci::DEVICE), None),
        ] {
            let at = folder.join(name);
            std::fs::create_dir_all(&at).unwrap();
            std::fs::write(at.join("vendor"), format!("{vendor:#06x}\n")).unwrap();
            std::fs::write(at.join("device"), format!("{device:#06x}\n")).unwrap();
            if let Some(driver) = driver {
                std::os::unix::fs::symlink(format!("../{driver}"), at.join("driver")).unwrap();
            }
        }
        std::fs::create_dir_all(folder.join("0000:05:00.0")).unwrap();
        let found = devices_in(&folder);
        std::fs::remove_dir_all(&folder).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|d| (&d.name[..], d.driver.as_deref()))
            .collect();
        assert_eq!(
            names,
            [("0000:01:00.0", None), ("0000:02:00.0", Some("vfio-pci"))]
        );
        assert!(devices_in(Path::new("/nonexistent")).is_empty());
    }

    #[cfg(all(feature = "vfio", feature = "vfio-user"))]
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
            let refused = open(name).expect_err(name);
            assert!(
                matches!(refused, OpenDeviceError::Form { .. }),
                "{name}: {refused}"
            );
            assert!(
                refused.to_string().contains("0000:01:00.0")
                    && refused.to_string().contains("unix:PATH")
            );
        }
        let absent = open("ffff:ff:1f.7").expect_err("no such card");
        assert!(matches!(absent, OpenDeviceError::Vfio { .. }), "{absent}");
        let absent = open("unix:/nonexistent/card").expect_err("no card there");
        assert!(
            matches!(absent, OpenDeviceError::VfioUser { .. }),
            "{absent}"
        );
    }
}
