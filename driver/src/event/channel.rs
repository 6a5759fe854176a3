//! Completion channels.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ferroce_proto::abi::eq::event;

use super::queue::{EventQueue, supported};
use super::{EventAttr, EventError};
use crate::card::{Card, EventRing};
use crate::host::{lock, nanoseconds};
use crate::{AnyBackend, Backend, Context, eventfd};

/// The part of a channel that its completion queues know.
pub(crate) struct Channel<B: Backend> {
    pub(crate) card: Arc<Card<B>>,
    pub(crate) number: u32,
    ring: Arc<EventRing<B>>,
    /// Completion queues by number, with the position from which on events mean them; none once the channel is gone.
    members: Mutex<Option<BTreeMap<u32, u64>>>,
}

impl<B: Backend> Channel<B> {
    /// Completion queue `cqn` reports here from now on.
    pub(crate) fn join(&self, cqn: u32) {
        let from = self.ring.end();
        if let Some(members) = lock(&self.members).as_mut() {
            members.insert(cqn, from);
        }
    }

    /// Events of completion queue `cqn` are dropped from now on.
    pub(crate) fn leave(&self, cqn: u32) {
        if let Some(members) = lock(&self.members).as_mut() {
            members.remove(&cqn);
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        lock(&self.members).is_some()
    }

    /// Its first completion queue from number `cqn` on.
    fn member(&self, cqn: u32) -> Option<u32> {
        let members = lock(&self.members);
        let next = members.as_ref()?.range(cqn..).next();
        next.map(|(&cqn, _)| cqn)
    }

    fn means(&self, cqn: u32, position: u64) -> bool {
        let members = lock(&self.members);
        let from = members.as_ref().and_then(|members| members.get(&cqn));
        from.is_some_and(|from| position >= *from)
    }
}

/// A completion channel: tells which of its completion queues have completions.
///
/// A queue created with [`Context::create_cq_on`](crate::Context::create_cq_on) sends one event for each
/// [`req_notify`](crate::Cq::req_notify). Events need no acknowledgement: those of a queue that was dropped are left out,
/// and after the channel was dropped its queues send none. Once the card is found to be lost each queue is reported
/// once: what is posted completes in error. So it is when events of a full ring were taken, as the card may have lost
/// later ones: a queue that is reported need not have completions.
///
/// The channel's file descriptor is for `poll`, `epoll` or an async runtime, level or edge triggered: when it is
/// readable take events with [`try_event`](Self::try_event) until there is none. Only the channel reads the descriptor.
pub struct CompChannel<B: Backend = AnyBackend> {
    queue: EventQueue<B>,
    core: Arc<Channel<B>>,
    walk: Walk,
}

/// Reports of all completion queues of a channel, one after the other.
#[derive(Default)]
struct Walk {
    /// Those with lower numbers were reported.
    next_cqn: Option<u32>,
    /// It was begun for the loss of the card.
    is_last: bool,
}

impl Walk {
    /// The next completion queue. A walk begins anew when the card is lost, or events of a full ring were taken.
    fn next<B: Backend>(&mut self, core: &Channel<B>, was_full: bool) -> Option<u32> {
        let is_lost = core.card.host.lost() && !self.is_last;
        if is_lost || was_full {
            self.next_cqn = Some(0);
            self.is_last |= is_lost;
        }
        let found = self.next_cqn.and_then(|from| core.member(from));
        self.next_cqn = found.map(|cqn| cqn + 1);
        found
    }
}

impl<B: Backend> Context<B> {
    /// A new completion channel. A card has one less than event queues
    /// ([`DeviceInfo::max_eq`](crate::DeviceInfo::max_eq)), or fewer if the backend has fewer interrupt vectors.
    ///
    /// # Errors
    /// [`EventError`]: no events or interrupts, none left, an attribute out of range, no memory, or refused.
    pub fn create_comp_channel(&self, attr: &EventAttr) -> Result<CompChannel<B>, EventError> {
        CompChannel::new(&self.card, attr)
    }
}

impl<B: Backend> CompChannel<B> {
    pub(crate) fn new(card: &Arc<Card<B>>, attr: &EventAttr) -> Result<Self, EventError> {
        supported(card)?;
        let limit = card.channels();
        let number = lock(&card.eqs).take().ok_or(EventError::Full { limit })?;
        let queue =
            EventQueue::new(card, number, attr).inspect_err(|_| lock(&card.eqs).put(number))?;
        let core = Arc::new(Channel {
            card: card.clone(),
            number,
            ring: queue.ring.clone(),
            members: Mutex::new(Some(BTreeMap::new())),
        });
        Ok(Self {
            queue,
            core,
            walk: Walk::default(),
        })
    }

    pub(crate) fn core(&self) -> &Arc<Channel<B>> {
        &self.core
    }

    /// As if so many events had come and been taken: for tests.
    #[doc(hidden)]
    pub fn skip(&mut self, events: u64) {
        self.queue.skip(events);
    }

    /// Number of a completion queue with completions, oldest event first. `None` if there is no event; the file
    /// descriptor becomes readable with the next one.
    pub fn try_event(&mut self) -> Option<u32> {
        Self::next(&mut self.queue, &self.core, &mut self.walk)
    }

    /// Number of a completion queue with completions; sleeps until there is an event, for `limit` of the card's time at most. `None` at
    /// once if the card is lost and all queues were reported.
    pub fn get_event(&mut self, limit: Duration) -> Option<u32> {
        let Self { queue, core, walk } = self;
        queue.wait(nanoseconds(limit), |queue| Self::next(queue, core, walk))
    }

    fn next(queue: &mut EventQueue<B>, core: &Channel<B>, walk: &mut Walk) -> Option<u32> {
        loop {
            // Held from taking to parking: an object that ends has to find its event in one of the two places.
            let mut parked = lock(&core.card.parked);
            let Some((position, eqe)) = queue.take(|| None) else {
                drop(parked);
                let next = walk.next(core, std::mem::take(&mut queue.was_full));
                if next.is_some() {
                    eventfd::signal(&queue.fd);
                }
                return next;
            };
            if eqe.event != event::COMPLETION {
                parked.put(eqe);
            } else if core.means(eqe.object, position) {
                return Some(eqe.object);
            }
        }
    }
}

impl<B: Backend> Drop for CompChannel<B> {
    fn drop(&mut self) {
        *lock(&self.core.members) = None;
    }
}

impl<B: Backend> AsFd for CompChannel<B> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.fd.as_fd()
    }
}

impl<B: Backend> AsRawFd for CompChannel<B> {
    fn as_raw_fd(&self) -> RawFd {
        self.queue.fd.as_raw_fd()
    }
}
