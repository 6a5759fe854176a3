//! Shared receive queues: posting, completions by any queue pair, limits.

use ferroce_driver::{
    AsyncEvent, BuildError, Cq, EventAttr, Features, PostCause, Qp, QpAttr, RecvWr, Sge, Srq,
    SrqError, Wc, WcStatus,
};
use ferroce_proto::abi::cq::{NO_NUMBER, status};
use ferroce_proto::abi::doorbell;

use crate::fake::ALL;
use crate::setup::{open, peer, sge};

fn list(addr: u64) -> [Sge; 1] {
    [sge(addr, 16, 3)]
}

#[test]
fn requests_stand_in_the_ring_of_the_shared_queue() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let mut srq = pd.create_srq(3, 7).unwrap();
    let ctx = fake.state().srqs[&srq.srqn()];
    assert_eq!((ctx.log_size, ctx.stride, ctx.limit), (2, 1, 0));
    let lists = [list(64), list(128), list(192), list(256)];
    let wrs: Vec<_> = lists.iter().map(|list| RecvWr::new(0, list)).collect();
    srq.post_recv(&wrs).unwrap();
    assert_eq!(fake.take_doorbells(), [(doorbell::srq(srq.srqn()), 4)]);
    for (i, list) in lists.iter().enumerate() {
        assert_eq!(fake.shared_wqe(srq.srqn(), i as u32).1, list);
    }
    let e = srq.post_recv(&wrs[..1]).unwrap_err();
    assert!(matches!(e.cause, PostCause::Full { free: 0, .. }));
    let long = [list(0)[0]; 8];
    let e = srq.post_recv(&[RecvWr::new(0, &long)]).unwrap_err();
    let (found, limit) = (8, 7);
    assert_eq!(e.cause, PostCause::Sges { found, limit });
    assert_eq!(fake.take_doorbells(), []);
}

