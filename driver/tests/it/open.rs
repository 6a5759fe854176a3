//! Opening a card, and commands that go wrong.

use ferroce_driver::{
    AbiVersion, Access, COMMAND_LIMIT_NS, CommandError, Context, Features, GidError, OpenError, Qp,
    READY_LIMIT_NS,
};
use ferroce_proto::abi::cmd::{opcode, status};
use ferroce_proto::abi::regs::{STATS, control};

use crate::fake::{ALL, Answer, BASIC, Fake};
use crate::setup::{LOCAL_MAC, ipv4, open};

fn failure(fake: &Fake) -> OpenError {
    Context::open(fake.clone()).map(drop).unwrap_err()
}

#[test]
fn another_device_is_refused() {
    let fake = Fake::new(ALL);
    fake.state().magic = 0x1234_5678;
    assert_eq!(
        failure(&fake).to_string(),
        "register MAGIC reads 0x12345678, expected 0x45435246 (\"FRCE\"): \
         this is not a Ferroce card; check which device was opened"
    );
    fake.state().bar_len = 0x1_0000;
    assert_eq!(
        failure(&fake).to_string(),
        "BAR0 has 65536 bytes, this driver needs 4194304: this is not a Ferroce card, or an image with another \
         address map; check which device was opened"
    );
}

#[test]
fn an_absent_card_is_named() {
    let fake = Fake::new(ALL);
    fake.state().magic = u32::MAX;
    let e = failure(&fake);
    assert!(matches!(e, OpenError::Absent), "{e}");
}

#[test]
fn another_major_version_is_refused_and_minor_is_not() {
    let fake = Fake::new(ALL);
    fake.state().version = 0x0001_0003;
    let e = failure(&fake);
    assert!(matches!(
        e,
        OpenError::Version {
            card: AbiVersion { major: 1, minor: 3 },
            ..
        }
    ));
    let text = e.to_string();
    assert!(
        text.contains("version 1.3") && text.contains("version 2.0"),
        "{text}"
    );
    fake.state().version = 0x0002_0007;
    assert_eq!(
        Context::open(fake)
            .unwrap()
            .query_device()
            .abi_version
            .minor,
        7
    );
}

#[test]
fn parameters_that_cannot_be_are_named() {
    let fake = Fake::new(ALL);
    fake.state().params.log_qp = 18;
    assert_eq!(
        failure(&fake).to_string(),
        "parameter log_qp of the card is 18, this driver takes 2 to 17: load another build, or a newer driver"
    );
    fake.state().params.log_qp = 4;
    fake.state().params.log_gid = 9;
    let e = failure(&fake);
    assert!(
        matches!(
            e,
            OpenError::Parameter {
                parameter: "log_gid",
                value: 9,
                minimum: 0,
                maximum: 8,
            }
        ),
        "{e}"
    );
    assert!(fake.state().mapped.is_empty());
}

#[test]
fn ready_is_waited_for_so_long() {
    let fake = Fake::new(ALL);
    fake.state().ready_in = Some(100);
    drop(Context::open(fake.clone()).unwrap());
    fake.state().ready_in = None;
    assert!(matches!(
        failure(&fake),
        OpenError::NotReady {
            limit_ns: READY_LIMIT_NS,
            ..
        }
    ));
    assert!(fake.state().mapped.is_empty());
}

#[test]
fn a_card_in_use_is_reset_and_a_fresh_one_is_not() {
    let fake = Fake::new(ALL);
    let context = Context::open(fake.clone()).unwrap();
    assert_eq!(fake.state().resets, 0);
    // A driver that died leaves the card enabled and its rings known.
    std::mem::forget(context);
    let context = Context::open(fake.afresh()).unwrap();
    assert_eq!(fake.state().resets, 1);
    assert_eq!(fake.state().control, control::ENABLE);
    drop(context);
    let state = fake.state();
    assert_eq!((state.resets, state.control), (2, 0));
}

#[test]
fn closing_takes_back_all_memory() {
    let (fake, context) = open(ALL);
    let cq = context.create_cq(100).unwrap();
    let region = context
        .alloc_pd()
        .alloc_mr(5000, Default::default())
        .unwrap();
    assert!(!fake.state().mapped.is_empty());
    drop((context, cq, region));
    assert!(fake.state().mapped.is_empty());
}

