//! Neighbours: the driver answers ARP, neighbour discovery and ping for the addresses of its GID table, asks where
//! peers are, and hands the other frames to a network interface of the kernel.

mod bridge;
mod cache;
mod emit;
mod parse;
mod receive;
mod tap;
mod types;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;

use ferroce_proto::wire::eth;

use crate::path::PathError;
use crate::{
    AnyBackend, Backend, Context, ExceptionError, ExceptionQueue, Gid, Mac, Path, SendError,
};
use bridge::Bridge;
pub use cache::NeighbourState;
use cache::{Cache, Question};
use parse::Echo;
pub use tap::{Tap, TapError};
pub use types::{NeighbourConfig, NeighbourCounters, Pong, ResolveError};

/// Frames handled in one [`Neighbours::poll`], each way: others get their turn during a flood.
const BATCH: usize = 64;
/// Frames kept while the ring to the card is full, and echo replies kept until they are asked for.
const KEPT: usize = 256;

/// Reads a frame, for nothing but that.
#[cfg(feature = "fuzz")]
pub(crate) fn read(frame: &[u8]) {
    let _ = parse::parse(frame);
}

/// The host's side of everything on the wire that is not RoCEv2.
///
/// It works within its calls: somebody calls [`poll`](Self::poll) often enough for peers that wait for an answer, from a
/// wait loop or when the event that [`arm`](Self::arm) asks for comes. Addresses are those of the context's GID table,
/// as they are when a frame comes.
pub struct Neighbours<B: Backend = AnyBackend> {
    context: Context<B>,
    queue: ExceptionQueue<B>,
    config: NeighbourConfig,
    cache: Cache,
    counters: NeighbourCounters,
    bridge: Option<Bridge>,
    buffer: Vec<u8>,
    /// Frames for which the ring had no room.
    outbox: VecDeque<Vec<u8>>,
    pongs: VecDeque<Pong>,
    /// When an address was defended last, in ns.
    defended: Option<u64>,
}

impl<B: Backend> Neighbours<B> {
    /// Takes the exception queue of the card.
    ///
    /// # Errors
    /// [`ExceptionError`]: the card has none, or it is taken; slots out of range; no memory.
    pub fn new(context: &Context<B>, config: NeighbourConfig) -> Result<Self, ExceptionError> {
        let queue = context.create_exception_queue(config.slots, config.jumbo)?;
        let config = NeighbourConfig {
            tries: config.tries.max(1),
            ..config
        };
        Ok(Self {
            context: context.clone(),
            // One byte more shows a frame of the bridge that is too long.
            buffer: vec![0; queue.max_frame() + 1],
            queue,
            config,
            cache: Cache::new(config),
            counters: NeighbourCounters::default(),
            bridge: None,
            outbox: VecDeque::new(),
            pongs: VecDeque::new(),
            defended: None,
        })
    }

    /// Hands frames that are not the driver's to `fd`, a frame a write, and sends what is read from it: a TAP device
    /// ([`Tap`]) or a socket that keeps frames apart. The descriptor is made not to block.
    ///
    /// Answers to questions go there too: the kernel may have asked them. Requests for addresses of the card do not.
    ///
    /// # Errors
    /// The descriptor has no such mode.
    pub fn bridge(&mut self, fd: impl Into<OwnedFd>) -> io::Result<()> {
        self.bridge = Some(Bridge::new(fd.into())?);
        Ok(())
    }

    /// What happened to frames so far.
    #[must_use]
    pub fn counters(&self) -> NeighbourCounters {
        self.counters
    }

    /// MAC address and state of a neighbour, if there is anything to know.
    #[must_use]
    pub fn get(&self, peer: Gid) -> Option<(Option<Mac>, NeighbourState)> {
        self.cache.get(peer.0.into())
    }

    /// Asks for one event (`EXCEPTION` on event queue 0) when there is a frame to [`poll`](Self::poll).
    pub fn arm(&mut self) {
        self.queue.arm();
    }

    /// Handles the frames at hand and asks what is due; returns the frames handled.
    pub fn poll(&mut self) -> usize {
        while let Some(frame) = self.outbox.pop_front() {
            if self.queue.send(&frame).is_err() {
                self.outbox.push_front(frame);
                break;
            }
        }
        let mut handled = 0;
        let mut buffer = std::mem::take(&mut self.buffer);
        while handled < BATCH
            && let Some(len) = self.queue.poll(&mut buffer)
        {
            handled += 1;
            self.receive(&buffer[..len]);
        }
        self.buffer = buffer;
        let (questions, lost) = self.cache.due(self.now());
        self.counters.dropped += lost;
        for question in &questions {
            self.ask(question);
        }
        handled + self.take_from_bridge()
    }

    /// Where `peer` is, if that is confirmed; else it is being asked for, and the next call may know more. The questions
    /// are sent by [`poll`](Self::poll), from entry `sgid_index` of the GID table.
    ///
    /// # Errors
    /// [`ResolveError`]: no address to ask from, not a unicast address, or no answer to any question: a further
    /// call asks again.
    pub fn try_resolve(&mut self, sgid_index: u8, peer: Gid) -> Result<Option<Mac>, ResolveError> {
        let local = self.context.gid(sgid_index);
        let local = local.ok_or(PathError::NoGid { sgid_index })?;
        if local.is_ipv4() != peer.is_ipv4() {
            let remote = peer;
            return Err(PathError::Family { local, remote }.into());
        }
        if !parse::is_host(peer.ip()) {
            return Err(ResolveError::NotUnicast(peer));
        }
        if self.is_ours(peer.ip()) {
            return Ok(Some(self.context.mac()));
        }
        let address = peer.0.into();
        if let Some((_, NeighbourState::Failed)) = self.cache.get(address) {
            self.cache.discard(address);
            self.counters.unreachable += 1;
            let questions = self.config.tries;
            return Err(ResolveError::Unreachable {
                peer,
                questions,
                waited_ns: self.config.retry_ns * u64::from(questions),
            });
        }
        let now = self.now();
        Ok(self.cache.want(address, sgid_index, now))
    }

