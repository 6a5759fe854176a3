//! The modules of each crate are layers: none imports, by way of others, one that imports it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Of a crate, the modules that each of its modules names. A module is a file or a folder below `src`.
type Names = BTreeMap<String, BTreeSet<String>>;

/// A facade, which imports what others import by it.
const FACADE: &str = "prelude";

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The words of a text, and of what follows `crate::` in it the first, or all in the braces.
fn named_in_crate(code: &str) -> BTreeSet<String> {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words.filter(|w| !w.is_empty()).map(str::to_owned).collect()
    };
    let mut found = BTreeSet::new();
    for (at, prefix) in code.match_indices("crate::") {
        let rest = &code[at + prefix.len()..];
        match rest.strip_prefix('{') {
            Some(group) => found.extend(words(group.split(';').next().unwrap_or_default())),
            None => found.extend(words(rest).into_iter().next()),
        }
    }
    found
}

/// The code of a file without comments and without its tests.
fn code(text: &str) -> String {
    let text = text
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// What the root of a crate exports: the module of each name.
fn exports(root: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (at, _) in root.match_indices("pub use ") {
        let path = root[at + 8..].split(';').next().unwrap_or_default();
        let Some((module, names)) = path.split_once("::") else {
            continue;
        };
        let names = names.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        found.extend(names.map(|name| (name.to_owned(), module.trim().to_owned())));
    }
    found
}

fn modules(src: &Path) -> Names {
    let mut files = vec![];
    rust_files(src, &mut files);
    let exports = exports(&code(
        &fs::read_to_string(src.join("lib.rs")).unwrap_or_default(),
    ));
    let mut modules = Names::new();
    for file in files {
        let below = file.strip_prefix(src).expect("it was found there");
        let first = below.components().next().expect("a file").as_os_str();
        let module = first
            .to_str()
            .expect("UTF-8")
            .trim_end_matches(".rs")
            .to_owned();
        let is_test = below
            .iter()
            .any(|part| part == "tests" || part == "tests.rs");
        if is_test || ["lib", "main", FACADE].contains(&&*module) {
            continue;
        }
        let names = named_in_crate(&code(&fs::read_to_string(&file).expect("it is there")));
        let names = names
            .into_iter()
            .map(|n| exports.get(&n).cloned().unwrap_or(n));
        modules
            .entry(module.clone())
            .or_default()
            .extend(names.filter(|n| *n != module));
    }
    let known: BTreeSet<_> = modules.keys().cloned().collect();
    modules
        .values_mut()
        .for_each(|names| names.retain(|n| known.contains(n)));
    modules
}

/// A circle, if there is one: each names the next.
fn circle(names: &Names) -> Option<Vec<String>> {
    fn visit(at: &str, names: &Names, way: &mut Vec<String>, done: &mut BTreeSet<String>) -> bool {
        if let Some(begin) = way.iter().position(|m| m == at) {
            way.drain(..begin);
            return true;
        }
        if done.contains(at) {
            return false;
        }
        way.push(at.into());
        if names[at].iter().any(|next| visit(next, names, way, done)) {
            return true;
        }
        done.extend(way.pop());
        false
    }
    let (mut way, mut done) = (vec![], BTreeSet::new());
    let found = names.keys().any(|m| visit(m, names, &mut way, &mut done));
    found.then_some(way)
}

#[test]
fn no_crate_has_a_circle() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("a manifest");
    let members = manifest
        .split("members = [")
        .nth(1)
        .and_then(|m| m.split(']').next());
    let members: Vec<_> = members
        .expect("members")
        .split('"')
        .skip(1)
        .step_by(2)
        .collect();
    assert!(members.contains(&"driver") && members.contains(&"hdl"));
    for member in members {
        let names = modules(&root.join(member).join("src"));
        if let Some(circle) = circle(&names) {
            panic!(
                "{member}: {} -> {}: move what they share below them",
                circle.join(" -> "),
                circle[0]
            );
        }
    }
}

#[test]
fn a_circle_is_found() {
    let names = |of: &[(&str, &str)]| -> Names {
        of.iter()
            .map(|(m, code)| ((*m).into(), named_in_crate(code)))
            .collect()
    };
    let layers = [
        ("a", "use crate::{b, c};"),
        ("b", "use crate::c::X;"),
        ("c", ""),
    ];
    assert_eq!(circle(&names(&layers)), None);
    let back = [layers[0], layers[1], ("c", "fn f() { crate::b::g() }")];
    assert_eq!(circle(&names(&back)), Some(vec!["b".into(), "c".into()]));
    assert_eq!(exports("pub use a::{X, Y};\npub use b::Z;")["Y"], "a");
    assert!(
        code("// crate::b\nfn f() {}\n#[cfg(test)]\nmod tests {\nuse crate::b;")
            .starts_with("fn f")
    );
}
