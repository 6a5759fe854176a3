//! A C program that uses the library as no program of Debian does. It prints what is not as it should be.

use ferroce_system::packages::{CXX, IBVERBS_DEV, RDMACM_DEV};

use crate::library::{Cards, compile};

#[test]
fn garbage_is_refused() {
    let Some(cards) = Cards::with(&[IBVERBS_DEV, RDMACM_DEV, CXX]) else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("misuse");
    let sonames = [ferroce_rdmacm::SONAME, ferroce_ibverbs::SONAME];
    compile("tests/rdmacm/misuse.c", &sonames, &program);
    assert_eq!(cards.run(program.to_str().unwrap(), ""), "");
    cards.assert_healthy();
}
