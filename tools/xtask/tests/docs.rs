//! The pages hold together: links, quoted code, variables.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    root.canonicalize().unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Files below a folder with one of these endings.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                files(&path, endings, found);
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}

fn all(endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&root(), endings, &mut found);
    found
}

/// A page without its blocks of code.
fn prose(text: &str) -> String {
    let parts = text.split("```");
    parts.step_by(2).collect::<Vec<_>>().join("\n")
}

/// The anchor of a heading, as forges make it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .collect()
}

/// Targets of the links and pictures of a page.
fn links(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    for part in text.split("](").skip(1) {
        links.extend(part.split_once(')').map(|(link, _)| link));
    }
    links
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    let mut anchors: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    let pages = all(&[".md"]);
    for path in &pages {
        let text = prose(&fs::read_to_string(path).unwrap());
        let headings = text.lines().filter(|line| line.starts_with('#'));
        anchors.insert(path.clone(), headings.map(anchor).collect());
    }
    // The text that a page is made from has the links of the page.
    for path in pages.iter().filter(|path| !path.ends_with("guide.md")) {
        let text = prose(&fs::read_to_string(path).unwrap());
        for link in links(&text).into_iter().filter(|l| !l.contains("://")) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            let Ok(target) = target.canonicalize() else {
                broken.push(format!("{}: {link}", path.display()));
                continue;
            };
            let known = anchors.get(&target);
            if !place.is_empty() && !known.is_some_and(|known| known.contains(place)) {
                broken.push(format!("{}: {link}: no such heading", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn no_page_holds_both_sides_of_a_merge() {
    let is_mark = |line: &&str| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ");
    for path in all(&[".md"]) {
        let text = fs::read_to_string(&path).unwrap();
        let mark = text.lines().find(is_mark);
        assert_eq!(mark, None, "{}", path.display());
    }
}

#[test]
fn links_and_anchors_are_found() {
    assert_eq!(anchor("## 7. Known gaps"), "7-known-gaps");
    assert_eq!(anchor("# `m_axi`: memory, AXI4"), "m_axi-memory-axi4");
    assert_eq!(links("[a](b.md) ![c](d.svg#e)"), ["b.md", "d.svg#e"]);
    assert_eq!(prose("a\n```\n[x](y)\n```\nb"), "a\n\n\nb");
}

#[test]
fn every_page_is_in_the_list() {
    let list = read("docs/README.md");
    let listed: BTreeSet<_> = links(&list).into_iter().collect();
    let folder = root().join("docs");
    let pages = fs::read_dir(&folder).unwrap().map(|e| e.unwrap());
    for page in pages.filter(|e| e.path().is_file()) {
        let name = page.file_name().into_string().unwrap();
        let page = name.ends_with(".md") && name != "README.md";
        assert!(
            !page || listed.contains(name.as_str()),
            "{name} is not in docs/README.md"
        );
    }
}

/// The code of the README is that of the example, which a test runs: every line stands there, in this order.
#[test]
fn the_code_of_the_readme_is_that_of_the_example() {
    let readme = read("README.md");
    let code = readme.split("```rust\n").nth(1).unwrap();
    let code = code.split("```").next().unwrap();
    let example = read("sim/examples/write.rs");
    let mut lines = example.lines().map(str::trim);
    for line in code.lines().map(str::trim) {
        assert!(lines.any(|other| other == line), "{line}");
    }
}

/// Texts that are a name in capitals that begins with `FERROCE_`: the variables that the code reads.
fn variables(text: &str) -> impl Iterator<Item = String> {
    let names = text.split("\"FERROCE_").skip(1);
    let names = names.filter_map(|rest| rest.split_once('"').map(|(name, _)| name));
    let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    names
        .filter(is_name)
        .filter(|name| !name.is_empty())
        .map(|name| format!("FERROCE_{name}"))
}

#[test]
fn every_variable_is_on_the_page() {
    // Names that only processes and simulators of one test exchange, and those of the C header.
    const INTERNAL: [&str; 2] = ["FERROCE_TAP_NAMESPACE", "FERROCE_ABI_H"];
    let page = read("docs/environment.md");
    let mut missing = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for path in all(&[".rs"]) {
        let text = fs::read_to_string(&path).unwrap();
        for name in variables(&text).filter(|name| !INTERNAL.contains(&name.as_str())) {
            seen.insert(name.clone());
            if !page.contains(&format!("`{name}`")) {
                missing.insert(format!("{name} ({})", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
    assert!(
        seen.contains("FERROCE_DEVICE") && seen.len() >= 10,
        "{seen:?}"
    );
}

/// The toolchain of the project is the one that its packages ask for, or a newer one.
#[test]
fn the_toolchain_is_new_enough() {
    let value = |text: &str, key: &str| -> Vec<u32> {
        let line = text.lines().find(|line| line.starts_with(key)).unwrap();
        let version = line.split('"').nth(1).unwrap();
        version.split('.').map(|n| n.parse().unwrap()).collect()
    };
    let toolchain = value(&read("rust-toolchain.toml"), "channel");
    let needed = value(&read("Cargo.toml"), "rust-version");
    assert!(toolchain >= needed, "{toolchain:?} {needed:?}");
}
