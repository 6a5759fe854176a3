//! Versions of exported symbols.

/// The version script for the linker, of names and versions in order of versions: each symbol at its version, nothing else.
#[must_use]
pub fn version_script(symbols: &[(&str, &str)]) -> String {
    let mut script = String::new();
    let mut before: Option<&str> = None;
    for versions in symbols.chunk_by(|a, b| a.1 == b.1) {
        let version = versions[0].1;
        script += &format!("{version} {{\n  global:\n");
        for (name, _) in versions {
            script += &format!("    {name};\n");
        }
        if before.is_none() {
            script += "  local:\n    *;\n";
        }
        let parent = before.map(|before| format!(" {before}"));
        script += &format!("}}{};\n", parent.unwrap_or_default());
        before = Some(version);
    }
    script
}
