//! Completion channels and asynchronous events.

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use ferroce_driver::{
    AsyncEvent, Context, CqError, EventAttr, EventError, Features, Notify, Qp, QpAttr, SendOp,
    SendWr, Wc, WcStatus, eventfd,
};
use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::eq::event;
use ferroce_proto::abi::qpc::state;

use crate::fake::{ALL, Answer, Fake};
use crate::setup::{open, peer};

fn attr() -> EventAttr {
    EventAttr::default()
}

#[test]
fn a_channel_names_the_queue_with_completions() {
    let (fake, context) = open(ALL);
    let mut channel = context.create_comp_channel(&attr()).unwrap();
    let eqn = 1;
    let ctx = fake.state().eqs[&eqn].0;
    assert_eq!((ctx.log_size, ctx.vector, ctx.moderation), (10, 1, 0));
    let mut cq = context.create_cq_on(8, &channel).unwrap();
    let other = context.create_cq_on(8, &channel).unwrap();
    assert_eq!(fake.state().cqs[&cq.cqn()].0.eqn, 1);
    let pd = context.alloc_pd();
    let mut qp = Qp::builder(&pd).cq(&cq).build().unwrap();
    qp.connect(&peer()).unwrap();
    fake.take_doorbells();

    cq.req_notify(Notify::Any).unwrap();
    let at = doorbell::cq(cq.cqn());
    assert_eq!(fake.take_doorbells(), [(at, doorbell::ARM_ANY)]);
    assert_eq!(channel.try_event(), None);
    let start = fake.state().now_ns;
    assert_eq!(channel.get_event(Duration::from_micros(5)), None);
    assert_eq!(fake.state().now_ns, start + 5_000, "it waits as long");

    let wr = SendWr::new(SendOp::Send, &[]).signaled();
    qp.post_send(&[wr, wr]).unwrap();
    assert!(fake.complete_send(qp.qpn(), 0, 0) && fake.complete_send(qp.qpn(), 1, 0));
    assert!(fake.put_event(eqn, event::COMPLETION, 0, cq.cqn()));
    assert!(fake.put_event(eqn, event::COMPLETION, 0, other.cqn()));
    assert!(eventfd::wait(&channel, 0), "readable");
    assert_eq!(channel.get_event(Duration::from_micros(5)), Some(cq.cqn()));
    assert!(eventfd::wait(channel.as_fd(), 0), "there is another event");
    assert_eq!(channel.try_event(), Some(other.cqn()));
    assert_eq!(channel.try_event(), None);
    assert!(!eventfd::wait(&channel, 0), "all events are taken");
    assert_eq!(fake.state().eqs[&eqn].1, 2);

    // Armed with what was polled.
    assert_eq!(cq.poll(&mut [Wc::default()]), 1);
    fake.take_doorbells();
    cq.req_notify(Notify::Solicited).unwrap();
    assert_eq!(fake.take_doorbells(), [(at, doorbell::ARM_SOLICITED | 1)]);
    assert!(channel.as_raw_fd() >= 0);
}

#[test]
fn the_ring_wraps_and_a_full_one_is_emptied() {
    let (fake, context) = open(ALL);
    let small = EventAttr {
        entries: 4,
        moderation_ns: 3_000,
    };
    let mut channel = context.create_comp_channel(&small).unwrap();
    assert_eq!(fake.state().eqs[&1].0.log_size, 2);
    assert_eq!(fake.state().eqs[&1].0.moderation, 3, "of 1024 ns");
    let cq = context.create_cq_on(8, &channel).unwrap();
    for round in 0..20 {
        let filled = 1 + round % 4;
        for _ in 0..filled {
            assert!(fake.put_event(1, event::COMPLETION, 0, cq.cqn()));
        }
        assert_eq!(
            fake.put_event(1, event::COMPLETION, 0, cq.cqn()),
            filled < 4,
            "a ring of 4 holds 4"
        );
        let taken = std::iter::from_fn(|| channel.try_event()).count();
        let written = (filled + 1).min(4);
        // Later events may be lost: the queue is reported once more.
        assert_eq!(taken, written + usize::from(written == 4));
    }
}

