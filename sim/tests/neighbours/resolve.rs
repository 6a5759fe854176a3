//! Peers are found, and missed.

use std::time::Duration;

use ferroce_driver::{
    Access, Backend, Gid, InitAttr, Mac, NeighbourState, PathError, Qp, QpAttr, Remote,
    ResolveError, RtrAttr, RtsAttr, SendOp, SendWr, Wc,
};

use crate::rig::*;

/// Both hosts look for each other at the same time, in each address family; then a WRITE takes the way found.
fn each_other(kind: Kind) -> Result {
    let rig = Rig::new(kind, 2)?;
    let (mut a, mut b) = (rig.neighbours(0)?, rig.neighbours(1)?);
    for index in 0..3 {
        let (mut at_a, mut at_b) = (None, None);
        while at_a.is_none() || at_b.is_none() {
            at_a = a.try_resolve(index, gid(1, index))?;
            at_b = b.try_resolve(index, gid(0, index))?;
            rig.run(&mut [&mut a, &mut b], 64);
        }
        assert_eq!((at_a, at_b), (Some(MAC[1]), Some(MAC[0])), "GID {index}");
        let known = |mac| Some((Some(mac), NeighbourState::Reachable));
        assert_eq!(a.get(gid(1, index)), known(MAC[1]));
        assert_eq!(b.get(gid(0, index)), known(MAC[0]));
    }
    assert_eq!(a.counters().unreachable + b.counters().unreachable, 0);
    assert!(a.counters().confirmed >= 3 && b.counters().confirmed >= 3);
    // What is confirmed needs no frame.
    rig.take_sent();
    assert_eq!(a.resolve(1, gid(1, 1))?, MAC[1]);
    assert!(rig.take_sent().is_empty());

    // Ping both ways, an unknown neighbour first: the request waits for the answer.
    for index in 0..3 {
        a.ping(index, gid(1, index), (7, index.into()), b"are you there")?;
        rig.run(&mut [&mut a, &mut b], 40_000);
        let pong = a.pong().ok_or("no reply")?;
        assert_eq!(
            (pong.from, pong.ident, pong.seq),
            (gid(1, index), 7, u16::from(index))
        );
        assert_eq!(pong.data, b"are you there");
    }

    // A connection over the way found.
    let path = a.path(2, gid(1, 2), None)?;
    assert_eq!(
        (path.dmac, path.sgid_index, path.dgid),
        (MAC[1], 2, gid(1, 2))
    );
    let back = b.path(2, gid(0, 2), None)?;
    let pds = [rig.hosts[0].alloc_pd(), rig.hosts[1].alloc_pd()];
    let mut cqs = [rig.hosts[0].create_cq(4)?, rig.hosts[1].create_cq(4)?];
    let mut qps = Vec::new();
    for (pd, cq) in pds.iter().zip(&cqs) {
        qps.push(Qp::builder(pd).rc().cq(cq).psn(5).sgid_index(2).build()?);
    }
    let numbers = [qps[0].qpn(), qps[1].qpn()];
    for (i, path) in [path, back].into_iter().enumerate() {
        qps[i].modify(&QpAttr::Init(InitAttr::default()))?;
        qps[i].modify(&QpAttr::Rtr(RtrAttr::new(path, numbers[1 - i], 5)))?;
        qps[i].modify(&QpAttr::Rts(RtsAttr::new(5)))?;
    }
    let mut from = pds[0].alloc_mr(3000, Access::empty())?;
    let to = pds[1].alloc_mr(3000, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
    from.write(0, &[0x5c; 3000]);
    let remote = Remote {
        addr: to.addr(),
        rkey: to.rkey(),
    };
    let list = [from.sge(..)];
    qps[0].post_send(&[SendWr::new(SendOp::Write(remote), &list).signaled()])?;
    let mut wcs = [Wc::default()];
    assert_eq!(cqs[0].wait(&mut wcs, Duration::from_millis(10)), 1);
    wcs[0].ok()?;
    assert_eq!(to.to_vec(0, 3000), [0x5c; 3000]);
    drop((qps, from, to));
    rig.assert_healthy();
    Ok(())
}

#[test]
fn model_each_other() -> Result {
    each_other(Kind::Model)
}

#[test]
fn engine_each_other() -> Result {
    each_other(Kind::Rtl(512))
}

/// A peer that is not there is given up after the questions and the time that the configuration says, in card time.
#[test]
fn no_such_host() -> Result {
    let rig = Rig::new(Kind::Model, 2)?;
    let (mut a, mut b) = (rig.neighbours(0)?, rig.neighbours(1)?);
    let card = rig.hosts[0].backend();
    for (index, peer) in [
        (1, Gid::from(std::net::Ipv4Addr::new(10, 0, 0, 77))),
        (
            2,
            Gid::from(std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0x77)),
        ),
    ] {
        rig.take_sent();
        let start = card.now_ns();
        let error = a.resolve(index, peer).unwrap_err();
        let took = card.now_ns() - start;
        let total = CONFIG.retry_ns * u64::from(CONFIG.tries);
        assert_eq!(
            error,
            ResolveError::Unreachable {
                peer,
                questions: 3,
                waited_ns: total
            }
        );
        assert!(
            (total..total + CONFIG.retry_ns).contains(&took),
            "{took} ns"
        );
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("{} does not answer: 3 ", peer.ip())),
            "{text}"
        );
        rig.run(&mut [&mut a, &mut b], 10_000);
        assert_eq!(rig.take_sent().len(), 3);
        // A frame that waits goes with it.
        a.ping(index, peer, (1, 1), b"x")?;
        rig.run(&mut [&mut a, &mut b], total + CONFIG.retry_ns);
        assert_eq!(a.get(peer), Some((None, NeighbourState::Failed)));
    }
    assert_eq!(a.counters().dropped, 2);
    rig.assert_healthy();
    Ok(())
}

