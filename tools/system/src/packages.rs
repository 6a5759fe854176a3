//! Programs and libraries of the system, by the Debian package that has them.

use std::path::Path;
use std::process::{Command, Stdio};

use thiserror::Error;

/// A tool or library: how to see that it is there, and the Debian package that has it.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    present: fn() -> bool,
    package: &'static str,
}

impl Tool {
    /// What `present` finds and `package` has.
    #[must_use]
    pub const fn new(package: &'static str, present: fn() -> bool) -> Self {
        Self { present, package }
    }

    /// The Debian package that has it.
    #[must_use]
    pub const fn package(&self) -> &'static str {
        self.package
    }
}

/// Simulates the emitted Verilog.
pub const VERILATOR: Tool = Tool::new("verilator", || runs("verilator"));
/// Compiles what Verilator writes.
pub const CXX: Tool = Tool::new("g++", || runs("g++"));
/// Compresses waveforms.
pub const ZLIB: Tool = Tool::new("zlib1g-dev", || Path::new("/usr/include/zlib.h").exists());
/// What builds an engine from its Verilog.
pub const ENGINE: &[Tool] = &[VERILATOR, CXX, ZLIB];
/// Reads the emitted Verilog as a synthesis tool does.
pub const YOSYS: Tool = Tool::new("yosys", || runs("yosys"));
/// Builds what `verilator --binary` writes.
pub const MAKE: Tool = Tool::new("make", || runs("make"));
/// Simulates Verilog as written, without a compiler.
pub const IVERILOG: Tool = Tool::new("iverilog", || Path::new("/usr/bin/iverilog").exists());
/// Solves what the proofs ask.
pub const Z3: Tool = Tool::new("z3", || runs("z3"));
/// Reads the captures that the simulation writes.
pub const TSHARK: Tool = Tool::new("tshark", || runs("tshark"));
/// Shows the system calls of a program.
pub const STRACE: Tool = Tool::new("strace", || runs("strace"));
/// Programs of verbs: `ibv_devinfo`, `ibv_rc_pingpong`.
pub const IBVERBS_UTILS: Tool = Tool::new("ibverbs-utils", || {
    Path::new("/usr/bin/ibv_devinfo").exists()
});
/// What the library of verbs knows of the kernel's cards, rdma_rxe among them.
pub const IBVERBS_PROVIDERS: Tool = Tool::new("ibverbs-providers", || {
    Path::new("/etc/libibverbs.d/rxe.driver").exists()
});
/// The header of verbs.
pub const IBVERBS_DEV: Tool = Tool::new("libibverbs-dev", || {
    Path::new("/usr/include/infiniband/verbs.h").exists()
});
/// Measuring programs of verbs: `ib_write_bw`.
pub const PERFTEST: Tool = Tool::new("perftest", || Path::new("/usr/bin/ib_write_bw").exists());
/// Programs of connections: `rping`.
pub const RDMACM_UTILS: Tool = Tool::new("rdmacm-utils", || Path::new("/usr/bin/rping").exists());
/// The header of connections.
pub const RDMACM_DEV: Tool = Tool::new("librdmacm-dev", || {
    Path::new("/usr/include/rdma/rdma_cma.h").exists()
});
/// Where [`PYVERBS`] has rdma-core's tests.
pub const PYVERBS_TESTS: &str = "/usr/share/doc/rdma-core/tests";
/// Verbs for Python, with rdma-core's tests of them.
pub const PYVERBS: Tool = Tool::new("python3-pyverbs", || {
    Path::new(PYVERBS_TESTS).join("run_tests.py").exists()
});
/// Sets up network interfaces.
pub const IPROUTE: Tool = Tool::new("iproute2", || Path::new("/usr/sbin/ip").exists());
/// Runs guests; Debian 12 has version 7.2.
pub const QEMU: Tool = Tool::new("qemu-system-x86", || runs("qemu-system-x86_64"));
/// The commands inside of a guest.
pub const BUSYBOX: Tool = Tool::new("busybox-static", || Path::new("/bin/busybox").exists());
/// Finds what a kernel module depends on.
pub const KMOD: Tool = Tool::new("kmod", || Path::new("/sbin/depmod").exists());

/// A tool is missing, or `apt-get` does not bring it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PackageError {
    /// Not installed, and the process may not install.
    #[error("missing: {}; run: sudo {INSTALL} {}", packages.join(", "), packages.join(" "))]
    Missing {
        /// Debian packages.
        packages: Vec<&'static str>,
    },
    /// `apt-get` does not start or fails.
    #[error("apt-get {command} failed ({cause}): tools are installed on Debian 12 only")]
    Apt {
        /// Its arguments.
        command: String,
        /// What happened.
        cause: String,
    },
    /// Installed, and still not found.
    #[error("{package} is still missing after: {INSTALL} {package}")]
    NotThere {
        /// Debian package.
        package: &'static str,
    },
}

const INSTALL: &str = "apt-get install -y --no-install-recommends";

/// Whether `program --version` runs.
#[must_use]
pub fn runs(program: &str) -> bool {
    let status = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|s| s.success())
}

/// Whether the process may install packages.
#[must_use]
pub fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|o| o.stdout == b"0\n")
}

/// Runs `apt-get` quietly.
///
/// # Errors
/// [`PackageError::Apt`].
pub fn apt(args: &[&str]) -> Result<(), PackageError> {
    let failed = |cause: String| PackageError::Apt {
        command: args.join(" "),
        cause,
    };
    let status = Command::new("apt-get")
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null())
        .status()
        .map_err(|e| failed(e.to_string()))?;
    if status.success() {
        Ok(())
    } else {
        Err(failed(status.to_string()))
    }
}

/// Whether all `tools` are there.
///
/// # Errors
/// [`PackageError::Missing`].
pub fn check_present(tools: &[Tool]) -> Result<(), PackageError> {
    let missing = tools.iter().filter(|t| !(t.present)());
    let packages: Vec<_> = missing.map(|t| t.package).collect();
    if packages.is_empty() {
        Ok(())
    } else {
        Err(PackageError::Missing { packages })
    }
}

/// Sees to it that all `tools` are there: as root installs what is missing, else names the one command that does.
///
/// # Errors
/// [`PackageError`].
pub fn ensure_present(tools: &[Tool]) -> Result<(), PackageError> {
    let packages = match check_present(tools) {
        Err(PackageError::Missing { packages }) if is_root() => packages,
        other => return other,
    };
    eprintln!("installing {}", packages.join(", "));
    apt(&["update", "-qq"])?;
    apt(&[
        &["install", "-y", "-qq", "--no-install-recommends"],
        &packages[..],
    ]
    .concat())?;
    match tools.iter().find(|t| !(t.present)()) {
        Some(tool) => Err(PackageError::NotThere {
            package: tool.package,
        }),
        None => Ok(()),
    }
}