#[test]
fn a_channel_whose_ring_was_full_reports_all_its_queues() {
    let (fake, context) = open(ALL);
    let small = EventAttr {
        entries: 4,
        ..attr()
    };
    let mut channel = context.create_comp_channel(&small).unwrap();
    let kept = [(); 3].map(|()| context.create_cq_on(8, &channel).unwrap());
    let cqs = kept.each_ref().map(|cq| cq.cqn());
    let lose = |cqn| {
        for _ in 0..4 {
            assert!(fake.put_event(1, event::COMPLETION, 0, cqn));
        }
        assert!(!fake.put_event(1, event::COMPLETION, 0, cqs[2]), "lost");
    };
    for _ in 0..2 {
        lose(cqs[0]);
        let mut seen = vec![];
        // As a program that waits for the descriptor and then takes one event.
        while eventfd::wait(&channel, 0) {
            seen.extend(channel.try_event());
        }
        assert_eq!(seen[..4], [cqs[0]; 4]);
        assert_eq!(seen[4..], cqs);
        assert!(fake.put_event(1, event::COMPLETION, 0, cqs[1]));
        assert_eq!(channel.try_event(), Some(cqs[1]));
        assert_eq!(channel.try_event(), None);
    }
}

#[test]
fn queues_without_a_channel_are_not_armed() {
    let (fake, context) = open(ALL);
    let mut alone = context.create_cq(8).unwrap();
    let channel = context.create_comp_channel(&attr()).unwrap();
    let mut cq = context.create_cq_on(8, &channel).unwrap();
    cq.req_notify(Notify::Any).unwrap();
    fake.take_doorbells();
    drop(channel);
    assert!(fake.state().eqs.is_empty(), "the card forgets it at once");
    for cq in [&mut alone, &mut cq] {
        let e = cq.req_notify(Notify::Any).unwrap_err();
        assert!(matches!(e, CqError::NoChannel { cqn } if cqn == cq.cqn()));
    }
    assert_eq!(fake.take_doorbells(), []);
    let (_, other) = open(ALL);
    let channel = other.create_comp_channel(&attr()).unwrap();
    let e = context.create_cq_on(8, &channel).err();
    assert!(matches!(e, Some(CqError::OtherContext)));
}

#[test]
fn events_of_queues_that_are_gone_are_left_out() {
    let (fake, context) = open(ALL);
    let mut channel = context.create_comp_channel(&attr()).unwrap();
    let cqs: Vec<_> = (0..8)
        .map(|_| context.create_cq_on(2, &channel).unwrap())
        .collect();
    for cq in &cqs {
        assert!(fake.put_event(1, event::COMPLETION, 0, cq.cqn()));
    }
    drop(cqs);
    // the numbers are used again
    let cqs: Vec<_> = (0..8)
        .map(|_| context.create_cq_on(2, &channel).unwrap())
        .collect();
    assert_eq!(channel.try_event(), None);
    assert!(fake.put_event(1, event::COMPLETION, 0, cqs[3].cqn()));
    assert_eq!(channel.try_event(), Some(cqs[3].cqn()));
}

#[test]
fn events_come_after_two_to_the_31() {
    let (fake, context) = open(ALL);
    let mut channel = context.create_comp_channel(&attr()).unwrap();
    let cq = context.create_cq_on(2, &channel).unwrap();
    for _ in 0..4 {
        assert!(fake.put_event(1, event::COMPLETION, 0, cq.cqn()));
        assert_eq!(channel.try_event(), Some(cq.cqn()));
        fake.skip_events(1, 1 << 31);
        channel.skip(1 << 31);
    }
}

