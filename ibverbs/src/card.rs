//! An opened card, and the thread that answers its neighbours and hands on its events.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ferroce_cabi::signals;
use ferroce_driver::{
    AsyncEvent, AsyncEvents, Backend, Classes, CompChannel, Congestion, Context, EventAttr, Gid,
    Mac, Mtu, NeighbourConfig, Neighbours, ResolveError, eventfd, open,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::errno::{Errno, ToErrno, say, say_line};
use crate::handle::lock;
use crate::opener::{self, Keep};

/// Longest sleep of the thread if the card tells of frames; else from one look to the next.
const SLEEP: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(5);
/// From one look for the answer of a peer to the next.
const RESOLVE_LOOK: Duration = Duration::from_micros(50);
/// Completion events handed on in a turn: whoever raises them without end does not keep others from the channels.
const TURN: usize = 64;

/// Keeps a card from being opened before it is closed: it is open once at a time, and any thread may close it last.
#[derive(Default)]
pub(crate) struct Gate {
    is_open: Mutex<bool>,
    closed: Condvar,
}

impl Gate {
    /// Waits until the card is closed.
    pub(crate) fn enter(self: &Arc<Self>) -> Entry {
        let mut is_open = lock(&self.is_open);
        while *is_open {
            is_open = self
                .closed
                .wait(is_open)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *is_open = true;
        Entry(self.clone())
    }
}

/// The right to have a card open.
pub(crate) struct Entry(Arc<Gate>);

impl Drop for Entry {
    fn drop(&mut self) {
        *lock(&self.0.is_open) = false;
        self.0.closed.notify_one();
    }
}

/// Where the thread of a card hands on what the card reports.
#[derive(Clone, Copy)]
pub(crate) struct Receivers {
    /// Takes the event of a completion queue.
    pub(crate) completed: fn(&Card, u32),
    /// Takes an asynchronous event.
    pub(crate) deliver: fn(&Card, AsyncEvent),
}

/// How the environment wants a card.
pub(crate) struct Settings {
    /// MAC address of the port.
    pub(crate) mac: Mac,
    /// Its IP addresses: GID 1 and up.
    pub(crate) ips: Vec<IpAddr>,
    /// Longest packets that the network takes.
    pub(crate) mtu: Mtu,
    /// None: as after reset.
    pub(crate) classes: Option<Classes>,
    /// Parameters that are not as after reset.
    pub(crate) congestion: Congestion,
}

/// The event queue that the completion queues of all channels share: a card has few.
struct Completions {
    channel: CompChannel,
    /// Readable when the card has reported an event.
    interrupt: Arc<OwnedFd>,
}

/// An opened card.
pub(crate) struct Card {
    pub(crate) context: Context,
    /// Path MTU that the network takes.
    pub(crate) mtu: Mtu,
    is_simulated: bool,
    /// The process that opened it: a child of `fork` has its memory, and not its thread.
    process: u32,
    neighbours: Mutex<Neighbours>,
    /// From the first completion channel on.
    completions: Mutex<Option<Completions>>,
    /// The thread takes events to their objects.
    handing: Mutex<()>,
    receivers: Receivers,
    /// Wakes the thread: the card goes, or the first channel came.
    wake: Arc<OwnedFd>,
    thread: Mutex<Option<JoinHandle<()>>>,
    // Goes behind the card.
    _simulation: Option<Keep>,
    // Goes last, when the card is closed.
    _entry: Arc<Entry>,
}

impl Card {
    /// Opens the card `name`. If it cannot, prints the reason: an error number says too little.
    pub(crate) fn open(
        name: &str,
        settings: &Settings,
        entry: Entry,
        receivers: Receivers,
    ) -> Result<Arc<Self>, Errno> {
        let failed = |errno| {
            move |e: &dyn std::error::Error| {
                say(e);
                errno
            }
        };
        let opened = opener::open(name);
        let (backend, keep) = opened.map_err(|e| failed(Errno::NODEV)(&*e))?;
        let is_simulated = backend.is_simulated();
        let context = Context::open(backend).map_err(|e| failed(Errno::IO)(&e))?;
        let mac = settings.mac;
        context.set_mac(mac).map_err(|e| failed(Errno::IO)(&e))?;
        if let Some(classes) = &settings.classes {
            let set = context.set_classes(classes);
            set.map_err(|e| failed(Errno::OPNOTSUPP)(&e))?;
        }
        let set = context.set_congestion(&settings.congestion);
        set.map_err(|e| failed(Errno::OPNOTSUPP)(&e))?;
        for (index, gid) in open::gids(mac, &settings.ips) {
            context
                .set_gid(index, gid)
                .map_err(|e| failed(Errno::INVAL)(&e))?;
        }
        // Peers start at about the same time: many short tries find one soonest.
        let config = NeighbourConfig {
            tries: 6,
            retry_ns: 50_000_000,
            ..NeighbourConfig::default()
        };
        let neighbours = Neighbours::new(&context, config);
        let mut neighbours = neighbours.map_err(|e| failed(Errno::IO)(&e))?;
        neighbours.announce();
        // Without events the thread looks from time to time.
        let events = context.async_events(&EventAttr::default()).ok();
        let wake = eventfd::create().map_err(|e| failed(Errno::MFILE)(&e))?;
        let entry = Arc::new(entry);
        let card = Arc::new(Self {
            context,
            mtu: settings.mtu,
            is_simulated,
            process: std::process::id(),
            neighbours: Mutex::new(neighbours),
            completions: Mutex::default(),
            handing: Mutex::default(),
            receivers,
            wake: Arc::new(wake),
            thread: Mutex::default(),
            _simulation: keep,
            _entry: entry.clone(),
        });
        let weak = Arc::downgrade(&card);
        let thread = signals::spawn("ferroce", move || {
            serve(&weak, events);
            // The events it had were of the card.
            drop(entry);
        });
        *lock(&card.thread) = Some(thread.map_err(|e| failed(Errno::AGAIN)(&e))?);
        Ok(card)
    }

    /// This process opened it.
    pub(crate) fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// Its time is not the host's.
    pub(crate) fn is_simulated(&self) -> bool {
        self.is_simulated
    }

    /// Where a peer is: asks, if that is not known. Between the looks others have the neighbours.
    pub(crate) fn resolve(&self, sgid_index: u8, peer: Gid) -> Result<Mac, ResolveError> {
        lock(&self.neighbours).ask_anew(peer);
        loop {
            if let Some(mac) = self.try_resolve(sgid_index, peer)? {
                return Ok(mac);
            }
            thread::sleep(RESOLVE_LOOK);
        }
    }

    /// Where a peer is, if that is known; else it is asked for, and a later call may know more.
    pub(crate) fn try_resolve(
        &self,
        sgid_index: u8,
        peer: Gid,
    ) -> Result<Option<Mac>, ResolveError> {
        let mut neighbours = lock(&self.neighbours);
        let mut found = neighbours.try_resolve(sgid_index, peer)?;
        if found.is_none() {
            neighbours.poll();
            found = neighbours.try_resolve(sgid_index, peer)?;
        }
        Ok(found)
    }

    /// Calls `end`, which ends an object, while the thread has no event in its hands: it takes it to an object by its number, which may be
    /// that of another one afterwards.
    pub(crate) fn between_events<R>(&self, end: impl FnOnce() -> R) -> R {
        let _handing = lock(&self.handing);
        end()
    }

    /// A turn of a program that found nothing: a simulated card needs the processor that would spin.
    pub(crate) fn idle(&self) {
        if self.is_simulated {
            self.context.backend().relax();
        }
    }

    /// Calls `then` with what reports completions to the channels.
    pub(crate) fn with_completions<R>(
        &self,
        then: impl FnOnce(&CompChannel) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let mut completions = lock(&self.completions);
        if let Some(Completions { channel, .. }) = &*completions {
            return then(channel);
        }
        let channel = self.context.create_comp_channel(&EventAttr::default());
        let channel = channel.map_err(ToErrno::errno)?;
        let interrupt = channel.as_fd().try_clone_to_owned();
        let interrupt = Arc::new(interrupt.map_err(|_| Errno::MFILE)?);
        let Completions { channel, .. } = completions.insert(Completions { channel, interrupt });
        self.wake();
        then(channel)
    }

    /// Has the thread look at its descriptors anew.
    fn wake(&self) {
        // An eventfd that is at its end is readable all the same.
        let _ = eventfd::raise(&*self.wake);
    }

    /// Hands on completion events, as many as is a turn; whether there may be more.
    fn hand_on(&self) -> bool {
        let mut completions = lock(&self.completions);
        let Some(Completions { channel, .. }) = &mut *completions else {
            return false;
        };
        for _ in 0..TURN {
            let Some(cqn) = channel.try_event() else {
                return false;
            };
            (self.receivers.completed)(self, cqn);
        }
        true
    }

    /// What the thread does when it is awake; whether there may be more completion events.
    fn turn(&self, events: Option<&mut AsyncEvents>) -> bool {
        // No interrupt reports the loss of the card; below it becomes an event.
        let _ = self.context.is_lost();
        let handing = lock(&self.handing);
        let is_more = self.hand_on();
        drop(handing);
        lock(&self.neighbours).poll();
        let Some(events) = events else {
            return is_more;
        };
        let handing = lock(&self.handing);
        while let Some(event) = events.try_event() {
            if event != AsyncEvent::Exception {
                (self.receivers.deliver)(self, event);
            }
        }
        drop(handing);
        // In each turn, as a full ring loses the event; at once if a frame came meanwhile.
        lock(&self.neighbours).arm();
        is_more
    }
}

/// The thread: sleeps, hands on events and answers neighbours, until the card is gone.
fn serve(card: &Weak<Card>, mut events: Option<AsyncEvents>) {
    loop {
        let Some(card) = card.upgrade() else { return };
        eventfd::clear(&*card.wake);
        let is_more = card.turn(events.as_mut());
        let wake = card.wake.clone();
        let completions = lock(&card.completions)
            .as_ref()
            .map(|completions| completions.interrupt.clone());
        drop(card);
        let mut fds = vec![PollFd::new(&*wake, PollFlags::IN)];
        fds.extend(
            events
                .iter()
                .map(|events| PollFd::from_borrowed_fd(events.as_fd(), PollFlags::IN)),
        );
        fds.extend(completions.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let sleep = match (is_more, &events) {
            (true, _) => Duration::ZERO,
            (false, Some(_)) => SLEEP,
            (false, None) => LOOK,
        };
        let sleep = Timespec::try_from(sleep).ok();
        // An interrupted sleep is a short one.
        let _ = poll(&mut fds, sleep.as_ref());
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        self.wake();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
            && thread.join().is_err()
        {
            say_line("the thread of the card panicked");
        }
    }
}
