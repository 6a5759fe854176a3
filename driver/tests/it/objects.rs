//! Memory regions, completion queues and queue pairs: numbers, limits, lifetimes.

use ferroce_driver::{Access, BuildError, CqError, MrError, Qp, RecvWr, SendOp, SendWr, Wc};
use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::qpc::state;

use crate::fake::{ALL, Answer, BASIC, PAGE};
use crate::setup::{Connected, open, peer};

#[test]
fn a_region_is_one_entry_with_its_rights() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let mut region = pd
        .alloc_mr(100, Access::LOCAL_WRITE | Access::REMOTE_READ)
        .unwrap();
    let place = region.lkey() >> 8;
    let ctx = fake.state().mrs[&place];
    assert_eq!(
        (ctx.base, ctx.last, ctx.key),
        (region.addr(), region.addr() + 99, region.rkey())
    );
    assert!(
        ctx.valid && ctx.local_write && ctx.remote_read && !ctx.remote_write && !ctx.remote_atomic
    );
    region.write(90, b"0123456789");
    assert_eq!(fake.state().read(region.addr() + 90), *b"0123456789");
    assert_eq!(region.to_vec(89, 3), b"\x0001");
    let sge = region.sge(10..30);
    assert_eq!(
        (sge.addr(), sge.length(), sge.lkey()),
        (region.addr() + 10, 20, region.lkey())
    );
    assert_eq!(region.sge(..=9).length(), 10);
    drop(region);
    assert!(!fake.state().mrs[&place].valid);
}

#[test]
#[should_panic(expected = "bytes 90..101 are not a part of a region of 100 bytes")]
fn a_part_outside_of_a_region_is_refused() {
    let (_, context) = open(ALL);
    let region = context.alloc_pd().alloc_mr(100, Access::empty()).unwrap();
    let _ = region.sge(90..101);
}

#[test]
fn a_table_place_used_again_has_another_key() {
    let (_, context) = open(ALL);
    let pd = context.alloc_pd();
    let mut last = [None; 64];
    for _ in 0..64 * 260 {
        let key = pd.alloc_mr(1, Access::empty()).unwrap().lkey();
        let last = &mut last[(key >> 8) as usize];
        assert!(key & 0xff != 0 && *last != Some(key));
        *last = Some(key);
    }
}

#[test]
fn a_full_table_says_so() {
    let (_, context) = open(ALL);
    let pd = context.alloc_pd();
    let mut regions: Vec<_> = (0..64)
        .map(|_| pd.alloc_mr(8, Access::empty()).unwrap())
        .collect();
    assert!(matches!(
        pd.alloc_mr(8, Access::empty()),
        Err(MrError::Full { limit: 64 })
    ));
    regions.pop();
    pd.alloc_mr(8, Access::empty()).unwrap();
}

#[test]
fn senseless_regions_are_refused() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    assert!(matches!(
        pd.alloc_mr(0, Access::empty()),
        Err(MrError::Length { .. })
    ));
    assert!(matches!(
        pd.alloc_mr(8, Access::REMOTE_WRITE),
        Err(MrError::Access(_))
    ));
    assert!(matches!(
        pd.alloc_mr(8, Access::REMOTE_ATOMIC),
        Err(MrError::Access(_))
    ));
    // SAFETY: refused before anything is done with the address.
    let wrapping = unsafe {
        pd.reg_mr(
            std::ptr::without_provenance_mut(usize::MAX - 3),
            8,
            Access::empty(),
        )
    };
    assert!(matches!(wrapping, Err(MrError::Length { .. })));
    let map = memmap2::MmapMut::map_anon(3 * PAGE).unwrap();
    let (start, len) = (map.as_ptr().cast_mut(), map.len());
    drop(map);
    // SAFETY: refused before anything is done with the address.
    let unmapped = unsafe { pd.reg_mr(start.wrapping_add(100), len - 200, Access::empty()) };
    let e = unmapped.err().unwrap();
    assert!(matches!(e, MrError::Unmapped { .. }), "{e}");
    assert!(e.to_string().contains("has no memory"), "{e}");
    fake.state()
        .answers
        .insert(opcode::WRITE_MR, Answer::Status(3));
    let mapped = fake.state().mapped.len();
    assert!(matches!(
        pd.alloc_mr(8, Access::empty()),
        Err(MrError::Command(_))
    ));
    assert_eq!(fake.state().mapped.len(), mapped);
}

