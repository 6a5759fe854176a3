//! Datagrams: queue pairs without a path, address handles, work requests.

use std::collections::BTreeSet;

use ferroce_driver::{
    AhError, BuildError, Features, GSI_QKEY, ModifyError, Mtu, Path, PathError, PostCause, Qp,
    QpAttr, QpState, QpType, Remote, RtrAttr, SendOp, SendWr,
};
use ferroce_proto::abi::qpc::{self, qp_type};
use ferroce_proto::abi::wqe::{UdAddress, opcode};

use crate::fake::ALL;
use crate::setup::{REMOTE_MAC, ipv4, open, path, sge};

const QKEY: u32 = 0x8111_2222;

#[test]
fn a_queue_pair_for_datagrams_has_a_qkey_and_no_path() {
    let (fake, context) = open(ALL);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(4).unwrap());
    let mut qp = Qp::builder(&pd).ud().cq(&cq).build().unwrap();
    assert_eq!(
        (qp.qp_type(), qp.qp_type().to_string()),
        (QpType::Ud, "UD".into())
    );
    qp.open_datagram(QKEY, Mtu::Mtu2048).unwrap();
    assert_eq!(qp.state(), QpState::Rts);
    let images = fake.state().qps[&qp.qpn()];
    assert_eq!(images.av, qpc::AvCtx::default());
    let (sq, rq) = (images.sq, images.rq);
    assert_eq!((sq.qp_type, rq.qp_type), (qp_type::UD, qp_type::UD));
    assert_eq!((sq.mtu, rq.mtu, rq.qkey), (4, 4, QKEY));
    assert_eq!((sq.max_rd_atomic, rq.max_dest_rd_atomic), (0, 0));
}

#[test]
fn there_is_one_queue_pair_of_management() {
    let (fake, context) = open(ALL);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(4).unwrap());
    let gsi = || Qp::builder(&pd).gsi().cq(&cq).build();
    let mut qp = gsi().unwrap();
    assert_eq!((qp.qpn(), qp.qp_type()), (1, QpType::Ud));
    qp.open_datagram(GSI_QKEY, Mtu::Mtu1024).unwrap();
    let rq = fake.state().qps[&1].rq;
    assert_eq!((rq.qp_type, rq.qkey), (qp_type::UD, 0x8001_0000));
    assert!(matches!(gsi().unwrap_err(), BuildError::GsiInUse));
    // Others do not get its number, also when it is free again.
    drop(qp);
    let other = Qp::builder(&pd).ud().cq(&cq).build().unwrap();
    assert!(other.qpn() >= 2);
    assert_eq!(gsi().unwrap().qpn(), 1);
}

#[test]
fn connections_have_a_path_and_datagrams_none() {
    let (_, context) = open(ALL);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(4).unwrap());
    for (qp_type, attr) in [
        (QpType::Ud, QpAttr::Rtr(RtrAttr::new(path(), 1, 2))),
        (QpType::Uc, QpAttr::RtrUd(Mtu::Mtu1024)),
    ] {
        let builder = Qp::builder(&pd).cq(&cq);
        let builder = match qp_type {
            QpType::Ud => builder.ud(),
            _ => builder.uc(),
        };
        let mut qp = builder.build().unwrap();
        qp.modify(&QpAttr::Init(Default::default())).unwrap();
        let e = qp.modify(&attr).unwrap_err();
        let qpn = qp.qpn();
        assert_eq!(e, ModifyError::Transport { qpn, qp_type });
        assert_eq!(qp.state(), QpState::Init);
    }
}

