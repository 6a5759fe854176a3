//! The other end of the exception queue: frames to and from a descriptor.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;

use rustix::io::ioctl_fionbio;

/// A descriptor that gives and takes a frame a call, and does not block.
pub(super) struct Bridge {
    file: File,
}

impl Bridge {
    pub(super) fn new(fd: OwnedFd) -> io::Result<Self> {
        ioctl_fionbio(&fd, true)?;
        Ok(Self { file: fd.into() })
    }

    /// Hands a frame over; `false` if the other side has no room or is gone.
    pub(super) fn write(&mut self, frame: &[u8]) -> bool {
        loop {
            match self.file.write(frame) {
                Ok(len) => return len == frame.len(),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// Takes the next frame; one that is longer than `buffer` is cut.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        loop {
            match self.file.read(buffer) {
                // A closed socket reads as empty for ever.
                Ok(0) => return None,
                Ok(len) => return Some(len),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}
