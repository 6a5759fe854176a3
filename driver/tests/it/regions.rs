//! Memory regions that change under their key.

use ferroce_driver::{Access, BackendError, MrChange, MrError, MwBind, MwType, SendFlags};
use ferroce_proto::abi::cmd::opcode;

use crate::fake::{ALL, Answer, PAGE};
use crate::setup::open;

#[test]
fn a_region_changes_under_its_key() {
    let (fake, context) = open(ALL);
    let (pd, other) = (context.alloc_pd(), context.alloc_pd());
    let before = fake.state().mapped.clone();
    let mut memory = vec![0u8; 8 * PAGE];
    let base = memory.as_mut_ptr();
    // SAFETY: `memory` outlives the region and is not touched until it is dropped.
    let mut region = unsafe { pd.reg_mr(base, 3 * PAGE, Access::LOCAL_WRITE) }.unwrap();
    let (key, place) = (region.lkey(), region.lkey() >> 8);
    let first = fake.state().mrs[&place];

    let change = MrChange {
        access: Some(Access::REMOTE_READ),
        ..MrChange::default()
    };
    // SAFETY: as above; this holds for all that follows.
    unsafe { region.rereg(&change) }.unwrap();
    let ctx = fake.state().mrs[&place];
    assert!(ctx.remote_read && !ctx.local_write);
    assert_eq!((ctx.base, ctx.last, ctx.key), (first.base, first.last, key));

    let moved = MrChange {
        pd: Some(&other),
        memory: Some((base.wrapping_add(5 * PAGE), 100)),
        ..MrChange::default()
    };
    // SAFETY: as above.
    unsafe { region.rereg(&moved) }.unwrap();
    let ctx = fake.state().mrs[&place];
    assert!(ctx.remote_read && ctx.key == key && ctx.pd != first.pd);
    assert_eq!((ctx.base, ctx.last), (region.addr(), region.addr() + 99));
    assert_eq!(
        (region.addr(), region.len()),
        (base.addr() as u64 + 5 * PAGE as u64, 100)
    );
    let reaches = |addr: usize| {
        let mapped = fake.state().mapped.clone();
        let below = mapped.range(..=addr).next_back();
        below.is_some_and(|(start, len)| addr < start + len)
    };
    assert!(reaches(base.addr() + 5 * PAGE) && !reaches(base.addr() + PAGE));
    drop(region);
    assert_eq!(fake.state().mapped, before);
    assert!(!fake.state().mrs[&place].valid);
}

#[test]
fn a_change_that_is_refused_changes_nothing() {
    let (fake, context) = open(ALL);
    let (_, stranger) = open(ALL);
    let pd = context.alloc_pd();
    let mut memory = vec![0u8; 8 * PAGE];
    let base = memory.as_mut_ptr();
    // SAFETY: `memory` outlives the region and is not touched until it is dropped.
    let mut region = unsafe { pd.reg_mr(base, PAGE, Access::LOCAL_WRITE) }.unwrap();
    let place = region.lkey() >> 8;
    let ctx = fake.state().mrs[&place];
    let mapped = fake.state().mapped.clone();
    let stranger = stranger.alloc_pd();
    let none = MrChange::default;
    let nowhere = std::ptr::without_provenance_mut(PAGE);
    for (change, is_expected) in [
        (
            MrChange {
                access: Some(Access::REMOTE_WRITE),
                ..none()
            },
            (|e| matches!(e, MrError::Access(_))) as fn(&MrError) -> bool,
        ),
        (
            MrChange {
                memory: Some((base, 0)),
                ..none()
            },
            |e| matches!(e, MrError::Length { .. }),
        ),
        (
            MrChange {
                memory: Some((nowhere, PAGE)),
                ..none()
            },
            |e| matches!(e, MrError::Unmapped { .. }),
        ),
        (
            MrChange {
                pd: Some(&stranger),
                ..none()
            },
            |e| matches!(e, MrError::OtherContext),
        ),
    ] {
        // SAFETY: refused before anything is done.
        let e = unsafe { region.rereg(&change) }.unwrap_err();
        assert!(is_expected(&e), "{e}");
    }
    fake.state()
        .answers
        .insert(opcode::WRITE_MR, Answer::Status(3));
    let change = MrChange {
        memory: Some((base.wrapping_add(4 * PAGE), PAGE)),
        ..none()
    };
    // SAFETY: the memory is there.
    let e = unsafe { region.rereg(&change) }.unwrap_err();
    assert!(matches!(e, MrError::Command(_)), "{e}");
    assert_eq!((region.addr(), region.len()), (base.addr() as u64, PAGE));
    assert_eq!(fake.state().mrs[&place], ctx);
    assert_eq!(fake.state().mapped, mapped);
    fake.state().answers.clear();
}

