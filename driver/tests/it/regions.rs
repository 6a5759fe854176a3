//! Memory regions that change under their key.

use ferroce_driver::{Access, MrChange, MrError};
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
    // SAFETY: `memory` outlives the region and is not touched while it lives.
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
    // SAFETY: `memory` outlives the region and is not touched while it lives.
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
