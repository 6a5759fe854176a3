//! The QEMU command of a guest.

use std::ffi::OsString;
use std::process::Stdio;

use crate::command::not_started;
use crate::vm::Vm;
use crate::{GuestError, Image, Qemu};

/// A virtual machine before its start: q35, one processor, 512 MiB, no device but what is added.
///
/// The processor is emulated, on any host: that a `/dev/kvm` is there does not mean that it works.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    qemu: &'a Qemu,
    image: &'a Image,
    machine: String,
    memory_mib: u32,
    processors: u32,
    kernel: String,
    args: Vec<OsString>,
}

impl<'a> Machine<'a> {
    /// A machine of `qemu` that runs `image`.
    #[must_use]
    pub fn new(qemu: &'a Qemu, image: &'a Image) -> Self {
        Self {
            qemu,
            image,
            machine: "q35".into(),
            memory_mib: 512,
            processors: 1,
            // On a busy host the kernel's check of its timer comes out too slow, and is a panic behind an IOMMU.
            kernel: "console=ttyS0 quiet panic=-1 no_timer_check".into(),
            args: Vec::new(),
        }
    }

    /// Memory in MiB.
    #[must_use]
    pub fn memory_mib(mut self, mib: u32) -> Self {
        self.memory_mib = mib;
        self
    }

    /// Processors.
    #[must_use]
    pub fn processors(mut self, processors: u32) -> Self {
        self.processors = processors;
        self
    }

    /// Properties of the machine, as `memory-backend=m0`.
    #[must_use]
    pub fn property(mut self, property: &str) -> Self {
        self.machine += ",";
        self.machine += property;
        self
    }

    /// An IOMMU (intel-iommu) in front of all devices, of 48 bits, so that it translates all addresses of a
    /// process, and the kernel's use of it.
    #[must_use]
    pub fn iommu(self) -> Self {
        let device = "intel-iommu,intremap=on,caching-mode=on,aw-bits=48";
        self.property("kernel-irqchip=split")
            .kernel("intel_iommu=on")
            .args(["-device", device])
    }

    /// An argument for the kernel.
    #[must_use]
    pub fn kernel(mut self, argument: &str) -> Self {
        self.kernel += " ";
        self.kernel += argument;
        self
    }

    /// Arguments for QEMU, in their order.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Starts it. It ends with the returned value, and with the calling thread.
    ///
    /// # Errors
    /// QEMU does not start, a file of the image cannot be read.
    pub fn start(&self) -> Result<Vm, GuestError> {
        let dir = tempfile::tempdir().map_err(GuestError::io("create", std::env::temp_dir()))?;
        let initrd = dir.path().join("initrd");
        self.image.write(&initrd)?;
        let kernel_log = dir.path().join("kernel.log");
        let mut command = self.qemu.command();
        command
            .args(["-accel", "tcg,thread=multi", "-machine", &self.machine])
            .args(["-m", &self.memory_mib.to_string()])
            .args(["-smp", &self.processors.to_string()])
            .args(["-nodefaults", "-no-user-config", "-display", "none"])
            .arg("-no-reboot")
            .arg("-chardev")
            .arg(format!("file,id=kernel,path={}", kernel_log.display()))
            .args(["-chardev", "stdio,id=console,signal=off"])
            .args(["-serial", "chardev:kernel", "-serial", "chardev:console"])
            .arg("-kernel")
            .arg(self.image.kernel())
            .arg("-initrd")
            .arg(&initrd)
            .args(["-append", &self.kernel])
            .args(&self.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().map_err(|e| not_started(&command, &e))?;
        Ok(Vm::new(child, dir, kernel_log))
    }
}
