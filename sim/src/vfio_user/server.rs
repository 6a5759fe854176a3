//! The turns of the one thread.

mod port;

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ferroce_vfio_user::Errno;
use ferroce_vfio_user::header::Kind;
use ferroce_vfio_user::message::{Message, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thiserror::Error;

use super::client::Client;
use super::dma::Dma;
use super::pace::{Pace, TURN, Watch, cycles_since};
use super::place::{Place, PlaceError};
use super::requests::{self, Outcome};
use super::stop::Stop;
use super::wire::{DatagramWire, WireStats};
use super::{Card, Device};
use crate::pcapng;
use crate::remote::Ticket;

/// Messages taken in a turn.
const MESSAGES: usize = 64;
/// Sleep while a frame waits for room at the peer: there is no telling when it has some.
const RETRY: Duration = Duration::from_millis(1);
/// Sleep until a client is tried again for which there was no descriptor.
const SHORT: Duration = Duration::from_millis(100);

/// The card cannot be served any longer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A socket cannot be had.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// Frames cannot be captured.
    #[error("cannot write the capture")]
    Capture(#[source] io::Error),
    /// The system refused.
    #[error("cannot wait for clients")]
    Io(#[from] io::Error),
}

/// Where frames are captured.
type Capture = pcapng::Writer<Box<dyn Write>>;

/// A served card.
pub struct Server<C> {
    listener: UnixListener,
    _place: Place,
    client: Option<Client>,
    /// One waits for want of descriptors or memory.
    keeps_waiting: bool,
    card: C,
    device: Device,
    wire: Option<DatagramWire>,
    capture: Option<(Capture, u32)>,
    watch: Watch,
    /// Vectors that the card raised, with the last access it made before.
    raised: VecDeque<(u16, Ticket)>,
    /// Cycles of the card since the start, resets included.
    cycle: u64,
}

impl<C: Card> Server<C> {
    /// A card at the socket `path`, whose memory is reached through `dma`.
    ///
    /// # Errors
    /// [`ServeError`]: the path cannot be had.
    pub fn new(path: &Path, card: C, dma: Rc<Dma>) -> Result<Self, ServeError> {
        let place = Place::claim(path)?;
        let refused = |source| PlaceError::refused(path, source);
        let listener = UnixListener::bind(path).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        Ok(Self {
            listener,
            _place: place,
            client: None,
            keeps_waiting: false,
            card,
            device: Device::new(dma),
            wire: None,
            capture: None,
            watch: Watch::default(),
            raised: VecDeque::new(),
            cycle: 0,
        })
    }

    /// Plugs a wire into the port of the card.
    pub fn plug(&mut self, wire: DatagramWire) {
        self.wire = Some(wire);
    }

    /// Captures what passes the port.
    ///
    /// # Errors
    /// [`ServeError::Capture`].
    pub fn capture(&mut self, name: &str, out: impl Write + 'static) -> Result<(), ServeError> {
        let out: Box<dyn Write> = Box::new(out);
        let mut writer = Capture::new(out).map_err(ServeError::Capture)?;
        let interface = writer.interface(name).map_err(ServeError::Capture)?;
        self.capture = Some((writer, interface));
        Ok(())
    }

    /// What passed the wire.
    #[must_use]
    pub fn wire_stats(&self) -> Option<WireStats> {
        self.wire.as_ref().map(DatagramWire::stats)
    }

    /// The card.
    #[must_use]
    pub fn card(&self) -> &C {
        &self.card
    }

    /// Cycles that the card has seen.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.cycle
    }

    /// Serves one client after the other until `stop` is set. When a client is gone the card is reset.
    ///
    /// # Errors
    /// [`ServeError`]: what it needs fails; what a client does is none.
    pub fn run(&mut self, stop: &Stop) -> Result<(), ServeError> {
        while !stop.is_set() {
            self.accept()?;
            self.messages();
            self.interrupts();
            self.frames_in()?;
            self.advance(stop)?;
            self.frames_out()?;
            self.interrupts();
            self.send();
        }
        if let Some((writer, _)) = self.capture.take() {
            writer.into_inner().map_err(ServeError::Capture)?;
        }
        Ok(())
    }

    /// Takes a client; a second one is sent away.
    fn accept(&mut self) -> Result<(), ServeError> {
        match self.listener.accept() {
            Ok((socket, _)) => {
                self.keeps_waiting = false;
                // One that ended before this one came is gone first.
                if self.client.as_ref().is_some_and(Client::has_hung_up) {
                    while self.messages() {}
                }
                if self.client.is_none() {
                    tracing::info!("a client connected");
                    self.client = Some(Client::new(socket));
                } else {
                    tracing::warn!("a second client was sent away: the card has one");
                }
                Ok(())
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                self.keeps_waiting = false;
                Ok(())
            }
            Err(e) if e.kind() == ErrorKind::ConnectionAborted => Ok(()),
            Err(e) if is_short(&e) => {
                // It waits until there is a descriptor for it; the client that is here is served on.
                if !std::mem::replace(&mut self.keeps_waiting, true) {
                    tracing::warn!("no client can be taken now: {e}");
                }
                Ok(())
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Takes what the client sent, up to [`MESSAGES`]; whether there may be more.
    fn messages(&mut self) -> bool {
        for _ in 0..MESSAGES {
            let Some(client) = &mut self.client else {
                return false;
            };
            match client.receive() {
                Ok(None) => return false,
                Ok(Some(message)) => {
                    self.watch.moved();
                    self.message(message);
                }
                Err(error) => {
                    self.disconnect(&error.to_string());
                    return false;
                }
            }
        }
        true
    }

    fn disconnect(&mut self, why: &str) {
        tracing::info!("the client is gone: {why}");
        self.client = None;
        self.device.dma.disconnect();
        self.leave();
        self.reset();
        self.device.irqs = super::Irqs::default();
    }

    /// A function-level reset.
    fn reset(&mut self) {
        self.card.reset();
        self.device.dma.reset();
        self.raised.clear();
        for reply in self.device.reset() {
            self.reply(reply);
        }
    }

    fn reply(&mut self, reply: Vec<u8>) {
        if let Some(client) = &mut self.client {
            client.send(reply);
        }
    }

    fn message(&mut self, message: Message) {
        let header = message.header;
        let Kind::Command { no_reply } = header.kind else {
            if let Err(what) = self.device.dma.reply(&message) {
                tracing::warn!("{what}");
            }
            return;
        };
        let result = match Request::parse(&message) {
            Ok(Request::Version(version)) => {
                let data = requests::agree(&version);
                let Some(client) = &mut self.client else {
                    return;
                };
                client.has_agreed = data.is_ok();
                data.map(Outcome::Reply)
            }
            Ok(_) if !self.client.as_ref().is_some_and(|c| c.has_agreed) => Err(Errno::PROTO),
            Ok(request) => self.device.request(&header, request, message.fds),
            Err(error) => {
                tracing::warn!("a malformed request: {error}");
                Err(Errno::INVAL)
            }
        };
        if let Err(errno) = &result {
            tracing::warn!("command {} refused: {errno}", header.command);
        }
        if matches!(&result, Ok(Outcome::Reset | Outcome::ResetAndReply(_))) {
            self.reset();
        }
        if let Some(reply) = requests::reply(&header, &result).filter(|_| !no_reply) {
            self.reply(reply);
        }
    }

    /// Raises what the card raised, behind the writes that it made before: what they tell of must be there.
    fn interrupts(&mut self) {
        while let Some(vector) = self.card.interrupt() {
            let last = self.device.dma.last();
            self.raised.push_back((vector, last));
            self.watch.moved();
        }
        while let Some((vector, last)) = self.raised.front()
            && self.device.dma.has_written(*last)
        {
            self.device.irqs.raise((*vector).into());
            self.raised.pop_front();
        }
    }

    /// Sends what the card asks of the client's memory, and all replies.
    fn send(&mut self) {
        let Some(client) = &mut self.client else {
            return;
        };
        while let Some(message) = self.device.dma.to_send() {
            client.send(message);
        }
        if let Err(error) = client.flush() {
            self.disconnect(&error.to_string());
        }
    }

    /// Lets time pass, and sleeps if there is nothing to do.
    fn advance(&mut self, stop: &Stop) -> Result<(), ServeError> {
        self.hand_over();
        if self.card.is_waiting() {
            // The answer may be here: then nothing more comes.
            self.step();
            if self.card.is_waiting() {
                self.send();
                self.sleep(stop, Some(RETRY.saturating_mul(100)))?;
            }
            return Ok(());
        }
        let is_quiet = self.card.ports_are_idle() && self.device.registers.is_idle();
        let idle = self.card.idle_until().filter(|_| is_quiet);
        match self.watch.pace(self.card.now(), idle, is_quiet) {
            Pace::Step => (0..TURN).try_for_each(|_| {
                self.step();
                self.hand_over();
                Ok(())
            }),
            Pace::Nap(nap) => {
                self.sleep(stop, Some(nap))?;
                (0..TURN).for_each(|_| self.step());
                Ok(())
            }
            Pace::Wait(until, most) => self.wait(stop, until, most),
        }
    }

    /// Sleeps until something comes or the card's timer runs out; as much time passes for the card.
    fn wait(&mut self, stop: &Stop, until: u64, most: Duration) -> Result<(), ServeError> {
        let arrival = self.wire.as_ref().and_then(DatagramWire::next_arrival);
        let now = self.card.now();
        let passed = if let Some(arrival) = arrival {
            // It is on the last cycles of its way.
            arrival.saturating_sub(self.cycle).max(1)
        } else {
            let start = Instant::now();
            self.sleep(stop, Some(most))?;
            cycles_since(start)
        };
        let target = now.saturating_add(passed).min(until);
        if target == now {
            self.step();
        } else {
            self.card.run_until(target);
            self.cycle += self.card.now() - now;
        }
        Ok(())
    }

    fn step(&mut self) {
        let before = self.card.now();
        self.card.step();
        self.cycle += self.card.now().saturating_sub(before);
    }

    /// Register accesses and their answers.
    fn hand_over(&mut self) {
        while let Some(answer) = self.device.registers.step(&mut self.card) {
            self.reply(requests::region_reply(&answer));
        }
    }

    /// Waits until something comes, `stop` is set, or `most` has passed.
    fn sleep(&self, stop: &Stop, most: Option<Duration>) -> Result<(), ServeError> {
        let mut fds = vec![PollFd::from_borrowed_fd(stop.event(), PollFlags::IN)];
        let mut most = most;
        if self.keeps_waiting {
            // it would be ready all the time
            most = Some(most.map_or(SHORT, |most| most.min(SHORT)));
        } else {
            fds.push(PollFd::from_borrowed_fd(
                self.listener.as_fd(),
                PollFlags::IN,
            ));
        }
        if let Some(client) = &self.client {
            let mut wanted = PollFlags::IN;
            wanted.set(PollFlags::OUT, client.is_late());
            fds.push(PollFd::from_borrowed_fd(client.socket(), wanted));
        }
        if let Some(wire) = &self.wire {
            if !self.card.is_waiting() {
                fds.push(PollFd::from_borrowed_fd(wire.socket(), PollFlags::IN));
            }
            if wire.is_blocked() {
                most = Some(most.map_or(RETRY, |most| most.min(RETRY)));
            }
        }
        let timeout = most.and_then(|most| Timespec::try_from(most).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(io::Error::from(e).into()),
        }
    }
}

/// The system has no descriptor or memory left, which may change.
fn is_short(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let short = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| short.contains(&errno))
}