/// A mapping goes as a whole: what was given back in the middle of one may be other memory now.
#[test]
fn what_is_mapped_as_it_was_is_not_registered_again() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let before = fake.state().mapped.clone();
    let mut memory = memmap2::MmapMut::map_anon(17 * PAGE).unwrap();
    let start = memory.as_mut_ptr().addr().next_multiple_of(PAGE);
    let base = memory.as_mut_ptr().with_addr(start);
    let region = |from: usize, pages| {
        // SAFETY: `memory` outlives the regions and is not touched while they live.
        unsafe { pd.reg_mr(base.add(from * PAGE), pages * PAGE, Access::LOCAL_WRITE) }
    };
    let whole = region(0, 16).unwrap();
    let inner = region(4, 4).unwrap();
    drop(whole);
    // As far as somebody has it registered all the time the driver takes it for what it was.
    drop(region(5, 2).unwrap());
    for (from, pages, stale) in [(0, 1, 0), (3, 2, 3), (7, 2, 8), (8, 1, 8), (0, 16, 0)] {
        match region(from, pages).err().unwrap() {
            MrError::Memory(BackendError::Stale { addr, from, to }) => {
                assert_eq!(addr, start + stale * PAGE);
                assert_eq!((from, to), (start, start + 16 * PAGE));
            }
            e => panic!("{e}"),
        }
    }
    drop(inner);
    assert_eq!(fake.state().mapped, before);
    drop(region(0, 16).unwrap());
    assert_eq!(fake.state().mapped, before);
}

/// The system gives the driver any addresses, also those that a region gave back in part.
#[test]
fn memory_of_the_driver_goes_elsewhere() {
    let (_fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let mut memory = memmap2::MmapMut::map_anon(17 * PAGE).unwrap();
    let start = memory.as_mut_ptr().addr().next_multiple_of(PAGE);
    let base = memory.as_mut_ptr().with_addr(start);
    // SAFETY: the card is a fake and touches nothing; no reference to the memory is used.
    let region =
        |at: usize, len| unsafe { pd.reg_mr(base.add(at * PAGE), len, Access::LOCAL_WRITE) };
    let whole = region(0, 16 * PAGE).unwrap();
    let _inner = region(15, PAGE).unwrap();
    drop(whole);
    // SAFETY: unused pages of `memory`, which does not free them a second time.
    unsafe { rustix::mm::munmap(base.cast(), 4 * PAGE) }.unwrap();
    std::mem::forget(memory);
    for _ in 0..4 {
        let _buffer = pd.alloc_mr(PAGE, Access::LOCAL_WRITE).unwrap();
    }
}

/// A list of open memory is made without a promise: it never names memory of others, however often keys are reused.
#[test]
fn keys_of_open_memory_are_apart() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let mut memory = vec![0u8; PAGE];
    let mut key = |of: usize| match of {
        0 => pd.alloc_mr(8, Access::empty()).unwrap().lkey(),
        1 => {
            let buf = pd.alloc_buf(8).unwrap();
            let at = buf.as_ptr().addr() as u64;
            let state = fake.state();
            let mut entries = state.mrs.values();
            entries.find(|e| e.valid && e.base == at).unwrap().key
        }
        // SAFETY: the memory is there, and the card is a fake.
        _ => unsafe { pd.reg_mr(memory.as_mut_ptr(), 8, Access::empty()) }
            .unwrap()
            .lkey(),
    };
    let mut seen = [const { std::collections::BTreeSet::new() }; 2];
    for i in 0..64 * 300 {
        seen[(i % 3).min(1)].insert(key(i % 3));
    }
    assert!(seen[0].is_disjoint(&seen[1]) && seen[0].len() > 64 && seen[1].len() > 64);
}

