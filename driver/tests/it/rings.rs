//! Rings of send, receive and completion queues: wrap, phase, full queues, retirement, contents.

use std::collections::VecDeque;

use ferroce_driver::{PostCause, RecvWr, SendOp, SendWr, Sge, Wc, WcOpcode, WcStatus};
use ferroce_proto::abi::cq::status;
use ferroce_proto::abi::doorbell;
use proptest::prelude::*;

use crate::fake::{ALL, Fake};
use crate::setup::{Connected, REMOTE, sges};

/// What a test posts.
#[derive(Clone, Debug)]
enum Body {
    List(usize),
    Inline(usize),
}

impl Body {
    fn slots(&self) -> u32 {
        match *self {
            Self::List(n) => 1 + n.saturating_sub(2).div_ceil(4) as u32,
            Self::Inline(n) => 1 + n.saturating_sub(32).div_ceil(64) as u32,
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(Vec<(Body, bool)>),
    Recv(Vec<usize>),
    /// The card completes so many requests, the last of them in error if the flag is set.
    Sent(usize, bool),
    Received(usize),
    Poll(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let body = prop_oneof![
        (0..=16usize).prop_map(Body::List),
        (0..=288usize).prop_map(Body::Inline)
    ];
    prop_oneof![
        prop::collection::vec((body, any::<bool>()), 0..6).prop_map(Step::Send),
        prop::collection::vec(0..=16usize, 0..6).prop_map(Step::Recv),
        ((0..8usize), prop::bool::weighted(0.1)).prop_map(|(n, fails)| Step::Sent(n, fails)),
        (0..8usize).prop_map(Step::Received),
        (0..10usize).prop_map(Step::Poll),
    ]
}

/// A posted request, in the eyes of the card.
struct Pending {
    index: u32,
    slots: u32,
    wr_id: u64,
    signaled: bool,
}

/// What must come out of the completion queue, and how far its queue's consumer index then is.
type Due = (u64, bool, WcStatus, u32);

struct Ring {
    size: u32,
    producer: u32,
    consumer: u32,
    pending: VecDeque<Pending>,
    /// Requests at a time, and the ends of those that were not retired.
    limit: u32,
    ends: VecDeque<u32>,
}

impl Ring {
    fn new(size: u32, limit: u32) -> Self {
        Self {
            size,
            limit,
            ends: VecDeque::new(),
            producer: 0,
            consumer: 0,
            pending: VecDeque::new(),
        }
    }

    fn free(&self) -> u32 {
        self.size - (self.producer - self.consumer)
    }

    fn has_room(&mut self, slots: u32, requests: usize) -> bool {
        self.ends.retain(|&end| end > self.consumer);
        slots <= self.free() && self.ends.len() + requests <= self.limit as usize
    }

    fn push(&mut self, wr_id: u64, slots: u32, signaled: bool) {
        self.pending.push_back(Pending {
            index: self.producer,
            slots,
            wr_id,
            signaled,
        });
        self.producer += slots;
        self.ends.push_back(self.producer);
    }

    /// The card is done with the oldest requests; CQEs are written as long as the ring has room.
    fn complete(
        &mut self,
        requests: usize,
        fails: bool,
        due: &mut VecDeque<Due>,
        mut put: impl FnMut(u32, u8) -> bool,
        recv: bool,
    ) {
        let requests = requests.min(self.pending.len());
        for i in 0..requests {
            let fails = fails && i + 1 == requests;
            let request = &self.pending[0];
            if request.signaled || fails {
                let (code, status) = if fails {
                    (status::RETRY_EXC_ERR, WcStatus::RetryExcErr)
                } else {
                    (status::SUCCESS, WcStatus::Success)
                };
                if !put(request.index, code) {
                    return;
                }
                due.push_back((request.wr_id, recv, status, request.index + request.slots));
            }
            self.pending.pop_front();
        }
    }
}

fn check_send(
    fake: &Fake,
    qpn: u32,
    index: u32,
    body: &Body,
    signaled: bool,
    bytes: &[u8],
    list: &[Sge],
) {
    let (head, found, inline) = fake.send_wqe(qpn, index);
    assert_eq!(
        (head.signaled, u32::from(head.slots)),
        (signaled, body.slots())
    );
    match *body {
        Body::List(n) => {
            assert_eq!(
                (usize::from(head.num_sge), &found[..], head.inline_data),
                (n, &list[..n], false)
            );
            assert_eq!(
                head.length,
                list[..n].iter().map(|sge| sge.length()).sum::<u32>()
            );
        }
        Body::Inline(n) => {
            assert_eq!(
                (head.num_sge, head.inline_data, head.length as usize),
                (0, true, n)
            );
            assert_eq!(inline, bytes[..n]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn rings_follow_the_model(cqes in 2u32..20, sends in 1u32..12, recvs in 1u32..20, steps in prop::collection::vec(step(), 1..120)) {
        let Connected { fake, mut cq, mut qp, .. } = Connected::new(ALL, cqes, |b| {
            b.max_send_sge(16).max_inline_data(288).max_recv_sge(16).max_send_wr(sends).max_recv_wr(recvs)
        });
        let qpn = qp.qpn();
        let list = sges(16);
        let bytes: Vec<u8> = (0..288).map(|i| i as u8).collect();
        let mut sq = Ring::new(qp.send_slots_free(), qp.max_send_wr());
        let mut rq = Ring::new(qp.recv_free(), qp.max_recv_wr());
        let mut due: VecDeque<Due> = VecDeque::new();
        let mut wr_id = 0;
        for step in steps {
            match step {
                Step::Send(batch) => {
                    let wrs: Vec<_> = (wr_id..).zip(&batch).map(|(wr_id, (body, signaled))| {
                        let wr = match *body {
                            Body::List(n) => SendWr::new(SendOp::Write(REMOTE), &list[..n]),
                            Body::Inline(n) => SendWr::inline(SendOp::Send, &bytes[..n]),
                        }.wr_id(wr_id);
                        if *signaled { wr.signaled() } else { wr }
                    }).collect();
                    let needed: u32 = batch.iter().map(|(body, _)| body.slots()).sum();
                    let posted = qp.post_send(&wrs);
                    if !sq.has_room(needed, batch.len()) {
                        let full = matches!(posted.unwrap_err().cause, PostCause::Full { queue: "send", .. });
                        prop_assert!(full);
                        prop_assert_eq!(fake.take_doorbells(), []);
                    } else {
                        posted.unwrap();
                        for (body, signaled) in &batch {
                            check_send(&fake, qpn, sq.producer, body, *signaled, &bytes, &list);
                            sq.push(wr_id, body.slots(), *signaled);
                            wr_id += 1;
                        }
                        let rung = (!batch.is_empty()).then_some((doorbell::sq(qpn), sq.producer));
                        prop_assert_eq!(fake.take_doorbells(), Vec::from_iter(rung));
                    }
                }
                Step::Recv(batch) => {
                    let wrs: Vec<_> = (wr_id..).zip(&batch).map(|(wr_id, &n)| RecvWr::new(wr_id, &list[..n])).collect();
                    let posted = qp.post_recv(&wrs);
                    if batch.len() as u32 > rq.free() {
                        let e = posted.unwrap_err();
                        prop_assert_eq!(e.index as u32, rq.free());
                        let full = matches!(e.cause, PostCause::Full { queue: "receive", .. });
                        prop_assert!(full);
                        prop_assert_eq!(fake.take_doorbells(), []);
                    } else {
                        posted.unwrap();
                        for &n in &batch {
                            let (head, found) = fake.recv_wqe(qpn, rq.producer);
                            prop_assert_eq!((usize::from(head.num_sge), &found[..]), (n, &list[..n]));
                            prop_assert_eq!(head.length, list[..n].iter().map(|sge| sge.length()).sum::<u32>());
                            rq.push(wr_id, 1, true);
                            wr_id += 1;
                        }
                        let rung = (!batch.is_empty()).then_some((doorbell::rq(qpn), rq.producer));
                        prop_assert_eq!(fake.take_doorbells(), Vec::from_iter(rung));
                    }
                }
                Step::Sent(n, fails) => {
                    sq.complete(n, fails, &mut due, |index, status| fake.complete_send(qpn, index, status), false);
                }
                Step::Received(n) => {
                    rq.complete(n, false, &mut due, |index, status| fake.complete_recv(qpn, index, status), true);
                }
                Step::Poll(n) => {
                    let mut wcs = vec![Wc::default(); n];
                    let taken = cq.poll(&mut wcs);
                    prop_assert_eq!(taken, n.min(due.len()));
                    for wc in &wcs[..taken] {
                        let (wr_id, recv, status, consumer) = due.pop_front().unwrap();
                        prop_assert_eq!((wc.wr_id, wc.status, wc.qp_num), (wr_id, status, qpn));
                        prop_assert_eq!(wc.opcode == WcOpcode::Recv, recv);
                        if recv { rq.consumer = consumer } else { sq.consumer = consumer }
                    }
                }
            }
            prop_assert_eq!((qp.send_slots_free(), qp.recv_free()), (sq.free(), rq.free()));
        }
        prop_assert_eq!(cq.unknown_cqes(), 0);
    }
}

#[test]
fn indices_pass_65536() {
    let Connected {
        fake,
        mut cq,
        mut qp,
        ..
    } = Connected::new(ALL, 4, |b| b.max_send_wr(4).max_recv_wr(4));
    let mut wcs = [Wc::default(); 4];
    for i in 0..0x2_0010u32 {
        qp.post_send(&[SendWr::new(SendOp::Send, &[]).wr_id(i.into()).signaled()])
            .unwrap();
        qp.post_recv(&[RecvWr::new(u64::from(i) << 32, &[])])
            .unwrap();
        assert!(fake.complete_send(qp.qpn(), i, 0) && fake.complete_recv(qp.qpn(), i, 0));
        assert_eq!(cq.poll(&mut wcs), 2);
        assert_eq!((wcs[0].wr_id, wcs[1].wr_id), (i.into(), u64::from(i) << 32));
    }
    assert_eq!((qp.send_slots_free(), qp.recv_free()), (4, 4));
}

#[test]
fn unsignaled_requests_retire_with_the_next_signaled_one() {
    let Connected {
        fake,
        mut cq,
        mut qp,
        ..
    } = Connected::new(ALL, 4, |b| b.max_send_wr(8));
    let send = SendWr::new(SendOp::Send, &[]);
    qp.post_send(&[send, send, send, send.wr_id(9).signaled(), send])
        .unwrap();
    assert_eq!(qp.send_slots_free(), 3);
    assert!(fake.complete_send(qp.qpn(), 3, 0));
    let mut wcs = [Wc::default(); 4];
    assert_eq!(cq.poll(&mut wcs), 1);
    assert_eq!(wcs[0].wr_id, 9);
    assert_eq!(qp.send_slots_free(), 7);
}
