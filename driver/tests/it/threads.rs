//! Queue pairs and completion queues in different threads.

use std::collections::BTreeMap;
use std::thread;

use ferroce_driver::{Cq, Qp, RecvWr, SendOp, SendWr, Wc};
use ferroce_proto::abi::doorbell;

use crate::fake::{ALL, Fake};
use crate::setup::{open, peer};

#[test]
fn queue_pairs_of_different_threads_do_not_meet() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    thread::scope(|scope| {
        for t in 0..4u64 {
            let (fake, context, pd) = (fake.clone(), context.clone(), pd.clone());
            scope.spawn(move || {
                for life in 0..5 {
                    let mut cq = context.create_cq(4).unwrap();
                    let mut qp = Qp::builder(&pd).cq(&cq).max_send_wr(4).build().unwrap();
                    qp.connect(&peer()).unwrap();
                    let mut wcs = [Wc::default(); 4];
                    for i in 0..100 {
                        let wr_id = t << 32 | life << 16 | u64::from(i);
                        qp.post_send(&[SendWr::new(SendOp::Send, &[]).wr_id(wr_id).signaled()])
                            .unwrap();
                        assert!(fake.complete_send(qp.qpn(), i, 0));
                        assert_eq!(cq.poll(&mut wcs), 1);
                        assert_eq!((wcs[0].wr_id, wcs[0].qp_num), (wr_id, qp.qpn()));
                    }
                }
            });
        }
    });
}

#[test]
fn one_thread_polls_what_others_post() {
    const POSTED: u64 = 2000;
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let mut cq = context.create_cq(32).unwrap();
    let build = |_| Qp::builder(&pd).cq(&cq).max_send_wr(8).build().unwrap();
    let qps: Vec<_> = (0..4).map(build).collect();
    let mut seen: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    thread::scope(|scope| {
        let post = |mut qp: Qp<Fake>| {
            let fake = fake.clone();
            // The queue pair is handed back: with it would go the completions that are not polled yet.
            scope.spawn(move || {
                qp.connect(&peer()).unwrap();
                for i in 0..POSTED {
                    while qp.send_slots_free() == 0 {
                        thread::yield_now();
                    }
                    let wr = SendWr::new(SendOp::Send, &[]).wr_id(i).signaled();
                    qp.post_send(&[wr]).unwrap();
                    let written = fake.complete_send(qp.qpn(), i as u32, 0);
                    assert!(written, "32 entries hold what 4 queue pairs post");
                }
                qp
            })
        };
        let posters: Vec<_> = qps.into_iter().map(post).collect();
        let mut wcs = [Wc::default(); 16];
        loop {
            let last = posters.iter().all(|poster| poster.is_finished());
            let taken = cq.poll(&mut wcs);
            for wc in &wcs[..taken] {
                seen.entry(wc.qp_num).or_default().push(wc.wr_id);
            }
            if last && taken == 0 {
                break;
            }
        }
    });
    assert_eq!(cq.unknown_cqes(), 0);
    assert_eq!(seen.len(), 4);
    for wr_ids in seen.values() {
        assert_eq!(*wr_ids, Vec::from_iter(0..POSTED));
    }
}

#[test]
fn a_side_of_a_queue_pair_for_each_thread() {
    const POSTED: u32 = 2000;
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let mut sends = context.create_cq(64).unwrap();
    let mut receives = context.create_cq(64).unwrap();
    let builder = Qp::builder(&pd).send_cq(&sends).recv_cq(&receives);
    let mut qp = builder.max_send_wr(8).max_recv_wr(8).build().unwrap();
    qp.connect(&peer()).unwrap();
    let qpn = qp.qpn();
    let (mut tx, mut rx) = qp.split();
    assert_eq!((tx.qp().qpn(), rx.qp().qpn()), (qpn, qpn));
    let take = |cq: &mut Cq<Fake>, i: u32| {
        let mut wcs = [Wc::default(); 2];
        assert_eq!(cq.poll(&mut wcs), 1);
        assert_eq!(wcs[0].wr_id, u64::from(i));
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..POSTED {
                rx.post_recv(&[RecvWr::new(i.into(), &[])]).unwrap();
                assert!(fake.complete_recv(qpn, i, 0));
                take(&mut receives, i);
            }
        });
        for i in 0..POSTED {
            let wr = SendWr::new(SendOp::Send, &[]).wr_id(i.into()).signaled();
            tx.post_send(&[wr]).unwrap();
            assert!(fake.complete_send(qpn, i, 0));
            take(&mut sends, i);
        }
    });
    let doorbells = fake.take_doorbells();
    for bell in [doorbell::sq(qpn), doorbell::rq(qpn)] {
        let rung: Vec<_> = doorbells.iter().filter(|d| d.0 == bell).collect();
        assert_eq!(rung.len(), POSTED as usize);
        assert!(rung.is_sorted_by_key(|d| d.1));
    }
}
