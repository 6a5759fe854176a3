//! Completion channels, asynchronous events and draining.

use std::error::Error;
use std::time::Duration;

use ferroce_driver::{
    Access, AsyncEvent, AsyncEvents, Backend, CompChannel, Context, Cq, EventAttr, Notify, Pd, Qp,
    QpAttr, RecvWr, Remote, SendOp, SendWr, Wc, WcStatus, eventfd,
};
use ferroce_sim::card::SimCard;

use crate::{Done, LIMIT, connect, open, take};

/// Wait for an event that must not come, in ns.
const QUIET: Duration = Duration::from_micros(20);

/// One side, with a queue pair whose send and receive completions come to different queues.
struct Side {
    context: Context<SimCard>,
    pd: Pd<SimCard>,
    channel: CompChannel<SimCard>,
    events: AsyncEvents<SimCard>,
    send_cq: Cq<SimCard>,
    recv_cq: Cq<SimCard>,
    qp: Qp<SimCard>,
}

impl Side {
    /// With `send_entries` the send completion queue is that small and has no channel.
    fn new(card: SimCard, last: u8, send_entries: Option<u32>) -> Result<Self, Box<dyn Error>> {
        let context = open(card, last)?;
        let pd = context.alloc_pd();
        let events = context.async_events(&EventAttr::default())?;
        let channel = context.create_comp_channel(&EventAttr::default())?;
        let send_cq = match send_entries {
            Some(entries) => context.create_cq(entries)?,
            None => context.create_cq_on(64, &channel)?,
        };
        let recv_cq = context.create_cq_on(64, &channel)?;
        let qp = Qp::builder(&pd).send_cq(&send_cq).recv_cq(&recv_cq);
        Ok(Self {
            qp: qp.build()?,
            context,
            pd,
            channel,
            events,
            send_cq,
            recv_cq,
        })
    }

    fn send(&mut self, wr: SendWr<'_>) -> Done {
        Ok(self.qp.post_send(&[wr.signaled()])?)
    }

    fn receive(&mut self) -> Done {
        Ok(self.qp.post_recv(&[RecvWr::new(0, &[])])?)
    }
}

fn connected(cards: [SimCard; 2], entries: Option<u32>) -> Result<[Side; 2], Box<dyn Error>> {
    let [a, b] = cards;
    let (mut a, mut b) = (Side::new(a, 1, entries)?, Side::new(b, 2, None)?);
    connect(&mut a.qp, &mut b.qp)?;
    Ok([a, b])
}

/// A queue goes through sizes while completions come, armed all the time: each comes once, and events tell of them.
fn a_queue_is_resized_under_load(cards: [SimCard; 2]) -> Done {
    let [mut a, mut b] = connected(cards, None)?;
    let mut wr_id = 0;
    for size in [8, 64, 16, 128, 8, 32] {
        a.send_cq.req_notify(Notify::Any)?;
        for more in 0..6 {
            b.receive()?;
            a.send(SendWr::new(SendOp::Send, &[]).wr_id(wr_id + more))?;
        }
        a.send_cq.resize(size)?;
        assert_eq!(a.send_cq.capacity(), size);
        assert_eq!(a.channel.get_event(LIMIT), Some(a.send_cq.cqn()));
        for _ in 0..6 {
            let wc = take(&mut a.send_cq);
            assert_eq!((wc.wr_id, wc.status), (wr_id, WcStatus::Success));
            wr_id += 1;
        }
        take_all(&mut b.recv_cq, 6);
        assert_eq!(a.channel.get_event(QUIET), None);
    }
    assert_eq!(a.send_cq.unknown_cqes(), 0);
    Ok(())
}

fn take_all(cq: &mut Cq<SimCard>, completions: usize) {
    for _ in 0..completions {
        take(cq);
    }
}

