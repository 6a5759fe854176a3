//! `cargo xtask pyverbs`: a part of rdma-core's own tests on the golden model, with the library of this build.

use std::path::Path;
use std::process::{Command, Output};

use ferroce_ibverbs::{SONAME, version_script};
use ferroce_system::packages::{CXX, PYVERBS, check_present};
use ferroce_system::{link, or_skip};

fn pyverbs(library: &Path, words: &[&str]) -> Output {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.args(["pyverbs", "--dut", "model", "--library"]);
    xtask.arg(library).args(words).output().unwrap()
}

#[test]
fn the_suite_runs_and_is_counted() {
    if or_skip(check_present(&[PYVERBS, CXX])).is_none() {
        return;
    }
    let library = tempfile::tempdir().unwrap();
    let archive = link::archive("ferroce_ibverbs").unwrap();
    link::shared(&archive, &version_script(), SONAME, library.path()).unwrap();
    let output = pyverbs(
        library.path(),
        &["test_pd", "test_addr", "test_atomic", "test_qpex"],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}{errors}");
    let counts = |module: &str| -> Vec<usize> {
        let row = text.lines().find_map(|line| line.strip_prefix(module));
        let row = row.unwrap_or_else(|| panic!("no {module} in {text}"));
        row.split_whitespace()
            .map(|count| count.parse().unwrap())
            .collect()
    };
    assert_eq!(counts("test_pd "), [4, 0, 0], "{text}");
    assert_eq!(counts("test_addr "), [3, 0, 0], "{text}");
    assert_eq!(counts("test_atomic "), [7, 0, 2], "{text}");
    assert_eq!(counts("test_qpex "), [17, 0, 3], "{text}");
    assert!(
        text.contains("skipped test_atomic.AtomicTest.test_xrc_atomic_cmp_and_swap: "),
        "{text}"
    );

    let output = pyverbs(library.path(), &["test_none"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.contains("the suite has no test_none; it has test_addr"),
        "{errors}"
    );
}
