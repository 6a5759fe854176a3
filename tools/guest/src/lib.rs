//! Virtual machines for tests: a Debian kernel and an initial RAM disk made on the spot, under QEMU.
//!
//! [`Image`] is what runs in the guest: a kernel, its modules, programs with their libraries, a script.
//! [`Machine`] is the QEMU command, [`Vm`] one that runs: its console is read, its end is waited for
//! within a limit, and no process stays behind. [`Qemu`] is Debian 12's own, or one of a later Debian
//! unpacked beside it. Nothing is installed and no right of root is needed once QEMU is there; kernel
//! and later QEMU are kept in the user's cache directory (`ferroce/guest`).
//!
//! ```no_run
//! use std::time::Duration;
//! use ferroce_guest::{Image, Machine, Qemu};
//!
//! let mut image = Image::new()?;
//! image.modules(&["vfio-pci"])?.script("dmesg | grep -i dmar; exit 3");
//! let qemu = Qemu::debian12()?;
//! let vm = Machine::new(&qemu, &image).iommu().args(["-device", "edu"]).start()?;
//! let end = vm.finish(Duration::from_secs(120))?;
//! assert_eq!(end.status, 3, "{end}");
//! # Ok::<(), ferroce_guest::GuestError>(())
//! ```

#![forbid(unsafe_code)]

mod archive;
mod command;
mod console;
mod error;
mod image;
mod kernel;
mod libraries;
mod machine;
mod qemu;
mod vm;

pub use error::GuestError;
pub use image::Image;
pub use machine::Machine;
pub use qemu::Qemu;
pub use vm::{End, Vm};

use ferroce_system::packages::{BUSYBOX, KMOD, QEMU, Tool};

/// What the system must have for any guest; `ferroce_system::ensure_present` installs it.
pub const TOOLS: &[Tool] = &[QEMU, BUSYBOX, KMOD];
