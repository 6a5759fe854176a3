//! Requests that own their buffers.

use std::time::Duration;

use ferroce_driver::{
    Context, Done, OwnedQueues, PostCause, Qp, QpState, RefusedCause, SendOp, SendWr, WcStatus,
};
use ferroce_proto::abi::cq::status;

use crate::fake::{ALL, Fake};
use crate::setup::{open, peer};

fn connected(context: &Context<Fake>, queues: &OwnedQueues<Fake>) -> Qp<Fake> {
    let pd = context.alloc_pd();
    let builder = Qp::builder(&pd).cq(queues.cq());
    let mut qp = builder.max_send_wr(4).max_recv_wr(4).build().unwrap();
    qp.connect(&peer()).unwrap();
    qp
}

#[test]
fn a_buffer_comes_back_with_its_completion() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let mut queues = OwnedQueues::new(context.create_cq(16).unwrap());
    let qpn = queues.add(connected(&context, &queues)).unwrap();
    let mut buf = pd.alloc_buf(100).unwrap();
    buf[10..14].copy_from_slice(b"data");
    let at = buf.as_ptr().addr() as u64;
    queues.send(qpn, SendOp::Send, buf, 10..14, 77).unwrap();
    let (head, list, _) = fake.send_wqe(qpn, 0);
    assert!(head.signaled);
    assert_eq!((list[0].addr(), list[0].length()), (at + 10, 4));
    queues.recv(qpn, pd.alloc_buf(64).unwrap(), 78).unwrap();
    queues.recv(qpn, pd.alloc_buf(32).unwrap(), 79).unwrap();
    assert!(queues.poll().is_none() && queues.wait(Duration::from_micros(1)).is_none());

    assert!(fake.complete_recv(qpn, 0, 0) && fake.complete_send(qpn, 0, status::RETRY_EXC_ERR));
    let Done { wc, buf } = queues.wait(Duration::from_micros(1)).unwrap();
    assert_eq!((wc.wr_id, wc.qp_num, buf.len()), (78, qpn, 64));
    wc.ok().unwrap();
    let Done { wc, buf } = queues.poll().unwrap();
    assert_eq!(
        (wc.wr_id, wc.status, buf.len()),
        (77, WcStatus::RetryExcErr, 100)
    );
    assert_eq!(&buf[8..16], b"\0\0data\0\0");
    assert!(queues.poll().is_none());

    // what did not complete comes back with the queue pair
    let (qp, bufs) = queues.remove(qpn).unwrap().unwrap();
    assert_eq!(qp.state(), QpState::Reset);
    let left: Vec<_> = bufs
        .iter()
        .map(|(wr_id, buf)| (*wr_id, buf.len()))
        .collect();
    assert_eq!(left, [(79, 32)]);
    assert!(queues.remove(qpn).unwrap().is_none());
}

#[test]
fn what_is_refused_gives_the_buffer_back() {
    let (_fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let mut queues = OwnedQueues::new(context.create_cq(16).unwrap());
    let refused = queues.recv(9, pd.alloc_buf(7).unwrap(), 0).unwrap_err();
    assert_eq!(refused.cause, RefusedCause::UnknownQp { qpn: 9 });
    assert_eq!(refused.buf.len(), 7);
    let qpn = queues.add(connected(&context, &queues)).unwrap();
    for i in 0..4 {
        queues.recv(qpn, pd.alloc_buf(8).unwrap(), i).unwrap();
    }
    let refused = queues.recv(qpn, refused.buf, 0).unwrap_err();
    assert!(matches!(
        &refused.cause,
        RefusedCause::Post(e) if matches!(e.cause, PostCause::Full { .. })
    ));
    assert_eq!(refused.buf.len(), 7);
    queues.fail(qpn).unwrap();
    assert_eq!(queues.qp(qpn).unwrap().state(), QpState::Err);
}

#[test]
fn only_queue_pairs_of_its_own_join() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let cq = context.create_cq(16).unwrap();
    let mut queues = OwnedQueues::new(context.create_cq(16).unwrap());
    let qp = Qp::builder(&pd).send_cq(queues.cq()).recv_cq(&cq).build();
    let e = queues.add(qp.unwrap()).unwrap_err();
    assert!(
        e.to_string()
            .contains("completes on another completion queue"),
        "{e}"
    );
    let srq = pd.create_srq(4, 1).unwrap();
    let qp = Qp::builder(&pd).cq(queues.cq()).srq(&srq).build().unwrap();
    let e = queues.add(qp).unwrap_err();
    assert!(e.to_string().contains("shared receive queue"), "{e}");
    let mut qp = connected(&context, &queues);
    qp.post_send(&[SendWr::new(SendOp::Send, &[]).wr_id(0).signaled()])
        .unwrap();
    let e = queues.add(qp).unwrap_err();
    assert!(e.to_string().contains("something is posted"), "{e}");
    assert!(fake.complete_send(e.qp.qpn(), 0, 0));
    assert!(queues.poll().is_none(), "it is not one of ours");
    queues.add(e.qp).unwrap();
}

#[test]
fn dropping_takes_all_back() {
    let (fake, context) = open(ALL);
    let mut queues = OwnedQueues::new(context.create_cq(16).unwrap());
    let qpn = queues.add(connected(&context, &queues)).unwrap();
    let buf = context.alloc_pd().alloc_buf(8).unwrap();
    queues.recv(qpn, buf, 0).unwrap();
    let mut late = fake.state().mapped.clone();
    drop(context);
    assert_eq!(fake.state().mapped.len(), late.len());
    drop(queues);
    late.clear();
    assert_eq!(fake.state().mapped, late);
}
