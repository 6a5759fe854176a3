//! The device: which card, its addresses, and the list of devices.

use std::ffi::{CStr, c_char, c_int};
use std::os::fd::RawFd;
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use ferroce_driver::open::{chosen_device, default_mac, parse_mac};
use ferroce_driver::{ClassError, CongestionError, DEFAULT_MTU, Gid, Mac, Mtu};
use tracing::level_filters::LevelFilter;

use crate::abi::{IBV_NODE_CA, IBV_TRANSPORT_IB, Zero, ibv_device};
use crate::card::{Card, Gate, Receivers, Settings};
use crate::errno::{Errno, or_minus_one, or_null};
use crate::handle::{Shown, lock};

/// MAC address of the card.
const MAC_VARIABLE: &str = "FERROCE_MAC";
/// Its IP addresses with commas between them: GID 1 and up.
const IP_VARIABLE: &str = "FERROCE_IP";
/// Tells simulated cards of one name apart that are on different wires.
const WIRE_VARIABLE: &str = "FERROCE_WIRE";
const MTU_VARIABLE: &str = "FERROCE_MTU";
/// Its traffic classes, as `ferroce_driver::Classes` reads them.
const CLASSES_VARIABLE: &str = "FERROCE_CLASSES";
/// Parameters of its congestion control, as `ferroce_driver::Congestion` reads them.
const CONGESTION_VARIABLE: &str = "FERROCE_CONGESTION";
/// Name of the device.
const NAME: &CStr = c"ferroce0";

/// The card that the environment names.
pub(crate) struct Device {
    shown: Shown<ibv_device>,
    name: String,
    settings: Settings,
    /// The card, while a context of it exists: it can be opened once at a time.
    card: Mutex<Weak<Card>>,
    gate: Arc<Gate>,
}

/// A mistake in the environment.
#[derive(Debug)]
struct Mistake(String);

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mistake {}

impl Device {
    fn from_environment() -> Result<Option<Self>, Mistake> {
        ferroce_driver::log::start(LevelFilter::OFF);
        let read = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let Some(name) = chosen_device() else {
            return Ok(None);
        };
        let wrong = |variable, text: &str, expected: &str| {
            Mistake(format!("${variable} is `{text}`: {expected}"))
        };
        let mac = match read(MAC_VARIABLE) {
            Some(text) => parse_mac(&text).map_err(|e| wrong(MAC_VARIABLE, &text, &e))?,
            None => default_mac(&format!(
                "{name}{}",
                read(WIRE_VARIABLE).unwrap_or_default()
            )),
        };
        let ips = read(IP_VARIABLE).unwrap_or_default();
        let ips = ips.split(',').filter(|ip| !ip.is_empty()).map(|ip| {
            let expected = "expected IP addresses with commas between them";
            ip.parse().map_err(|_| wrong(IP_VARIABLE, ip, expected))
        });
        let ips = ips.collect::<Result<_, _>>()?;
        let mtu = match read(MTU_VARIABLE) {
            None => DEFAULT_MTU,
            Some(text) => {
                let expected = "expected 256, 512, 1024, 2048 or 4096";
                let known = text.parse().ok().and_then(Mtu::from_bytes);
                known.ok_or_else(|| wrong(MTU_VARIABLE, &text, expected))?
            }
        };

        let classes = read(CLASSES_VARIABLE).map(|text| text.parse());
        let classes = classes.transpose();
        let classes =
            classes.map_err(|e: ClassError| Mistake(format!("${CLASSES_VARIABLE}: {e}")))?;
        let congestion = read(CONGESTION_VARIABLE).unwrap_or_default().parse();
        let congestion = congestion
            .map_err(|e: CongestionError| Mistake(format!("${CONGESTION_VARIABLE}: {e}")))?;

        let mut shown = ibv_device::zero();
        shown.node_type = IBV_NODE_CA;
        shown.transport_type = IBV_TRANSPORT_IB;
        for field in [&mut shown.name, &mut shown.dev_name] {
            for (to, &byte) in field.iter_mut().zip(NAME.to_bytes()) {
                *to = byte as c_char;
            }
        }
        Ok(Some(Self {
            shown: Shown::new(shown),
            name,
            settings: Settings {
                mac,
                ips,
                mtu,
                classes,
                congestion,
            },
            card: Mutex::default(),
            gate: Arc::default(),
        }))
    }

