//! QEMU: the system's own, or a later one unpacked beside it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use ferroce_system::packages::{QEMU, apt, check_present, is_root};
use ferroce_system::process::bound;

use crate::GuestError;
use crate::command::{pipe, run};
use crate::kernel::{debs, open_cache};

/// A QEMU for x86-64.
#[derive(Clone, Debug)]
pub struct Qemu {
    /// Program and the arguments that stand before all others.
    words: Vec<OsString>,
    /// Where it finds its own modules, if not in the system.
    modules: Option<PathBuf>,
}

impl Qemu {
    /// The one installed on the system; Debian 12 has 7.2.
    ///
    /// # Errors
    /// It is not installed.
    pub fn debian12() -> Result<Self, GuestError> {
        check_present(&[QEMU])?;
        Ok(Self {
            words: vec!["qemu-system-x86_64".into()],
            modules: None,
        })
    }

    /// The one of Debian 13's backports (11.1), which has `vfio-user-pci`: taken from the mirror that the
    /// system uses and unpacked into the cache with its own C library. Nothing is installed.
    ///
    /// # Errors
    /// No mirror of Debian, no network, no space.
    pub fn debian13() -> Result<Self, GuestError> {
        let cache = open_cache()?;
        let dir = cache.entry("qemu-debian13", unpack)?;
        let usr = dir.join("root/usr");
        let libraries = usr.join("lib/x86_64-linux-gnu");
        let mut words: Vec<OsString> = vec![
            usr.join("lib64/ld-linux-x86-64.so.2").into(),
            "--library-path".into(),
            libraries.clone().into(),
            "--argv0".into(),
            "qemu-system-x86_64".into(),
            usr.join("bin/qemu-system-x86_64").into(),
        ];
        for data in ["share/qemu", "share/seabios", "lib/ipxe/qemu"] {
            words.extend(["-L".into(), usr.join(data).into()]);
        }
        Ok(Self {
            words,
            modules: Some(libraries.join("qemu")),
        })
    }

    /// What it says of its version.
    ///
    /// # Errors
    /// It does not run.
    pub fn version(&self) -> Result<String, GuestError> {
        let text = run(self.command().arg("--version"))?;
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }

    /// A command that its arguments can be added to. QEMU ends with the thread that starts it.
    pub(crate) fn command(&self) -> Command {
        let (program, rest) = self.words.split_first().expect("there is a program");
        let mut command = bound(program);
        command.args(rest);
        if let Some(modules) = &self.modules {
            command.env("QEMU_MODULE_DIR", modules);
        }
        command
    }
}

/// The mirror of Debian that the system uses.
fn mirror() -> Result<String, GuestError> {
    let ask = || -> Result<_, GuestError> {
        let text = run(Command::new("apt-get").args([
            "indextargets",
            "--format",
            "$(REPO_URI)",
            "Created-By: Packages",
            "Codename: bookworm",
            "Component: main",
        ]))?;
        Ok(text.lines().next().map(str::to_owned))
    };
    if let Some(uri) = ask()? {
        return Ok(uri);
    }
    // The code name is known from the lists only.
    if is_root() {
        apt(&["update", "-qq"])?;
    }
    ask()?.ok_or(GuestError::NoMirror)
}

const SUITE: &str = "trixie-backports";

/// Fills `dir` through an apt of its own that thinks that nothing is installed, so that it brings everything.
fn unpack(dir: &Path) -> Result<(), GuestError> {
    let state = dir.join("apt");
    let make = |path: &Path| fs::create_dir_all(path).map_err(GuestError::io("create", path));
    make(&state.join("lists/partial"))?;
    make(&state.join("cache/archives/partial"))?;
    let sources = state.join("debian.sources");
    let text = format!(
        "Types: deb\nURIs: {}\nSuites: trixie {SUITE}\nComponents: main\n\
         Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n",
        mirror()?
    );
    fs::write(&sources, text).map_err(GuestError::io("write", &sources))?;
    let status = state.join("status");
    fs::write(&status, "").map_err(GuestError::io("write", &status))?;
    let at = |key: &str, path: &Path| format!("{key}={}", path.display());
    let options = [
        at("Dir::Etc::sourcelist", &sources),
        "Dir::Etc::sourceparts=-".into(),
        "Dir::Etc::preferences=/dev/null".into(),
        "Dir::Etc::preferencesparts=/dev/null".into(),
        at("Dir::State", &state),
        at("Dir::State::lists", &state.join("lists")),
        at("Dir::State::status", &status),
        at("Dir::Cache", &state.join("cache")),
        "APT::Sandbox::User=root".into(),
        "APT::Architecture=amd64".into(),
        "Debug::NoLocking=1".into(),
    ];
    let private_apt = |words: &[&str]| {
        let options = options.iter().flat_map(|o| ["-o", o]);
        run(Command::new("apt-get").args(options).args(words))
    };
    private_apt(&["-qq", "update"])?;
    private_apt(&[
        "-qq",
        "-y",
        "--no-install-recommends",
        "--download-only",
        "-t",
        SUITE,
        "install",
        "qemu-system-x86",
    ])?;
    let root = dir.join("root");
    // Packages of Debian 13 still name /lib, which is a link there.
    for name in ["bin", "sbin", "lib", "lib64"] {
        let usr = Path::new("usr").join(name);
        make(&root.join(&usr))?;
        let link = root.join(name);
        symlink(&usr, &link).map_err(GuestError::io("link", &link))?;
    }
    for deb in debs(&state.join("cache/archives"))? {
        pipe(
            Command::new("dpkg-deb").arg("--fsys-tarfile").arg(&deb),
            Command::new("tar")
                .args(["--keep-directory-symlink", "-xC"])
                .arg(&root)
                .args(["doc", "man", "locale"].map(|d| format!("--exclude=./usr/share/{d}"))),
        )?;
    }
    fs::remove_dir_all(&state).map_err(GuestError::io("remove", &state))
}