#[test]
fn address_handles_hold_a_path_each() {
    let (fake, context) = open(ALL);
    assert_eq!(context.query_device().max_ah, 4);
    let pd = context.alloc_pd();
    let ahs: Vec<_> = (0..4u8)
        .map(|i| {
            let mut path = Path::new(ipv4(10 + i), REMOTE_MAC);
            path.vlan = Some(i.into());
            pd.create_ah(&path).unwrap()
        })
        .collect();
    for (i, av) in (0..4u8).map(|i| (i, fake.state().ahs[&i.into()])) {
        assert_eq!(av.dgid, ipv4(10 + i).to_le_bits());
        assert_eq!((av.vlan_valid, av.vlan, av.pkey), (true, i.into(), 0xffff));
    }
    // A port for each, as for connections that have no flow label.
    let ports: BTreeSet<_> = (0..4u32).map(|i| fake.state().ahs[&i].udp_sport).collect();
    assert_eq!(ports, BTreeSet::from([0xc000, 0xd872, 0xf0e4, 0xc956]));
    let full = pd.create_ah(&path()).err();
    assert_eq!(full, Some(AhError::Full { limit: 4 }));
    drop(ahs);
    let labelled = Path {
        flow_label: 0x1_2345,
        ..path()
    };
    drop(pd.create_ah(&labelled).unwrap());
    let mut ahs = fake.state().ahs.clone().into_values();
    let av = ahs.find(|av| av.flow_label == 0x1_2345).unwrap();
    assert_eq!(av.udp_sport, 0xe341);
    let bad = Path {
        sgid_index: 1,
        ..path()
    };
    let cause = PathError::NoGid { sgid_index: 1 };
    assert_eq!(pd.create_ah(&bad).err(), Some(AhError::Path(cause)));
    let (_, context) = open(Features::RC);
    let full = context.alloc_pd().create_ah(&path()).err();
    assert_eq!(full, Some(AhError::Full { limit: 0 }));
}

#[test]
fn address_handles_are_of_their_domain_and_keep_it() {
    let (fake, context) = open(ALL);
    let pds = [context.alloc_pd(), context.alloc_pd()];
    let numbers = pds.each_ref().map(|pd| pd.number());
    let ahs = pds.each_ref().map(|pd| pd.create_ah(&path()).unwrap());
    let written = [0, 1].map(|i| fake.state().ahs[&i].pd);
    assert_eq!(written, numbers);
    // a number comes back last: each is given out once
    let comes_back = || (0..1 << 24).any(|_| numbers.contains(&context.alloc_pd().number()));
    drop(pds);
    assert!(!comes_back());
    drop(ahs);
    assert!(comes_back());
}

#[test]
fn requests_carry_where_they_go() {
    let (fake, context) = open(ALL);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(4).unwrap());
    let mut qp = Qp::builder(&pd).ud().cq(&cq).build().unwrap();
    qp.open_datagram(QKEY, Mtu::Mtu1024).unwrap();
    let ah = [
        pd.create_ah(&path()).unwrap(),
        pd.create_ah(&path()).unwrap(),
    ];
    let to = ah[1].to(0x12_3456, QKEY);
    let list = |length| [sge(64, length, 3)];
    qp.post_send(&[SendWr::new(SendOp::DatagramImm(to, 9), &list(1024))])
        .unwrap();
    let (head, _, _) = fake.send_wqe(qp.qpn(), 0);
    assert_eq!((head.opcode, head.imm), (opcode::SEND_IMM, 9));
    let address = UdAddress::parse(head.emit()[8..20].try_into().unwrap());
    let expected = UdAddress {
        ah: 1,
        remote_qpn: 0x12_3456,
        qkey: QKEY,
    };
    assert_eq!(address, expected);
    let mut refused = |op, length| {
        let e = qp.post_send(&[SendWr::new(op, &list(length))]);
        e.unwrap_err().cause
    };
    let (found, limit) = (1025, 1024);
    assert_eq!(
        refused(SendOp::Datagram(to), 1025),
        PostCause::Length { found, limit }
    );
    for op in [
        SendOp::Send,
        SendOp::Write(Remote::default()),
        SendOp::Read(Remote::default()),
    ] {
        assert!(
            matches!(refused(op, 8), PostCause::Unsupported { .. }),
            "{op:?}"
        );
    }
    let mut connected = Qp::builder(&pd).rc().cq(&cq).build().unwrap();
    connected.connect(&crate::setup::peer()).unwrap();
    let e = connected.post_send(&[SendWr::new(SendOp::Datagram(to), &[])]);
    assert!(matches!(
        e.unwrap_err().cause,
        PostCause::Unsupported { .. }
    ));
}
