//! C programs that use the library as no program of Debian does. Each prints what is not as it should be.

use ferroce_system::packages::{CXX, IBVERBS_DEV, RDMACM_DEV};

use crate::library::{Cards, compile};

/// Compiles a program of this folder and runs it on a card.
fn run(name: &str) {
    let Some(cards) = Cards::with(&[IBVERBS_DEV, RDMACM_DEV, CXX]) else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join(name);
    let sonames = [ferroce_rdmacm::SONAME, ferroce_ibverbs::SONAME];
    compile(&format!("tests/rdmacm/{name}.c"), &sonames, &program);
    assert_eq!(cards.run(program.to_str().unwrap(), ""), "");
    cards.assert_healthy();
}

#[test]
fn garbage_is_refused() {
    run("misuse");
}

#[test]
fn what_fails_is_left() {
    run("failures");
}
