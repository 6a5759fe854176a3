//! Shared receive queues.

use std::time::Duration;

use ferroce_driver::{Access, Mac, Qp, QpAttr, RecvWr, SendOp, SendWr, Wc};
use ferroce_sim::card::SimCard;

use crate::{Done, connect, open, take};

/// Requests that may be posted.
const SIZE: u32 = 4;
/// Bytes of a message that takes long.
const LONG: usize = 1 << 20;

/// The peer of a queue pair is gone in the middle of a message. Of the other requests as many may be posted as ever.
fn a_dead_peer_holds_up_no_other(cards: [SimCard; 2]) -> Done {
    let [a, b] = cards;
    let (a, b) = (open(a, 1)?, open(b, 2)?);
    let (pd_a, pd_b) = (a.alloc_pd(), b.alloc_pd());
    let (mut cq_a, mut cq_b) = (a.create_cq(64)?, b.create_cq(64)?);
    let source = pd_a.alloc_mr(LONG, Access::LOCAL_WRITE)?;
    let target = pd_b.alloc_mr(LONG, Access::LOCAL_WRITE)?;
    let mut srq = pd_b.create_srq(SIZE, 1)?;
    let list = [target.sge(..)];
    let post = |wr_id| RecvWr::new(wr_id, &list);
    let pair = || {
        let mut sender = Qp::builder(&pd_a).cq(&cq_a).build()?;
        let mut receiver = Qp::builder(&pd_b).cq(&cq_b).srq(&srq).build()?;
        connect(&mut sender, &mut receiver)?;
        Ok::<_, Box<dyn std::error::Error>>((sender, receiver))
    };
    let (mut dead, held) = pair()?;
    let (mut sender, receiver) = pair()?;
    for wr_id in 0..SIZE {
        srq.post_recv(&[post(wr_id.into())])?;
    }
    dead.post_send(&[SendWr::new(SendOp::Send, &[source.sge(..)])])?;
    let mut wcs = [Wc::default(); 4];
    assert_eq!(cq_b.wait(&mut wcs, Duration::from_micros(3)), 0);
    // the rest of the message is lost
    b.set_mac(Mac([2, 0, 0, 0, 0, 9]))?;
    dead.modify(&QpAttr::Reset)?;
    b.set_mac(Mac([2, 0, 0, 0, 0, 2]))?;
    for wr_id in u64::from(SIZE)..50 * u64::from(SIZE) {
        sender.post_send(&[SendWr::new(SendOp::Send, &[source.sge(..8)]).signaled()])?;
        let wc = take(&mut cq_b);
        wc.ok()?;
        assert_eq!((wc.qp_num, wc.wr_id), (receiver.qpn(), wr_id - 3));
        take(&mut cq_a).ok()?;
        srq.post_recv(&[post(wr_id)])?;
        assert_eq!(srq.free(), 0);
    }
    drop(held);
    assert_eq!((cq_b.wait(&mut wcs, Duration::ZERO), srq.free()), (0, 1));
    Ok(())
}

on_both!(a_dead_peer_holds_up_no_other);