#[test]
fn a_card_that_refuses_memory_or_commands_is_not_opened() {
    let fake = Fake::new(ALL);
    fake.state().refuse_map = true;
    assert!(matches!(failure(&fake), OpenError::Memory(_)));
    fake.state().refuse_map = false;
    fake.state().answers.insert(opcode::NOP, Answer::Never);
    assert!(matches!(
        failure(&fake),
        OpenError::Command(CommandError::Timeout { .. })
    ));
    assert!(fake.state().mapped.is_empty());
}

#[test]
fn limits_come_from_the_card() {
    let (_, context) = open(ALL);
    let info = context.query_device();
    assert_eq!(
        (
            info.max_qp,
            info.max_mr,
            info.max_cq,
            info.max_outstanding,
            info.max_gid
        ),
        (16, 64, 8, 256, 8)
    );
    assert_eq!(
        (info.max_send_sge, info.max_recv_sge, info.max_inline_data),
        (16, 16, 288)
    );
    assert_eq!(
        (info.data_width, info.core_clock_mhz, info.max_rd_atomic),
        (512, 250, 16)
    );
    let (_, context) = open(Features::RC);
    let info = context.query_device();
    assert_eq!(
        (info.max_send_sge, info.max_recv_sge, info.max_inline_data),
        (2, 3, 32)
    );
    assert_eq!(info.max_rd_atomic, 0);
}

#[test]
fn statistics_have_their_names() {
    let (_, context) = open(ALL);
    let statistics = context.statistics();
    assert_eq!(statistics.len(), STATS.len());
    for (i, (name, value)) in (0..).zip(statistics) {
        assert_eq!((name, value), (STATS[i as usize], i | (i + 1) << 32));
    }
}

#[test]
fn the_link_is_that_of_the_shell() {
    let (fake, context) = open(ALL);
    assert!(context.status().link_up, "nothing tells");
    const SHELL: u32 = u32::from_le_bytes(*b"SHLL");
    for (words, up) in [
        ([SHELL, 0x1_0000, 0b0010], false),
        ([SHELL, 0x1_0007, 0b0011], true),
        // Another page.
        ([SHELL, 0x2_0000, 0b0000], true),
        ([SHELL + 1, 0x1_0000, 0b0000], true),
    ] {
        fake.state().shell = Some(words);
        let status = context.status();
        assert_eq!((status.link_up, status.ready), (up, true), "{words:x?}");
    }
}

#[test]
fn a_refusal_names_operation_object_and_status() {
    let (fake, context) = open(ALL);
    fake.state()
        .answers
        .insert(opcode::SET_GID, Answer::Status(status::BAD_PARAM));
    let e = context.set_gid(3, ipv4(9)).unwrap_err();
    assert!(
        e.to_string()
            .starts_with("the card refused to set GID 3: a parameter is out of the range"),
        "{e}"
    );
    // The ring still works.
    context.set_mac(LOCAL_MAC).unwrap();
}

#[test]
fn a_card_without_answers_is_given_up_after_the_limit() {
    let (fake, context) = open(ALL);
    fake.state().answers.insert(opcode::SET_PORT, Answer::Never);
    let before = fake.state().now_ns;
    let e = context.set_mac(LOCAL_MAC).unwrap_err();
    assert!(matches!(
        e,
        CommandError::Timeout {
            operation: "set port",
            index: 0,
            limit_ns: COMMAND_LIMIT_NS,
            ..
        }
    ));
    assert!(fake.state().now_ns - before > COMMAND_LIMIT_NS);
    fake.state().answers.clear();
    let commands = fake.state().commands.len();
    assert!(matches!(
        context.set_mac(LOCAL_MAC).unwrap_err(),
        CommandError::Dead { .. }
    ));
    assert_eq!(fake.state().commands.len(), commands);
}

#[test]
fn an_answer_to_something_else_is_noticed() {
    let (fake, context) = open(ALL);
    fake.state()
        .answers
        .insert(opcode::SET_PORT, Answer::WrongToken);
    assert!(matches!(
        context.set_mac(LOCAL_MAC).unwrap_err(),
        CommandError::Mismatch { .. }
    ));
    assert!(matches!(
        context.set_mac(LOCAL_MAC).unwrap_err(),
        CommandError::Dead { .. }
    ));
}

