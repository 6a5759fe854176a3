//! Paths of sockets: taken, and left clean.

use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A socket cannot be at a path.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// Somebody uses it.
    #[error("{} is in use by another process: end that, or choose another path", path.display())]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// Something else is there.
    #[error("{} is there and not a socket: remove it, or choose another path", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot make a socket at {} (a path has at most 107 bytes, and its folder exists)", path.display())]
    Refused {
        /// The path.
        path: PathBuf,
        /// Its reason.
        #[source]
        source: io::Error,
    },
}

impl PlaceError {
    pub(crate) fn refused(path: &Path, source: io::Error) -> Self {
        Self::Refused {
            path: path.to_owned(),
            source,
        }
    }
}

/// The path of a socket of ours, which is removed when this is dropped.
#[derive(Debug)]
pub struct Place(PathBuf);

impl Place {
    /// Takes the path, where a socket without a listener is removed.
    ///
    /// # Errors
    /// [`PlaceError`].
    pub fn claim(path: &Path) -> Result<Self, PlaceError> {
        let place = || Self(path.to_owned());
        match path.symlink_metadata() {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(place()),
            Err(e) => return Err(PlaceError::refused(path, e)),
            Ok(meta) if !meta.file_type().is_socket() => {
                return Err(PlaceError::NotASocket { path: path.into() });
            }
            Ok(_) => {}
        }
        if is_live(path) {
            return Err(PlaceError::InUse { path: path.into() });
        }
        std::fs::remove_file(path).map_err(|e| PlaceError::refused(path, e))?;
        Ok(place())
    }
}

/// Somebody has a socket of either kind there.
fn is_live(path: &Path) -> bool {
    let refused =
        |result: io::Result<()>| result.is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused);
    let datagram = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
    let stream = UnixStream::connect(path).map(drop);
    !refused(datagram) && !refused(stream)
}

impl Drop for Place {
    fn drop(&mut self) {
        // Somebody may have been faster.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_path_is_taken_only_from_the_dead() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        assert!(matches!(Place::claim(&path), Err(PlaceError::InUse { .. })));
        drop(listener);
        assert!(path.exists(), "left behind");
        let place = Place::claim(&path).unwrap();
        let datagram = UnixDatagram::bind(&path).unwrap();
        assert!(matches!(Place::claim(&path), Err(PlaceError::InUse { .. })));
        drop(datagram);
        drop(place);
        assert!(!path.exists());

        std::fs::write(&path, "text").unwrap();
        let error = Place::claim(&path).unwrap_err();
        assert!(matches!(error, PlaceError::NotASocket { .. }));
        assert!(path.exists(), "not ours to remove");
    }
}
