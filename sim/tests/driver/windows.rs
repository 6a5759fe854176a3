//! Memory windows.

use std::error::Error;

use ferroce_driver::{
    Access, Context, Cq, MrBuf, Mw, MwBind, MwType, Pd, Qp, QpAttr, RecvWr, Remote, SendFlags,
    SendOp, SendWr, Wc, WcOpcode, WcStatus,
};
use ferroce_sim::card::SimCard;

use crate::{Done, connect, open};

const SIGNALED: SendFlags = SendFlags::SIGNALED;

struct Side {
    context: Context<SimCard>,
    pd: Pd<SimCard>,
    cq: Cq<SimCard>,
    qp: Qp<SimCard>,
    /// Windows may be bound to it; a peer has no rights to it.
    region: MrBuf<SimCard>,
}

impl Side {
    fn new(card: SimCard, last: u8) -> Result<Self, Box<dyn Error>> {
        let context = open(card, last)?;
        let (pd, cq) = (context.alloc_pd(), context.create_cq(64)?);
        let qp = Qp::builder(&pd).cq(&cq).build()?;
        let region = pd.alloc_mr(256, Access::LOCAL_WRITE | Access::MW_BIND)?;
        Ok(Self {
            context,
            pd,
            cq,
            qp,
            region,
        })
    }

    fn take(&mut self) -> Wc {
        crate::take(&mut self.cq)
    }

    /// Binds bytes 64 to 191 of the region; what the request completes with.
    fn bind(&mut self, mw: &mut Mw<SimCard>, access: Access, key: Option<u32>) -> Wc {
        let bind = MwBind {
            mr: Some(&*self.region),
            addr: self.region.addr() + 64,
            len: 128,
            access,
        };
        self.qp.post_bind(mw, &bind, key, (77, SIGNALED)).unwrap();
        self.take()
    }

    /// A WRITE of 8 bytes to a place at the peer.
    fn write(&mut self, addr: u64, rkey: u32) -> WcStatus {
        let op = SendOp::Write(Remote { addr, rkey });
        self.qp
            .post_send(&[SendWr::inline(op, &[7; 8]).signaled()])
            .unwrap();
        self.take().status
    }
}

fn connected(cards: [SimCard; 2]) -> Result<[Side; 2], Box<dyn Error>> {
    let [a, b] = cards;
    let (mut a, mut b) = (Side::new(a, 1)?, Side::new(b, 2)?);
    reconnect(&mut a, &mut b)?;
    Ok([a, b])
}

fn reconnect(a: &mut Side, b: &mut Side) -> Done {
    for side in [&mut *a, &mut *b] {
        side.qp.modify(&QpAttr::Reset)?;
    }
    connect(&mut a.qp, &mut b.qp)
}

/// A window of type 2 of B with this key, which A has ended by a SEND; B has not polled yet.
fn ended_by_peer(a: &mut Side, b: &mut Side) -> Result<(Mw<SimCard>, u32), Box<dyn Error>> {
    let mut mw = b.pd.alloc_mw(MwType::Type2)?;
    let key = mw.rkey();
    b.bind(&mut mw, WRITE, Some(key)).ok()?;
    b.qp.post_recv(&[RecvWr::new(5, &[])])?;
    a.qp.post_send(&[SendWr::new(SendOp::SendInv(key), &[]).signaled()])?;
    a.take().ok()?;
    Ok((mw, key))
}

const WRITE: Access = Access::REMOTE_WRITE;

