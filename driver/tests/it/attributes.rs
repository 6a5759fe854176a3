//! Attributes of queue pairs: the images that hold them, defaults and limits.

use ferroce_driver::{
    Access, ConnectAttr, Gid, InitAttr, Mac, ModifyError, Mtu, Path, PathError, Qp, QpAttr,
    QpState, RtrAttr, RtsAttr,
};
use ferroce_proto::abi::qpc;

use crate::fake::{ALL, BASIC};
use crate::setup::{Connected, LOCAL_MAC, REMOTE_MAC, ipv4, open, path, peer};

#[test]
fn images_hold_what_was_asked_for() {
    let (fake, context) = open(ALL);
    let gid = Gid::from(std::net::Ipv6Addr::LOCALHOST);
    context.set_gid(3, gid).unwrap();
    let pd = context.alloc_pd();
    let (send_cq, recv_cq) = (context.create_cq(8).unwrap(), context.create_cq(8).unwrap());
    let mut qp = Qp::builder(&pd)
        .send_cq(&send_cq)
        .recv_cq(&recv_cq)
        .max_send_wr(20)
        .max_send_sge(5)
        .max_recv_wr(9)
        .max_recv_sge(8)
        .outstanding(16)
        .build()
        .unwrap();
    let remote = Gid::link_local(REMOTE_MAC);
    let path = Path {
        sgid_index: 3,
        vlan: Some(0x6123),
        traffic_class: 0x68,
        hop_limit: 3,
        flow_label: 0x1_2345,
        udp_sport: Some(0xcafe),
        ..Path::new(remote, REMOTE_MAC)
    };
    let access = Access::REMOTE_READ;
    qp.modify(&QpAttr::Init(InitAttr {
        access,
        pkey: 0x8001,
        qkey: 0x8000_1234,
    }))
    .unwrap();
    let rtr = RtrAttr {
        path_mtu: Mtu::Mtu4096,
        max_dest_rd_atomic: Some(4),
        min_rnr_timer: 31,
        ..RtrAttr::new(path, 0xabcdef, 0xfffffe)
    };
    qp.modify(&QpAttr::Rtr(rtr)).unwrap();
    let rts = RtsAttr {
        timeout: 31,
        retry_cnt: 3,
        rnr_retry: 2,
        max_rd_atomic: Some(16),
        ..RtsAttr::new(0x654321)
    };
    qp.modify(&QpAttr::Rts(rts)).unwrap();

    let images = fake.state().qps[&qp.qpn()];
    let (sq, av, rq) = (images.sq, images.av, images.rq);
    assert_eq!((images.sq_psn, images.rq_psn), (0x654321, 0xfffffe));
    assert_eq!(
        (images.sq_state, images.rq_state),
        (qpc::state::RTS, qpc::state::RTS)
    );
    // 20 requests of 2 slots are 40 slots, rounded up; the receive queue stands behind the send queue.
    assert_eq!((sq.sq_log, rq.rq_log, rq.rq_stride), (6, 4, 2));
    assert_eq!(rq.rq_base, sq.sq_base + 64 * 64);
    assert_eq!(
        (sq.qp_type, sq.mtu, rq.mtu, rq.qp_type),
        (qpc::qp_type::RC, 5, 5, qpc::qp_type::RC)
    );
    assert_eq!(
        (sq.timeout, sq.retry_cnt, sq.rnr_retry, sq.max_rd_atomic),
        (31, 3, 2, 16)
    );
    assert_eq!((sq.ot_log, sq.ot_base % 16), (4, 0));
    assert_eq!(
        (u32::from(sq.cqn), u32::from(rq.cqn)),
        (send_cq.cqn(), recv_cq.cqn())
    );
    assert_eq!(
        (sq.pd, rq.max_dest_rd_atomic, rq.min_rnr_timer),
        (rq.pd, 4, 31)
    );
    assert_eq!(
        (rq.remote_read, rq.remote_write, rq.remote_atomic),
        (true, false, false)
    );
    assert_eq!(
        (rq.remote_gid, av.dgid),
        (remote.to_le_bits(), remote.to_le_bits())
    );
    assert_eq!((av.sgid_index, rq.sgid_index, av.ipv6), (3, 3, true));
    assert_eq!(
        // ECT(0) is the driver's
        (av.vlan_valid, av.vlan, av.tclass, av.hop_limit),
        (true, 0x6123, 0x6a, 3)
    );
    assert_eq!((rq.check_vlan, rq.vlan), (true, 0x123));
    assert_eq!(
        (av.flow_label, av.udp_sport, av.remote_qpn),
        (0x1_2345, 0xcafe, 0xabcdef)
    );
    assert_eq!((av.pkey, rq.pkey), (0x8001, 0x8001));
    assert_eq!(av.dmac.to_le_bytes()[..6], REMOTE_MAC.0);
}

