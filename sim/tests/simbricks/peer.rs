//! The other end of a link, which a host or a network has: written from the protocol's description by byte offsets, through
//! the file that comes over the socket, and with nothing of the card's side.

use std::fs::File;
use std::io::{IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

pub(crate) const ETHERNET: u64 = 1;
pub(crate) const PCIE: u64 = 2;

/// What a connecter says first.
pub(crate) fn introduction(version: u64, flags: u64, protocol: u64) -> Vec<u8> {
    let mut bytes: Vec<u8> = [version, flags, protocol, 32]
        .into_iter()
        .flat_map(u64::to_le_bytes)
        .collect();
    bytes.extend([0; 4]);
    bytes
}

struct Ring {
    offset: u64,
    slot: u64,
    slots: u64,
    next: u64,
}

impl Ring {
    fn at(&self) -> u64 {
        self.offset + self.next * self.slot
    }

    fn advance(&mut self) {
        self.next = (self.next + 1) % self.slots;
    }
}

/// A message that came.
pub(crate) struct Received {
    pub(crate) kind: u8,
    pub(crate) header: [u8; 64],
    pub(crate) data: Vec<u8>,
}

impl Received {
    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.header[at..at + 8].try_into().unwrap())
    }

    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.header[at..at + 2].try_into().unwrap())
    }
}

pub(crate) struct Peer {
    /// The connection: when it closes the card knows that this end is gone.
    _socket: UnixStream,
    memory: File,
    to_card: Ring,
    from_card: Ring,
    sync: bool,
    latency: u64,
    synced: Option<u64>,
    peer_time: u64,
    /// What the card said behind its base introduction.
    pub(crate) upper: Vec<u8>,
}

impl Peer {
    /// Connects as a SimBricks simulator does.
    pub(crate) fn connect(path: &Path, protocol: u64, sync: bool, latency: u64) -> Self {
        let mut socket = UnixStream::connect(path).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let intro = introduction(1, if sync { 3 } else { 0 }, protocol);
        socket.write_all(&intro).unwrap();
        let mut bytes = [0; 2048];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut rights = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let len = recvmsg(&socket, &mut parts, &mut rights, RecvFlags::empty())
            .unwrap()
            .bytes;
        let mut fds = rights.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => fds.collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        let memory = File::from(fds.next().expect("the memory comes with the introduction"));
        let field = |at: usize| u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap());
        assert_eq!((field(0), field(8)), (1, protocol));
        let ring = |at| Ring {
            offset: field(at),
            slot: field(at + 1),
            slots: field(at + 2),
            next: 0,
        };
        let upper = bytes[field(9) as usize..len].to_vec();
        let (from_card, to_card) = (ring(2), ring(5));
        Self {
            _socket: socket,
            memory,
            to_card,
            from_card,
            sync,
            latency,
            synced: None,
            peer_time: 0,
            upper,
        }
    }

    /// Sends a message of the upper protocol at `now`.
    pub(crate) fn send(&mut self, now: u64, kind: u8, head: &[u8], data: &[u8]) {
        let at = self.to_card.at();
        let mut owner = [0];
        self.memory.read_exact_at(&mut owner, at + 63).unwrap();
        assert_eq!(owner[0] & 0x80, 0, "the card left no slot free");
        self.memory.write_all_at(head, at).unwrap();
        self.memory.write_all_at(data, at + 64).unwrap();
        let time = (now + self.latency).to_le_bytes();
        self.memory.write_all_at(&time, at + 48).unwrap();
        self.memory.write_all_at(&[0x80 | kind], at + 63).unwrap();
        self.to_card.advance();
        self.synced = Some(now);
    }

    /// Tells the time when that is due.
    pub(crate) fn keep_time(&mut self, now: u64) {
        if self.sync_at() <= now {
            self.send(now, 0, &[], &[]);
        }
    }

    pub(crate) fn sync_at(&self) -> u64 {
        match self.synced {
            _ if !self.sync => u64::MAX,
            None => 0,
            Some(synced) => synced + self.latency,
        }
    }

    /// Time before which more may come.
    pub(crate) fn horizon(&self) -> u64 {
        if self.sync { self.peer_time } else { u64::MAX }
    }

    /// The next message that has arrived at `now`; those that only tell the time are left out.
    pub(crate) fn receive(&mut self, now: u64) -> Option<Received> {
        loop {
            let at = self.from_card.at();
            let mut owner = [0];
            self.memory.read_exact_at(&mut owner, at + 63).unwrap();
            if owner[0] & 0x80 == 0 {
                return None;
            }
            let mut header = [0; 64];
            self.memory.read_exact_at(&mut header, at).unwrap();
            let time = u64::from_le_bytes(header[48..56].try_into().unwrap());
            assert!(time >= self.peer_time, "time goes back");
            self.peer_time = time;
            if self.sync && time > now {
                return None;
            }
            let mut data = vec![0; self.from_card.slot as usize - 64];
            self.memory.read_exact_at(&mut data, at + 64).unwrap();
            let kind = header[63] & 0x7f;
            self.memory.write_all_at(&[kind], at + 63).unwrap();
            self.from_card.advance();
            if kind != 0 {
                return Some(Received { kind, header, data });
            }
        }
    }
}
