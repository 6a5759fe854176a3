//! Peers connect in any order, and each is answered at once: both may be one process.

use std::io::{self, ErrorKind, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::intro::{self, CONNECTER, Protocol};
use super::link::Link;
use super::slots::Slots;
use super::{SimbricksError, Sync};
use crate::vfio_user::place::Place;
use crate::vfio_user::{PlaceError, Stop};

/// A socket to which a peer connects.
pub(super) struct Door {
    listener: UnixListener,
    place: Place,
    path: PathBuf,
    protocol: Protocol,
}

impl Door {
    pub(super) fn open(path: &Path, protocol: Protocol) -> Result<Self, SimbricksError> {
        let place = Place::claim(path)?;
        let refused = |source| PlaceError::refused(path, source);
        let listener = UnixListener::bind(path).map_err(refused)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            place,
            path: path.to_owned(),
            protocol,
        })
    }
}

/// How far one is.
enum Peer {
    Awaited,
    /// It is connected; so much of its introduction is here.
    Reading(UnixStream, Slots, Vec<u8>),
    Met(Link),
}

/// Waits for a peer at each door; `None` if `stop` is set before.
pub(super) fn meet(
    doors: Vec<Door>,
    sync: Sync,
    latency_ps: u64,
    stop: &Stop,
) -> Result<Option<Vec<(Link, Place)>>, SimbricksError> {
    let mut peers: Vec<Peer> = doors.iter().map(|_| Peer::Awaited).collect();
    while !peers.iter().all(|peer| matches!(peer, Peer::Met(_))) {
        if !wait(&doors, &peers, stop)? {
            return Ok(None);
        }
        for (door, peer) in doors.iter().zip(&mut peers) {
            advance(door, peer, sync, latency_ps)?;
        }
    }
    let met = doors.into_iter().zip(peers);
    let links = met.filter_map(|(door, peer)| match peer {
        Peer::Met(link) => Some((link, door.place)),
        _ => None,
    });
    Ok(Some(links.collect()))
}

/// Sleeps until a peer moves; false if `stop` is set.
fn wait(doors: &[Door], peers: &[Peer], stop: &Stop) -> Result<bool, SimbricksError> {
    let watched = doors
        .iter()
        .zip(peers)
        .filter_map(|(door, peer)| match peer {
            Peer::Awaited => Some(door.listener.as_fd()),
            Peer::Reading(socket, ..) => Some(socket.as_fd()),
            Peer::Met(_) => None,
        });
    let mut fds: Vec<_> = std::iter::once(stop.event())
        .chain(watched)
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    match poll(&mut fds, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(!stop.is_set()),
        Err(e) => Err(io::Error::from(e).into()),
    }
}

fn advance(
    door: &Door,
    peer: &mut Peer,
    sync: Sync,
    latency_ps: u64,
) -> Result<(), SimbricksError> {
    if let Peer::Awaited = peer {
        let socket = match door.listener.accept() {
            Ok((socket, _)) => socket,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        socket.set_nonblocking(true)?;
        let slots = Slots::new()?;
        introduce(&socket, &slots, &intro::ours(door.protocol, sync))?;
        *peer = Peer::Reading(socket, slots, Vec::new());
    }
    let Peer::Reading(socket, _, partial) = peer else {
        return Ok(());
    };
    let closed = || SimbricksError::Closed {
        path: door.path.clone(),
    };
    let mut bytes = [0; CONNECTER];
    match socket.read(&mut bytes[partial.len()..]) {
        Ok(0) => return Err(closed()),
        Ok(more) => partial.extend(&bytes[partial.len()..][..more]),
        Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
        Err(e) if e.kind() == ErrorKind::ConnectionReset => return Err(closed()),
        Err(e) => return Err(e.into()),
    }
    let Some(whole) = partial.first_chunk() else {
        return Ok(());
    };
    let is_sync = intro::agree(whole, door.protocol, sync, &door.path)?;
    if let Peer::Reading(socket, slots, _) = std::mem::replace(peer, Peer::Awaited) {
        *peer = Peer::Met(Link::new(socket, slots, is_sync, latency_ps));
    }
    Ok(())
}

/// Sends the introduction, and the memory with it.
fn introduce(socket: &UnixStream, slots: &Slots, bytes: &[u8]) -> io::Result<()> {
    let fds = [slots.file.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    rights.push(SendAncillaryMessage::ScmRights(&fds));
    // A new socket has room for it.
    let flags = SendFlags::NOSIGNAL;
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut rights, flags)?;
    if sent < bytes.len() {
        return Err(ErrorKind::WriteZero.into());
    }
    Ok(())
}