fn a_type_1_window_comes_and_goes(cards: [SimCard; 2]) -> Done {
    let [mut a, mut b] = connected(cards)?;
    let mut mw = b.pd.alloc_mw(MwType::Type1)?;
    let wc = b.bind(&mut mw, WRITE, None);
    assert_eq!(
        (wc.wr_id, wc.opcode, wc.status),
        (77, WcOpcode::BindMw, WcStatus::Success)
    );
    let (addr, first) = (b.region.addr() + 64, mw.rkey());
    assert_eq!(a.write(addr, first), WcStatus::Success);
    assert_eq!(a.write(addr + 120, first), WcStatus::Success);
    assert_eq!(b.region.to_vec(184, 8), [7; 8]);
    // Bound again it has another key, and the one of before is none any more.
    b.bind(&mut mw, WRITE, None).ok()?;
    let second = mw.rkey();
    assert_ne!(first, second);
    assert_eq!(a.write(addr, second), WcStatus::Success);
    assert_eq!(a.write(addr, first), WcStatus::RemAccessErr);
    reconnect(&mut a, &mut b)?;
    assert_eq!(
        a.write(addr, second),
        WcStatus::Success,
        "it is no queue pair's"
    );
    let nothing = MwBind {
        mr: None,
        addr: 0,
        len: 0,
        access: Access::empty(),
    };
    b.qp.post_bind(&mut mw, &nothing, None, (78, SIGNALED))?;
    assert_eq!(b.take().status, WcStatus::Success);
    assert_eq!(a.write(addr, second), WcStatus::RemAccessErr);
    Ok(())
}

fn a_type_2_window_is_its_queue_pairs(cards: [SimCard; 2]) -> Done {
    let [mut a, mut b] = connected(cards)?;
    let mut mw = b.pd.alloc_mw(MwType::Type2)?;
    let key = mw.rkey() & !0xff | 0x5a;
    b.bind(&mut mw, WRITE, Some(key)).ok()?;
    let addr = b.region.addr() + 64;
    assert_eq!(a.write(addr, key), WcStatus::Success);
    assert_eq!(a.write(addr + 121, key), WcStatus::RemAccessErr);
    // It ends with the life of its queue pair.
    reconnect(&mut a, &mut b)?;
    assert_eq!(a.write(addr, key), WcStatus::RemAccessErr);
    reconnect(&mut a, &mut b)?;
    b.bind(&mut mw, WRITE, Some(key + 1)).ok()?;
    assert_eq!(a.write(addr, key + 1), WcStatus::Success);
    // It ends locally, once.
    b.qp.post_invalidate(key + 1, (79, SIGNALED))?;
    let wc = b.take();
    assert_eq!(
        (wc.wr_id, wc.opcode, wc.status),
        (79, WcOpcode::LocalInv, WcStatus::Success)
    );
    assert_eq!(a.write(addr, key + 1), WcStatus::RemAccessErr);
    reconnect(&mut a, &mut b)?;
    b.qp.post_invalidate(key + 1, (80, SIGNALED))?;
    assert_eq!(b.take().status, WcStatus::MwBindErr);
    Ok(())
}

fn a_peer_ends_a_type_2_window(cards: [SimCard; 2]) -> Done {
    let [mut a, mut b] = connected(cards)?;
    let (mut mw, key) = ended_by_peer(&mut a, &mut b)?;
    assert_eq!(b.take().invalidated_rkey(), Some(key));
    // So it may be bound again.
    b.bind(&mut mw, WRITE, Some(key + 1)).ok()?;
    let addr = b.region.addr() + 64;
    assert_eq!(a.write(addr, key + 1), WcStatus::Success);
    assert_eq!(a.write(addr, key), WcStatus::RemAccessErr);
    Ok(())
}