#[test]
fn connect_takes_the_defaults() {
    let Connected { fake, mut qp, .. } = Connected::new(ALL, 8, |b| b.psn(0x7f00_0042));
    let endpoint = qp.endpoint().unwrap();
    assert_eq!(
        (endpoint.qpn, endpoint.psn, endpoint.gid, endpoint.mac),
        (qp.qpn(), 0x42, ipv4(1), LOCAL_MAC)
    );
    let images = fake.state().qps[&qp.qpn()];
    assert_eq!((images.sq_psn, images.rq_psn), (0x42, peer().psn));
    assert_eq!(
        (
            images.sq.timeout,
            images.sq.retry_cnt,
            images.sq.rnr_retry,
            images.sq.mtu
        ),
        (14, 7, 7, 3)
    );
    assert_eq!(
        (images.av.hop_limit, images.av.pkey, images.av.ipv6),
        (64, 0xffff, false)
    );
    // untagged frames alone
    assert_eq!((images.rq.check_vlan, images.rq.vlan), (true, 0));
    // 2 * 0x23 = 70, at least 0xc000.
    assert_eq!(images.av.udp_sport, 0xc000 + 70);
    let info = qp.query().unwrap();
    assert_eq!(
        (info.sq_state, info.rq_state, info.sq_psn, info.rq_psn),
        (QpState::Rts, QpState::Rts, 0x42, peer().psn)
    );
    assert_eq!((info.msn, info.rq_index), (7, 9));
    let e = qp.connect(&peer()).unwrap_err();
    assert!(matches!(
        e,
        ModifyError::Transition {
            from: QpState::Rts,
            to: QpState::Init,
            ..
        }
    ));
    qp.modify(&QpAttr::Reset).unwrap();
    let attr = ConnectAttr {
        path_mtu: Mtu::Mtu256,
        timeout: 1,
        ..ConnectAttr::default()
    };
    qp.connect_with(&peer(), &attr).unwrap();
    assert_eq!(fake.state().qps[&qp.qpn()].sq.mtu, 1);
}

#[test]
fn start_psns_differ() {
    let (_, context) = open(ALL);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let psn = || {
        Qp::builder(&pd)
            .cq(&cq)
            .build()
            .unwrap()
            .endpoint()
            .unwrap()
            .psn
    };
    let psns: std::collections::BTreeSet<_> = (0..1000).map(|_| psn()).collect();
    assert_eq!(psns.len(), 1000);
    assert!(psns.iter().all(|psn| psn >> 24 == 0));
}

