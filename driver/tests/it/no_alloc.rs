//! Posting and polling do not allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ferroce_driver::{RecvWr, Remote, SendOp, SendWr, Wc};

use crate::fake::ALL;
use crate::setup::{Connected, sge};

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Counts the calls of each thread.
struct Counting;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: as of the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: as of the caller.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn calls(run: impl FnOnce()) -> u64 {
    let before = CALLS.get();
    run();
    CALLS.get() - before
}

#[test]
fn post_and_poll_do_not_allocate() {
    let Connected {
        fake,
        mut cq,
        mut qp,
        ..
    } = Connected::new(ALL, 64, |b| {
        b.max_send_sge(16).max_recv_sge(16).max_inline_data(288)
    });
    assert!(
        calls(|| drop(std::hint::black_box(Box::new(1)))) > 0,
        "the counter counts"
    );
    // The record of doorbells is the card's, not the driver's.
    fake.state().doorbells.reserve(1000);
    let list = [sge(8, 8, 1); 16];
    let remote = Remote { addr: 8, rkey: 1 };
    let bytes = [0; 288];
    let sends = [
        SendWr::new(SendOp::Write(remote), &list).signaled(),
        SendWr::inline(SendOp::Send, &bytes).signaled(),
        SendWr::new(SendOp::FetchAdd { remote, add: 1 }, &list[..1]).signaled(),
    ];
    let mut wcs = [Wc::default(); 8];
    for round in 0..20u32 {
        let posted = calls(|| {
            qp.post_send(&sends).unwrap();
            qp.post_recv(&[RecvWr::new(1, &list), RecvWr::new(2, &list[..3])])
                .unwrap();
        });
        assert_eq!(posted, 0);
        for slot in [0, 5, 10] {
            assert!(fake.complete_send(qp.qpn(), 11 * round + slot, 0));
        }
        assert!(
            fake.complete_recv(qp.qpn(), 2 * round, 0)
                && fake.complete_recv(qp.qpn(), 2 * round + 1, 5)
        );
        let polled = calls(|| assert_eq!(cq.poll(&mut wcs), 5));
        // The first poll after a queue pair came takes over the table made for it and frees the old one.
        assert!(
            polled == 0 || round == 0 && polled <= 2,
            "{polled} in round {round}"
        );
    }
}