/// The rules of IB1 10.6.7.2; a request that breaks one fails with its queue pair.
fn binds_have_rules(cards: [SimCard; 2]) -> Done {
    let [mut a, mut b] = connected(cards)?;
    let plain = b.pd.alloc_mr(64, Access::LOCAL_WRITE)?;
    let read_only = b.pd.alloc_mr(64, Access::MW_BIND)?;
    let mut mws = [MwType::Type1, MwType::Type2].map(|kind| b.pd.alloc_mw(kind).unwrap());
    let start = b.region.addr();
    for kind in 0..2 {
        let key = (kind == 1).then(|| mws[1].rkey());
        let place = |b: &Side, addr, len| (b.region.lkey(), addr, len);
        let spans = [
            place(&b, start - 1, 8),
            place(&b, start, 257),
            place(&b, start + 250, 7),
            place(&b, u64::MAX, 2),
            (plain.lkey(), plain.addr(), 8),
            (read_only.lkey(), read_only.addr(), 8),
        ];
        for (lkey, addr, len) in spans {
            reconnect(&mut a, &mut b)?;
            let mr = [&*b.region, &*plain, &*read_only]
                .into_iter()
                .find(|mr| mr.lkey() == lkey);
            let bind = MwBind {
                mr,
                addr,
                len,
                access: WRITE,
            };
            b.qp.post_bind(&mut mws[kind], &bind, key, (1, SendFlags::empty()))?;
            assert_eq!(b.take().status, WcStatus::MwBindErr, "{len} at {addr:#x}");
        }
    }
    // What the region lets a peer read is no right of the window to write.
    reconnect(&mut a, &mut b)?;
    let bind = MwBind {
        mr: Some(&*read_only),
        addr: read_only.addr(),
        len: 8,
        access: Access::REMOTE_READ,
    };
    b.qp.post_bind(&mut mws[0], &bind, None, (1, SIGNALED))?;
    assert_eq!(b.take().status, WcStatus::Success);
    // A window of type 2 that is bound, or without bytes. Of the key only the lowest 8 bits are chosen.
    let own = mws[1].rkey();
    let key =
        b.qp.post_bind(&mut mws[1], &bind, Some(0xba), (1, SIGNALED))?;
    assert_eq!((key, mws[1].rkey()), (own & !0xff | 0xba, key));
    assert_eq!(b.take().status, WcStatus::Success);
    b.qp.post_bind(&mut mws[1], &bind, Some(key), (1, SIGNALED))?;
    assert_eq!(b.take().status, WcStatus::MwBindErr);
    reconnect(&mut a, &mut b)?;
    let empty = MwBind { len: 0, ..bind };
    b.qp.post_bind(&mut mws[1], &empty, Some(key), (1, SIGNALED))?;
    assert_eq!(b.take().status, WcStatus::MwBindErr);
    // Another domain's.
    reconnect(&mut a, &mut b)?;
    let foreign = b.context.alloc_pd();
    let mut mw = foreign.alloc_mw(MwType::Type1)?;
    b.qp.post_bind(&mut mw, &bind, None, (1, SIGNALED))?;
    assert_eq!(b.take().status, WcStatus::MwBindErr);
    Ok(())
}

/// A completion that is polled late is of an older bind under the same key: that one ends with its region all the same.
fn a_late_completion_ends_no_later_bind(cards: [SimCard; 2]) -> Done {
    let [mut a, mut b] = connected(cards)?;
    let (mut mw, key) = ended_by_peer(&mut a, &mut b)?;
    let bind = MwBind {
        mr: Some(&*b.region),
        addr: b.region.addr(),
        len: 8,
        access: WRITE,
    };
    b.qp.post_bind(&mut mw, &bind, Some(key), (1, SIGNALED))?;
    assert_eq!(b.take().invalidated_rkey(), Some(key));
    b.take().ok()?;
    let addr = b.region.addr();
    assert_eq!(a.write(addr, key), WcStatus::Success);
    let next = b.pd.alloc_mr(256, Access::LOCAL_WRITE | Access::MW_BIND)?;
    drop(std::mem::replace(&mut b.region, next));
    assert_eq!(a.write(addr, key), WcStatus::RemAccessErr);
    Ok(())
}

