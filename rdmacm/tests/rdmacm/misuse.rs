//! A C program that uses the library as no program of Debian does. It prints what is not as it should be.

use std::process::Command;

use ferroce_system::packages::{CXX, IBVERBS_DEV, RDMACM_DEV};

use crate::folder::folder;
use crate::library::Cards;

#[test]
fn garbage_is_refused() {
    let Some(cards) = Cards::with(&[IBVERBS_DEV, RDMACM_DEV, CXX]) else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("misuse");
    let root = env!("CARGO_MANIFEST_DIR");
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Werror", "-o"]).arg(&program);
    cc.arg(format!("{root}/tests/rdmacm/misuse.c"));
    cc.arg("-I").arg(format!("{root}/../ibverbs/tests/ibverbs"));
    cc.arg("-L")
        .arg(folder())
        .arg(format!("-l:{}", ferroce_rdmacm::SONAME));
    cc.arg(format!("-l:{}", ferroce_ibverbs::SONAME));
    let compiled = cc.output().unwrap();
    let output = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{output}");
    assert_eq!(cards.run(program.to_str().unwrap(), ""), "");
    cards.assert_healthy();
}