fn channels_report_completions(cards: [SimCard; 2]) -> Done {
    let [mut a, mut b] = connected(cards, None)?;
    let empty = SendWr::new(SendOp::Send, &[]);
    (0..4).try_for_each(|_| b.receive())?;
    a.send(empty)?;
    take(&mut b.recv_cq);
    assert_eq!(b.channel.get_event(QUIET), None, "not armed");

    b.recv_cq.req_notify(Notify::Any)?;
    assert_eq!(b.channel.get_event(QUIET), None, "all is polled");
    a.send(empty)?;
    assert_eq!(b.channel.get_event(LIMIT), Some(b.recv_cq.cqn()));
    // An unpolled completion is reported at once, and once.
    b.recv_cq.req_notify(Notify::Any)?;
    assert_eq!(b.channel.get_event(LIMIT), Some(b.recv_cq.cqn()));
    take(&mut b.recv_cq);
    assert_eq!(b.channel.get_event(QUIET), None, "armed for one");

    b.recv_cq.req_notify(Notify::Solicited)?;
    a.send(empty)?;
    assert_eq!(b.channel.get_event(QUIET), None, "not solicited");
    a.send(empty.solicited())?;
    assert_eq!(b.channel.get_event(LIMIT), Some(b.recv_cq.cqn()));
    take_all(&mut b.recv_cq, 2);

    // Two queues share the channel of the other side.
    take_all(&mut a.send_cq, 4);
    a.send_cq.req_notify(Notify::Any)?;
    a.recv_cq.req_notify(Notify::Any)?;
    a.receive()?;
    b.receive()?;
    b.send(empty)?;
    a.send(empty)?;
    let mut events = [(); 2].map(|()| a.channel.get_event(LIMIT).unwrap_or(u32::MAX));
    events.sort_unstable();
    let mut both = [a.send_cq.cqn(), a.recv_cq.cqn()];
    both.sort_unstable();
    assert_eq!(events, both);
    Ok(())
}

/// The next asynchronous event; those of a queue pair come by the channel of its send completion queue.
fn events(side: &mut Side) -> Option<AsyncEvent> {
    assert_eq!(side.channel.get_event(LIMIT), None, "no completion");
    assert!(eventfd::wait(&side.events, 0), "woken");
    side.events.try_event()
}

fn failures_are_reported(cards: [SimCard; 2]) -> Done {
    let [mut a, mut b] = connected(cards, None)?;
    let (qa, qb) = (a.qp.qpn(), b.qp.qpn());
    let region = a.pd.alloc_mr(64, Access::empty())?;
    let list = [region.sge(..)];
    a.send(SendWr::new(SendOp::Write(Remote::default()), &list))?;
    assert_eq!(take(&mut a.send_cq).status, WcStatus::RemAccessErr);
    let status = WcStatus::RemAccessErr;
    assert_eq!(
        events(&mut a),
        Some(AsyncEvent::QpFatal { qpn: qa, status })
    );
    assert_eq!(events(&mut b), Some(AsyncEvent::QpAccessError { qpn: qb }));
    assert_eq!(a.events.get_event(QUIET), None);
    Ok(())
}

fn overflows_are_reported(cards: [SimCard; 2]) -> Done {
    let [mut a, mut b] = connected(cards, Some(2))?;
    let (qpn, cqn) = (a.qp.qpn(), a.send_cq.cqn());
    for _ in 0..3 {
        b.receive()?;
        a.send(SendWr::new(SendOp::Send, &[]))?;
        take(&mut b.recv_cq);
    }
    let mut found = [(); 2].map(|()| a.events.get_event(LIMIT));
    found.sort_by_key(|event| !matches!(event, Some(AsyncEvent::CqError { .. })));
    let status = WcStatus::GeneralErr;
    let expected = [
        AsyncEvent::CqError { cqn },
        AsyncEvent::QpFatal { qpn, status },
    ];
    assert_eq!(found, expected.map(Some));
    Ok(())
}

fn a_send_queue_drains_and_goes_on(cards: [SimCard; 2]) -> Done {
    let [mut a, mut b] = connected(cards, None)?;
    let drained = AsyncEvent::SqDrained { qpn: a.qp.qpn() };
    let empty = SendWr::new(SendOp::Send, &[]);
    (0..3).try_for_each(|_| b.receive())?;
    a.send(empty)?;
    a.qp.modify(&QpAttr::Sqd)?;
    assert_eq!(events(&mut a), Some(drained));
    a.send(empty)?;
    a.send(empty)?;
    let mut wcs = [Wc::default(); 4];
    b.recv_cq.wait(&mut wcs, LIMIT);
    assert_eq!(b.recv_cq.wait(&mut wcs, QUIET), 0, "nothing starts");
    a.qp.modify(&QpAttr::Resume)?;
    take_all(&mut b.recv_cq, 2);
    for _ in 0..3 {
        take(&mut a.send_cq).ok()?;
    }
    assert_eq!(a.events.get_event(QUIET), None);
    Ok(())
}