    /// That `peer` did not answer before is forgotten: [`try_resolve`](Self::try_resolve) asks it anew.
    pub fn ask_anew(&mut self, peer: Gid) {
        if let Some((_, NeighbourState::Failed)) = self.get(peer) {
            self.cache.discard(peer.0.into());
        }
    }

    /// Where `peer` is: as [`try_resolve`](Self::try_resolve), waiting. Takes no longer than twice `tries` times
    /// `retry_ns` of the card's time: what was known is confirmed first, then everybody is asked.
    ///
    /// # Errors
    /// [`ResolveError`].
    pub fn resolve(&mut self, sgid_index: u8, peer: Gid) -> Result<Mac, ResolveError> {
        self.ask_anew(peer);
        loop {
            if let Some(mac) = self.try_resolve(sgid_index, peer)? {
                return Ok(mac);
            }
            if self.poll() == 0 {
                self.context.backend().relax();
            }
        }
    }

    /// The way to `peer`, by way of the router `via` if it is not on this link; the fields that resolution does not
    /// decide are those of [`Path::new`].
    ///
    /// # Errors
    /// [`ResolveError`].
    pub fn path(
        &mut self,
        sgid_index: u8,
        peer: Gid,
        via: Option<Gid>,
    ) -> Result<Path, ResolveError> {
        let dmac = self.resolve(sgid_index, via.unwrap_or(peer))?;
        Ok(Path {
            sgid_index,
            vlan: self.config.vlan,
            ..Path::new(peer, dmac)
        })
    }

    /// Tells all neighbours where the addresses of the card are: gratuitous ARP and unsolicited advertisements.
    pub fn announce(&mut self) {
        for index in 0..=u8::MAX {
            if let Some(gid) = self.context.gid(index) {
                self.announce_one(gid.ip());
            }
        }
    }

    /// Sends an echo request to `peer`, as soon as it is known where that is. Replies come by [`pong`](Self::pong).
    ///
    /// # Errors
    /// [`ResolveError`]; only [`try_resolve`](Self::try_resolve) reports a peer that stops answering later.
    pub fn ping(
        &mut self,
        sgid_index: u8,
        peer: Gid,
        (ident, seq): (u16, u16),
        data: &[u8],
    ) -> Result<(), ResolveError> {
        let known = self.try_resolve(sgid_index, peer)?;
        let local = self.context.gid(sgid_index);
        let local = local.ok_or(PathError::NoGid { sgid_index })?;
        let link = self.link(known.unwrap_or_default());
        let echo = Echo {
            request: true,
            src: local.ip(),
            dst: peer.ip(),
            ident,
            seq,
            data,
        };
        let frame = emit::echo(&link, &echo);
        let (len, min, max) = (frame.len(), link.header_len(), self.queue.max_frame());
        if len > max {
            return Err(SendError::Length { len, min, max }.into());
        }
        match known {
            Some(_) => self.send(frame),
            None => self.counters.dropped += self.cache.hold(peer.0.into(), frame),
        }
        Ok(())
    }

    /// The next echo reply.
    pub fn pong(&mut self) -> Option<Pong> {
        self.pongs.pop_front()
    }

    fn now(&self) -> u64 {
        self.context.backend().now_ns()
    }

    /// Whether it is an address of the card.
    fn is_ours(&self, ip: IpAddr) -> bool {
        let gid = Gid::from(ip);
        (0..=u8::MAX).any(|index| self.context.gid(index) == Some(gid))
    }

    /// Head of a frame of ours.
    fn link(&self, dst: Mac) -> eth::Repr {
        let (src, vlan) = (self.context.mac(), self.config.vlan);
        eth::Repr { dst, src, vlan }
    }

    /// Hands a frame to the card, now or when it has room.
    fn send(&mut self, frame: Vec<u8>) {
        let sent = self.outbox.is_empty() && self.queue.send(&frame).is_ok();
        if !sent && self.outbox.len() < KEPT {
            self.outbox.push_back(frame);
        } else if !sent {
            self.counters.dropped += 1;
        }
    }

    fn ask(&mut self, question: &Question) {
        let local = self.context.gid(question.sgid_index).map(Gid::ip);
        let link = self.link(question.to.unwrap_or(Mac([0xff; 6])));
        let target = question.address;
        let frame = match (target.to_ipv4_mapped(), local) {
            (Some(target), Some(IpAddr::V4(from))) => {
                emit::arp(&link, true, from, (target, Mac::default()))
            }
            (None, Some(IpAddr::V6(from))) => emit::solicit(link, from, target, question.to),
            // The address to ask from is gone: the neighbour fails by time.
            _ => return,
        };
        self.counters.asked += 1;
        self.send(frame);
    }

    fn announce_one(&mut self, ip: IpAddr) {
        let link = self.link(Mac([0xff; 6]));
        let frame = match ip {
            IpAddr::V4(ip) => emit::arp(&link, true, ip, (ip, Mac::default())),
            IpAddr::V6(ip) => emit::advertise(link, ip, None),
        };
        self.send(frame);
    }
}

/// The form of an address in the cache.
fn v6(ip: Ipv4Addr) -> Ipv6Addr {
    ip.to_ipv6_mapped()
}