#[test]
fn regions_may_share_pages() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let before = fake.state().mapped.clone();
    let mut memory = vec![0u8; 8 * PAGE];
    let base = memory.as_mut_ptr();
    let reachable = |offset: usize| {
        let at = base.addr() + offset;
        fake.state()
            .mapped
            .range(..=at)
            .next_back()
            .is_some_and(|(start, len)| at < start + len)
    };
    let region = |offset: usize, len| {
        // SAFETY: `memory` outlives the regions and is not touched while they live.
        unsafe { pd.reg_mr(base.add(offset), len, Access::LOCAL_WRITE) }.unwrap()
    };
    let a = region(10, 3 * PAGE);
    let b = region(3 * PAGE + 10, 3 * PAGE);
    let whole = region(0, 8 * PAGE);
    let inner = region(2 * PAGE, 10);
    drop(whole);
    assert!(reachable(10) && reachable(3 * PAGE + 9) && reachable(6 * PAGE + 9));
    drop(a);
    assert!(reachable(2 * PAGE + 9), "of `inner`");
    assert!(reachable(3 * PAGE + 10), "of `b`");
    drop(b);
    assert!(reachable(2 * PAGE + 9));
    drop(inner);
    assert_eq!(fake.state().mapped, before);
}

#[test]
fn completion_queues_have_limits_and_numbers_come_back() {
    let (fake, context) = open(ALL);
    assert!(matches!(context.create_cq(0), Err(CqError::Entries { .. })));
    assert!(matches!(
        context.create_cq((1 << 22) + 1),
        Err(CqError::Entries {
            limit: 0x40_0000,
            ..
        })
    ));
    assert_eq!(context.create_cq(1).unwrap().capacity(), 2);
    assert_eq!(context.create_cq(65).unwrap().capacity(), 128);
    let mut cqs: Vec<_> = (0..8).map(|_| context.create_cq(4).unwrap()).collect();
    assert!(matches!(
        context.create_cq(4),
        Err(CqError::Full { limit: 8 })
    ));
    cqs.pop();
    context.create_cq(4).unwrap();
    fake.state()
        .answers
        .insert(opcode::CREATE_CQ, Answer::Status(3));
    cqs.pop();
    assert!(matches!(context.create_cq(4), Err(CqError::Command(_))));
    fake.state().answers.clear();
    context.create_cq(4).unwrap();
}

#[test]
fn queue_pairs_come_and_go_unpolled() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let cq = context.create_cq(64).unwrap();
    for _ in 0..100 {
        let mut qp = Qp::builder(&pd).cq(&cq).build().unwrap();
        assert!(qp.qpn() >= 2);
        qp.connect(&peer()).unwrap();
        qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        let number = qp.qpn();
        drop(qp);
        assert_eq!(fake.state().qps[&number].sq_state, state::RESET);
        assert_eq!(fake.state().qps[&number].rq_state, state::RESET);
    }
    let qps: Vec<_> = (2..16)
        .map(|_| Qp::builder(&pd).cq(&cq).outstanding(1).build().unwrap())
        .collect();
    assert!(matches!(
        Qp::builder(&pd).cq(&cq).build(),
        Err(BuildError::Full { limit: 16 })
    ));
    drop(qps);
}

#[test]
fn a_completion_of_an_earlier_life_is_dropped() {
    let Connected {
        fake,
        pd,
        mut cq,
        qp,
        ..
    } = Connected::new(ALL, 8, |b| b);
    let build = || Qp::builder(&pd).outstanding(1);
    let others: Vec<_> = (0..12).map(|_| build().cq(&cq).build().unwrap()).collect();
    let mut wcs = [Wc::default(); 8];
    let mut number = None;
    for round in 0..40 {
        let mut qp = build().cq(&cq).build().unwrap();
        // One number is free: it is used again and again.
        assert_eq!(*number.get_or_insert(qp.qpn()), qp.qpn());
        qp.connect(&peer()).unwrap();
        qp.post_send(&[SendWr::new(SendOp::Send, &[]).wr_id(round).signaled()])
            .unwrap();
        assert!(fake.complete_send(qp.qpn(), 0, 0));
        if round % 4 == 3 {
            assert_eq!(cq.poll(&mut wcs), 1);
            assert_eq!((wcs[0].wr_id, wcs[0].qp_num), (round, qp.qpn()));
        }
    }
    assert_eq!(cq.poll(&mut wcs), 0);
    assert_eq!(cq.unknown_cqes(), 0);
    drop((others, qp));
}

