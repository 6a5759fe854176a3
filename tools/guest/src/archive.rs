//! An initial RAM disk: a tree of files as a cpio archive.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use cpio::newc::{Builder, trailer};

use crate::GuestError;

/// A file of the guest.
#[derive(Clone, Debug)]
enum Entry {
    Folder,
    /// Target of a symbolic link.
    Link(String),
    /// A file of the host, executable.
    Host(PathBuf),
    Text(String),
}

/// Files by their path in the guest, without the leading slash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Archive {
    entries: BTreeMap<PathBuf, Entry>,
}

impl Archive {
    pub(crate) fn folder(&mut self, path: impl AsRef<Path>) {
        let path = relative(path.as_ref());
        self.parents(&path);
        self.entries.entry(path).or_insert(Entry::Folder);
    }

    pub(crate) fn link(&mut self, path: impl AsRef<Path>, target: impl Into<String>) {
        self.put(path.as_ref(), Entry::Link(target.into()));
    }

    pub(crate) fn host(&mut self, path: impl AsRef<Path>, host: impl Into<PathBuf>) {
        self.put(path.as_ref(), Entry::Host(host.into()));
    }

    pub(crate) fn text(&mut self, path: impl AsRef<Path>, text: impl Into<String>) {
        self.put(path.as_ref(), Entry::Text(text.into()));
    }

    fn put(&mut self, path: &Path, entry: Entry) {
        let path = relative(path);
        self.parents(&path);
        self.entries.insert(path, entry);
    }

    fn parents(&mut self, path: &Path) {
        for parent in path.ancestors().skip(1) {
            if !parent.as_os_str().is_empty() {
                self.entries
                    .entry(parent.to_owned())
                    .or_insert(Entry::Folder);
            }
        }
    }

    /// Writes the archive to the file `to`.
    pub(crate) fn write(&self, to: &Path) -> Result<(), GuestError> {
        let mut bytes = Vec::new();
        let full = |e| GuestError::io("write", to)(e);
        for (inode, (path, entry)) in (1..).zip(&self.entries) {
            let (mode, content) = match entry {
                Entry::Folder => (0o040_755, Vec::new()),
                Entry::Link(target) => (0o120_777, target.clone().into_bytes()),
                Entry::Host(host) => (
                    0o100_755,
                    fs::read(host).map_err(GuestError::io("read", host))?,
                ),
                Entry::Text(text) => (0o100_755, text.clone().into_bytes()),
            };
            // An image is built for one memory; 4 GiB is no file of it.
            let size = u32::try_from(content.len())
                .map_err(|_| full(std::io::ErrorKind::FileTooLarge.into()))?;
            let mut file = Builder::new(&path.to_string_lossy())
                .ino(inode)
                .mode(mode)
                .nlink(1)
                .write(&mut bytes, size);
            file.write_all(&content).map_err(full)?;
            file.finish().map_err(full)?;
        }
        trailer(&mut bytes).map_err(full)?;
        fs::write(to, bytes).map_err(full)
    }
}

/// `path` without the leading slash, and below `/` what the host has below `/usr`: the guest links one to the other.
fn relative(path: &Path) -> PathBuf {
    let path = path.strip_prefix("/").unwrap_or(path);
    path.strip_prefix("usr")
        .ok()
        .filter(|rest| rest.components().count() > 0)
        .unwrap_or(path)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The archive as the kernel reads it: folders before what they hold, links and contents as given.
    #[test]
    fn is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let host = dir.path().join("program");
        fs::write(&host, b"\x7fELF").unwrap();
        let mut archive = Archive::default();
        archive.text("/etc/deep/modules", "a\nb\n");
        archive.host("/usr/bin/program", &host);
        archive.link("usr", ".");
        archive.folder("/etc");
        let to = dir.path().join("initrd");
        archive.write(&to).unwrap();

        let mut input = std::io::Cursor::new(fs::read(to).unwrap());
        let mut found = Vec::new();
        loop {
            let mut entry = cpio::NewcReader::new(input).unwrap();
            if entry.entry().is_trailer() {
                break;
            }
            let mut content = String::new();
            std::io::Read::read_to_string(&mut entry, &mut content).unwrap();
            found.push((
                entry.entry().name().to_owned(),
                entry.entry().mode(),
                content,
            ));
            input = entry.finish().unwrap();
        }
        let expected = [
            ("bin", 0o040_755, ""),
            ("bin/program", 0o100_755, "\x7fELF"),
            ("etc", 0o040_755, ""),
            ("etc/deep", 0o040_755, ""),
            ("etc/deep/modules", 0o100_755, "a\nb\n"),
            ("usr", 0o120_777, "."),
        ];
        let expected = expected.map(|(name, mode, text)| (name.to_owned(), mode, text.to_owned()));
        assert_eq!(found, expected);
    }
}
