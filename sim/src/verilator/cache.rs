//! Directory of finished builds, each under the hash of everything that went into it.
//!
//! An entry is filled in a directory of its own beside its final name and renamed when complete,
//! so that an entry that exists is whole. A lock file per entry makes builders of the same entry
//! wait for each other, be they threads or processes.

use std::env;
use std::fs::{self, File};
use std::hash::Hash;
use std::path::{Path, PathBuf};

use siphasher::sip128::{Hasher128, SipHasher13};

use super::Error;

#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// Opens the cache at `dir`, or at its default place.
    pub(super) fn open(dir: Option<&Path>) -> Result<Self, Error> {
        let dir = dir.map_or_else(default_dir, Path::to_path_buf);
        fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
        // Programs are run inside the entries, so no path may depend on the working directory.
        let dir = dir.canonicalize().map_err(Error::io("find", &dir))?;
        Ok(Self { dir })
    }

    /// The directory of entry `name`; when there is none yet, `fill` writes its files into the
    /// directory it is given.
    pub(super) fn entry(
        &self,
        name: &str,
        fill: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<PathBuf, Error> {
        let entry = self.dir.join(name);
        if entry.is_dir() {
            return Ok(entry);
        }
        let lock = self.dir.join(format!("{name}.lock"));
        let file = File::create(&lock).map_err(Error::io("create", &lock))?;
        file.lock().map_err(Error::io("lock", &lock))?;
        if entry.is_dir() {
            return Ok(entry);
        }
        let part = self.dir.join(format!("{name}.part"));
        if part.exists() {
            // Left by a build that was killed: the lock is ours, so nobody works there.
            fs::remove_dir_all(&part).map_err(Error::io("remove", &part))?;
        }
        fs::create_dir(&part).map_err(Error::io("create", &part))?;
        let filled = fill(&part);
        if filled.is_ok() {
            fs::rename(&part, &entry).map_err(Error::io("rename", &part))?;
        } else {
            fs::remove_dir_all(&part).map_err(Error::io("remove", &part))?;
        }
        filled.map(|()| entry)
    }
}

/// Name for an entry made of `inputs`: 128 bits in hexadecimal.
pub(super) fn key(inputs: &[&str]) -> String {
    let mut hasher = SipHasher13::new();
    inputs.hash(&mut hasher);
    format!("{:032x}", hasher.finish128().as_u128())
}

/// `verilated/` in the target directory of the running program, which cargo marks with
/// `CACHEDIR.TAG`; for a program installed elsewhere the user's cache directory.
fn default_dir() -> PathBuf {
    let exe = env::current_exe().unwrap_or_default();
    if let Some(target) = exe
        .ancestors()
        .find(|dir| dir.join("CACHEDIR.TAG").is_file())
    {
        return target.join("verilated");
    }
    let cache = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cache")))
        .unwrap_or_else(env::temp_dir);
    cache.join("ferroce/verilated")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_whole_or_absent() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(dir.path())).unwrap();
        let failed = cache.entry("a", |part| {
            fs::write(part.join("half"), "x").unwrap();
            Err(Error::Version {
                found: String::new(),
            })
        });
        assert!(failed.is_err());
        assert!(!dir.path().join("a").exists() && !dir.path().join("a.part").exists());

        fs::create_dir(dir.path().join("a.part")).unwrap();
        let entry = cache.entry("a", |part| {
            fs::write(part.join("whole"), "x").map_err(Error::io("write", part))
        });
        assert!(entry.unwrap().join("whole").is_file());
        cache.entry("a", |_| panic!("filled twice")).unwrap();
    }

    #[test]
    fn one_of_many_builders_builds() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(dir.path())).unwrap();
        let built = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    cache.entry("b", |_| {
                        built.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        Ok(())
                    })
                });
            }
        });
        assert_eq!(built.into_inner(), 1);
    }

    #[test]
    fn keys_tell_inputs_apart() {
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
    }
}
