//! Traffic classes: text, ranges, registers.

use ferroce_driver::{Backend, ClassError, Classes, ExceptionError, Features, Share, Trust, Turn};
use ferroce_proto::abi::{classes, regs};

use crate::fake::{ALL, BASIC};
use crate::setup::open;

fn refused(text: &str) -> String {
    text.parse::<Classes>().unwrap_err().to_string()
}

#[test]
fn text_says_what_is_not_as_after_reset() {
    assert_eq!("".parse(), Ok(Classes::default()));
    let classes: Classes = "trust=pcp:3 dscp2prio=26:3,48:6 prio_tc=0,0,0,1,0,0,1,3 \
                            turn=10,strict,20,70 pfc=0,0,0,1,0,0,1,0 xoff=200/90 xon=80/40 \
                            lossy=100/50 watchdog=0 storm=250 cable=40 reaction=60 frame=9018"
        .parse()
        .unwrap();
    let mut dscp_priority = Classes::default().dscp_priority;
    (dscp_priority[26], dscp_priority[48]) = (3, 6);
    let share = |units, packets| Share { units, packets };
    let expected = Classes {
        trust: Trust::Pcp { untagged: 3 },
        dscp_priority,
        class: [0, 0, 0, 1, 0, 0, 1, 3],
        turn: [
            Turn::Weight(10),
            Turn::Strict,
            Turn::Weight(20),
            Turn::Weight(70),
        ],
        pause_obeyed: 0x48,
        pause_sent: 0x48,
        xoff: share(200, 90),
        xon: share(80, 40),
        lossy: share(100, 50),
        watchdog_ms: 0,
        storm_ms: 250,
        cable_m: 40,
        reaction: 60,
        host_frame: Some(9018),
    };
    assert_eq!(classes, expected);
}

#[test]
fn what_is_wrong_is_named() {
    for (text, expected) in [
        (
            "trust",
            "`trust` is no setting of traffic classes: expected trust, dscp2prio",
        ),
        ("trust=vlan", "expected trust=dscp, trust=pcp or"),
        ("trust=dscp:1", "expected trust=dscp, trust=pcp or"),
        (
            "trust=pcp:8",
            "priority without a tag is 8, expected at most 7",
        ),
        ("dscp2prio=64:1", "DSCPs from 0 to 63"),
        ("dscp2prio=5", "DSCPs from 0 to 63"),
        (
            "dscp2prio=5:9",
            "priority of DSCP 5 is 9, expected at most 7",
        ),
        ("prio_tc=0,1", "a class of each of 8 priorities"),
        (
            "prio_tc=0,1,2,3,4,0,0,0",
            "class of priority 4 is 4, expected at most 3",
        ),
        ("turn=1,2,3", "a weight or `strict` of each of 4 classes"),
        (
            "turn=1,0,3,4",
            "class 1 weighs 0, expected 1 to 127 or strict",
        ),
        (
            "turn=1,200,3,4",
            "weight of class 1 is 200, expected at most 127",
        ),
        ("pfc=3", "0 or 1 of each of 8 priorities"),
        ("xoff=70000/1", "UNITS/PACKETS, each below 65536"),
        (
            "xon=500/1",
            "xon of 500 units and 1 packets is above xoff of 352 and 160",
        ),
        (
            "xon=0/52",
            "xon of 0 units and 52 packets would end no pause, expected 1 of each at least",
        ),
        (
            "watchdog=16384",
            "watchdog is 16384, expected at most 16383",
        ),
        ("storm=8192", "storm is 8192, expected at most 8191"),
        ("cable=x", "expected metres"),
        ("reaction=x", "expected quanta"),
        (
            "pfc=1,1,1,0,0,0,0,0",
            "2 classes that send pauses take 3839 units and 1954 packets",
        ),
        (
            "pfc=0,0,0,1,0,0,0,0 xoff=382/160",
            "1 classes that send pauses take 2049 units and 1012 packets of the receive buffer with 100 m of cable, \
             a peer that stops within 394 quanta",
        ),
        (
            "pfc=0,0,0,1,0,0,0,0 xoff=352/173",
            "2019 units and 1025 packets",
        ),
        (
            "pfc=0,0,0,1,0,0,0,0 frame=9018",
            "frames of the host of 9018 bytes, expected at most 2048 and 1024: lower xoff and xon, lossy,",
        ),
    ] {
        let found = refused(text);
        assert!(found.contains(expected), "{text}: {found}");
    }
}

