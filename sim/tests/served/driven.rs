//! The driver over a socket.

use std::time::Duration;

use ferroce_driver::vfio_user::{VfioUser, VfioUserError};
use ferroce_driver::{Backend, Context, OpenError};
use ferroce_proto::abi::regs;

use crate::exercise::{operations, outside, pair};
use crate::{Dut, Served};

/// Writes a register.
fn write32(card: &impl Backend, offset: u64, value: u32) {
    // SAFETY: a register that names no memory.
    unsafe { card.write32(offset, value) };
}

#[test]
fn a_model_and_an_engine_talk() {
    let folder = tempfile::tempdir().unwrap();
    let mut a = Served::start(folder.path(), Dut::Model, "a", "b");
    let mut b = Served::start(folder.path(), Dut::Rtl(512), "b", "a");
    let connect = |served: &Served| VfioUser::connect(&served.socket).unwrap();
    // The second time the cards had an access refused, and a client that went without a word.
    for _ in 0..2 {
        let (mut one, mut two) = pair(connect(&a), connect(&b)).unwrap();
        operations(&mut one, &mut two).unwrap();
        operations(&mut two, &mut one).unwrap();
        outside(&mut one, &two).unwrap();
    }
    assert!(a.end().is_empty() && b.end().is_empty());
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_reset_leaves_a_fresh_card() {
    let folder = tempfile::tempdir().unwrap();
    for dut in [Dut::Model, Dut::Rtl(64)] {
        let served = Served::start(folder.path(), dut, "a", "b");
        let card = VfioUser::connect(&served.socket).unwrap();
        let scratch = u64::from(regs::SCRATCH);
        write32(&card, scratch, 0x1234_5678);
        assert_eq!(card.read32(scratch), 0x1234_5678);
        let context = Context::open(&card).unwrap();
        card.reset().unwrap();
        assert_eq!(card.read32(scratch), 0);
        assert_eq!(card.read32(regs::CONTROL.into()), 0, "not enabled");
        drop(context);
        Context::open(&card).unwrap();
    }
}

#[test]
fn a_lost_server_ends_every_wait() {
    let folder = tempfile::tempdir().unwrap();
    let mut served = Served::start(folder.path(), Dut::Model, "a", "b");
    let card = VfioUser::connect(&served.socket).unwrap();
    let context = Context::open(&card).unwrap();
    let mut cq = context.create_cq(16).unwrap();
    let event = card.interrupt(3).unwrap();
    served.end();
    let mut wcs = [ferroce_driver::Wc::default()];
    // An hour of the card's time, and no time at all.
    assert_eq!(cq.wait(&mut wcs, Duration::from_secs(3600)), 0);
    assert!(card.is_lost());
    let readable = card.wait_readable(std::os::fd::AsFd::as_fd(&event), 3_600_000_000_000);
    assert!(!readable);
    assert_eq!(card.read32(regs::MAGIC.into()), u32::MAX);
    write32(&card, regs::SCRATCH.into(), 1);
    assert!(context.status().absent);
    assert!(context.create_cq(16).is_err());
    drop(cq);
    drop(context);
    let gone = Context::open(&card).map(drop).unwrap_err();
    assert!(matches!(gone, OpenError::Absent), "{gone}");
    assert!(matches!(card.reset(), Err(VfioUserError::Lost)));

    // One that comes back is opened anew.
    let served = Served::start(folder.path(), Dut::Model, "a", "b");
    Context::open(VfioUser::connect(&served.socket).unwrap()).unwrap();
}

#[test]
fn a_failed_connect_has_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let error = VfioUser::connect(&folder.path().join("a"))
        .map(drop)
        .unwrap_err();
    assert!(matches!(error, VfioUserError::Connect { .. }), "{error}");
    assert!(error.to_string().contains("xtask card"), "{error}");

    let served = Served::start(folder.path(), Dut::Model, "a", "b");
    let first = VfioUser::connect(&served.socket).unwrap();
    let error = VfioUser::connect(&served.socket).map(drop).unwrap_err();
    assert!(matches!(error, VfioUserError::Lost), "{error}");
    assert_eq!(first.read32(regs::MAGIC.into()), regs::MAGIC_VALUE);
    assert_eq!(first.vectors(), 64);
}