fn no_window_outlives_its_region(cards: [SimCard; 2]) -> Done {
    let [mut a, mut b] = connected(cards)?;
    let mut mw = b.pd.alloc_mw(MwType::Type1)?;
    b.bind(&mut mw, WRITE, None).ok()?;
    let addr = b.region.addr() + 64;
    assert_eq!(a.write(addr, mw.rkey()), WcStatus::Success);
    let next = b.pd.alloc_mr(256, Access::LOCAL_WRITE | Access::MW_BIND)?;
    drop(std::mem::replace(&mut b.region, next));
    assert_eq!(a.write(addr, mw.rkey()), WcStatus::RemAccessErr);
    // Nor its own end.
    reconnect(&mut a, &mut b)?;
    b.bind(&mut mw, WRITE, None).ok()?;
    let (addr, key) = (b.region.addr() + 64, mw.rkey());
    assert_eq!(a.write(addr, key), WcStatus::Success);
    drop(mw);
    assert_eq!(a.write(addr, key), WcStatus::RemAccessErr);
    assert_eq!(b.region.to_vec(64, 8), [7; 8]);
    Ok(())
}

/// Which region a window is bound to is known of the binds that were polled.
fn a_window_ends_with_its_own_region(cards: [SimCard; 2]) -> Done {
    let [mut a, mut b] = connected(cards)?;
    let mut mw = b.pd.alloc_mw(MwType::Type1)?;
    let region = |b: &Side| b.pd.alloc_mr(256, Access::LOCAL_WRITE | Access::MW_BIND);
    b.bind(&mut mw, WRITE, None).ok()?;
    let next = region(&b)?;
    let first = std::mem::replace(&mut b.region, next);
    b.bind(&mut mw, WRITE, None).ok()?;
    let (addr, key) = (b.region.addr() + 64, mw.rkey());
    drop(first);
    assert_eq!(a.write(addr, key), WcStatus::Success);
    // One that was flushed is none.
    let other = region(&b)?;
    b.qp.modify(&QpAttr::Err)?;
    let bind = MwBind {
        mr: Some(&*other),
        addr: other.addr(),
        len: 8,
        access: WRITE,
    };
    b.qp.post_bind(&mut mw, &bind, None, (2, SIGNALED))?;
    assert_eq!(b.take().status, WcStatus::WrFlushErr);
    drop(other);
    reconnect(&mut a, &mut b)?;
    assert_eq!(a.write(addr, key), WcStatus::Success);
    let next = region(&b)?;
    drop(std::mem::replace(&mut b.region, next));
    assert_eq!(a.write(addr, key), WcStatus::RemAccessErr);
    Ok(())
}

/// A bind whose completion was not polled may have been executed.
fn an_unpolled_bind_ends_with_its_region(cards: [SimCard; 2]) -> Done {
    let [mut a, mut b] = connected(cards)?;
    let mut mw = b.pd.alloc_mw(MwType::Type1)?;
    for life_ends in [false, true] {
        let bind = MwBind {
            mr: Some(&*b.region),
            addr: b.region.addr(),
            len: 8,
            access: WRITE,
        };
        let addr = b.region.addr();
        let key = b.qp.post_bind(&mut mw, &bind, None, (1, SIGNALED))?;
        b.qp.post_recv(&[RecvWr::new(5, &[])])?;
        // Time for the bind.
        a.qp.post_send(&[SendWr::new(SendOp::Send, &[]).signaled()])?;
        a.take().ok()?;
        assert_eq!(a.write(addr, key), WcStatus::Success);
        if life_ends {
            reconnect(&mut a, &mut b)?;
            assert_eq!(a.write(addr, key), WcStatus::Success);
        }
        let next = b.pd.alloc_mr(256, Access::LOCAL_WRITE | Access::MW_BIND)?;
        drop(std::mem::replace(&mut b.region, next));
        assert_eq!(a.write(addr, key), WcStatus::RemAccessErr);
        reconnect(&mut a, &mut b)?;
    }
    Ok(())
}

on_both!(
    a_type_1_window_comes_and_goes,
    a_type_2_window_is_its_queue_pairs,
    a_peer_ends_a_type_2_window,
    a_late_completion_ends_no_later_bind,
    binds_have_rules,
    no_window_outlives_its_region,
    a_window_ends_with_its_own_region,
    an_unpolled_bind_ends_with_its_region
);
