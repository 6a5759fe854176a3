//! Completion queues.

mod channel;
mod convert;
mod extended;

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

use ferroce_driver::{Cq, Notify, Wc};

use crate::abi::*;
use crate::context::Opened;
use crate::errno::{Errno, ToErrno, or_null, status};
use crate::handle::{Acks, Core, Held, Object, Shown, Used, Users, get, object};
use crate::turn::Turn;
use crate::using::Using;
use channel::Channel;
pub(crate) use channel::completed;
use convert::convert;
pub(crate) use extended::create_cq_ex;

/// Completions taken from the driver at a time.
const BATCH: usize = 16;

/// A completion queue.
pub(crate) struct CqHandle {
    shown: Shown<ibv_cq_ex>,
    pub(crate) cq: Core<Using<Cq, Option<Held<Channel>>>>,
    /// Its number in the card.
    pub(crate) number: u32,
    pub(crate) context: Opened,
    pub(crate) channel: Option<Arc<Channel>>,
    users: Users,
    /// Completion events.
    pub(crate) events: Acks,
    /// Asynchronous events.
    pub(crate) failures: Acks,
    /// The completion that the program reads, from `start_poll` to `end_poll`.
    at_hand: Turn<Option<ibv_wc>>,
}

object!(CqHandle, ibv_cq, used);

impl CqHandle {
    /// What the program wants back with events.
    pub(crate) fn user_context(&self) -> *mut c_void {
        // SAFETY: the structure is valid as long as the object; only the program writes the field.
        unsafe { (*self.shown.get()).cq_context }
    }
}

/// What a completion queue is made of.
struct Make {
    context: *mut ibv_context,
    entries: u32,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    vector: u32,
}

fn create(make: &Make, mut shown: ibv_cq_ex) -> Result<*mut ibv_cq, Errno> {
    let opened = Opened::get(make.context)?;
    if make.vector != 0 {
        return Err(Errno::INVAL);
    }
    let channel = match make.channel.is_null() {
        true => None,
        false => Some(get::<Channel>(make.channel)?),
    };
    let held = channel.clone().map(Held::new);
    let device = &opened.card.context;
    let cq = match &channel {
        None => device.create_cq(make.entries).map_err(ToErrno::errno)?,
        Some(_) => opened.card.with_completions(|channel| {
            device
                .create_cq_on(make.entries, channel)
                .map_err(ToErrno::errno)
        })?,
    };
    shown.context = make.context;
    shown.channel = make.channel;
    shown.cq_context = make.cq_context;
    shown.handle = cq.cqn();
    shown.cqe = cq.capacity() as c_int;
    shown.mutex = libc::PTHREAD_MUTEX_INITIALIZER;
    shown.cond = libc::PTHREAD_COND_INITIALIZER;
    let handle = CqHandle {
        shown: Shown::new(shown),
        number: cq.cqn(),
        cq: Core::new(Using::new(cq, held)),
        context: opened,
        channel,
        users: Users::default(),
        events: Acks::default(),
        failures: Acks::default(),
        at_hand: Turn::new(None),
    };
    Ok(CqHandle::registry().add(Arc::new(handle)))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_create_cq(
    context: *mut ibv_context,
    entries: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    vector: c_int,
) -> *mut ibv_cq {
    let sizes = u32::try_from(entries).and_then(|entries| Ok((entries, vector.try_into()?)));
    or_null(
        sizes
            .map_err(|_| Errno::INVAL)
            .and_then(|(entries, vector)| {
                let make = Make {
                    context,
                    entries,
                    cq_context,
                    channel,
                    vector,
                };
                create(&make, ibv_cq_ex::zero())
            }),
    )
}

#[unsafe(no_mangle)]
extern "C" fn ibv_destroy_cq(cq: *mut ibv_cq) -> c_int {
    let destroy = || {
        let cq = get::<CqHandle>(cq)?;
        cq.check_unused()?;
        cq.context.card.between_events(|| cq.cq.destroy())?;
        if let Some(channel) = &cq.channel {
            channel.end(&cq);
        }
        cq.context.events.end(cq.shown().cast(), &cq.failures);
        CqHandle::registry().remove(&cq);
        Ok(())
    };
    status(destroy())
}

/// Of `EINVAL` nothing has changed: more completions wait than the queue would hold, or it cannot be so long.
#[unsafe(no_mangle)]
extern "C" fn ibv_resize_cq(cq: *mut ibv_cq, entries: c_int) -> c_int {
    let resize = || {
        let handle = get::<CqHandle>(cq)?;
        let entries = u32::try_from(entries).map_err(|_| Errno::INVAL)?;
        handle.cq.with(|cq| {
            cq.resize(entries).map_err(ToErrno::errno)?;
            // SAFETY: the structure is valid as long as the object; the lock of the queue is held.
            unsafe { (*handle.shown.get()).cqe = cq.capacity() as c_int };
            Ok(())
        })
    };
    status(resize())
}

/// Takes up to `count` completions; how many, or less than 0.
pub(crate) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, count: c_int, wcs: *mut ibv_wc) -> c_int {
    let poll = || {
        let handle = get::<CqHandle>(cq)?;
        let count = usize::try_from(count).map_err(|_| Errno::INVAL)?;
        let mut taken = 0;
        while taken < count {
            let mut batch = [Wc::default(); BATCH];
            let room = BATCH.min(count - taken);
            let found = handle.cq.with(|cq| Ok(cq.poll(&mut batch[..room])))?;
            for (i, wc) in batch[..found].iter().enumerate() {
                // SAFETY: the caller gives a place for `count` completions.
                unsafe { ptr::write(wcs.add(taken + i), convert(wc)) };
            }
            taken += found;
            if found < room {
                break;
            }
        }
        if taken == 0 {
            handle.context.card.idle();
        }
        Ok(taken as c_int)
    };
    poll().unwrap_or_else(|errno: Errno| -errno.raw_os_error())
}

/// Asks for an event at the next completion.
pub(crate) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    let notify = match solicited_only {
        0 => Notify::Any,
        _ => Notify::Solicited,
    };
    let armed = get::<CqHandle>(cq).and_then(|handle| {
        handle.cq.with(|cq| match &handle.channel {
            Some(_) => cq.req_notify(notify).map_err(ToErrno::errno),
            // No event follows.
            None => Ok(()),
        })
    });
    status(armed)
}
