//! Asynchronous events: from the card to the contexts and objects that they are of.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ferroce_driver::{AsyncEvent, WcStatus};

use crate::abi::*;
use crate::async_box::ShownEvent;
use crate::card::{Card, Receivers};
use crate::context::{ContextHandle, PORT};
use crate::cq::{CqHandle, completed};
use crate::errno::or_minus_one;
use crate::handle::{Acks, Object, get};
use crate::mailbox::until_taken;
use crate::qp::QpHandle;
use crate::srq::SrqHandle;

/// What the thread of a card calls.
pub(crate) const RECEIVERS: Receivers = Receivers { completed, deliver };

/// Hands an event of a card to the contexts that it is for.
fn deliver(card: &Card, event: AsyncEvent) {
    let is_of = |context: &ContextHandle| std::ptr::eq(&*context.card, card);
    let qps = |number| QpHandle::registry().all(|qp| qp.number == number && is_of(qp.context()));
    let to_qp = |kind, number| {
        for qp in qps(number) {
            let events = &qp.context().events;
            events.put_of(qp.shown().cast(), &qp.events, kind);
        }
    };
    let to_all = |kind, element| {
        for context in ContextHandle::registry().all(is_of) {
            context.events.0.put(ShownEvent { kind, element });
        }
    };
    match event {
        // To a program this event means that completions were lost (IB1 11.6.3.2). The completion of a request tells of every
        // other failure.
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
                let (object, events) = (cq.shown().cast(), &cq.context.events);
                events.put_of(object, &cq.failures, IBV_EVENT_CQ_ERR);
            }
        }
        AsyncEvent::SrqLimit { srqn } => {
            for srq in SrqHandle::registry().all(|s| s.number == srqn && is_of(s.context())) {
                // The card has forgotten the limit.
                srq.limit.store(0, Ordering::Relaxed);
                let (object, events) = (srq.shown().cast(), &srq.context().events);
                events.put_of(object, &srq.events, IBV_EVENT_SRQ_LIMIT_REACHED);
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
fn with_acks(kind: c_int, element: Opaque, then: impl FnOnce(&Acks)) -> bool {
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
unsafe extern "C-unwind" fn ibv_get_async_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
) -> c_int {
    let next = || {
        let context = get::<ContextHandle>(context)?;
        let events = &context.events.0;
        let found = events.try_take_with(|ShownEvent { kind, element }| {
            let element = std::ptr::without_provenance_mut(element);
            with_acks(kind, element, Acks::taken).then_some((kind, element))
        });
        let Some((event_type, element)) = found else {
            return Ok(Some(events.fd()));
        };
        // SAFETY: the caller gives a place for the event.
        unsafe {
            *event = ibv_async_event {
                element,
                event_type,
            };
        }
        Ok(None)
    };
    or_minus_one(until_taken(next).map(|()| 0))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_ack_async_event(event: *mut ibv_async_event) {
    // SAFETY: the caller gives an event that it got.
    let event = unsafe { &*event };
    with_acks(event.event_type, event.element, |acks| acks.acknowledge(1));
}
