//! Queue pairs and completion queues in different threads.

use std::thread;

use ferroce_driver::{Qp, SendOp, SendWr, Wc};

use crate::fake::ALL;
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
    const POSTED: u32 = 2000;
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let mut cq = context.create_cq(64).unwrap();
    let qps: Vec<_> = (0..3)
        .map(|_| Qp::builder(&pd).cq(&cq).max_send_wr(8).build().unwrap())
        .collect();
    thread::scope(|scope| {
        for mut qp in qps {
            let fake = fake.clone();
            scope.spawn(move || {
                qp.connect(&peer()).unwrap();
                for i in 0..POSTED {
                    while qp.send_slots_free() == 0 {
                        thread::yield_now();
                    }
                    let wr_id = u64::from(qp.qpn()) << 32 | u64::from(i);
                    qp.post_send(&[SendWr::new(SendOp::Send, &[]).wr_id(wr_id).signaled()])
                        .unwrap();
                    assert!(
                        fake.complete_send(qp.qpn(), i, 0),
                        "64 entries hold what 3 queue pairs post"
                    );
                }
                // Until the poller has seen everything: dropped with the queue pair it would be.
                while qp.send_slots_free() < 8 {
                    thread::yield_now();
                }
            });
        }
        let mut next = std::collections::BTreeMap::new();
        let mut wcs = [Wc::default(); 16];
        while next.values().sum::<u64>() < 3 * u64::from(POSTED) {
            for wc in cq
                .poll(&mut wcs)
                .checked_sub(1)
                .map_or(&[][..], |last| &wcs[..=last])
            {
                let next = next.entry(wc.qp_num).or_insert(0);
                assert_eq!(wc.wr_id, u64::from(wc.qp_num) << 32 | *next);
                *next += 1;
            }
        }
    });
    assert_eq!(cq.unknown_cqes(), 0);
}
