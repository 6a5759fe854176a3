//! Completion queues at their brim, beside queue pairs that complete elsewhere.
//!
//! Second source of the rules: `rxe_cq_post` of Linux soft-RoCE. A queue that is full loses the completion, and nothing waits.

use ferroce_proto::abi::qpc::state;
use ferroce_sim::testhost::{QpOptions, Side, Work};

use super::bench::{Bench, Conn, STRIDE};
use super::completion::small;
use super::{RC, cases, check};

cases! {
    cq_kept_full, RC, "IB1 10.2", "A queue that its host keeps full, which takes an entry before it posts what needs it, loses nothing, and queue pairs that complete elsewhere go on.";
    cq_posted_beyond_its_ring, RC, "IB1 10.2", "A host that posts more than a queue holds has its completions in order, until one that finds no room; queue pairs that complete elsewhere go on.";
}

/// A connection that completes on a queue of 4 entries at a side, that queue, and a second connection.
fn beside(bench: &mut Bench, side: Side) -> (Conn, u16, [u32; 2]) {
    let (mut c, brim) = small(bench, side, 2);
    let (other, far) = c.pair.connect(QpOptions::default(), QpOptions::default());
    (c, brim, [other, far])
}

/// A message of the first connection.
fn message(c: &mut Conn) {
    c.recv(&[]);
    c.post(&Work::send(&[]));
}

/// One of the second.
fn other_message(c: &mut Conn, [other, far]: [u32; 2]) {
    c.b.post_recv(far, &[]);
    c.a.post_send(other, &Work::send(&[]));
}

/// The completions of the second connection on queue 0 of both sides by now, which succeeded.
fn others_done(c: &mut Conn, qpns: [u32; 2]) -> [usize; 2] {
    [(Side::A, qpns[0]), (Side::B, qpns[1])].map(|(side, qpn)| {
        let host = c.pair.host(side);
        let polled = std::iter::from_fn(|| host.poll(0));
        polled
            .filter(|cqe| (cqe.qpn, cqe.status) == (qpn, 0))
            .count()
    })
}

fn cq_kept_full(bench: &mut Bench) {
    for side in [Side::A, Side::B] {
        let (mut c, brim, others) = beside(bench, side);
        (0..4).for_each(|_| message(&mut c));
        c.settle();
        for i in 0..12 {
            let cqe = c.pair.host(side).poll(brim);
            let cqe = cqe.map(|cqe| (cqe.wqe_index, cqe.status));
            check("entry", cqe, Some((i, 0)));
            message(&mut c);
            (0..4).for_each(|_| other_message(&mut c, others));
            c.settle();
            check("others", others_done(&mut c, others), [4; 2]);
        }
        let entries = std::iter::from_fn(|| c.pair.host(side).poll(brim)).count();
        check("entries that lie", entries, 4);
        check("overflows", c.pair.host(side).stat("cq_overflows"), 0);
        check("state", c.query(side).sq_state, state::RTS);
    }
}

fn cq_posted_beyond_its_ring(bench: &mut Bench) {
    for side in [Side::A, Side::B] {
        let (mut c, brim, others) = beside(bench, side);
        for _ in 0..24 {
            message(&mut c);
            other_message(&mut c, others);
        }
        let (mut entries, mut done) = (vec![], [0; 2]);
        let end = c.a.nic.now() + 100_000;
        while done != [24; 2] && c.a.nic.now() < end {
            let host = c.pair.host(side);
            entries.extend(std::iter::from_fn(|| host.poll(brim)));
            for (done, more) in done.iter_mut().zip(others_done(&mut c, others)) {
                *done += more;
            }
            c.run(STRIDE);
        }
        check("others", done, [24; 2]);
        c.settle();
        entries.extend(std::iter::from_fn(|| c.pair.host(side).poll(brim)));
        let seen: Vec<_> = entries
            .iter()
            .map(|cqe| (cqe.wqe_index, cqe.status))
            .collect();
        let in_order: Vec<_> = (0..seen.len() as u16).map(|i| (i, 0)).collect();
        check("entries", &seen, &in_order);
        let overflows = c.pair.host(side).stat("cq_overflows");
        check("lost, and counted", seen.len() < 24, overflows == 1);
    }
}
