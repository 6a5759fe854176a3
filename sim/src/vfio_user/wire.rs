//! The wire of a served card: AF_UNIX datagrams, one an Ethernet frame, without FCS and without header.
//!
//! It loses nothing by itself: a frame that the peer has no room for waits, and with it the port of the card; a frame is
//! taken from the socket when the port has time for it. Without a peer frames go nowhere, as into a cable that is not
//! plugged in. Hardship, if asked for, meets the frames that come in.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use super::place::{Place, PlaceError};
use crate::link;

/// Longest frame taken; longer ones are no Ethernet frames of any kind.
const MAX_FRAME: usize = 16 << 10;
/// Shortest frame taken: an Ethernet header.
const MIN_FRAME: usize = 14;

/// Frames that passed, and those that did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireStats {
    /// Sent to the peer.
    pub sent: u64,
    /// Not sent: there is no peer.
    pub unplugged: u64,
    /// Came in, hardship not counted.
    pub received: u64,
    /// Came in and are no frame, or could not be read.
    pub bad: u64,
}

/// One end of a wire.
pub struct DatagramWire {
    socket: UnixDatagram,
    _place: Place,
    /// Where frames go; learned from the first that comes, unless given.
    peer: Option<PathBuf>,
    link: link::Wire,
    /// A frame that the peer has no room for yet.
    waiting: Option<Vec<u8>>,
    buffer: Vec<u8>,
    stats: WireStats,
}

impl DatagramWire {
    /// A wire bound to `path`, to the wire at `peer`. `incoming` is what frames meet on their way in.
    ///
    /// # Errors
    /// [`PlaceError`]: the path cannot be had.
    pub fn bind(
        path: &Path,
        peer: Option<&Path>,
        incoming: link::Config,
    ) -> Result<Self, PlaceError> {
        let place = Place::claim(path)?;
        let refused = |source| PlaceError::refused(path, source);
        let socket = UnixDatagram::bind(path).map_err(refused)?;
        socket.set_nonblocking(true).map_err(refused)?;
        Ok(Self {
            socket,
            _place: place,
            peer: peer.map(Path::to_owned),
            link: link::Wire::new(incoming),
            waiting: None,
            buffer: vec![0; MAX_FRAME + 1],
            stats: WireStats::default(),
        })
    }

    /// Counters since the start.
    #[must_use]
    pub fn stats(&self) -> WireStats {
        self.stats
    }

    /// A frame waits for room at the peer.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.waiting.is_some()
    }

    /// First cycle in which a frame arrives; `None` if none is under way.
    #[must_use]
    pub fn next_arrival(&self) -> Option<u64> {
        self.link.next_arrival()
    }

    /// The socket, to wait for frames.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Tries again to send the frame that waits; false if it still does, and nothing more can be sent.
    pub fn retry(&mut self) -> bool {
        match self.waiting.take() {
            Some(frame) => self.send(frame),
            None => true,
        }
    }

    /// Sends a frame; false if it has to wait, and nothing more can be sent.
    pub fn send(&mut self, frame: Vec<u8>) -> bool {
        let Some(peer) = &self.peer else {
            self.stats.unplugged += 1;
            return true;
        };
        match self.socket.send_to(&frame, peer) {
            Ok(_) => self.stats.sent += 1,
            Err(e) if must_wait(&e) => self.waiting = Some(frame),
            Err(_) => self.stats.unplugged += 1,
        }
        !self.is_blocked()
    }

    /// The next frame that has arrived by cycle `now`.
    pub fn receive(&mut self, now: u64) -> Option<Vec<u8>> {
        while self.link.ready(now) {
            match self.socket.recv_from(&mut self.buffer) {
                Ok((bytes, from)) => {
                    if !(MIN_FRAME..=MAX_FRAME).contains(&bytes) {
                        self.stats.bad += 1;
                        continue;
                    }
                    if self.peer.is_none() {
                        self.peer = from.as_pathname().map(Path::to_owned);
                    }
                    self.stats.received += 1;
                    self.link.send(now, self.buffer[..bytes].to_vec());
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.stats.bad += 1;
                    break;
                }
            }
        }
        self.link.take(now)
    }
}

/// The peer is there and has no room.
fn must_wait(error: &io::Error) -> bool {
    let full = rustix::io::Errno::NOBUFS.raw_os_error();
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
        || error.raw_os_error() == Some(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(number: usize) -> Vec<u8> {
        let mut frame = vec![number as u8; 60 + number];
        frame[0] = (number >> 8) as u8;
        frame
    }

    fn pair(folder: &Path) -> [DatagramWire; 2] {
        let (a, b) = (folder.join("a"), folder.join("b"));
        let bind = |here: &Path, there: &Path| {
            DatagramWire::bind(here, Some(there), link::Config::default()).unwrap()
        };
        [bind(&a, &b), bind(&b, &a)]
    }

    #[test]
    fn a_slow_reader_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let [mut a, mut b] = pair(folder.path());
        let (mut sent, mut got, mut now, mut blocked) = (0, 0, 0, 0);
        while got < 2000 {
            while sent < 2000 && a.retry() {
                if !a.send(frame(sent)) {
                    blocked += 1;
                }
                sent += 1;
            }
            a.retry();
            now += 1;
            for _ in 0..3 {
                if let Some(found) = b.receive(now) {
                    assert_eq!(found, frame(got));
                    got += 1;
                }
            }
        }
        assert!(blocked > 0, "the socket has room for fewer");
        assert_eq!((a.stats().sent, b.stats().received), (2000, 2000));
        assert!(!a.is_blocked());
    }

    #[test]
    fn what_is_short_is_padded_and_what_is_no_frame_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let [mut a, mut b] = pair(folder.path());
        for bytes in [0, 13, 42, MAX_FRAME + 1] {
            assert!(a.send(vec![7; bytes]));
        }
        assert_eq!(b.receive(0), None);
        let mut padded = vec![7; 42];
        padded.resize(60, 0);
        assert_eq!(b.receive(10), Some(padded));
        assert_eq!(b.stats().bad, 3);
    }

    #[test]
    fn a_peer_may_be_absent_or_learned() {
        let folder = tempfile::tempdir().unwrap();
        let (near, far) = (folder.path().join("a"), folder.path().join("b"));
        let config = link::Config::default;
        let mut a = DatagramWire::bind(&near, None, config()).unwrap();
        assert!(a.send(frame(1)), "there is no cable");
        let mut b = DatagramWire::bind(&far, Some(&near), config()).unwrap();
        assert!(b.send(frame(2)));
        a.receive(0);
        assert_eq!(a.receive(9), Some(frame(2)));
        assert!(a.send(frame(3)));
        b.receive(0);
        assert_eq!(b.receive(9), Some(frame(3)));
        drop(b);
        assert!(!far.exists(), "the socket is removed");
        assert!(a.send(frame(4)));
        assert_eq!(a.stats().unplugged, 2);
    }
}
