//! Completion channels and asynchronous events.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ferroce_driver::{AsyncEvent, CompChannel, EventAttr, WcStatus};

use crate::abi::*;
use crate::card::Card;
use crate::context::{ContextHandle, Opened, PORT};
use crate::cq::CqHandle;
use crate::errno::{Errno, ToErrno, or_minus_one, or_null, status};
use crate::handle::{Core, Object, Shown, Used, Users, get, object};
use crate::mailbox::Mailbox;
use crate::qp::QpHandle;
use crate::srq::SrqHandle;

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

    pub(crate) fn interrupt(&self) -> BorrowedFd<'_> {
        self.interrupt.as_fd()
    }

    /// Moves the events that the card reported.
    pub(crate) fn collect(&self) {
        // Destroyed meanwhile: there is nothing to move.
        let _ = self.core.with(|channel| {
            while let Some(number) = channel.try_event() {
                let cqs = CqHandle::registry().all(|cq| {
                    let own = cq.channel.as_deref();
                    cq.number == number && own.is_some_and(|own| std::ptr::eq(own, self))
                });
                for cq in cqs {
                    self.events.put(cq.shown().addr());
                }
            }
            Ok(())
        });
    }

    /// Forgets events of a completion queue.
    pub(crate) fn discard(&self, cq: &CqHandle) {
        let gone = cq.shown().addr();
        self.events.discard(|&addr| addr == gone);
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
unsafe extern "C" fn ibv_get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    let next = || {
        let channel = get::<Channel>(channel)?;
        loop {
            let addr = channel.events.take()?;
            let found = get::<CqHandle>(std::ptr::without_provenance_mut(addr));
            // Destroyed meanwhile, or not yet.
            if let Ok(found) = found {
                found.events.taken();
                break Ok(found);
            }
        }
    };
    or_minus_one(next().map(|found| {
        // SAFETY: the caller gives places for both.
        unsafe {
            *cq = found.shown();
            *cq_context = found.user_context();
        }
        0
    }))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_ack_cq_events(cq: *mut ibv_cq, count: u32) {
    if let Ok(cq) = get::<CqHandle>(cq) {
        cq.events.acknowledge(count.into());
    }
}

/// An asynchronous event: its kind, and the object or port that it is of.
struct ShownEvent {
    kind: c_int,
    element: usize,
}

/// Asynchronous events of a context.
pub(crate) struct AsyncBox(Mailbox<ShownEvent>);

impl AsyncBox {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self(Mailbox::new()?))
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.0.fd()
    }

    /// Forgets events of an object that goes.
    pub(crate) fn discard(&self, object: Opaque) {
        self.0.discard(|event| event.element == object.addr());
    }
}

/// Hands an event of a card to the contexts that it is for.
pub(crate) fn deliver(card: &Card, event: AsyncEvent) {
    let is_of = |context: &ContextHandle| std::ptr::eq(&*context.card, card);
    let qps = |number| QpHandle::registry().all(|qp| qp.number == number && is_of(qp.context()));
    let to_qp = |kind, number| {
        for qp in qps(number) {
            let element = qp.shown().addr();
            qp.context().events.0.put(ShownEvent { kind, element });
        }
    };
    let to_all = |kind, element| {
        for context in ContextHandle::registry().all(is_of) {
            context.events.0.put(ShownEvent { kind, element });
        }
    };
    match event {
        // Programs take it for the loss of the queue pair's completions (IB1 11.6.3.2): of a failure that completes a
        // request with a cause of its own that request tells.
        AsyncEvent::QpFatal {
            qpn,
            status: WcStatus::GeneralErr,
        } => to_qp(IBV_EVENT_QP_FATAL, qpn),
        AsyncEvent::QpRequestError { qpn } => to_qp(IBV_EVENT_QP_REQ_ERR, qpn),
        AsyncEvent::QpAccessError { qpn } => to_qp(IBV_EVENT_QP_ACCESS_ERR, qpn),
        AsyncEvent::CommunicationEstablished { qpn } => to_qp(IBV_EVENT_COMM_EST, qpn),
        AsyncEvent::SqDrained { qpn } => {
            let is_asked = |qp: &Arc<QpHandle>| qp.reports_drained.load(Ordering::Relaxed);
            if qps(qpn).iter().any(is_asked) {
                to_qp(IBV_EVENT_SQ_DRAINED, qpn);
            }
        }
        AsyncEvent::LastWqeReached { qpn } => to_qp(IBV_EVENT_QP_LAST_WQE_REACHED, qpn),
        AsyncEvent::CqError { cqn } => {
            for cq in CqHandle::registry().all(|cq| cq.number == cqn && is_of(&cq.context)) {
                let (kind, element) = (IBV_EVENT_CQ_ERR, cq.shown().addr());
                cq.context.events.0.put(ShownEvent { kind, element });
            }
        }
        AsyncEvent::SrqLimit { srqn } => {
            for srq in SrqHandle::registry().all(|s| s.number == srqn && is_of(s.context())) {
                let (kind, element) = (IBV_EVENT_SRQ_LIMIT_REACHED, srq.shown().addr());
                srq.context().events.0.put(ShownEvent { kind, element });
            }
        }
        AsyncEvent::PortUp => to_all(IBV_EVENT_PORT_ACTIVE, PORT.into()),
        AsyncEvent::PortDown => to_all(IBV_EVENT_PORT_ERR, PORT.into()),
        AsyncEvent::DeviceFatal => to_all(IBV_EVENT_DEVICE_FATAL, 0),
        // There is no name for it in verbs.
        _ => {}
    }
}

/// Calls `then` with the acknowledgements of an event's object, if that object exists.
fn with_acks(kind: c_int, element: Opaque, then: impl FnOnce(&crate::handle::Acks)) -> bool {
    match kind {
        IBV_EVENT_CQ_ERR => get::<CqHandle>(element.cast())
            .map(|cq| then(&cq.failures))
            .is_ok(),
        IBV_EVENT_SRQ_LIMIT_REACHED => get::<SrqHandle>(element.cast())
            .map(|srq| then(&srq.events))
            .is_ok(),
        IBV_EVENT_PORT_ACTIVE | IBV_EVENT_PORT_ERR | IBV_EVENT_DEVICE_FATAL => true,
        _ => get::<QpHandle>(element.cast())
            .map(|qp| then(&qp.events))
            .is_ok(),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_async_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
) -> c_int {
    let next = || {
        let context = get::<ContextHandle>(context)?;
        loop {
            let ShownEvent { kind, element } = context.events.0.take()?;
            let element = std::ptr::without_provenance_mut(element);
            if with_acks(kind, element, crate::handle::Acks::taken) {
                break Ok((kind, element));
            }
        }
    };
    or_minus_one(next().map(|(event_type, element)| {
        // SAFETY: the caller gives a place for the event.
        unsafe {
            *event = ibv_async_event {
                element,
                event_type,
            };
        }
        0
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_ack_async_event(event: *mut ibv_async_event) {
    // SAFETY: the caller gives an event that it got.
    let event = unsafe { &*event };
    with_acks(event.event_type, event.element, |acks| acks.acknowledge(1));
}
