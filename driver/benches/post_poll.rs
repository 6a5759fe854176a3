//! What posting and polling cost the host, on a card whose doorbells are a mapped page of memory.
//!
//! `cargo bench -p ferroce-driver`

#![allow(missing_docs, reason = "`criterion_group!` makes a public function")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use ferroce_driver::{RecvWr, SendOp, SendWr, Wc};

#[path = "../tests/it/fake/mod.rs"]
#[expect(dead_code, reason = "shared with the tests")]
mod fake;
#[path = "../tests/it/setup.rs"]
#[expect(dead_code, reason = "shared with the tests")]
mod setup;

use fake::Paged;
use setup::{Connected, REMOTE, sge};

/// Requests a queue holds: as many are timed together.
const ENTRIES: u32 = 1024;

/// A connected queue pair, and how many sends and receives the card has completed.
struct Rig {
    on: Connected<Paged>,
    sent: u32,
    received: u32,
}

impl Rig {
    fn new() -> Self {
        Self {
            on: Connected::paged(ENTRIES),
            sent: 0,
            received: 0,
        }
    }

    /// Has the card complete `sends` and `receives`.
    fn complete(&mut self, sends: u32, receives: u32) {
        let qpn = self.on.qp.qpn();
        for _ in 0..sends {
            assert!(self.on.fake.complete_send(qpn, self.sent, 0));
            self.sent = self.sent.wrapping_add(1);
        }
        for _ in 0..receives {
            assert!(self.on.fake.complete_recv(qpn, self.received, 0));
            self.received = self.received.wrapping_add(1);
        }
    }

    fn poll_all(&mut self, wcs: &mut [Wc]) {
        while self.on.cq.poll(black_box(&mut *wcs)) != 0 {}
    }
}

/// Calls `timed` with pieces of `iterations` no longer than a queue; the sum of what it says.
fn in_pieces(iterations: u64, mut timed: impl FnMut(u32) -> Duration) -> Duration {
    let mut left = iterations;
    let mut sum = Duration::ZERO;
    while left > 0 {
        let now = left.min(ENTRIES.into()) as u32;
        sum += timed(now);
        left -= u64::from(now);
    }
    sum
}

fn post(c: &mut Criterion) {
    let list = [sge(64, 8, 3)];
    let cases = [
        (
            "post_send, a WRITE",
            SendWr::new(SendOp::Write(REMOTE), &list),
        ),
        (
            "post_send, 32 bytes inline",
            SendWr::inline(SendOp::Send, &[7; 32]),
        ),
    ];
    for (name, wr) in cases {
        let mut rig = Rig::new();
        let wr = [wr.signaled()];
        c.bench_function(name, |b| {
            b.iter_custom(|iterations| {
                in_pieces(iterations, |now| {
                    let start = Instant::now();
                    for _ in 0..now {
                        rig.on.qp.post_send(black_box(&wr)).unwrap();
                    }
                    let taken = start.elapsed();
                    rig.complete(now, 0);
                    rig.poll_all(&mut [Wc::default(); 16]);
                    taken
                })
            })
        });
    }
    let mut rig = Rig::new();
    c.bench_function("post_recv", |b| {
        b.iter_custom(|iterations| {
            in_pieces(iterations, |now| {
                let start = Instant::now();
                for wr_id in 0..now {
                    let wr = [RecvWr::new(wr_id.into(), &list)];
                    rig.on.qp.post_recv(black_box(&wr)).unwrap();
                }
                let taken = start.elapsed();
                rig.complete(0, now);
                rig.poll_all(&mut [Wc::default(); 16]);
                taken
            })
        })
    });
}

fn poll(c: &mut Criterion) {
    let list = [sge(64, 8, 3)];
    let wr = [SendWr::new(SendOp::Write(REMOTE), &list).signaled()];
    for (name, at_once) in [
        ("poll_cq, a completion in a call of 16", 16),
        ("poll_cq, a completion in a call of 1", 1),
    ] {
        let mut rig = Rig::new();
        c.bench_function(name, |b| {
            b.iter_custom(|iterations| {
                in_pieces(iterations, |now| {
                    (0..now).for_each(|_| rig.on.qp.post_send(&wr).unwrap());
                    rig.complete(now, 0);
                    let mut wcs = [Wc::default(); 16];
                    let start = Instant::now();
                    rig.poll_all(&mut wcs[..at_once]);
                    start.elapsed()
                })
            })
        });
    }
    let mut rig = Rig::new();
    c.bench_function("poll_cq, an empty queue", |b| {
        let mut wcs = [Wc::default(); 16];
        b.iter(|| rig.on.cq.poll(black_box(&mut wcs)));
    });
}

criterion_group!(benches, post, poll);
criterion_main!(benches);