    /// The one device, if the environment or the host has one. It stays until the process ends.
    fn the_one() -> Result<Option<&'static Self>, Errno> {
        static DEVICE: OnceLock<Result<Option<Device>, Mistake>> = OnceLock::new();
        match DEVICE.get_or_init(Self::from_environment) {
            Ok(device) => Ok(device.as_ref()),
            Err(mistake) => {
                crate::errno::say(mistake);
                Err(Errno::INVAL)
            }
        }
    }

    /// The device behind a pointer; `EINVAL` if it is none.
    pub(crate) fn get(handle: *mut ibv_device) -> Result<&'static Self, Errno> {
        let device = Self::the_one()?.ok_or(Errno::INVAL)?;
        if device.shown.get() != handle {
            return Err(Errno::INVAL);
        }
        Ok(device)
    }

    pub(crate) fn shown(&self) -> *mut ibv_device {
        self.shown.get()
    }

    /// Opens the card, or shares it with the contexts that have it open. `EBUSY` in a child of `fork` while they are the
    /// parent's.
    pub(crate) fn open(&self, receivers: Receivers) -> Result<Arc<Card>, Errno> {
        let mut place = lock(&self.card);
        if let Some(card) = place.upgrade() {
            return match card.is_own() {
                true => Ok(card),
                false => Err(Errno::BUSY),
            };
        }
        let entry = self.gate.enter();
        let card = Card::open(&self.name, &self.settings, entry, receivers)?;
        *place = Arc::downgrade(&card);
        Ok(card)
    }

    /// EUI-64 of the MAC address, in network order.
    fn guid(&self) -> u64 {
        guid(self.settings.mac)
    }
}

/// EUI-64 of a MAC address, in network order.
pub(crate) fn guid(mac: Mac) -> u64 {
    let [.., a, b, c, d, e, f, g, h] = Gid::link_local(mac).0;
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    let found = Device::the_one();
    let device = found.map(|device| device.map(Device::shown));
    if let Ok(device) = device
        && !count.is_null()
    {
        // SAFETY: the caller gives a place for the number, or null.
        unsafe { *count = device.is_some().into() };
    }
    or_null(device.map(|device| {
        let list = [device.unwrap_or(ptr::null_mut()), ptr::null_mut()];
        Box::into_raw(Box::new(list)).cast()
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_free_device_list(list: *mut *mut ibv_device) {
    if !list.is_null() {
        // SAFETY: the caller gives back what `ibv_get_device_list` made, which is such a box.
        drop(unsafe { Box::from_raw(list.cast::<[*mut ibv_device; 2]>()) });
    }
}

#[unsafe(no_mangle)]
extern "C" fn ibv_get_device_name(device: *mut ibv_device) -> *const c_char {
    let name = Device::get(device).map(|_| NAME.as_ptr().cast_mut());
    or_null(name)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_get_device_index(_: *mut ibv_device) -> c_int {
    // The kernel knows nothing of the device.
    -1
}

#[unsafe(no_mangle)]
extern "C" fn ibv_get_device_guid(device: *mut ibv_device) -> u64 {
    Device::get(device).map_or(0, Device::guid)
}

/// There is no sysfs of the device: a file there is not found.
#[unsafe(no_mangle)]
extern "C" fn ibv_read_sysfs_file(
    _directory: *const c_char,
    _file: *const c_char,
    _buffer: *mut c_char,
    _size: usize,
) -> RawFd {
    or_minus_one(Err(Errno::NOENT))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_get_sysfs_path() -> *const c_char {
    c"/sys".as_ptr()
}
