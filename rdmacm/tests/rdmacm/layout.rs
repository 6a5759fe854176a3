//! The C ABI against the header and the library of the system.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use ferroce_rdmacm::SYMBOLS;
use ferroce_rdmacm::abi::{layouts, values};
use ferroce_system::or_skip;
use ferroce_system::packages::{CXX, RDMACM_DEV, RDMACM_UTILS, check_present};

use crate::folder::folder;
use crate::header::{agrees, layout};

#[test]
fn the_header_agrees() {
    if or_skip(check_present(&[RDMACM_DEV, CXX])).is_none() {
        return;
    }
    let mut expected: Vec<_> = layouts().iter().flat_map(layout).collect();
    let names = values().iter();
    expected.extend(names.map(|(name, value)| ((*name).to_owned(), *value)));
    assert!(expected.len() > 100, "the tables are not empty");
    agrees("rdma/rdma_cma.h", &expected);
}

/// Functions of a library with their versions, as the dynamic linker finds them.
fn exported(library: &Path) -> BTreeSet<String> {
    let output = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library)
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let symbols = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2));
    let functions = symbols.filter(|symbol| symbol.contains("@@"));
    functions.map(str::to_owned).collect()
}

/// Its threads and what it does at the end of the process outlive `dlclose`.
#[test]
fn it_is_not_unloaded() {
    if or_skip(check_present(&[CXX])).is_none() {
        return;
    }
    for soname in [ferroce_rdmacm::SONAME, ferroce_ibverbs::SONAME] {
        let mut readelf = Command::new("readelf");
        let output = readelf.arg("-d").arg(folder().join(soname)).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        assert!(text.contains("NODELETE"), "{soname}: {text}");
    }
}

#[test]
fn the_symbols_are_those_of_the_system() {
    if or_skip(check_present(&[RDMACM_UTILS, CXX])).is_none() {
        return;
    }
    let ours = exported(&folder().join(ferroce_rdmacm::SONAME));
    let theirs = exported(Path::new("/usr/lib/x86_64-linux-gnu/librdmacm.so.1"));
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), SYMBOLS.len());
}
