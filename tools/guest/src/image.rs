//! What runs in a guest.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::process::Command;

use ferroce_system::packages::{BUSYBOX, KMOD, check_present};

use crate::GuestError;
use crate::archive::Archive;
use crate::command::run;
use crate::kernel::Kernel;
use crate::libraries::{find, needed};

/// A kernel and the files of a guest: Debian's kernel, dash as the shell, busybox for all other
/// commands, and what is added.
///
/// Programs come from the host with their libraries, into `/bin`; one that busybox has too takes its place.
#[derive(Clone, Debug)]
pub struct Image {
    kernel: Kernel,
    archive: Archive,
    /// Files of modules in the guest, in the order of loading.
    modules: Vec<PathBuf>,
}

impl Image {
    /// A guest that starts and runs an empty script. The kernel is downloaded the first time.
    ///
    /// # Errors
    /// A tool of [`TOOLS`](crate::TOOLS) is missing, the kernel cannot be had.
    pub fn new() -> Result<Self, GuestError> {
        check_present(&[BUSYBOX, KMOD])?;
        let mut image = Self {
            kernel: Kernel::find()?,
            archive: Archive::default(),
            modules: Vec::new(),
        };
        let archive = &mut image.archive;
        // What the host keeps below /usr is found there and without it.
        archive.link("/usr", ".");
        archive.link("/sbin", "bin");
        for folder in ["proc", "sys", "dev", "tmp", "run", "root", "etc"] {
            archive.folder(folder);
        }
        archive.text(
            "/etc/passwd",
            "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n",
        );
        archive.text("/etc/group", "root:x:0:\nuser:x:1000:\n");
        archive.text("/etc/hosts", "127.0.0.1 localhost\n");
        archive.text("/etc/nsswitch.conf", "hosts: files\n");
        archive.host("/bin/busybox", "/bin/busybox");
        for applet in run(Command::new("/bin/busybox").arg("--list"))?.split_whitespace() {
            if applet != "busybox" {
                archive.link(Path::new("/bin").join(applet), "busybox");
            }
        }
        archive.text("/init", include_str!("init.sh"));
        // Debian's busybox prefers its own commands to those of the guest when it is the shell.
        image.program("dash")?;
        image.archive.link("/bin/sh", "dash");
        image.script("");
        Ok(image)
    }

    /// Kernel modules to load at the start, with those they depend on.
    ///
    /// # Errors
    /// The kernel has no such module.
    pub fn modules(&mut self, names: &[&str]) -> Result<&mut Self, GuestError> {
        for name in names {
            for file in self.kernel.module(name)? {
                let to = Path::new("/modules").join(file.file_name().unwrap_or_default());
                if !self.modules.contains(&to) {
                    self.archive.host(&to, file);
                    self.modules.push(to);
                }
            }
        }
        let lines = self.modules.iter().map(|m| format!("{}\n", m.display()));
        self.archive.text("/etc/modules", lines.collect::<String>());
        Ok(self)
    }

    /// A program of the host, by path or as found on `PATH`, into `/bin` under its own name.
    ///
    /// # Errors
    /// It, or a library it needs, is not on the host.
    pub fn program(&mut self, program: impl AsRef<Path>) -> Result<&mut Self, GuestError> {
        let host = find(program.as_ref())?;
        let name = host.file_name().unwrap_or_default();
        let to = Path::new("/bin").join(name);
        self.file(host, to)
    }

    /// A file of the host, with the libraries it needs if it is a program or a library.
    ///
    /// # Errors
    /// A library it needs is not on the host.
    pub fn file(
        &mut self,
        host: impl AsRef<Path>,
        guest: impl AsRef<Path>,
    ) -> Result<&mut Self, GuestError> {
        for library in needed(host.as_ref())? {
            self.archive.host(&library, &library);
        }
        self.archive.host(guest, host.as_ref());
        Ok(self)
    }

    /// All files below a folder of the host, at the same place, with the libraries that those need.
    ///
    /// # Errors
    /// The folder cannot be read, a library is not on the host.
    pub fn folder(&mut self, folder: impl AsRef<Path>) -> Result<&mut Self, GuestError> {
        let folder = folder.as_ref();
        let failed = GuestError::io("read", folder);
        let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        for path in entries.map_err(failed)?.iter().map(DirEntry::path) {
            if path.is_dir() {
                self.folder(&path)?;
            } else if path.extension().is_some_and(|e| e == "so") {
                self.file(&path, &path)?;
            } else if path.is_file() {
                self.archive.host(&path, &path);
            }
        }
        Ok(self)
    }

    /// A file of the guest with this text.
    pub fn text(&mut self, guest: impl AsRef<Path>, text: impl Into<String>) -> &mut Self {
        self.archive.text(guest, text);
        self
    }

    /// What the guest does: the text of a shell script. Its exit status is that of the guest; its
    /// standard input and output are the console.
    pub fn script(&mut self, text: impl Into<String>) -> &mut Self {
        self.text("/job", text)
    }

    /// The kernel to boot.
    pub(crate) fn kernel(&self) -> PathBuf {
        self.kernel.image()
    }

    /// Version of the guest's kernel.
    #[must_use]
    pub fn kernel_version(&self) -> &str {
        self.kernel.version()
    }

    /// Writes the initial RAM disk.
    pub(crate) fn write(&self, to: &Path) -> Result<(), GuestError> {
        self.archive.write(to)
    }
}
