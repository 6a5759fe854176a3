//! `cargo xtask interop --quick`, as it is run: with a guest, and the library of this build.

use std::process::Command;

use ferroce_guest::{Image, TOOLS};
use ferroce_ibverbs::{SONAME, version_script};
use ferroce_system::packages::{
    ENGINE, IBVERBS_DEV, IBVERBS_PROVIDERS, IBVERBS_UTILS, IPROUTE, PERFTEST, RDMACM_UTILS,
    check_present,
};
use ferroce_system::{link, or_skip};

#[test]
fn the_quick_form_passes() {
    let programs = [
        IBVERBS_DEV,
        IBVERBS_PROVIDERS,
        IBVERBS_UTILS,
        IPROUTE,
        PERFTEST,
        RDMACM_UTILS,
    ];
    let tools = [TOOLS, &programs, ENGINE].concat();
    if or_skip(check_present(&tools)).is_none() || or_skip(Image::new()).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (library, cells) = (folder.path().join("lib"), folder.path().join("cells"));
    let archive = link::archive("ferroce_ibverbs").unwrap();
    link::shared(&archive, &version_script(), SONAME, &library).unwrap();
    let archive = link::archive("ferroce_rdmacm").unwrap();
    let script = ferroce_rdmacm::version_script();
    link::shared_with(
        &archive,
        &script,
        ferroce_rdmacm::SONAME,
        &library,
        &[SONAME],
    )
    .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["interop", "--quick", "--library"])
        .arg(&library)
        .arg("--out")
        .arg(&cells)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert!(text.contains(" passed, 0 failed; "), "{text}");
    let captures = std::fs::read_dir(cells).unwrap().flatten();
    let captures = captures.filter(|cell| cell.path().join("wire.pcapng").exists());
    assert!(captures.count() >= 12, "{text}");
    println!("{text}");
}
