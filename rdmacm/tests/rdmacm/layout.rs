//! The C ABI against the header of the system, by a C program that prints what the compiler makes of it, and against the
//! library of the system.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use ferroce_rdmacm::SYMBOLS;
use ferroce_rdmacm::abi::{layouts, values};
use ferroce_system::or_skip;
use ferroce_system::packages::{CXX, RDMACM_DEV, RDMACM_UTILS, check_present};

use crate::folder::folder;

#[test]
fn the_header_agrees() {
    if or_skip(check_present(&[RDMACM_DEV, CXX])).is_none() {
        return;
    }
    let mut expected: Vec<(String, i64)> = Vec::new();
    for layout in layouts() {
        let name = layout.name;
        expected.push((format!("sizeof(struct {name})"), layout.size as i64));
        for (field, offset) in layout.fields {
            let expression = format!("offsetof(struct {name}, {field})");
            expected.push((expression, *offset as i64));
        }
    }
    let names = values().iter();
    expected.extend(names.map(|(name, value)| ((*name).to_owned(), *value)));
    assert!(expected.len() > 100, "the tables are not empty");
    let mut source = String::from(
        "#include <rdma/rdma_cma.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n",
    );
    for (expression, _) in &expected {
        source += &format!("  printf(\"%lld\\n\", (long long)({expression}));\n");
    }
    source += "  return 0;\n}\n";
    let place = tempfile::tempdir().unwrap();
    let (file, binary) = (place.path().join("print.c"), place.path().join("print"));
    fs::write(&file, source).unwrap();
    let compiled = Command::new("cc")
        .arg(&file)
        .arg("-o")
        .arg(&binary)
        .output();
    let compiled = compiled.unwrap();
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{said}");
    let printed = Command::new(&binary).output().unwrap().stdout;
    let printed = String::from_utf8(printed).unwrap();
    let found: Vec<i64> = printed.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(found.len(), expected.len());
    let both = expected.iter().zip(found);
    let wrong: Vec<_> = both.filter(|((_, ours), theirs)| ours != theirs).collect();
    assert!(wrong.is_empty(), "ours, the header's: {wrong:?}");
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