/// A peer may know the keys of a window that is gone: what comes to its place has others, for as long as there are.
#[test]
fn keys_of_windows_are_not_given_again() {
    let (_fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let cq = context.create_cq(8).unwrap();
    let mut qp = ferroce_driver::Qp::builder(&pd).cq(&cq).build().unwrap();
    qp.connect(&crate::setup::peer()).unwrap();
    let mut memory = vec![0u8; PAGE];
    // SAFETY: the memory is there, and the card is a fake; this holds for all that follows.
    let region = |base, access| unsafe { pd.reg_mr(base, PAGE, access) }.unwrap();
    let base = memory.as_mut_ptr();
    let whole = region(base, Access::LOCAL_WRITE | Access::MW_BIND);
    let mut bound = std::collections::BTreeSet::new();
    // the caller of a bind of type 2 chooses: those behind the present key, and others
    for (mw_type, chosen) in [
        (MwType::Type1, &[None; 5] as &[_]),
        (
            MwType::Type2,
            &[Some(1), Some(2), Some(3), Some(200), Some(0)],
        ),
        (MwType::Type2, &[Some(255), Some(77), Some(130)]),
    ] {
        let mut window = pd.alloc_mw(mw_type).unwrap();
        bound.insert(window.rkey());
        for &key in chosen {
            let key = key.map(|ahead| window.rkey().wrapping_add(ahead));
            let bind = MwBind {
                mr: Some(&whole),
                addr: whole.addr(),
                len: 8,
                access: Access::REMOTE_READ,
            };
            let request = (0, SendFlags::empty());
            let key = qp.post_bind(&mut window, &bind, key, request).unwrap();
            assert_eq!(key, window.rkey());
            bound.insert(key);
        }
    }
    let mut at_places = 0;
    // each place comes a hundred times
    for _ in 0..100 * 64 {
        let key = region(base, Access::LOCAL_WRITE).rkey();
        assert!(!bound.contains(&key), "{key:#x} in {bound:x?}");
        at_places += usize::from(bound.iter().any(|bound| bound >> 8 == key >> 8));
        let key = pd.alloc_mr(8, Access::empty()).unwrap().rkey();
        assert!(!bound.contains(&key), "{key:#x} in {bound:x?}");
    }
    assert!(at_places > 100);
}

/// What the driver reports of a region is certain, or the card reaches no memory any more.
#[test]
fn a_region_that_the_card_may_keep_is_out_of_its_reach() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let mut memory = vec![0u8; 4 * PAGE];
    let base = memory.as_mut_ptr();
    // SAFETY: the memory is there, and the card is a fake.
    let region = |len| unsafe { pd.reg_mr(base, len, Access::LOCAL_WRITE) }.unwrap();
    let (whole, part) = (region(4 * PAGE), region(PAGE));
    fake.state().answers.insert(opcode::WRITE_MR, Answer::Never);
    let resets = fake.state().resets;
    drop(part);
    assert!(fake.state().mapped.is_empty() && context.is_lost());
    // else it acknowledges WRITEs of peers that go nowhere
    assert_eq!(fake.state().resets, resets + 1);
    drop(whole);
}

#[test]
fn a_window_that_stays_keeps_what_it_reaches() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let cq = context.create_cq(8).unwrap();
    let mut qp = ferroce_driver::Qp::builder(&pd).cq(&cq).build().unwrap();
    qp.connect(&crate::setup::peer()).unwrap();
    let mut memory = vec![0u8; 4 * PAGE];
    let base = memory.as_mut_ptr();
    // SAFETY: the memory is there, and the card is a fake.
    let region = unsafe { pd.reg_mr(base, PAGE, Access::LOCAL_WRITE | Access::MW_BIND) };
    let mut region = region.unwrap();
    let mut window = pd.alloc_mw(ferroce_driver::MwType::Type1).unwrap();
    let bind = ferroce_driver::MwBind {
        mr: Some(&region),
        addr: region.addr(),
        len: 8,
        access: Access::REMOTE_READ,
    };
    let request = (0, SendFlags::empty());
    qp.post_bind(&mut window, &bind, None, request).unwrap();
    let mapped = fake.state().mapped.len();
    fake.state()
        .answers
        .insert(opcode::WRITE_MR, Answer::Status(3));
    fake.state().good = 1;
    let change = MrChange {
        memory: Some((base.wrapping_add(2 * PAGE), PAGE)),
        ..MrChange::default()
    };
    // SAFETY: the memory is there.
    let e = unsafe { region.rereg(&change) }.unwrap_err();
    assert!(matches!(e, MrError::Windows(_)), "{e}");
    // The region is as given to the card last, and its old memory stays mapped for the window.
    assert_eq!(region.addr(), base.addr() as u64 + 2 * PAGE as u64);
    assert!(fake.state().mapped.len() > mapped);
    fake.state().answers.clear();
}