/// A neighbour that moves is noticed: by an announcement, and by the probe when its time is over.
#[test]
fn moves() -> Result {
    let rig = Rig::new(Kind::Model, 2)?;
    let (mut a, mut b) = (rig.neighbours(0)?, rig.neighbours(1)?);
    // b answers only when it is polled, so both are.
    let find = |a: &mut _, b: &mut _, index: u8| -> Result<Mac> {
        for _ in 0..1000 {
            let a: &mut ferroce_driver::Neighbours<_> = a;
            if let Some(mac) = a.try_resolve(index, gid(1, index))? {
                return Ok(mac);
            }
            rig.run(&mut [a, b], 640);
        }
        Err("not found".into())
    };
    for index in 1..3 {
        assert_eq!(find(&mut a, &mut b, index)?, MAC[1]);
        rig.hosts[1].set_mac(OTHER)?;
        b.announce();
        rig.run(&mut [&mut a, &mut b], 20_000);
        assert_eq!(
            a.get(gid(1, index)),
            Some((Some(OTHER), NeighbourState::Stale))
        );
        assert_eq!(find(&mut a, &mut b, index)?, OTHER);
        // Moves back without a word: the probe of the old address is not answered, the question to all is.
        rig.hosts[1].set_mac(MAC[1])?;
        assert_eq!(
            a.resolve(index, gid(1, index))?,
            OTHER,
            "it still counts as confirmed"
        );
        rig.run(&mut [&mut a, &mut b], CONFIG.reachable_ns);
        assert_eq!(find(&mut a, &mut b, index)?, MAC[1]);
    }
    Ok(())
}

#[test]
fn what_cannot_be_asked() -> Result {
    let rig = Rig::new(Kind::Model, 2)?;
    let mut a = rig.neighbours(0)?;
    assert_eq!(
        a.resolve(5, gid(1, 1)),
        Err(PathError::NoGid { sgid_index: 5 }.into())
    );
    let (local, remote) = (gid(0, 2), gid(1, 1));
    assert_eq!(
        a.resolve(2, remote),
        Err(PathError::Family { local, remote }.into())
    );
    for ip in [
        "224.0.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "127.0.0.1",
        "ff02::1",
        "::1",
    ] {
        let peer = Gid::from(ip.parse::<std::net::IpAddr>()?);
        let index = if peer.is_ipv4() { 1 } else { 2 };
        // :: and ::1 are no mapped addresses, so they count as IPv6.
        assert_eq!(
            a.resolve(index, peer),
            Err(ResolveError::NotUnicast(peer)),
            "{ip}"
        );
    }
    assert_eq!(a.resolve(1, gid(0, 1))?, MAC[0], "the card itself");
    let long = a.ping(1, gid(1, 1), (1, 1), &[0; 2000]).unwrap_err();
    assert!(long.to_string().contains("2042 bytes"), "{long}");
    assert!(rig.take_sent().is_empty());
    Ok(())
}
