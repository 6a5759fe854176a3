//! Completion channels.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::CqHandle;
use crate::abi::*;
use crate::card::Card;
use crate::context::Opened;
use crate::errno::{or_minus_one, or_null, status};
use crate::handle::{Object, Shown, Used, Users, get, object};
use crate::mailbox::{Mailbox, until_taken};

/// A completion channel. The thread of the card puts its events here, where the program waits.
pub(crate) struct Channel {
    shown: Shown<ibv_comp_channel>,
    /// Completion queues, by the address that the program knows.
    events: Mailbox<usize>,
    _context: Opened,
    users: Users,
}

object!(Channel, ibv_comp_channel, used);

impl Channel {
    /// No event of a completion queue that goes is left, see [`Mailbox::end`].
    pub(crate) fn end(&self, cq: &CqHandle) {
        let gone = cq.shown().addr();
        self.events.end(&cq.events, |&addr| addr == gone);
    }
}

/// A completion queue of a card has an event: it goes to the channel of the queue.
pub(crate) fn completed(card: &Card, number: u32) {
    let is_it = |cq: &CqHandle| cq.number == number && std::ptr::eq(&*cq.context.card, card);
    for cq in CqHandle::registry().all(is_it) {
        if let Some(channel) = &cq.channel {
            channel.events.put_of(&cq.events, cq.shown().addr());
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    let create = || {
        let opened = Opened::get(context)?;
        // What the card refuses is refused here, and not when a queue comes.
        opened.card.with_completions(|_| Ok(()))?;
        let events = Mailbox::new()?;
        let mut shown = ibv_comp_channel::zero();
        shown.context = context;
        shown.fd = events.fd();
        let handle = Channel {
            shown: Shown::new(shown),
            events,
            _context: opened,
            users: Users::default(),
        };
        Ok(Channel::registry().add(Arc::new(handle)))
    };
    or_null(create())
}

#[unsafe(no_mangle)]
extern "C" fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    let destroy = || {
        let channel = get::<Channel>(channel)?;
        channel.check_unused()?;
        Channel::registry().remove(&channel);
        Ok(())
    };
    status(destroy())
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn ibv_get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    let next = || {
        let channel = get::<Channel>(channel)?;
        let found = channel.events.try_take_with(|addr| {
            let found = get::<CqHandle>(std::ptr::without_provenance_mut(addr)).ok()?;
            found.events.taken();
            Some(found)
        });
        let Some(found) = found else {
            return Ok(Some(channel.events.fd()));
        };
        // SAFETY: the caller gives places for both.
        unsafe {
            *cq = found.shown();
            *cq_context = found.user_context();
        }
        Ok(None)
    };
    or_minus_one(until_taken(next).map(|()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_ack_cq_events(cq: *mut ibv_cq, count: u32) {
    if let Ok(cq) = get::<CqHandle>(cq) {
        cq.events.acknowledge(count.into());
    }
}
