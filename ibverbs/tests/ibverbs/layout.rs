//! The C ABI against the header of the system, by a C program that prints what the compiler makes of it.

use std::fs;
use std::process::Command;

use ferroce_cabi::abi::{NESTED, layouts, values};
use ferroce_system::or_skip;
use ferroce_system::packages::{CXX, IBVERBS_DEV, check_present};

/// Prints each line's name and number, in the order they are given.
fn program(expressions: &[String]) -> String {
    let mut text = String::from(
        "#include <infiniband/verbs.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n",
    );
    for expression in expressions {
        text += &format!("  printf(\"%lld\\n\", (long long)({expression}));\n");
    }
    text + "  return 0;\n}\n"
}

#[test]
fn the_header_agrees() {
    if or_skip(check_present(&[IBVERBS_DEV, CXX])).is_none() {
        return;
    }
    let mut expected: Vec<(String, i64)> = Vec::new();
    for layout in layouts() {
        let name = layout.name;
        expected.push((format!("sizeof(struct {name})"), layout.size as i64));
        for (field, offset) in layout.fields {
            let field = field.trim_start_matches("r#");
            let expression = format!("offsetof(struct {name}, {field})");
            expected.push((expression, *offset as i64));
        }
    }
    for (field, offset) in NESTED {
        expected.push((
            format!("offsetof(struct ibv_send_wr, {field})"),
            offset as i64,
        ));
    }
    let names = values()
        .iter()
        .map(|(name, value)| ((*name).to_owned(), *value));
    expected.extend(names);
    assert!(expected.len() > 300, "the tables are not empty");

    let folder = tempfile::tempdir().unwrap();
    let (source, binary) = (folder.path().join("print.c"), folder.path().join("print"));
    let expressions: Vec<_> = expected.iter().map(|(e, _)| e.clone()).collect();
    fs::write(&source, program(&expressions)).unwrap();
    let compiled = Command::new("cc")
        .arg(&source)
        .arg("-o")
        .arg(&binary)
        .output();
    let compiled = compiled.unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let printed = Command::new(&binary).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let found: Vec<i64> = printed.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(found.len(), expected.len());
    let wrong: Vec<_> = expected
        .iter()
        .zip(found)
        .filter(|((_, ours), theirs)| ours != theirs)
        .collect();
    assert!(wrong.is_empty(), "ours, the header's: {wrong:?}");
}