#[test]
fn asynchronous_events_have_their_kinds() {
    let (fake, context) = open(ALL);
    assert!(
        fake.put_event(0, event::PORT_DOWN, 0, 0),
        "the event is lost"
    );
    let mut events = context.async_events(&attr()).unwrap();
    assert_eq!(events.try_event(), None);
    let cases = [
        (event::CQ_ERROR, 0, AsyncEvent::CqError { cqn: 5 }),
        (
            event::QP_FATAL,
            status::REM_ACCESS_ERR,
            AsyncEvent::QpFatal {
                qpn: 5,
                status: WcStatus::RemAccessErr,
            },
        ),
        (event::QP_REQ_ERR, 0, AsyncEvent::QpRequestError { qpn: 5 }),
        (
            event::QP_ACCESS_ERR,
            0,
            AsyncEvent::QpAccessError { qpn: 5 },
        ),
        (event::SQ_DRAINED, 0, AsyncEvent::SqDrained { qpn: 5 }),
        (event::PORT_UP, 0, AsyncEvent::PortUp),
        (event::PORT_DOWN, 0, AsyncEvent::PortDown),
        (
            event::COMM_EST,
            0,
            AsyncEvent::CommunicationEstablished { qpn: 5 },
        ),
        (
            event::LAST_WQE_REACHED,
            0,
            AsyncEvent::LastWqeReached { qpn: 5 },
        ),
        (event::SRQ_LIMIT, 0, AsyncEvent::SrqLimit { srqn: 5 }),
        (event::EXCEPTION, 0, AsyncEvent::Exception),
        (
            77,
            3,
            AsyncEvent::Unknown {
                kind: 77,
                detail: 3,
                object: 5,
            },
        ),
    ];
    for (kind, detail, expected) in cases {
        assert!(fake.put_event(0, kind, detail, 5));
        assert!(eventfd::wait(&events, 0));
        assert_eq!(events.get_event(Duration::MAX), Some(expected));
    }
    assert_eq!(events.get_event(Duration::from_micros(1)), None);
    assert!(!eventfd::wait(&events, 0));
    let used = context.async_events(&attr()).err();
    assert!(matches!(used, Some(EventError::InUse)));
    drop(events);
    assert!(fake.state().eqs.is_empty());
    drop(context.async_events(&attr()).unwrap());
}

/// Their numbers are used again: an event of the former object would be taken for one of the next.
#[test]
fn events_of_objects_that_are_gone_are_left_out() {
    let (fake, context) = open(ALL);
    let mut events = context.async_events(&attr()).unwrap();
    let mut channel = context.create_comp_channel(&attr()).unwrap();
    let cq = context.create_cq_on(2, &channel).unwrap();
    let kept = context.create_cq(2).unwrap();
    let qp = Qp::builder(&context.alloc_pd()).cq(&cq).build().unwrap();
    let (qpn, cqn) = (qp.qpn(), cq.cqn());
    let failed = |cqn| AsyncEvent::CqError { cqn };
    for eqn in [0, 1] {
        assert!(fake.put_event(eqn, event::QP_ACCESS_ERR, 0, qpn));
        assert!(fake.put_event(eqn, event::CQ_ERROR, 0, cqn));
        assert!(fake.put_event(eqn, event::CQ_ERROR, 0, kept.cqn()));
        assert!(fake.put_event(eqn, event::QP_ACCESS_ERR, 0, qpn));
    }
    // some of the channel are on their way
    assert_eq!(channel.try_event(), None);
    assert!(fake.put_event(1, event::QP_FATAL, 0, qpn));
    drop(qp);
    drop(cq);
    // the next ones with their numbers
    assert!(fake.put_event(0, event::CQ_ERROR, 0, cqn));
    assert!(fake.put_event(1, event::QP_REQ_ERR, 0, qpn));
    assert_eq!(channel.try_event(), None);
    let refused = AsyncEvent::QpRequestError { qpn };
    let kept = failed(kept.cqn());
    let taken: Vec<_> = std::iter::from_fn(|| events.try_event()).collect();
    assert_eq!(taken, [kept, refused, kept, failed(cqn)]);
}

#[test]
fn a_channel_hands_on_what_is_no_completion() {
    let (fake, context) = open(ALL);
    let mut channel = context.create_comp_channel(&attr()).unwrap();
    let cq = context.create_cq_on(2, &channel).unwrap();
    assert!(fake.put_event(1, event::QP_FATAL, 1, 2));
    assert_eq!(channel.try_event(), None, "forgotten: nobody takes them");
    let mut events = context.async_events(&attr()).unwrap();
    assert!(fake.put_event(1, event::CQ_ERROR, 0, cq.cqn()));
    assert!(fake.put_event(1, event::COMPLETION, 0, cq.cqn()));
    assert!(!eventfd::wait(&events, 0));
    assert_eq!(channel.try_event(), Some(cq.cqn()));
    assert!(eventfd::wait(&events, 0));
    let overflow = AsyncEvent::CqError { cqn: cq.cqn() };
    assert_eq!(events.try_event(), Some(overflow));
    assert_eq!(events.try_event(), None);
}

