//! Parameters of congestion control: names, ranges, registers.

use ferroce_driver::{
    Backend, ChangeAttr, Congestion, CongestionControl, CongestionError, Features, ModifyError, Qp,
    QpAttr,
};
use ferroce_proto::abi::regs;

use crate::fake::{ALL, BASIC};
use crate::modify::{bring, steps};
use crate::setup::open;

#[test]
fn what_is_wrong_is_named() {
    for (text, expected) in [
        (
            "rpg_gd",
            "`rpg_gd` is no parameter of congestion control with its value",
        ),
        ("rpg_gd=x", "`rpg_gd=x` is no parameter"),
        (
            "rpg_gf=1",
            "expected NAME=VALUE with one of np_enable, cnp_dscp, ",
        ),
        ("rpg_gd=16", "rpg_gd is 16, expected 0 to 15"),
        (
            "rpg_time_reset=0",
            "rpg_time_reset is 0, expected 1 to 131071",
        ),
        ("cnp_dscp=64", "cnp_dscp is 64, expected 0 to 63"),
    ] {
        let found = text.parse::<Congestion>().unwrap_err().to_string();
        assert!(found.contains(expected), "{text}: {found}");
    }
}

#[test]
fn what_is_named_changes_and_nothing_else() {
    let (fake, context) = open(ALL | Features::CNP | Features::RATES | Features::SWIFT);
    let read = |register: u32| fake.read32(register.into());
    let all = context.congestion();
    assert_eq!(all.len(), 35);
    let first = "np_enable=1 cnp_dscp=48 cnp_802p_prio=6 rpg_ai_rate=1048575 rp_enable=1";
    context.set_congestion(&first.parse().unwrap()).unwrap();
    assert_eq!(read(regs::CNP_CONFIG), 1 << 16 | 6 << 8 | 48);
    assert_eq!(read(regs::RPG_AI_RATE), 0xf_ffff);
    let next = Congestion::default().with("cnp_dscp", 26).unwrap();
    let next = next.with("alpha_first", 1).unwrap();
    context.set_congestion(&next).unwrap();
    assert_eq!(read(regs::CNP_CONFIG), 1 << 16 | 6 << 8 | 26);
    assert_eq!(read(regs::RP_CONFIG), 1 << 3 | 1);
    let of = |name: &str| {
        let all = context.congestion();
        all.into_iter().find(|(own, _)| own == name).unwrap().1
    };
    assert_eq!(
        (of("cnp_dscp"), of("cnp_802p_prio"), of("np_enable")),
        (26, 6, 1)
    );
    assert_eq!((of("rpg_ai_rate"), of("clamp_tgt_rate")), (0xf_ffff, 0));
    let swift = "base_target=30000 max_mdf=1024 max_cwnd=9".parse().unwrap();
    context.set_congestion(&swift).unwrap();
    assert_eq!(read(regs::SWIFT_TARGET), 1024 << 20 | 30_000);
    assert_eq!(
        (of("max_mdf"), of("max_cwnd"), of("fs_range")),
        (1024, 9, 0)
    );

    let (fake, context) = open(BASIC | Features::CNP);
    let both = "cnp_dscp=3 rpg_gd=3".parse().unwrap();
    let refused = context.set_congestion(&both).unwrap_err();
    assert!(matches!(refused, CongestionError::Unsupported { name } if name == "rpg_gd"));
    assert_eq!(fake.read32(regs::CNP_CONFIG.into()), 0);
    assert_eq!(context.congestion().len(), 4);
}

#[test]
fn congestion_control_is_chosen_before_rts() {
    let choose = |control| ChangeAttr {
        congestion: Some(control),
        ..ChangeAttr::default()
    };
    let (fake, context) = open(ALL | Features::RATES | Features::SWIFT);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let swift_of = |qp: &Qp<_>| fake.state().qps[&qp.qpn()].sq.swift;
    let mut qp = Qp::builder(&pd).cq(&cq).build().unwrap();
    bring(&mut qp, 3);
    assert!(!swift_of(&qp));
    let e = qp.change(&choose(CongestionControl::Swift)).unwrap_err();
    assert!(matches!(e, ModifyError::Change { .. }), "{e}");
    qp.modify(&QpAttr::Reset).unwrap();
    bring(&mut qp, 2);
    qp.change(&choose(CongestionControl::Swift)).unwrap();
    qp.modify(&steps()[3]).unwrap();
    assert!(swift_of(&qp));
    qp.modify(&QpAttr::Reset).unwrap();
    bring(&mut qp, 3);
    assert!(swift_of(&qp));

    // of the context, unless the builder chooses
    context.set_congestion(&"swift=1".parse().unwrap()).unwrap();
    for (builder, expected) in [
        (Qp::builder(&pd), true),
        (Qp::builder(&pd).congestion(CongestionControl::Dcqcn), false),
    ] {
        let mut qp = builder.cq(&cq).build().unwrap();
        bring(&mut qp, 3);
        assert_eq!(swift_of(&qp), expected);
    }

    let (_, context) = open(ALL - Features::SWIFT);
    let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
    let builder = Qp::builder(&pd).cq(&cq);
    let refused = builder.congestion(CongestionControl::Swift).build();
    let e = refused.expect_err("the card has no Swift").to_string();
    assert!(e.starts_with("congestion of 1 was asked for"), "{e}");
    let e = context.set_congestion(&"swift=1".parse().unwrap());
    assert!(e.unwrap_err().to_string().contains("`swift`"));
}
