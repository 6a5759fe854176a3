//! A guest starts, runs a script, talks to the host and ends.

use std::time::Duration;

use ferroce_guest::{GuestError, Image, Machine, Qemu};
use ferroce_system::or_skip;

/// Bounds a test against hanging only: a boot takes seconds.
const LIMIT: Duration = Duration::from_secs(300);

fn guest(script: &str) -> Option<(Qemu, Image)> {
    let qemu = or_skip(Qemu::debian12())?;
    let mut image = or_skip(Image::new())?;
    image.script(script);
    Some((qemu, image))
}

#[test]
fn script_talks_and_its_status_comes_back() {
    let script = "
        echo marker 1
        read -r word
        echo got $word
        lsmod | grep -q vfio_pci && echo module
        [ -c /dev/vfio/vfio ] && echo device
        id -u
        exit 42";
    let Some((qemu, mut image)) = guest(script) else {
        return;
    };
    image.modules(&["vfio-pci"]).unwrap();
    let mut vm = Machine::new(&qemu, &image).start().unwrap();
    assert_eq!(vm.wait_for("marker", LIMIT).unwrap(), "marker 1");
    vm.send("hello").unwrap();
    let end = vm.finish(LIMIT).unwrap();
    assert_eq!(end.status, 42, "{end}");
    for line in ["got hello", "module", "device", "0"] {
        assert!(end.console.lines().any(|l| l == line), "{line}: {end}");
    }
}

#[test]
fn what_goes_wrong_is_reported() {
    let Some((qemu, image)) = guest("exit 0") else {
        return;
    };
    // A marker that never comes: the end of the script is distinguished from a late one.
    let mut vm = Machine::new(&qemu, &image).start().unwrap();
    let e = vm.wait_for("nothing prints this", LIMIT).unwrap_err();
    assert!(matches!(e, GuestError::Ended { .. }), "{e}");
    // QEMU that does not start says why.
    let machine = Machine::new(&qemu, &image).args(["-device", "no-such-device"]);
    let e = machine.start().unwrap().finish(LIMIT).unwrap_err();
    assert!(e.to_string().contains("no-such-device"), "{e}");
    let mut image = image;
    let e = image.modules(&["no_such_module"]).unwrap_err();
    assert!(e.to_string().contains("no_such_module"), "{e}");
    let e = image.program("no-such-program").unwrap_err();
    assert!(e.to_string().contains("no-such-program"), "{e}");
}

#[test]
fn later_qemu_runs_beside_the_systems() {
    let Some(qemu) = or_skip(Qemu::debian13()) else {
        return;
    };
    let version = qemu.version().unwrap();
    assert!(version.starts_with("QEMU emulator version 1"), "{version}");
    let Some(mut image) = or_skip(Image::new()) else {
        return;
    };
    image.script("exit 7");
    let vm = Machine::new(&qemu, &image).iommu().start().unwrap();
    let end = vm.finish(LIMIT).unwrap();
    assert_eq!(end.status, 7, "{end}");
}