#[test]
fn limits_are_named() {
    let (fake, context) = open(ALL);
    let refused = |attr| {
        context
            .create_comp_channel(&attr)
            .err()
            .unwrap()
            .to_string()
    };
    let entries = |entries| EventAttr { entries, ..attr() };
    for n in [0, 65537] {
        assert_eq!(
            refused(entries(n)),
            format!("entries of an event queue is {n}, possible is 1 to 65536")
        );
    }
    let slow = EventAttr {
        moderation_ns: 67_107_841,
        ..attr()
    };
    assert_eq!(
        refused(slow),
        "moderation_ns of an event queue is 67107841, possible is 0 to 67107840"
    );
    let three = [(); 3].map(|()| context.create_comp_channel(&attr()).unwrap());
    let full = context.create_comp_channel(&attr()).err();
    assert!(matches!(full, Some(EventError::Full { limit: 3 })));
    drop(three);
    // A refused one leaves the number free.
    for _ in 0..4 {
        let refuse = Answer::Status(2);
        fake.state().answers.insert(opcode::CREATE_EQ, refuse);
        let e = context.create_comp_channel(&attr()).err();
        assert!(matches!(e, Some(EventError::Command(_))));
        let e = context.async_events(&attr()).err();
        assert!(matches!(e, Some(EventError::Command(_))));
        fake.state().answers.clear();
        drop(context.create_comp_channel(&attr()).unwrap());
    }

    let fake = Fake::new(ALL);
    fake.state().vectors = 0;
    let context = Context::open(fake.clone()).unwrap();
    let e = context.async_events(&attr()).err();
    assert!(matches!(e, Some(EventError::NoInterrupts)));
    fake.state().vectors = 2;
    drop(context);
    let context = Context::open(fake).unwrap();
    let _one = context.create_comp_channel(&attr()).unwrap();
    let e = context.create_comp_channel(&attr()).err();
    assert!(matches!(e, Some(EventError::Full { limit: 1 })));
    let (_, without) = open(ALL.difference(Features::EVENTS));
    let e = without.create_comp_channel(&attr()).err();
    assert!(matches!(e, Some(EventError::Unsupported)));
}

#[test]
fn any_order_of_drops_is_right() {
    for order in 0..6 {
        let (fake, context) = open(ALL);
        let channel = context.create_comp_channel(&attr()).unwrap();
        let cq = context.create_cq_on(2, &channel).unwrap();
        let events = context.async_events(&attr()).unwrap();
        let mut parts: Vec<Box<dyn std::any::Any>> =
            vec![Box::new(channel), Box::new(cq), Box::new(events)];
        drop(context);
        drop(parts.remove(order / 2));
        drop(parts.remove(order % 2));
        drop(parts);
        assert!(fake.state().mapped.is_empty(), "order {order}");
    }
}

#[test]
fn a_send_queue_drains_and_goes_on() {
    let (fake, context) = open(ALL);
    let cq = context.create_cq(8).unwrap();
    let mut qp = Qp::builder(&context.alloc_pd()).cq(&cq).build().unwrap();
    let e = qp.modify(&QpAttr::Sqd).unwrap_err();
    assert_eq!(
        e.to_string(),
        "queue pair 2 cannot go from RESET to SQD: from RESET it goes to INIT, ERR, RESET"
    );
    qp.connect(&peer()).unwrap();
    let e = qp.modify(&QpAttr::Resume).unwrap_err();
    assert!(e.to_string().contains("cannot go from RTS to RTS"), "{e}");
    qp.modify(&QpAttr::Sqd).unwrap();
    let states = |fake: &Fake| {
        let qp = fake.state().qps[&2];
        (qp.sq_state, qp.rq_state)
    };
    // The responder goes on.
    assert_eq!(states(&fake), (state::SQD, state::RTS));
    let rts = QpAttr::Rts(ferroce_driver::RtsAttr::new(0));
    let e = qp.modify(&rts).unwrap_err();
    assert!(
        e.to_string()
            .ends_with("from RTR it goes with `Rts`, from SQD and SQE with `Resume`"),
        "{e}"
    );
    qp.post_send(&[SendWr::new(SendOp::Send, &[])]).unwrap();
    let psn = fake.state().qps[&2].sq_psn;
    qp.modify(&QpAttr::Resume).unwrap();
    assert_eq!(states(&fake), (state::RTS, state::RTS));
    assert_eq!(fake.state().qps[&2].sq_psn, psn, "it goes on where it was");
}
