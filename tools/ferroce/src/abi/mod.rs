//! The host contract for readers without Rust: a page with every structure, and a header for C.

pub mod absent;
mod catalog;
mod diagram;
mod header;

use std::fmt::Write as _;

use ferroce_proto::abi::regs::{self, STATS, STATS_BASE};

/// The page, below the root of the repository.
pub const PAGE: &str = "docs/host-contract.md";
/// The header, below the root of the repository.
pub const HEADER: &str = "driver/include/ferroce_abi.h";

/// The program in C that the page quotes.
pub const EXAMPLE: &str = include_str!("../../../../driver/examples/c/write.c");

/// The text of the page, with marks where something is put in.
const GUIDE: &str = include_str!("guide.md");

/// The page.
///
/// # Panics
/// If the text has a mark that names nothing.
#[must_use]
pub fn page() -> String {
    let mut text = String::new();
    for line in GUIDE.lines() {
        match line.strip_prefix("{{").and_then(|l| l.strip_suffix("}}")) {
            Some(mark) => text += &put_in(mark),
            None => {
                text += line;
                text.push('\n');
            }
        }
    }
    text
}

/// The header.
#[must_use]
pub fn header() -> String {
    header::header()
}

/// The numbers of the header for Verilog.
#[must_use]
pub fn verilog_header() -> String {
    header::verilog()
}

/// What a mark of the text stands for.
fn put_in(mark: &str) -> String {
    let (kind, name) = mark.split_once(' ').unwrap_or((mark, ""));
    let found = match kind {
        "structure" => catalog::structure(name).map(|e| diagram::describe(&e.structure)),
        "codes" => catalog::codes(name).map(|list| table(list.name, list.codes)),
        "counters" => Some(counters()),
        "example" => excerpt(name),
        _ => None,
    };
    found.unwrap_or_else(|| panic!("guide.md: nothing is named {mark}"))
}

/// Values of a field.
fn table(prefix: &str, codes: &[ferroce_proto::abi::Code]) -> String {
    let mut text = String::from("| value | name in C | what |\n|---|---|---|\n");
    for code in codes {
        let doc = prose(code.doc).replace('|', "\\|");
        let _ = writeln!(
            text,
            "| {:#x} | `FERROCE_{prefix}_{}` | {doc} |",
            code.value, code.name
        );
    }
    text
}

/// What each counter counts.
fn counters() -> String {
    let mut text = String::from("| offset | counter | counts |\n|---|---|---|\n");
    for (i, (name, doc)) in STATS.iter().zip(regs::STAT_DOCS).enumerate() {
        let at = STATS_BASE as usize + 8 * i;
        let _ = writeln!(text, "| {at:#06x} | `{name}` | {} |", prose(doc));
    }
    text
}

/// The part of the program between the lines that have `[name]` in a comment.
fn excerpt(name: &str) -> Option<String> {
    let mark = format!("/* [{name}] */");
    let mut parts = EXAMPLE.split(mark.as_str());
    let part = parts.nth(1)?;
    Some(format!(
        "```c\n{}\n```\n",
        part.trim_matches('\n').trim_end()
    ))
}

/// A doc text without the links of Rust: `[`a`](b)` and `[`b::a`]` become `a`.
pub fn prose(doc: &str) -> String {
    let mut text = String::new();
    let mut rest = doc.trim();
    while let Some(at) = rest.find("[`") {
        text += &rest[..at];
        let Some(end) = rest[at..].find("`]") else {
            break;
        };
        let path = &rest[at + 2..at + end];
        let name = path.rsplit("::").next().unwrap_or(path);
        let _ = write!(text, "`{name}`");
        rest = &rest[at + end + 2..];
        if rest.starts_with('(') {
            rest = rest.find(')').map_or(rest, |close| &rest[close + 1..]);
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_structure_and_every_list() {
        for entry in catalog::STRUCTURES {
            let mark = format!("{{{{structure {}}}}}", entry.name);
            let register = entry.name.starts_with("PARAMS");
            assert!(register || GUIDE.contains(&mark), "{}", entry.name);
        }
        for list in catalog::CODES {
            let mark = format!("{{{{codes {}}}}}", list.name);
            assert!(GUIDE.contains(&mark), "{}", list.name);
        }
    }

    #[test]
    fn links_of_rust_are_names() {
        assert_eq!(prose(" as [`A`](x::A), [`b::c`]."), "as `A`, `c`.");
        for path in ["crate::", "super::", "abi::"] {
            assert!(!page().contains(path), "a path of Rust in the page");
        }
    }
}
