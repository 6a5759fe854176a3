//! Four served cards in a guest of stock QEMU: programs in it, ours and one of
//! Debian's, go through the kernel's VFIO and an IOMMU.

use std::path::Path;
use std::thread;
use std::time::Duration;

use ferroce_guest::{Image, Machine, Qemu};
use ferroce_system::or_skip;
use rustix::process::{Pid, Signal, kill_process};

use crate::{Served, library, programs};

/// Bounds a test against hanging only: a boot takes seconds, the rest a minute or two.
const LIMIT: Duration = Duration::from_secs(600);
/// In which a server has read what was sent to it; if not, the guest is started again.
const READ: Duration = Duration::from_secs(1);

#[test]
fn cards_in_a_guest_with_an_iommu() {
    let Some(qemu) = or_skip(Qemu::debian13()) else {
        return;
    };
    let Some(mut image) = or_skip(Image::new()) else {
        return;
    };
    image.modules(&["vfio-pci", "vfio_iommu_type1"]).unwrap();
    for program in ["examples/two_cards", "examples/one_card"] {
        image.program(programs().join(program)).unwrap();
    }
    if or_skip(image.program("ibv_rc_pingpong").map(drop)).is_none() {
        return;
    }
    let verbs = tempfile::tempdir().unwrap();
    library(verbs.path());
    for name in ["libibverbs.so.1", "libgcc_s.so.1"] {
        let own = verbs.path().join(name);
        let host = match own.exists() {
            true => own,
            // the C library loads it when a thread ends
            false => Path::new("/lib/x86_64-linux-gnu").join(name),
        };
        image
            .file(host, Path::new("/lib/ferroce").join(name))
            .unwrap();
    }
    image.script(include_str!("guest.sh"));
    // QEMU may end with `error_setv: Assertion` when a server dies under it (see `while_stopped`), which is the last that
    // is tried here.
    let ended = (0..3).any(|_| survives(&qemu, &image));
    assert!(ended, "QEMU fails each time it loses a card");
}

/// Does something while QEMU stands still and its servers have read what it sent: one that dies with a request unread
/// resets the connection instead of ending it, and at that QEMU fails.
fn while_stopped(qemu: u32, act: impl FnOnce()) {
    let qemu = i32::try_from(qemu).ok().and_then(Pid::from_raw).unwrap();
    kill_process(qemu, Signal::STOP).unwrap();
    thread::sleep(READ);
    act();
    kill_process(qemu, Signal::CONT).unwrap();
}

/// Runs the guest and looks at what it did; whether QEMU lived through the loss of a card.
fn survives(qemu: &Qemu, image: &Image) -> bool {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let engines = Served::pair(folders[0].path(), ["rtl512", "rtl64"]);
    let mut models = Served::pair(folders[1].path(), ["model", "model"]);
    let mut machine = Machine::new(qemu, image).iommu();
    for (card, addr) in engines.iter().chain(&models).zip(4..) {
        let path = card.socket.display();
        let device = format!(
            r#"{{"driver":"vfio-user-pci","addr":"{addr:02x}.0","socket":{{"path":"{path}","type":"unix"}}}}"#
        );
        machine = machine.args(["-device".to_owned(), device]);
    }
    let mut guest = machine.start().unwrap();
    guest.wait_for("lose the card", LIMIT).unwrap();
    while_stopped(guest.id(), || models[0].kill());
    let end = match guest.finish(LIMIT) {
        Err(e) if e.to_string().contains("error_setv: Assertion") => {
            println!("QEMU failed: {e}");
            return false;
        }
        end => end.unwrap(),
    };
    assert_eq!(end.status, 0, "{end}");
    let count = |part: &str| {
        let lines = end.console.lines();
        lines.filter(|line| line.contains(part)).count()
    };
    // Each round does all of it, by interrupt, and reaches for what is not mapped.
    assert_eq!(count("the data is right, both ways"), 2, "{end}");
    assert_eq!(count("outside of what is mapped"), 2, "{end}");
    assert!(end.kernel.contains("DMAR: [DMA Read"), "{end}");
    for part in [
        "ok operations",
        "ok ping-pong",
        "ok killed",
        "ok reset",
        "ok lost",
    ] {
        assert_eq!(count(part), 1, "{part}: {end}");
    }
    for card in engines {
        let (status, text) = card.end();
        assert!(status.success(), "{status}: {text}");
    }
    true
}
