//! `cargo xtask interop --quick`, as it is run: with a guest.

use std::process::Command;

#[test]
#[ignore = "boots a guest and runs for minutes"]
fn the_quick_form_passes() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["interop", "--quick", "--out"])
        .arg(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert!(text.contains(" passed, 0 failed; "), "{text}");
    let captures = std::fs::read_dir(folder.path()).unwrap().flatten();
    let captures = captures.filter(|cell| cell.path().join("wire.pcapng").exists());
    assert!(captures.count() >= 12, "{text}");
}
