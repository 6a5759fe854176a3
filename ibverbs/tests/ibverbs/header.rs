//! A header of the system against tables of ours, by a C program that prints what the compiler makes of it.

use std::fs;
use std::process::Command;

use ferroce_cabi::abi::Layout;

/// The expressions for sizes and places of fields, with our numbers.
pub(crate) fn layout(layout: &Layout) -> Vec<(String, i64)> {
    let name = layout.name;
    let size = (format!("sizeof(struct {name})"), layout.size as i64);
    let fields = layout.fields.iter().map(|(field, offset)| {
        let field = field.trim_start_matches("r#");
        let expression = format!("offsetof(struct {name}, {field})");
        (expression, *offset as i64)
    });
    [size].into_iter().chain(fields).collect()
}

/// Each expression has its number by `header`.
pub(crate) fn agrees(header: &str, expected: &[(String, i64)]) {
    let mut source = format!(
        "#include <{header}>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {{\n"
    );
    for (expression, _) in expected {
        source += &format!("  printf(\"%lld\\n\", (long long)({expression}));\n");
    }
    source += "  return 0;\n}\n";
    let folder = tempfile::tempdir().unwrap();
    let (file, binary) = (folder.path().join("print.c"), folder.path().join("print"));
    fs::write(&file, source).unwrap();
    let mut cc = Command::new("cc");
    let compiled = cc.arg(&file).arg("-o").arg(&binary).output().unwrap();
    let output = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{output}");
    let printed = Command::new(&binary).output().unwrap().stdout;
    let printed = String::from_utf8(printed).unwrap();
    let found: Vec<i64> = printed.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(found.len(), expected.len());
    let both = expected.iter().zip(found);
    let wrong: Vec<_> = both.filter(|((_, ours), theirs)| ours != theirs).collect();
    assert!(wrong.is_empty(), "ours, the header's: {wrong:?}");
}
