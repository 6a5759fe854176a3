//! What is left out of the coverage, with the reason.

use ferroce_hdl::emit::block_of;
use serde::{Deserialize, Serialize};

use super::block;
use super::data::{Kind, Point};

/// Something that no test can reach, or that shows nothing if it is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exclusion {
    /// A block or a module, `*` for any text.
    pub block: String,
    /// Of lines: what stands in the first line of the arm.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub line: String,
    /// Of bits: the signal, `*` for any text, with or without a range `[high:low]`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub signal: String,
    /// Of bits: what follows from their being 0 is left out, too. None of it may change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// Why.
    pub reason: String,
}

impl Exclusion {
    /// Whether `point` is meant; `text` is its line in the Verilog.
    #[must_use]
    pub fn means(&self, point: &Point, text: &str) -> bool {
        match point.kind {
            Kind::Toggle => {
                let (name, index) = split(&point.name);
                let index = bounds(index).map(|(at, _)| at);
                self.means_bit(&point.module, name, index)
            }
            Kind::Line | Kind::Branch => {
                !self.line.is_empty() && text.contains(&self.line) && self.is_of(&point.module)
            }
        }
    }

    /// Whether a bit of a signal is meant; without an index if the signal has but one.
    #[must_use]
    pub fn means_bit(&self, module: &str, name: &str, index: Option<usize>) -> bool {
        let (signal, range) = split(&self.signal);
        let within = match (bounds(range), index) {
            (Some((high, low)), Some(at)) => (low..=high).contains(&at),
            (Some(_), None) => false,
            (None, _) => true,
        };
        !self.signal.is_empty() && within && like(signal, name) && self.is_of(module)
    }

    fn is_of(&self, module: &str) -> bool {
        like(&self.block, block(module)) || like(&self.block, block_of(module))
    }
}

/// Name, and what stands in the brackets behind it.
fn split(signal: &str) -> (&str, &str) {
    match signal.split_once('[') {
        Some((name, rest)) => (name, rest.trim_end_matches(']')),
        None => (signal, ""),
    }
}

fn bounds(range: &str) -> Option<(usize, usize)> {
    let (high, low) = range.split_once(':').unwrap_or((range, range));
    Some((high.parse().ok()?, low.parse().ok()?))
}

/// Whether `text` is of the form `pattern`, in which `*` stands for any text.
fn like(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(head) else {
        return false;
    };
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.into_iter().any(|at| like(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_lines_are_meant() {
        let point = |kind, name: &str| Point {
            kind,
            module: "ferroce_mr_table_1024x4".into(),
            line: 1,
            name: name.into(),
            lines: vec![],
            count: 0,
        };
        let of = |block: &str, signal: &str, line: &str| Exclusion {
            block: block.into(),
            line: line.into(),
            signal: signal.into(),
            ..Exclusion::default()
        };
        let bit = point(Kind::Toggle, "addr_q[40]");
        assert!(of("mr_table", "addr_q", "").means(&bit, ""));
        assert!(of("*", "a*_q[63:40]", "").means(&bit, ""));
        assert!(!of("*", "a*_q[63:41]", "").means(&bit, ""));
        assert!(!of("mr", "addr_q", "").means(&bit, ""));
        assert!(of("mr_table_1024x*", "addr_q", "").means(&bit, ""));
        assert!(!of("*", "addr_q[0]", "").means(&point(Kind::Toggle, "addr_q"), ""));
        let arm = point(Kind::Branch, "if");
        assert!(of("*", "", "if (halt)").means(&arm, "  if (halt) begin"));
        assert!(!of("*", "if", "").means(&arm, "  if (halt) begin"));
    }
}
