//! A TAP device: a network interface of the kernel whose other end is a descriptor.

use std::ffi::{c_char, c_int, c_short, c_ulong};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use ferroce_proto::wire::Mac;
use thiserror::Error;

/// Where the kernel makes TAP devices.
const DEVICE: &str = "/dev/net/tun";

/// A TAP device could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TapError {
    /// A name the kernel would not take.
    #[error("`{0}` is no name of a network interface: 1 to 15 bytes, without `/` and blanks")]
    Name(String),
    /// The kernel has no TAP devices, or not for this user.
    #[error(
        "{DEVICE} cannot be opened: load the module `tun`, and run with the right CAP_NET_ADMIN"
    )]
    Open(#[source] io::Error),
    /// The kernel refused a step.
    #[error(
        "the kernel refused to {step} of TAP device `{name}` (it needs CAP_NET_ADMIN, and a name not in use)"
    )]
    Refused {
        /// What was asked for.
        step: &'static str,
        /// Name of the interface.
        name: String,
        /// Answer of the kernel.
        #[source]
        source: io::Error,
    },
}

/// A network interface of the kernel that is not up yet. It goes away with its descriptor.
#[derive(Debug)]
pub struct Tap {
    name: String,
    file: File,
}

impl Tap {
    /// Makes the interface `name` (a `%d` in it becomes a free number) with a MAC address, for [`Neighbours::bridge`]
    /// that of the card, and an MTU in bytes.
    ///
    /// [`Neighbours::bridge`]: super::Neighbours::bridge
    ///
    /// # Errors
    /// [`TapError`].
    pub fn new(name: &str, mac: Mac, mtu: u16) -> Result<Self, TapError> {
        let legal = |b: u8| b.is_ascii_graphic() && b != b'/';
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || !name.bytes().all(legal) {
            return Err(TapError::Name(name.into()));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(DEVICE)
            .map_err(TapError::Open)?;
        let mut request = request(name);
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as c_short;
        let refused = |step, source| TapError::Refused {
            step,
            name: name.into(),
            source,
        };
        ioctl(file.as_raw_fd(), libc::TUNSETIFF, &mut request)
            .map_err(|source| refused("make an interface", source))?;
        let tap = Self {
            // The kernel ends the name with a zero.
            name: request
                .ifr_name
                .iter()
                .take_while(|&&c| c != 0)
                .map(|&c| c as u8 as char)
                .collect(),
            file,
        };
        tap.configure(mac, mtu)
            .map_err(|(step, source)| refused(step, source))?;
        Ok(tap)
    }

    /// Name of the interface.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn configure(&self, mac: Mac, mtu: u16) -> Result<(), (&'static str, io::Error)> {
        // SAFETY: makes a new descriptor, owned here alone, or -1.
        let socket =
            unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(("open a socket for the setup", io::Error::last_os_error()));
        }
        // SAFETY: it was just made.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let mut address = request(&self.name);
        let mut octets = [0; 14];
        for (octet, byte) in octets.iter_mut().zip(mac.0) {
            *octet = byte as c_char;
        }
        address.ifr_ifru.ifru_hwaddr = libc::sockaddr {
            sa_family: libc::ARPHRD_ETHER,
            sa_data: octets,
        };
        ioctl(socket.as_raw_fd(), libc::SIOCSIFHWADDR, &mut address)
            .map_err(|e| ("set the MAC address", e))?;
        let mut size = request(&self.name);
        size.ifr_ifru.ifru_mtu = mtu.into();
        ioctl(socket.as_raw_fd(), libc::SIOCSIFMTU, &mut size).map_err(|e| ("set the MTU", e))
    }
}

impl From<Tap> for OwnedFd {
    fn from(tap: Tap) -> Self {
        tap.file.into()
    }
}

/// An empty request about interface `name`, which fits.
fn request(name: &str) -> libc::ifreq {
    // SAFETY: all zero is a value of this structure of integers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = byte as c_char;
    }
    request
}

fn ioctl(fd: c_int, what: c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: the requests used here take an `ifreq`, which outlives the call.
    match unsafe { libc::ioctl(fd, what, std::ptr::from_mut(request)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
