//! Completions and events as streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ferroce_driver::{AsyncEvent, Completions, Qp, SendOp, SendWr, Wc, WcStatus};
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::eq::event;
use tokio::runtime::{Builder, Runtime};
use tokio_stream::StreamExt;

use crate::fake::{ALL, Fake};
use crate::setup::{open, peer};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_io().build().unwrap()
}

/// A connected queue pair, and the completions of its queue.
fn connected(context: &ferroce_driver::Context<Fake>) -> (Completions<Fake>, Qp<Fake>) {
    let completions = context.completions(64).unwrap();
    let pd = context.alloc_pd();
    let mut qp = Qp::builder(&pd).cq(completions.cq()).build().unwrap();
    qp.connect(&peer()).unwrap();
    (completions, qp)
}

fn post(qp: &mut Qp<Fake>, wr_id: u64) {
    let wr = SendWr::new(SendOp::Send, &[]).wr_id(wr_id).signaled();
    qp.post_send(&[wr]).unwrap();
}

#[test]
fn completions_come_while_others_are_waited_for() {
    const POSTED: u32 = 200;
    runtime().block_on(async {
        let (fake, context) = open(ALL);
        let (mut completions, mut qp) = connected(&context);
        let (qpn, cqn) = (qp.qpn(), completions.cq().cqn());
        let done = Arc::new(AtomicBool::new(false));
        let all_there = done.clone();
        let card = thread::spawn(move || {
            let arm = doorbell::cq(cqn);
            for i in 0..POSTED {
                post(&mut qp, i.into());
                assert!(fake.complete_send(qpn, i, 0));
                // Some come in a row, some when the queue was armed: then with an event.
                if i % 3 == 0 {
                    thread::sleep(Duration::from_micros(200));
                }
                if fake.take_doorbells().iter().any(|d| d.0 == arm) {
                    assert!(fake.put_event(1, event::COMPLETION, 0, cqn));
                }
            }
            // What was armed since the last look.
            while !all_there.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
                if fake.take_doorbells().iter().any(|d| d.0 == arm) {
                    assert!(fake.put_event(1, event::COMPLETION, 0, cqn));
                }
            }
            qp
        });
        for i in 0..POSTED {
            let wc = completions.next().await.unwrap();
            assert_eq!((wc.wr_id, wc.status), (i.into(), WcStatus::Success));
        }
        done.store(true, Ordering::Relaxed);
        card.join().unwrap();
        assert_eq!(completions.cq().unknown_cqes(), 0);
    });
}

#[test]
fn both_end_with_the_card() {
    runtime().block_on(async {
        let (fake, context) = open(ALL);
        let (mut completions, mut qp) = connected(&context);
        let mut events = context.event_stream().unwrap();
        assert!(fake.put_event(0, event::EXCEPTION, 0, 0));
        assert_eq!(events.next().await, Some(AsyncEvent::Exception));
        post(&mut qp, 7);
        fake.state().gone = true;
        assert!(context.is_lost());
        assert_eq!(events.next().await, Some(AsyncEvent::DeviceFatal));
        assert_eq!(events.next().await, None);
        let wc: Wc = completions.next().await.unwrap();
        assert_eq!((wc.wr_id, wc.status), (7, WcStatus::FatalErr));
        assert_eq!(completions.next().await, None);
    });
}
