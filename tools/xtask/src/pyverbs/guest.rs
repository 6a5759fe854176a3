//! The suite in a guest, on Linux soft-RoCE: Debian's kernel, library of verbs and Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use ferroce_guest::{Machine, Qemu, Vm};

use super::process::{Event, LOOK, Run, parsed};
use super::session::PYTHON;
use crate::interop::soft_roce;
use crate::tools;

/// A boot takes seconds, on a busy machine a minute.
const BOOT: Duration = Duration::from_secs(300);
/// What a line with an event begins with.
const EVENT: &str = "{\"event\": ";
/// Modules behind those of soft-RoCE: for librdmacm.
const MODULES: [&str; 1] = ["rdma_ucm"];
/// Where the interpreter has the modules that it comes with, and where Debian has those of packages.
const STDLIB: &str = "/usr/lib/python3.11";
const PYVERBS: &str = "/usr/lib/python3/dist-packages/pyverbs";
/// Folders of those that no test needs, and that are large.
const LEFT_OUT: [&str; 8] = [
    "config-3.11-x86_64-linux-gnu",
    "dist-packages",
    "distutils",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "test",
];

/// A run of the suite in a guest of its own.
pub(super) struct Guest {
    vm: Vm,
    /// Where the logs of the guest go.
    output: PathBuf,
    is_over: bool,
}

impl Guest {
    /// Boots a guest that runs `tests` of the suite in the folder `suite`.
    ///
    /// # Errors
    /// Something is missing and cannot be installed; the guest does not boot.
    pub(super) fn start(
        runner: &str,
        suite: &Path,
        tests: &[String],
        seed: &str,
        output: PathBuf,
    ) -> Result<Self> {
        tools::ensure_present(&[ferroce_guest::TOOLS, &[tools::IPROUTE]].concat())?;
        let mut image = soft_roce()?;
        image.modules(&MODULES)?;
        for program in ["ip", "rdma", PYTHON] {
            image.program(program)?;
        }
        let entries = fs::read_dir(STDLIB).with_context(|| format!("cannot read {STDLIB}"))?;
        for entry in entries {
            let path = entry.context(STDLIB)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_file() {
                image.file(&path, &path)?;
            } else if !LEFT_OUT.contains(&&*name) {
                image.folder(&path)?;
            }
        }
        image.folder(PYVERBS)?;
        for entry in fs::read_dir(suite).context("cannot read the suite")? {
            let path = entry.context("cannot read the suite")?.path();
            image.file(
                &path,
                Path::new("/suite").join(path.file_name().unwrap_or_default()),
            )?;
        }
        image
            .text("/runner.py", runner)
            .text("/names", tests.join("\n"))
            .script(include_str!("guest.sh").replace("SEED", seed));
        let qemu = Qemu::debian12()?;
        let machine = Machine::new(&qemu, &image).memory_mib(1024).args([
            "-netdev",
            "user,id=net",
            "-device",
            "virtio-net-pci,netdev=net,romfile=",
        ]);
        let mut vm = machine.start()?;
        vm.wait_for("suite: on ", BOOT)?;
        Ok(Self {
            vm,
            output,
            is_over: false,
        })
    }
}

impl Run for Guest {
    fn next(&mut self, deadline: Instant, stop: &AtomicBool) -> Result<Option<Event>> {
        loop {
            ensure!(!stop.load(Ordering::Acquire), "interrupted");
            match self.vm.poll_for(EVENT) {
                Ok(Some(line)) => return parsed(&line).map(Some),
                Ok(None) if Instant::now() < deadline => thread::sleep(LOOK),
                Ok(None) => return Ok(None),
                Err(_) => {
                    self.is_over = true;
                    return Ok(None);
                }
            }
        }
    }

    fn end(&mut self) -> String {
        if self.is_over {
            "the guest ended".into()
        } else {
            "it took too long".into()
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let logs = format!("{}\n{}\n", self.vm.console(), self.vm.kernel_log());
        // They help the reader, and are no result.
        let _ = fs::write(&self.output, logs);
    }
}
