//! Completion channels.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use ferroce_driver::{CompChannel, EventAttr};

use super::CqHandle;
use crate::abi::*;
use crate::card::{Card, Interrupts};
use crate::context::Opened;
use crate::errno::{Errno, ToErrno, or_minus_one, or_null, status};
use crate::handle::{Core, Object, Shown, Used, Users, get, object};
use crate::mailbox::{Mailbox, until_taken};

/// A completion channel. The thread of the card moves its events to where the program waits.
pub(crate) struct Channel {
    shown: Shown<ibv_comp_channel>,
    pub(crate) core: Core<CompChannel>,
    /// Readable when the card has reported an event.
    interrupt: OwnedFd,
    /// Completion queues, by the address that the program knows.
    events: Mailbox<usize>,
    context: Opened,
    users: Users,
}

object!(Channel, ibv_comp_channel, used);

impl Channel {
    pub(crate) fn is_of(&self, card: &Arc<Card>) -> bool {
        Arc::ptr_eq(&self.context.card, card)
    }

    /// No event of a completion queue that goes is left, see [`Mailbox::end`].
    pub(crate) fn end(&self, cq: &CqHandle) {
        let gone = cq.shown().addr();
        self.events.end(&cq.events, |&addr| addr == gone);
    }
}

impl Interrupts for Channel {
    fn interrupt(&self) -> BorrowedFd<'_> {
        self.interrupt.as_fd()
    }

    fn collect(&self) {
        // Destroyed meanwhile: there is nothing to move.
        let _ = self.core.with(|channel| {
            while let Some(number) = channel.try_event() {
                let cqs = CqHandle::registry().all(|cq| {
                    let own = cq.channel.as_deref();
                    cq.number == number && own.is_some_and(|own| std::ptr::eq(own, self))
                });
                for cq in cqs {
                    self.events.put_of(&cq.events, cq.shown().addr());
                }
            }
            Ok(())
        });
    }
}

#[unsafe(no_mangle)]
extern "C" fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    let create = || {
        let opened = Opened::get(context)?;
        let attr = EventAttr::default();
        let channel = opened.card.context.create_comp_channel(&attr);
        let channel = channel.map_err(ToErrno::errno)?;
        let interrupt = channel.as_fd().try_clone_to_owned();
        let interrupt = interrupt.map_err(|_| Errno::MFILE)?;
        let events = Mailbox::new()?;
        let card = opened.card.clone();
        let mut shown = ibv_comp_channel::zero();
        shown.context = context;
        shown.fd = events.fd();
        let handle = Channel {
            shown: Shown::new(shown),
            core: Core::new(channel),
            interrupt,
            events,
            context: opened,
            users: Users::default(),
        };
        let shown = Channel::registry().add(Arc::new(handle));
        card.wake();
        Ok(shown)
    };
    or_null(create())
}

#[unsafe(no_mangle)]
extern "C" fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    let destroy = || {
        let channel = get::<Channel>(channel)?;
        channel.check_unused()?;
        Channel::registry().remove(&channel);
        channel.core.destroy()?;
        channel.context.card.wake();
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
