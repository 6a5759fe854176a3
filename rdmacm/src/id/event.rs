//! Event channels and their events.
//!
//! An event is put while its owner is locked. So the end of the owner, which is marked under the lock, finds the event in
//! the channel, counted as taken, or not made at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ferroce_cabi::abi::Zero;
use ferroce_cabi::handle::{Object, Shown, get, object};
use ferroce_cabi::mailbox::Mailbox;

use super::{CmId, Inner};
use crate::abi::*;
use crate::errno::Errno;

/// A channel of events.
pub(crate) struct Channel {
    shown: Shown<rdma_event_channel>,
    pub(crate) events: Mailbox<Arc<Event>>,
}

object!(Channel, rdma_event_channel);

impl Channel {
    pub(crate) fn create() -> Result<Arc<Self>, Errno> {
        let events = Mailbox::new()?;
        let shown = rdma_event_channel { fd: events.fd() };
        let channel = Arc::new(Self {
            shown: Shown::new(shown),
            events,
        });
        Self::registry().add(channel.clone());
        Ok(channel)
    }

    /// The next event, for which the end of its owner waits from here on; waits for one unless the program made the
    /// descriptor not block.
    pub(crate) fn take(&self) -> Result<Arc<Event>, Errno> {
        self.events.take_with(Event::taken)
    }

    /// The next event, as above; `None` if there is none.
    pub(crate) fn try_take(&self) -> Option<Arc<Event>> {
        self.events.try_take_with(Event::taken)
    }
}

/// An event, with the data of the peer that it points to.
pub(crate) struct Event {
    shown: Shown<rdma_cm_event>,
    /// The identifier whose `destroy` waits for its acknowledgement.
    pub(crate) owner: Arc<CmId>,
    pub(crate) id: Arc<CmId>,
    is_taken: AtomicBool,
    _private: Box<[u8]>,
}

object!(Event, rdma_cm_event);

/// What an event says, beside its kind.
#[derive(Default)]
pub(super) struct Details {
    pub(super) status: i32,
    pub(super) private: Vec<u8>,
    /// Of a connection, without data.
    pub(super) conn: Option<rdma_conn_param>,
    /// Of datagrams, without data.
    pub(super) ud: Option<rdma_ud_param>,
}

impl Drop for Event {
    fn drop(&mut self) {
        if *self.is_taken.get_mut() {
            self.owner.acks.acknowledge(1);
        } else {
            self.is_read();
        }
    }
}

impl Inner {
    /// Events of `id`, which this is of, go to `channel` from now on; the channel before.
    pub(super) fn report_on(&mut self, id: &CmId, channel: &Arc<Channel>) -> Arc<Channel> {
        // SAFETY: a structure of this.
        unsafe { (*id.shown()).channel = channel.shown() };
        std::mem::replace(&mut self.channel, channel.clone())
    }

    /// Tells the program an event of the identifier that this is of.
    pub(super) fn report(&self, event: Event) {
        self.channel.events.put(Arc::new(event));
    }
}

impl Event {
    fn taken(self: Arc<Self>) -> Option<Arc<Self>> {
        self.owner.acks.taken();
        self.is_taken.store(true, Ordering::Relaxed);
        self.is_read();
        Some(self)
    }

    /// A request no longer counts among those that its listener has left.
    fn is_read(&self) {
        if self.kind() == RDMA_CM_EVENT_CONNECT_REQUEST {
            self.owner.unread.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// An event of `id`; of a request the listener, whose event it is, is named too.
    pub(super) fn new(
        id: &Arc<CmId>,
        listener: Option<&Arc<CmId>>,
        kind: i32,
        details: Details,
    ) -> Self {
        if let Some(listener) = listener {
            listener.unread.fetch_add(1, Ordering::Relaxed);
        }
        let private: Box<[u8]> = details.private.into();
        let (data, len) = (private.as_ptr().cast(), private.len() as u8);
        let data = if len == 0 { std::ptr::null() } else { data };
        let mut shown = rdma_cm_event::zero();
        shown.id = id.shown();
        shown.listen_id = listener.map_or(std::ptr::null_mut(), |l| l.shown());
        shown.event = kind;
        shown.status = details.status;
        shown.param = match details.ud {
            Some(ud) => EventParam {
                ud: rdma_ud_param {
                    private_data: data,
                    private_data_len: len,
                    ..ud
                },
            },
            None => EventParam {
                conn: rdma_conn_param {
                    private_data: data,
                    private_data_len: len,
                    ..details.conn.unwrap_or(rdma_conn_param::zero())
                },
            },
        };
        Self {
            shown: Shown::new(shown),
            owner: listener.unwrap_or(id).clone(),
            id: id.clone(),
            is_taken: AtomicBool::new(false),
            _private: private,
        }
    }

    /// Its kind.
    pub(crate) fn kind(&self) -> i32 {
        // SAFETY: a structure of this; the program gets it later.
        unsafe { (*self.shown()).event }
    }

    /// What the program is to see instead.
    pub(crate) fn change_to(&self, kind: i32, status: i32) {
        // SAFETY: as above.
        unsafe {
            (*self.shown()).event = kind;
            (*self.shown()).status = status;
        }
    }

    /// The program has it, until it acknowledges it.
    pub(crate) fn give(self: Arc<Self>) -> *mut rdma_cm_event {
        Self::registry().add(self)
    }

    /// The program is done with an event.
    pub(crate) fn acknowledge(event: *mut rdma_cm_event) -> Result<(), Errno> {
        let event = get::<Self>(event)?;
        Self::registry().remove(&event);
        Ok(())
    }
}
