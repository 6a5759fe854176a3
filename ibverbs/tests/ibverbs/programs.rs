//! A C program that passes garbage gets an error number, and goes on.

use std::process::Command;

use ferroce_ibverbs::SONAME;
use ferroce_system::packages::{CXX, IBVERBS_DEV};

use crate::library::{Cards, folder};

#[test]
fn is_refused() {
    let Some(cards) = Cards::with(&[IBVERBS_DEV, CXX]) else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("misuse");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ibverbs/misuse.c");
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Werror", source, "-o"]).arg(&program);
    cc.arg("-L").arg(folder()).arg(format!("-l:{SONAME}"));
    let compiled = cc.output().unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let text = cards.run(program.to_str().unwrap(), "");
    assert_eq!(text, "");
    cards.assert_healthy();
}