fn shared_receive_queues_report_their_limit(cards: [SimCard; 2]) -> Done {
    let [mut a, b] = connected(cards, None)?;
    let Side {
        context,
        pd,
        mut events,
        mut recv_cq,
        qp,
        ..
    } = b;
    drop(qp);
    let mut srq = pd.create_srq(4, 1)?;
    let mut qp = Qp::builder(&pd).cq(&recv_cq).srq(&srq).build()?;
    a.qp.modify(&QpAttr::Reset)?;
    connect(&mut a.qp, &mut qp)?;
    srq.post_recv(&[RecvWr::new(0, &[]); 3])?;
    srq.arm(2)?;
    let limit = AsyncEvent::SrqLimit { srqn: srq.srqn() };
    for left in [2, 1] {
        a.send(SendWr::new(SendOp::Send, &[]))?;
        take(&mut recv_cq).ok()?;
        let expected = (left < 2).then_some(limit);
        let wait = if left < 2 { LIMIT } else { QUIET };
        assert_eq!(events.get_event(wait), expected, "{left} left");
    }
    drop(context);
    Ok(())
}

fn raw_frames_are_reported(cards: [SimCard; 2]) -> Done {
    let [mut a, mut b] = connected(cards, None)?;
    let mut sender = a.context.create_exception_queue(4, false)?;
    let mut receiver = b.context.create_exception_queue(4, false)?;
    let mut frame = vec![0xff; 60];
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    receiver.arm();
    assert_eq!(b.events.get_event(QUIET), None);
    sender.send(&frame)?;
    assert_eq!(b.events.get_event(LIMIT), Some(AsyncEvent::Exception));
    assert_eq!(receiver.poll(&mut [0; 64]), Some(60));
    assert_eq!(a.events.try_event(), None);
    Ok(())
}

fn dropping_in_any_order_leaves_no_fault(cards: [SimCard; 2]) -> Done {
    let [mut a, mut b] = connected(cards, None)?;
    b.receive()?;
    b.recv_cq.req_notify(Notify::Any)?;
    a.send(SendWr::new(SendOp::Send, &[]))?;
    let world = b.context.backend().world().clone();
    // The channel goes while an event is on its way.
    let Side {
        channel,
        mut recv_cq,
        context,
        ..
    } = b;
    drop(channel);
    take(&mut recv_cq).ok()?;
    assert!(recv_cq.req_notify(Notify::Any).is_err());
    let mut late = context.create_comp_channel(&EventAttr::default())?;
    assert_eq!(late.get_event(QUIET), None, "not for it");
    drop((a, context, recv_cq, late));
    let failures = world.borrow().failures();
    assert!(failures.is_empty(), "{failures:?}");
    Ok(())
}

#[test]
fn vectors_are_checked() {
    let [card, _] = SimCard::models();
    let vectors = card.vectors();
    let e = card.interrupt(vectors).unwrap_err();
    assert_eq!(
        e.to_string(),
        format!(
            "interrupt vector {vectors} was asked for, the card has {vectors}, numbered from 0"
        )
    );
    let fd = card.interrupt(0).unwrap();
    let before = card.now_ns();
    assert!(!card.wait_readable(std::os::fd::AsFd::as_fd(&fd), 5_000));
    assert!((5_000..6_000).contains(&(card.now_ns() - before)));
    card.unplug();
    assert!(!card.wait_readable(std::os::fd::AsFd::as_fd(&fd), 1 << 30));
}

on_both!(
    channels_report_completions,
    a_queue_is_resized_under_load,
    failures_are_reported,
    overflows_are_reported,
    a_send_queue_drains_and_goes_on,
    shared_receive_queues_report_their_limit,
    raw_frames_are_reported,
    dropping_in_any_order_leaves_no_fault
);