#[test]
fn any_order_of_drops_is_right() {
    for order in 0..24 {
        let Connected {
            fake,
            context,
            pd,
            cq,
            mut qp,
        } = Connected::new(ALL, 8, |b| b);
        let region = pd.alloc_mr(64, Access::LOCAL_WRITE).unwrap();
        qp.post_recv(&[RecvWr::new(0, &[region.sge(..)])]).unwrap();
        let mut objects: Vec<Box<dyn std::any::Any>> =
            vec![Box::new(pd), Box::new(cq), Box::new(qp), Box::new(region)];
        drop(context);
        let mut rest = order;
        while !objects.is_empty() {
            let which = rest % objects.len();
            rest /= objects.len();
            objects.remove(which);
        }
        let state = fake.state();
        assert!(state.mapped.is_empty());
        assert_eq!(state.resets, 1);
        let last = |opcode| {
            state
                .commands
                .iter()
                .rposition(|c| c.opcode == opcode)
                .unwrap()
        };
        assert!(last(opcode::MODIFY_QP) < last(opcode::DESTROY_CQ));
    }
}

#[test]
fn a_queue_pair_that_the_card_keeps_loses_its_number() {
    let Connected {
        fake, pd, cq, qp, ..
    } = Connected::new(ALL, 8, |b| b);
    let number = qp.qpn();
    fake.state()
        .answers
        .insert(opcode::MODIFY_QP, Answer::Status(4));
    drop(qp);
    fake.state().answers.clear();
    let qps: Vec<_> = (0..13)
        .map(|_| Qp::builder(&pd).cq(&cq).outstanding(1).build().unwrap())
        .collect();
    assert!(qps.iter().all(|qp| qp.qpn() != number));
    assert!(matches!(
        Qp::builder(&pd).cq(&cq).build(),
        Err(BuildError::Full { .. })
    ));
}

#[test]
fn builds_larger_than_the_card_are_refused() {
    let (_, context) = open(BASIC);
    let pd = context.alloc_pd();
    let cq = context.create_cq(8).unwrap();
    let qp = || Qp::builder(&pd).cq(&cq);
    let limit = |builder: ferroce_driver::QpBuilder<'_, _>| match builder.build() {
        Err(BuildError::Limit { limit, .. }) => limit,
        other => panic!("{:?}", other.map(drop)),
    };
    assert_eq!(limit(qp().max_send_wr(0)), 32768);
    assert_eq!(limit(qp().max_recv_wr(0)), 32768);
    assert_eq!(limit(qp().sgid_index(8)), 7);
    assert_eq!(limit(qp().max_send_sge(3)), 2);
    assert_eq!(limit(qp().max_recv_sge(4)), 3);
    assert_eq!(limit(qp().max_inline_data(33)), 32);
    assert_eq!(limit(qp().max_send_wr(32769)), 32768);
    assert_eq!(limit(qp().max_recv_wr(u32::MAX)), 32768);
    assert!(matches!(
        qp().uc().build(),
        Err(BuildError::Transport { .. })
    ));
    assert!(matches!(
        Qp::builder(&pd).build(),
        Err(BuildError::NoCq("send"))
    ));
    assert!(matches!(
        Qp::builder(&pd).send_cq(&cq).build(),
        Err(BuildError::NoCq("recv"))
    ));
    let (_, other) = open(BASIC);
    let foreign = other.create_cq(8).unwrap();
    assert!(matches!(
        qp().recv_cq(&foreign).build(),
        Err(BuildError::OtherContext("recv"))
    ));
}

#[test]
fn the_outstanding_pool_is_shared_out() {
    let (_, context) = open(ALL);
    let pd = context.alloc_pd();
    let cq = context.create_cq(8).unwrap();
    let qp = || Qp::builder(&pd).cq(&cq);
    for entries in [0, 257] {
        let e = qp().outstanding(entries).build().err().unwrap();
        assert_eq!(
            e.to_string(),
            format!(
                "outstanding of {entries} was asked for, this build of the card takes 1 to 256"
            )
        );
    }
    let half = qp().outstanding(100).build().unwrap();
    assert_eq!(half.outstanding(), 128);
    let asked = qp().build().unwrap();
    assert_eq!(asked.outstanding(), 64);
    assert!(matches!(
        qp().outstanding(128).build(),
        Err(BuildError::Outstanding {
            entries: 128,
            limit: 256
        })
    ));
    let rest = qp().build().unwrap();
    assert_eq!(rest.outstanding(), 64);
    assert!(matches!(qp().build(), Err(BuildError::Outstanding { .. })));
    drop((half, asked, rest));
    assert_eq!(qp().outstanding(256).build().unwrap().outstanding(), 256);
    assert_eq!(qp().max_send_wr(5).build().unwrap().outstanding(), 8);
}
