//! A kernel of Debian, unpacked into the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ferroce_system::packages::{apt, is_root};
use ferroce_system::{Cache, cache};

use crate::GuestError;
use crate::command::{pipe, run};

/// Opens the cache of kernels and QEMUs.
pub(crate) fn open_cache() -> Result<Cache, GuestError> {
    Ok(Cache::open(&cache::user_dir("guest"))?)
}

/// A kernel image and its modules.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    root: PathBuf,
    version: String,
}

impl Kernel {
    /// The kernel in the cache, or the present one of Debian 12.
    pub(crate) fn find() -> Result<Self, GuestError> {
        let cache = open_cache()?;
        if let Some(kernel) = Self::newest(cache.dir())? {
            return Ok(kernel);
        }
        let package = package()?;
        let root = cache.entry(&package, |dir| unpack(&package, dir))?;
        let version = package.trim_start_matches(PREFIX).to_owned();
        Ok(Self { root, version })
    }

    fn newest(dir: &Path) -> Result<Option<Self>, GuestError> {
        let entries = fs::read_dir(dir).map_err(GuestError::io("read", dir))?;
        let kernel = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let version = name.strip_prefix(PREFIX)?.to_owned();
            let whole = !name.ends_with(".part") && entry.path().is_dir();
            whole.then(|| Self {
                root: entry.path(),
                version,
            })
        };
        let found = entries.flatten().filter_map(kernel);
        Ok(found.max_by(|a, b| a.version.cmp(&b.version)))
    }

    /// What `uname -r` says.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// The file to boot.
    pub(crate) fn image(&self) -> PathBuf {
        self.root
            .join("boot")
            .join(format!("vmlinuz-{}", self.version))
    }

    /// Files of `module` and of all it depends on, in the order of loading; none if it is built in.
    pub(crate) fn module(&self, module: &str) -> Result<Vec<PathBuf>, GuestError> {
        let text = run(Command::new("/sbin/modprobe")
            .arg("-d")
            .arg(&self.root)
            .args(["-S", &self.version, "--show-depends", module]))
        .map_err(|_| GuestError::NoModule {
            kernel: self.version.clone(),
            module: module.into(),
        })?;
        let file = |line: &str| Some(line.strip_prefix("insmod ")?.split(' ').next()?.into());
        Ok(text.lines().filter_map(file).collect())
    }
}

const PREFIX: &str = "linux-image-";

/// Name of the kernel package that Debian recommends now.
fn package() -> Result<String, GuestError> {
    if let Some(name) = depends()? {
        return Ok(name);
    }
    // A system on which nothing was installed yet has no lists.
    if is_root() {
        apt(&["update", "-qq"])?;
    }
    depends()?.ok_or(GuestError::NoKernel)
}

fn depends() -> Result<Option<String>, GuestError> {
    let text = run(Command::new("apt-cache").args([
        "depends",
        "--no-recommends",
        "--no-suggests",
        "linux-image-amd64",
    ]))
    .unwrap_or_default();
    let name = |line: &str| line.trim().strip_prefix("Depends: ").map(str::to_owned);
    Ok(text
        .lines()
        .filter_map(name)
        .find(|name| name.starts_with(PREFIX)))
}

fn unpack(package: &str, dir: &Path) -> Result<(), GuestError> {
    run(Command::new("apt-get")
        .args(["-q", "-o", "APT::Sandbox::User=root", "download", package])
        .current_dir(dir))?;
    let deb = debs(dir)?.pop().ok_or(GuestError::NoKernel)?;
    // What a guest of tests never has.
    let without = ["drivers/gpu", "drivers/media", "sound"];
    let version = package.trim_start_matches(PREFIX);
    pipe(
        Command::new("dpkg-deb").arg("--fsys-tarfile").arg(&deb),
        Command::new("tar")
            .arg("-xC")
            .arg(dir)
            .args(without.map(|w| format!("--exclude=./lib/modules/{version}/kernel/{w}")))
            .args(["./boot", "./lib/modules"]),
    )?;
    fs::remove_file(&deb).map_err(GuestError::io("remove", &deb))?;
    run(Command::new("/sbin/depmod").arg("-b").arg(dir).arg(version)).map(drop)
}

/// Debian packages in `dir`.
pub(crate) fn debs(dir: &Path) -> Result<Vec<PathBuf>, GuestError> {
    let entries = fs::read_dir(dir).map_err(GuestError::io("read", dir))?;
    let paths = entries.flatten().map(|e| e.path());
    Ok(paths
        .filter(|p| p.extension().is_some_and(|e| e == "deb"))
        .collect())
}