#[test]
fn registers_have_them() {
    let (fake, context) = open(ALL | Features::CLASSES);
    let read = |register: u32| fake.read32(register.into());
    context.set_classes(&Classes::default()).unwrap();
    for i in 0..8 {
        let register = regs::DSCP_PRIO_0 + 4 * i as u32;
        assert_eq!(read(register), classes::dscp_prio_reset(i));
    }
    for (register, reset) in [
        (regs::TRUST, classes::TRUST_RESET),
        (regs::PRIO_CLASS, classes::PRIO_CLASS_RESET),
        (regs::CLASS_WEIGHT, classes::CLASS_WEIGHT_RESET),
        (regs::PFC_CONFIG, 0),
        (regs::PFC_WATCHDOG, classes::PFC_WATCHDOG_RESET),
        (regs::PFC_STORM, classes::PFC_STORM_RESET),
        (regs::PFC_XOFF, classes::PFC_XOFF_RESET),
        (regs::PFC_XON, classes::PFC_XON_RESET),
        (regs::PFC_LOSSY, classes::PFC_LOSSY_RESET),
    ] {
        assert_eq!(read(register), reset, "{register:#x}");
    }
    let mut other: Classes =
        "trust=pcp:5 dscp2prio=10:7 prio_tc=3,0,0,0,0,0,0,1 turn=1,strict,2,3 xoff=380/170"
            .parse()
            .unwrap();
    (other.pause_obeyed, other.pause_sent) = (0x81, 0x10);
    context.set_classes(&other).unwrap();
    for (register, expected) in [
        (regs::TRUST, 0x501),
        (regs::DSCP_PRIO_1, 0x1111_1711),
        (regs::PRIO_CLASS, 0x1000_0003),
        (regs::CLASS_WEIGHT, 0x0302_0001),
        (regs::PFC_CONFIG, 0x1081),
        (regs::PFC_XOFF, 0x00aa_017c),
    ] {
        assert_eq!(read(register), expected, "{register:#x}");
    }
    // nothing is changed by what is wrong
    other.class[2] = 4;
    other.pause_sent = 0;
    assert!(matches!(
        context.set_classes(&other),
        Err(ClassError::Range { .. })
    ));
    assert_eq!(read(regs::PFC_CONFIG), 0x1081);
    let (_, context) = open(BASIC);
    let refused = context.set_classes(&Classes::default());
    assert_eq!(refused, Err(ClassError::Unsupported));
}

/// The values after reset are those of a class over 100 m, without jumbo frames of the host.
#[test]
fn headroom_is_there() {
    for text in [
        "pfc=0,0,0,1,0,0,0,0",
        "pfc=0,0,1,1,0,0,0,0 xoff=381/172",
        "pfc=0,0,0,1,0,0,0,0 frame=9018 xoff=279/115",
        "pfc=0,0,1,0,0,1,0,0 cable=10 reaction=60 xoff=150/84 xon=18/16",
    ] {
        let classes = text.parse::<Classes>();
        assert!(classes.is_ok(), "{text}: {classes:?}");
    }
    let (_, context) = open(ALL | Features::CLASSES);
    let classes: Classes = "pfc=0,0,0,1,0,0,0,0".parse().unwrap();
    let jumbo = context.create_exception_queue(4, true).unwrap();
    let refused = context.set_classes(&classes).unwrap_err().to_string();
    assert!(
        refused.contains("frames of the host of 16320 bytes"),
        "{refused}"
    );
    let small: Classes = "pfc=0,0,0,1,0,0,0,0 frame=1518".parse().unwrap();
    context.set_classes(&small).unwrap();
    drop(jumbo);
    context.set_classes(&classes).unwrap();
    let refused = context.create_exception_queue(4, true);
    assert!(matches!(refused, Err(ExceptionError::Headroom)));
    assert!(context.create_exception_queue(4, false).is_ok());
}