#[test]
fn completions_of_any_queue_pair_bring_the_wr_id() {
    let (fake, context) = open(ALL);
    let (pd, mut cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let mut srq = pd.create_srq(4, 1).unwrap();
    let mut qps = [(); 2].map(|()| {
        let builder = Qp::builder(&pd).cq(&cq).srq(&srq);
        let mut qp = builder.build().unwrap();
        qp.connect(&peer()).unwrap();
        qp
    });
    for qp in &qps {
        let rq = fake.state().qps[&qp.qpn()].rq;
        assert_eq!((rq.srq_valid, u32::from(rq.srqn)), (true, srq.srqn()));
    }
    let own = qps[0].post_recv(&[RecvWr::new(0, &[])]).unwrap_err();
    assert!(matches!(own.cause, PostCause::Malformed(_)));
    let sges = list(64);
    let mut wcs = [Wc::default(); 8];
    for round in 0..32u32 {
        for i in 0..4 {
            let wr_id = u64::from(100 * round + i);
            srq.post_recv(&[RecvWr::new(wr_id, &sges)]).unwrap();
        }
        assert_eq!(srq.free(), 0);
        for (place, free) in [(1, 1), (3, 2), (2, 3), (0, 4)] {
            let qpn = qps[place as usize % 2].qpn();
            let number = fake.shared_number(srq.srqn(), 4 * round + place);
            assert!(fake.complete_recv(qpn, number, status::SUCCESS));
            assert_eq!(cq.poll(&mut wcs), 1);
            assert_eq!(wcs[0].wr_id, u64::from(100 * round + place));
            assert_eq!(wcs[0].qp_num, qpn);
            assert_eq!(srq.free(), free);
        }
    }
    // none is posted, and there is none
    for number in [3, 4] {
        assert!(fake.complete_recv(qps[0].qpn(), number, status::SUCCESS));
    }
    assert_eq!((cq.poll(&mut wcs), cq.unknown_cqes()), (0, 2));
    // a new life receives from the same queue
    qps[0].modify(&QpAttr::Reset).unwrap();
    qps[0].connect(&peer()).unwrap();
    srq.post_recv(&[RecvWr::new(7, &sges)]).unwrap();
    let number = fake.shared_number(srq.srqn(), 128);
    assert!(fake.complete_recv(qps[0].qpn(), number, status::SUCCESS));
    assert_eq!(cq.poll(&mut wcs), 1);
    assert_eq!(wcs[0].wr_id, 7);
}

/// No completion names the request, so an event does.
#[test]
fn a_number_that_could_not_be_read_is_reported() {
    let (fake, context) = open(ALL);
    let (pd, mut cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let mut events = context.async_events(&EventAttr::default()).unwrap();
    let mut srq = pd.create_srq(4, 1).unwrap();
    let builder = Qp::builder(&pd).cq(&cq).srq(&srq);
    let mut qp = builder.build().unwrap();
    qp.connect(&peer()).unwrap();
    srq.post_recv(&[RecvWr::new(0, &list(64))]).unwrap();
    let mut wcs = [Wc::default(); 8];
    assert!(fake.complete_recv(qp.qpn(), NO_NUMBER.into(), status::LOC_QP_OP_ERR));
    assert_eq!((cq.poll(&mut wcs), cq.unknown_cqes()), (0, 0));
    let (qpn, status) = (qp.qpn(), WcStatus::GeneralErr);
    let expected = AsyncEvent::QpFatal { qpn, status };
    assert_eq!(events.try_event(), Some(expected));
    assert_eq!((events.try_event(), srq.free()), (None, 3));
}

/// Places are taken by what is written, whether or not it is posted.
#[test]
fn requests_that_are_written_and_not_posted_take_places() {
    let (fake, context) = open(ALL);
    let (pd, mut cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let mut srq = pd.create_srq(4, 1).unwrap();
    let builder = Qp::builder(&pd).cq(&cq).srq(&srq);
    let mut qp = builder.build().unwrap();
    qp.connect(&peer()).unwrap();
    let (sges, mut wcs) = (list(64), [Wc::default(); 8]);
    let srqn = srq.srqn();
    let mut receives = srq.receives();
    for wr_id in 0..3 {
        receives.add(&RecvWr::new(wr_id, &sges)).unwrap();
    }
    // a card that completes what it was not given
    let number = fake.shared_number(srqn, 1);
    assert!(fake.complete_recv(qp.qpn(), number, status::SUCCESS));
    assert_eq!(cq.poll(&mut wcs), 1);
    std::mem::forget(receives);
    assert_eq!(srq.free(), 2);
    srq.post_recv(&[RecvWr::new(3, &sges), RecvWr::new(4, &sges)])
        .unwrap();
    let e = srq.post_recv(&[RecvWr::new(5, &sges)]).unwrap_err();
    assert!(matches!(e.cause, PostCause::Full { free: 0, .. }));
    let e = srq.receives().add(&RecvWr::new(6, &sges)).unwrap_err();
    assert!(matches!(e, PostCause::Full { free: 0, .. }));
}

/// All that may be posted is there, be it that one request waits for ever; no number is in the ring twice.
#[test]
fn a_request_that_waits_holds_up_no_other() {
    let (fake, context) = open(ALL);
    let (pd, mut cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    for size in [2, 4, 128] {
        let mut srq = pd.create_srq(size, 1).unwrap();
        let mut qp = Qp::builder(&pd).cq(&cq).srq(&srq).build().unwrap();
        qp.connect(&peer()).unwrap();
        let sges = list(64);
        let mut wcs = [Wc::default(); 8];
        for wr_id in 0..size {
            srq.post_recv(&[RecvWr::new(wr_id.into(), &sges)]).unwrap();
        }
        let waits = fake.shared_number(srq.srqn(), 0);
        // the others complete the latest first, and in the order of posting
        let mut numbers: Vec<_> = (1..size)
            .map(|ordinal| fake.shared_number(srq.srqn(), ordinal))
            .collect();
        for round in 0..1000u32 {
            let number = match round % 3 {
                0 => numbers.remove(0),
                _ => numbers.pop().unwrap(),
            };
            assert!(number != waits && !numbers.contains(&number) && number < size);
            assert_eq!(srq.free(), 0);
            assert!(fake.complete_recv(qp.qpn(), number, status::SUCCESS));
            assert_eq!((cq.poll(&mut wcs), srq.free()), (1, 1));
            srq.post_recv(&[RecvWr::new((size + round).into(), &sges)])
                .unwrap();
            numbers.push(fake.shared_number(srq.srqn(), size + round));
        }
        assert!(fake.complete_recv(qp.qpn(), waits, status::SUCCESS));
        assert_eq!((cq.poll(&mut wcs), wcs[0].wr_id), (1, 0));
    }
}

/// A completion that was not polled before its queue pair ended gives its request back, and nothing else.
#[test]
fn requests_of_queue_pairs_that_ended_come_back() {
    let (fake, context) = open(ALL);
    let (pd, mut cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let mut srqs = [(); 2].map(|()| pd.create_srq(4, 1).unwrap());
    let build = |cq: &Cq<_>, srq: &Srq<_>| {
        let mut qp = Qp::builder(&pd).cq(cq).srq(srq).build().unwrap();
        qp.connect(&peer()).unwrap();
        qp
    };
    let stays = build(&cq, &srqs[0]);
    let sges = list(64);
    let mut wcs = [Wc::default(); 8];
    for round in 0..128u32 {
        // queue pairs of one number follow each other in the ring, on either queue
        for srq in &mut srqs {
            let two = [RecvWr::new(7, &sges), RecvWr::new(8, &sges)];
            srq.post_recv(&two).unwrap();
            let srqn = srq.srqn();
            let mut qp = build(&cq, srq);
            let number = |ordinal| fake.shared_number(srqn, ordinal);
            assert!(fake.complete_recv(qp.qpn(), number(3 * round), status::SUCCESS));
            if round % 2 == 0 {
                drop(qp);
                qp = build(&cq, srq);
            } else {
                qp.modify(&QpAttr::Reset).unwrap();
                qp.connect(&peer()).unwrap();
            }
            assert!(fake.complete_recv(qp.qpn(), number(3 * round + 1), status::SUCCESS));
        }
        for srq in &mut srqs {
            srq.post_recv(&[RecvWr::new(round.into(), &sges)]).unwrap();
        }
        let numbers = [0, 1].map(|of| fake.shared_number(srqs[of].srqn(), 3 * round + 2));
        assert!(fake.complete_recv(stays.qpn(), numbers[0], status::SUCCESS));
        let last = build(&cq, &srqs[1]);
        assert!(fake.complete_recv(last.qpn(), numbers[1], status::SUCCESS));
        assert_eq!((cq.poll(&mut wcs), cq.unknown_cqes()), (2, 0));
        let of = |wc: &Wc| (wc.qp_num, wc.wr_id);
        let live = [&stays, &last].map(|qp| (qp.qpn(), round.into()));
        assert_eq!([of(&wcs[0]), of(&wcs[1])], live);
        for srq in &srqs {
            assert_eq!(srq.free(), 4);
        }
    }
}

/// Whether a queue pair is dropped or reset before its completion queue is destroyed.
#[test]
fn what_a_queue_pair_took_unpolled_comes_back() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let mut srq = pd.create_srq(2, 1).unwrap();
    for ordinal in 0..200 {
        assert_eq!(srq.free(), 2, "before request {ordinal}");
        srq.post_recv(&[RecvWr::new(0, &list(64))]).unwrap();
        let cq = context.create_cq(4).unwrap();
        let mut qp = Qp::builder(&pd).cq(&cq).srq(&srq).build().unwrap();
        qp.connect(&peer()).unwrap();
        let number = fake.shared_number(srq.srqn(), ordinal);
        assert!(fake.complete_recv(qp.qpn(), number, status::SUCCESS));
        if ordinal % 2 == 0 {
            qp.modify(&QpAttr::Reset).unwrap();
        }
    }
}

/// RESET would forget the request of a message under way: the responder flushes it before.
#[test]
fn a_queue_pair_with_a_shared_queue_is_flushed_before_it_is_reset() {
    let (fake, context) = open(ALL);
    let (pd, mut cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let mut srq = pd.create_srq(2, 1).unwrap();
    for ordinal in 0..200 {
        let mut qp = Qp::builder(&pd).cq(&cq).srq(&srq).build().unwrap();
        qp.connect(&peer()).unwrap();
        srq.post_recv(&[RecvWr::new(0, &list(64))]).unwrap();
        let number = fake.shared_number(srq.srqn(), ordinal);
        fake.state().takes = Some((qp.qpn(), number));
        if ordinal % 2 == 0 {
            qp.modify(&QpAttr::Reset).unwrap();
        } else {
            drop(qp);
        }
        assert_eq!(fake.state().takes, None, "it was flushed");
        assert_eq!(srq.free(), 2);
        assert_eq!(cq.poll(&mut [Wc::default(); 8]), 0);
    }
}

/// That the responder goes through ERR on the way to RESET is the driver's affair; that a program has taken it to ERR is not.
#[test]
fn last_wqe_reached_is_reported_of_errors_only() {
    let (fake, context) = open(ALL);
    let (pd, srq) = (context.alloc_pd(), context.alloc_pd().create_srq(2, 1));
    let (srq, attr) = (srq.unwrap(), EventAttr::default());
    let mut channel = context.create_comp_channel(&attr).unwrap();
    let mut events = context.async_events(&attr).unwrap();
    let cqs = [
        context.create_cq(8).unwrap(),
        context.create_cq_on(8, &channel).unwrap(),
    ];
    for (round, cq) in (0..32).zip(cqs.iter().cycle()) {
        let mut qp = Qp::builder(&pd).cq(cq).srq(&srq).build().unwrap();
        let reached = AsyncEvent::LastWqeReached { qpn: qp.qpn() };
        let mut expect = |expected: Option<AsyncEvent>| {
            assert_eq!(channel.try_event(), None);
            let found = (events.try_event(), events.try_event());
            assert_eq!(found, (expected, None), "round {round}");
        };
        qp.connect(&peer()).unwrap();
        qp.modify(&QpAttr::Reset).unwrap();
        // With and without another life between the event and its taker.
        if round & 2 != 0 {
            expect(None);
        }
        qp.connect(&peer()).unwrap();
        qp.modify(&QpAttr::Err).unwrap();
        if round & 4 != 0 {
            expect(Some(reached));
            qp.modify(&QpAttr::Reset).unwrap();
            expect(None);
        } else {
            qp.modify(&QpAttr::Reset).unwrap();
            expect(Some(reached));
        }
        qp.connect(&peer()).unwrap();
        drop(qp);
        if round & 8 != 0 {
            expect(None);
        }
    }
    let written: u32 = fake.state().eqs.values().map(|eq| eq.1).sum();
    assert_eq!(written, 3 * 32);
}

#[test]
fn a_queue_stays_as_long_as_its_queue_pairs() {
    let (fake, context) = open(ALL);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let mut srq = pd.create_srq(4, 1).unwrap();
    let srqn = srq.srqn();
    srq.arm(3).unwrap();
    assert_eq!(fake.state().srqs[&srqn].limit, 3);
    srq.post_recv(&[RecvWr::new(0, &[])]).unwrap();
    let qp = Qp::builder(&pd).cq(&cq).srq(&srq).build().unwrap();
    drop(srq);
    assert!(fake.state().srqs.contains_key(&srqn));
    fake.take_doorbells();
    drop(qp);
    assert!(fake.state().srqs.is_empty());
    // the next one of this number starts at 0
    assert!(fake.take_doorbells().contains(&(doorbell::srq(srqn), 0)));
}

#[test]
fn what_cannot_be_is_refused() {
    let (_, context) = open(ALL);
    let pd = context.alloc_pd();
    for (wrs, sges) in [(0, 1), (1 << 16, 1), (4, 0), (4, 1000)] {
        let e = pd.create_srq(wrs, sges).err();
        assert!(matches!(e, Some(SrqError::Limit { .. })), "{wrs}, {sges}");
    }
    let mut srq = pd.create_srq(4, 1).unwrap();
    let e = srq.arm(5).unwrap_err();
    assert_eq!(
        e.to_string(),
        "limit of 5 was asked for, this shared receive queue takes 0 to 4"
    );
    drop(srq);
    let both = [(); 2].map(|()| pd.create_srq(4, 1).unwrap());
    let full = pd.create_srq(4, 1).err();
    assert!(matches!(full, Some(SrqError::Full { limit: 2 })));
    let (_, other) = open(ALL);
    let (other_pd, cq) = (other.alloc_pd(), other.create_cq(4).unwrap());
    let e = Qp::builder(&other_pd).cq(&cq).srq(&both[0]).build().err();
    assert!(matches!(
        e,
        Some(BuildError::OtherContext("shared receive"))
    ));
    let (_, plain) = open(Features::RC);
    let none = plain.alloc_pd().create_srq(4, 1).err();
    assert!(matches!(none, Some(SrqError::Unsupported)));
}