#[test]
fn the_command_ring_wraps() {
    let (fake, context) = open(ALL);
    let before = fake.state().commands.len();
    for i in 0..100 {
        context.set_gid(i % 8, ipv4(i)).unwrap();
    }
    let state = fake.state();
    let tokens: Vec<_> = state.commands[before..].iter().map(|c| c.token).collect();
    assert_eq!(
        tokens,
        (before as u16..before as u16 + 100).collect::<Vec<_>>()
    );
}

#[test]
fn gids_are_checked() {
    let (_, context) = open(BASIC);
    assert_eq!(
        context.set_gid(8, ipv4(1)),
        Err(GidError::Index { index: 8, limit: 8 })
    );
    let ipv6 = ferroce_driver::Gid::link_local(LOCAL_MAC);
    assert_eq!(context.set_gid(1, ipv6), Err(GidError::Ipv6(ipv6)));
}

#[test]
fn an_address_stands_in_the_gid_table_once() {
    let (fake, context) = open(ALL);
    context.set_gid(2, ipv4(7)).unwrap();
    let before = fake.state().commands.len();
    let taken = GidError::Taken {
        gid: ipv4(7),
        index: 2,
    };
    for index in [1, 3] {
        assert_eq!(context.set_gid(index, ipv4(7)), Err(taken.clone()));
    }
    assert_eq!(
        taken.to_string(),
        "address 10.0.0.7 is GID 2 already: use that, or empty it first"
    );
    assert_eq!(fake.state().commands.len(), before);
    // The same entry again, and another one when it is empty.
    context.set_gid(2, ipv4(7)).unwrap();
    context.clear_gid(2).unwrap();
    context.set_gid(1, ipv4(7)).unwrap();
}

#[test]
fn addresses_reach_the_card() {
    let (fake, context) = open(ALL);
    let bytes = |bits: u128| bits.to_le_bytes();
    assert_eq!(bytes(fake.state().port.mac.into())[..6], LOCAL_MAC.0);
    assert!(!fake.state().port.promiscuous);
    context.set_port(LOCAL_MAC, true).unwrap();
    assert!(fake.state().port.promiscuous);
    let ipv6 = ferroce_driver::Gid::link_local(LOCAL_MAC);
    context.set_gid(1, ipv6).unwrap();
    let entries = fake.state().gids.clone();
    assert_eq!(
        (bytes(entries[&0].gid), entries[&0].valid, entries[&0].ipv6),
        (ipv4(1).0, true, false)
    );
    assert_eq!(
        (bytes(entries[&1].gid), entries[&1].valid, entries[&1].ipv6),
        (ipv6.0, true, true)
    );
    context.clear_gid(1).unwrap();
    assert!(!fake.state().gids[&1].valid);
}

/// A second context would reset the card under the objects of the first.
#[test]
fn a_card_is_opened_once_at_a_time() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    drop(context);
    assert!(matches!(failure(&fake), OpenError::InUse));
    assert_eq!(fake.state().resets, 0);
    drop(pd);
    let open = Context::open(fake.clone()).unwrap();
    assert!(matches!(failure(&fake), OpenError::InUse));
    drop(open);
    fake.state().ready_in = None;
    assert!(matches!(failure(&fake), OpenError::NotReady { .. }));
    fake.state().ready_in = Some(0);
    Context::open(fake).unwrap();
}

/// An outsider cannot guess the numbers of a connection: they differ from one opening to the next.
#[test]
fn numbers_are_random_by_default() {
    let numbers = |seed| {
        let fake = Fake::new(ALL);
        fake.state().seed = seed;
        let context = Context::open(fake).unwrap();
        context.set_gid(0, ipv4(1)).unwrap();
        let (pd, cq) = (context.alloc_pd(), context.create_cq(8).unwrap());
        let mut numbers = Vec::new();
        for _ in 0..4 {
            let qp = Qp::builder(&pd).cq(&cq).outstanding(1).build().unwrap();
            let region = pd.alloc_mr(8, Access::empty()).unwrap();
            let end = qp.endpoint().unwrap();
            numbers.push((end.qpn, end.psn, region.rkey()));
        }
        numbers
    };
    assert_eq!(numbers(Some(7)), numbers(Some(7)));
    assert_ne!(numbers(Some(7)), numbers(Some(8)));
    let random = [numbers(None), numbers(None)];
    assert_ne!(random[0], random[1]);
    let inside = |&(qpn, psn, key): &(u32, u32, u32)| {
        (2..16).contains(&qpn) && psn < 1 << 24 && key >> 8 < 64 && key & 0xff != 0
    };
    assert!(random.iter().flatten().all(inside));
}
