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
use thiserror::Error;

/// A file of the cache could not be made, moved or locked.
#[derive(Debug, Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct CacheError {
    /// "create", "rename", ...
    pub action: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// Cause.
    pub source: std::io::Error,
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> CacheError {
    let path = path.to_owned();
    move |source| CacheError {
        action,
        path,
        source,
    }
}

/// A directory of finished builds.
#[derive(Debug)]
pub struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// Opens the cache at `dir`, which is made if it is not there.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn open(dir: &Path) -> Result<Self, CacheError> {
        fs::create_dir_all(dir).map_err(failed("create", dir))?;
        // Programs are run inside the entries, so no path may depend on the working directory.
        let dir = dir.canonicalize().map_err(failed("find", dir))?;
        Ok(Self { dir })
    }

    /// Where the entries are.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory of entry `name`; when there is none yet, `fill` writes its files into the
    /// directory it is given.
    ///
    /// # Errors
    /// What `fill` answers, and files that cannot be made. There is no entry then.
    pub fn entry<E: From<CacheError>>(
        &self,
        name: &str,
        fill: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        let entry = self.dir.join(name);
        if entry.is_dir() {
            return Ok(entry);
        }
        let lock = self.dir.join(format!("{name}.lock"));
        let file = File::create(&lock).map_err(failed("create", &lock))?;
        file.lock().map_err(failed("lock", &lock))?;
        if entry.is_dir() {
            return Ok(entry);
        }
        let part = self.dir.join(format!("{name}.part"));
        if part.exists() {
            // Left by a build that was killed: the lock is ours, so no other process works there.
            fs::remove_dir_all(&part).map_err(failed("remove", &part))?;
        }
        fs::create_dir(&part).map_err(failed("create", &part))?;
        let filled = fill(&part);
        if filled.is_ok() {
            fs::rename(&part, &entry).map_err(failed("rename", &part))?;
        } else {
            fs::remove_dir_all(&part).map_err(failed("remove", &part))?;
        }
        filled.map(|()| entry)
    }
}

/// Name for an entry made of `inputs`: 128 bits in hexadecimal.
#[must_use]
pub fn key(inputs: &[&str]) -> String {
    let mut hasher = SipHasher13::new();
    inputs.hash(&mut hasher);
    format!("{:032x}", hasher.finish128().as_u128())
}

/// `name` in the target directory of the running program, which cargo marks with `CACHEDIR.TAG`; for a
/// program installed elsewhere in [`user_dir`].
#[must_use]
pub fn target_dir(name: &str) -> PathBuf {
    let exe = env::current_exe().unwrap_or_default();
    exe.ancestors()
        .find(|dir| dir.join("CACHEDIR.TAG").is_file())
        .map_or_else(|| user_dir(name), |target| target.join(name))
}

/// `ferroce/name` in the user's cache directory.
#[must_use]
pub fn user_dir(name: &str) -> PathBuf {
    env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cache")))
        .unwrap_or_else(env::temp_dir)
        .join("ferroce")
        .join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_whole_or_absent() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path()).unwrap();
        let refused = cache.entry("a", |part| {
            fs::write(part.join("half"), "x").unwrap();
            Err(failed("be", part)(std::io::ErrorKind::Other.into()))
        });
        assert!(refused.is_err());
        assert!(!dir.path().join("a").exists() && !dir.path().join("a.part").exists());

        fs::create_dir(dir.path().join("a.part")).unwrap();
        let entry = cache.entry("a", |part| {
            fs::write(part.join("whole"), "x").map_err(failed("write", part))
        });
        assert!(entry.unwrap().join("whole").is_file());
        let again: Result<_, CacheError> = cache.entry("a", |_| panic!("filled twice"));
        assert!(again.is_ok());
    }

    #[test]
    fn one_of_many_builders_builds() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path()).unwrap();
        let built = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    cache.entry("b", |_| {
                        built.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        Ok::<_, CacheError>(())
                    })
                });
            }
        });
        assert_eq!(built.into_inner(), 1);
    }

    #[test]
    fn keys_differ_by_input() {
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
    }
}