#[test]
fn attributes_out_of_range_are_refused_before_the_card_sees_them() {
    let (fake, context) = open(ALL);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let mut qp = Qp::builder(&pd).cq(&cq).build().unwrap();
    qp.modify(&QpAttr::Init(InitAttr::default())).unwrap();
    let commands = fake.modifies();
    let rtr = RtrAttr::new(path(), 5, 6);
    for (attr, name) in [
        (
            RtrAttr {
                dest_qpn: 1 << 24,
                ..rtr
            },
            "dest_qpn",
        ),
        (
            RtrAttr {
                rq_psn: 1 << 24,
                ..rtr
            },
            "rq_psn",
        ),
        (
            RtrAttr {
                min_rnr_timer: 32,
                ..rtr
            },
            "min_rnr_timer",
        ),
        (
            RtrAttr {
                max_dest_rd_atomic: Some(17),
                ..rtr
            },
            "max_dest_rd_atomic",
        ),
    ] {
        let e = qp.modify(&QpAttr::Rtr(attr)).unwrap_err();
        assert!(
            matches!(e, ModifyError::Range { attribute, .. } if attribute == name),
            "{e}"
        );
    }
    assert_eq!((qp.state(), fake.modifies()), (QpState::Init, commands));
    qp.modify(&QpAttr::Rtr(rtr)).unwrap();
    let rts = RtsAttr::new(7);
    for (attr, name) in [
        (
            RtsAttr {
                sq_psn: 1 << 24,
                ..rts
            },
            "sq_psn",
        ),
        (RtsAttr { timeout: 32, ..rts }, "timeout"),
        (
            RtsAttr {
                retry_cnt: 8,
                ..rts
            },
            "retry_cnt",
        ),
        (
            RtsAttr {
                rnr_retry: 8,
                ..rts
            },
            "rnr_retry",
        ),
        (
            RtsAttr {
                max_rd_atomic: Some(17),
                ..rts
            },
            "max_rd_atomic",
        ),
    ] {
        let e = qp.modify(&QpAttr::Rts(attr)).unwrap_err();
        assert!(
            matches!(e, ModifyError::Range { attribute, .. } if attribute == name),
            "{e}"
        );
    }
    assert_eq!((qp.state(), fake.modifies()), (QpState::Rtr, commands + 1));
}

#[test]
fn paths_that_lead_nowhere_are_refused() {
    let (_, context) = open(BASIC);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let mut qp = Qp::builder(&pd).cq(&cq).build().unwrap();
    qp.modify(&QpAttr::Init(InitAttr::default())).unwrap();
    let mut refused = |path| {
        let e = qp.modify(&QpAttr::Rtr(RtrAttr::new(path, 5, 6)));
        cause(e.unwrap_err())
    };
    let ipv6 = Gid::link_local(REMOTE_MAC);
    assert!(matches!(
        refused(Path {
            sgid_index: 1,
            ..path()
        }),
        PathError::NoGid { sgid_index: 1 }
    ));
    assert_eq!(
        refused(Path {
            flow_label: 1 << 20,
            ..path()
        }),
        PathError::FlowLabel(1 << 20)
    );
    assert!(matches!(
        refused(Path {
            vlan: Some(1),
            ..path()
        }),
        PathError::Unsupported("VLAN tags")
    ));
    assert!(matches!(
        refused(Path {
            dgid: ipv6,
            ..path()
        }),
        PathError::Unsupported("IPv6")
    ));
    assert!(matches!(
        refused(Path {
            dmac: Mac([0; 6]),
            ..path()
        }),
        PathError::Mac(_)
    ));
    assert!(matches!(
        refused(Path {
            dmac: Mac([0xff; 6]),
            ..path()
        }),
        PathError::Mac(_)
    ));
    let (_, context) = open(ALL);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let mut qp = Qp::builder(&pd).cq(&cq).build().unwrap();
    qp.modify(&QpAttr::Init(InitAttr::default())).unwrap();
    let e = qp
        .modify(&QpAttr::Rtr(RtrAttr::new(
            Path {
                dgid: ipv6,
                ..path()
            },
            5,
            6,
        )))
        .unwrap_err();
    assert!(matches!(cause(e), PathError::Family { .. }));
    let qp = Qp::builder(&pd).cq(&cq).sgid_index(1).build().unwrap();
    assert_eq!(
        cause(qp.endpoint().unwrap_err()),
        PathError::NoGid { sgid_index: 1 }
    );
}

/// What is wrong with a path.
fn cause(e: ModifyError) -> PathError {
    match e {
        ModifyError::Path { cause, .. } => cause,
        other => panic!("{other}"),
    }
}
