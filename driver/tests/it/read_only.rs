//! Memory that the process may only read.

use ferroce_driver::{Access, BackendError, DmaAccess, MrChange, MrError};

use crate::fake::{ALL, PAGE};
use crate::setup::open;

/// Memory that the process may not write is the card's to read, for regions that ask for no more.
#[test]
fn memory_that_the_process_may_only_read_is_mapped_for_reading() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let before = fake.state().mapped.clone();
    let mut memory = memmap2::MmapMut::map_anon(9 * PAGE).unwrap();
    let start = memory.as_mut_ptr().addr().next_multiple_of(PAGE);
    let base = memory.as_mut_ptr().with_addr(start);
    // Pages 2 to 5 are constants.
    fake.state().read_only = Some((start + 2 * PAGE, start + 6 * PAGE));
    let region = |from: usize, len, access| {
        // SAFETY: `memory` outlives the regions and is not touched while they live.
        unsafe { pd.reg_mr(base.add(from), len, access) }
    };
    let access = |page: usize| fake.state().accesses.get(&(start + page * PAGE)).copied();

    for writes in [Access::LOCAL_WRITE, Access::all()] {
        let e = region(2 * PAGE, 100, writes).err().unwrap();
        let MrError::Memory(BackendError::Fault { access, .. }) = e else {
            panic!("{e}");
        };
        assert_eq!(access, DmaAccess::ReadWrite);
        assert_eq!(fake.state().mapped, before);
    }
    // From page 1, which the process may write, into the constants; each page at the edge stands for itself.
    let mut constants = region(2 * PAGE - 10, 2 * PAGE, Access::REMOTE_READ).unwrap();
    let pages = [
        Some(DmaAccess::ReadWrite),
        Some(DmaAccess::Read),
        Some(DmaAccess::Read),
        None,
    ];
    assert_eq!([1, 2, 3, 4].map(access), pages);
    // What a writing region has in common with it may be written.
    drop(region(PAGE, PAGE, Access::LOCAL_WRITE).unwrap());
    let e = region(PAGE, 2 * PAGE, Access::LOCAL_WRITE).err().unwrap();
    match e {
        MrError::Memory(BackendError::ReadOnly { addr, from, to }) => {
            assert_eq!(addr, start + 2 * PAGE);
            assert_eq!((from, to), (addr, addr + PAGE));
        }
        e => panic!("{e}"),
    }
    // Nor does the region become one that writes.
    let place = constants.lkey() >> 8;
    let ctx = fake.state().mrs[&place];
    let change = MrChange {
        access: Some(Access::LOCAL_WRITE),
        ..MrChange::default()
    };
    // SAFETY: refused.
    let e = unsafe { constants.rereg(&change) }.unwrap_err();
    let is_expected = matches!(e, MrError::Memory(BackendError::ReadOnly { .. }));
    assert!(is_expected, "{e}");
    assert_eq!(fake.state().mrs[&place], ctx);
    assert_eq!([1, 2, 3, 4].map(access), pages);

    // What the process may write again is mapped for writing once the last reader is gone.
    fake.state().read_only = None;
    let e = region(2 * PAGE, 100, Access::LOCAL_WRITE).err().unwrap();
    assert!(matches!(e, MrError::Memory(BackendError::ReadOnly { .. })));
    drop(constants);
    assert_eq!(fake.state().mapped, before);
    drop(region(2 * PAGE, 100, Access::LOCAL_WRITE).unwrap());
}

/// A mapping cannot change while the card reads by it, so what may be written is mapped for that from the start.
#[test]
fn a_region_that_only_reads_does_not_keep_others_from_writing() {
    let (fake, context) = open(ALL);
    let pd = context.alloc_pd();
    let before = fake.state().mapped.clone();
    let mut memory = vec![0u8; 8 * PAGE];
    let base = memory.as_mut_ptr();
    let region = |from: usize, len, access| {
        // SAFETY: `memory` outlives the regions and is not touched while they live.
        unsafe { pd.reg_mr(base.wrapping_add(from), len, access) }
    };
    let mut reader = region(100, 5 * PAGE, Access::REMOTE_READ).unwrap();
    let mapped = fake.state().mapped.clone();
    let writer = region(2 * PAGE, PAGE, Access::LOCAL_WRITE).unwrap();
    assert_eq!(fake.state().mapped, mapped, "nothing is mapped anew");
    let change = |access| MrChange {
        access: Some(access),
        ..MrChange::default()
    };
    for access in [Access::LOCAL_WRITE, Access::empty()] {
        // SAFETY: as above.
        unsafe { reader.rereg(&change(access)) }.unwrap();
        assert_eq!(fake.state().mapped, mapped);
    }
    drop((reader, writer));
    assert_eq!(fake.state().mapped, before);
}
