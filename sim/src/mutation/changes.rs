//! What a line of emitted Verilog can become.

use std::collections::BTreeMap;
use std::ops::Range;

use super::sites::Site;

/// What a module declares.
#[derive(Default)]
pub(super) struct Scope<'a> {
    /// Bits of each signal.
    widths: BTreeMap<&'a str, usize>,
    /// Bits and value of each constant.
    constants: BTreeMap<&'a str, (usize, u128)>,
    /// Fields that are read or written, by bits: `SqEvent_qpn`.
    fields: BTreeMap<usize, Vec<&'a str>>,
}

impl<'a> Scope<'a> {
    /// Of the lines of a module.
    pub(super) fn of(lines: &[&'a str]) -> Self {
        let mut scope = Self::default();
        for line in lines {
            let text = line.trim().trim_end_matches([';', ',']);
            if let Some((name, value)) = text
                .strip_prefix("localparam ")
                .and_then(|rest| rest.split_once(" = "))
            {
                if let Some((value, _)) = literal(value) {
                    scope.constants.insert(name, value);
                }
            } else if let Some((width, names)) = declaration(text) {
                scope.widths.extend(names.map(|name| (name, width)));
            }
            for (at, _) in line.match_indices(" +: ") {
                let field = line[..at].rsplit('[').next().filter(|field| is_name(field));
                let width = line[at + " +: ".len()..].split(']').next();
                let width = width.and_then(|width| width.parse().ok());
                if let (Some(field), Some(width)) = (field, width) {
                    let known = scope.fields.entry(width).or_default();
                    if !known.contains(&field) {
                        known.push(field);
                    }
                }
            }
        }
        scope
    }

    /// Bits of what is assigned; none if that is not known.
    fn width(&self, target: &str) -> Option<usize> {
        let Some((_, index)) = target.split_once('[') else {
            return self.widths.get(target).copied();
        };
        match index.trim_end_matches(']').split_once(" +: ") {
            Some((_, width)) => width.parse().ok(),
            None if index.contains(':') => None,
            None => Some(1),
        }
    }

    /// The fields of the same record and width as the one that is all of `text`, with its record.
    fn neighbours(&self, text: &str) -> Vec<String> {
        let field = || {
            let (record, index) = text.strip_suffix(']')?.split_once('[')?;
            let (field, width) = index.split_once(" +: ")?;
            let kind = field.split_once('_')?.0;
            let others = self.fields.get(&width.parse().ok()?)?.iter();
            let others = others
                .filter(|other| **other != field && other.split('_').next() == Some(kind))
                .map(|other| format!("{record}[{other} +: {width}]"));
            is_name(record).then(|| others.collect())
        };
        field().unwrap_or_default()
    }
}

pub(super) fn is_name(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Width and names of a declaration.
fn declaration(text: &str) -> Option<(usize, impl Iterator<Item = &str>)> {
    let mut rest = text;
    for word in ["input", "output", "wire", "reg"] {
        rest = rest.strip_prefix(word).unwrap_or(rest).trim_start();
    }
    if rest.len() == text.len() || rest.contains('=') {
        return None;
    }
    let (width, names) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (range, names) = rest.split_once("] ")?;
            (range.strip_suffix(":0")?.parse::<usize>().ok()? + 1, names)
        }
        None => (1, rest),
    };
    Some((width, names.split(", ")))
}

/// Bits, value and length of the sized constant that `text` begins with.
fn literal(text: &str) -> Option<((usize, u128), usize)> {
    let (width, rest) = text.split_once('\'')?;
    let bits = width.parse().ok()?;
    let radix = match rest.bytes().next()? {
        b'd' => 10,
        b'h' => 16,
        b'b' => 2,
        _ => return None,
    };
    let digits = rest[1..].split(|c: char| !c.is_digit(radix)).next()?;
    let value = u128::from_str_radix(digits, radix).ok()?;
    Some(((bits, value), width.len() + 2 + digits.len()))
}

/// A constant of `bits` bits, one more than `value`, modulo 2^bits; none for a single bit, which is a negation.
fn one_more((bits, value): (usize, u128)) -> Option<String> {
    let mask = 1_u128.checked_shl(bits as u32)?.wrapping_sub(1);
    (bits > 1).then(|| format!("{bits}'d{}", value.wrapping_add(1) & mask))
}

/// Other expressions for a site; `held` if the target has a value that it can keep.
pub(super) fn changes(site: &Site<'_>, held: bool, scope: &Scope<'_>) -> Vec<String> {
    let text = site.expression;
    let is_constant = |text| literal(text).is_some_and(|(_, length)| length == text.len());
    let width = site.target.map_or(Some(1), |target| scope.width(target));
    let mut changes: Vec<_> = parts(text, scope)
        .into_iter()
        .map(|(at, other)| format!("{}{other}{}", &text[..at.start], &text[at.end..]))
        .collect();
    match width {
        Some(1) if text == "1'b0" => changes.push("1'b1".into()),
        Some(1) if text == "1'b1" => changes.push("1'b0".into()),
        Some(1) => changes.extend(["1'b1".into(), "1'b0".into()]),
        Some(2..=64) if text.contains(" + ") && site.target.is_some_and(is_name) => {
            let width = width.expect("it matched");
            changes.push(format!(
                "({text}) & {width}'d{}",
                (1_u64 << (width - 1)) - 1
            ));
        }
        Some(width) if site.target.is_some_and(|t| t.contains(" +: ")) && !is_constant(text) => {
            changes.push(format!("{width}'d0"));
        }
        _ => {}
    }
    changes.extend(scope.neighbours(text));
    changes.extend(site.target.filter(|_| held).map(str::to_owned));
    let mut seen = vec![text.to_owned()];
    changes.retain(|change| {
        let is_new = !seen.contains(change);
        seen.push(change.clone());
        is_new
    });
    changes
}

/// What each operator becomes, the longer ones first: they begin like others. The empty ones stay.
const OTHERS: [(&str, &str); 15] = [
    ("<<", "<<"),
    (">>", ">>"),
    ("==", "!="),
    ("!=", "=="),
    ("<=", "<"),
    (">=", ">"),
    ("<", "<="),
    (">", ">="),
    ("&", "|"),
    ("|", "&"),
    ("^", "|"),
    ("+", "-"),
    ("-", "+"),
    ("!", ""),
    ("~", ""),
];

/// Operators and constants of an expression, but for those in indices, and what they become.
fn parts(text: &str, scope: &Scope<'_>) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    let (mut at, mut index) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        match text.as_bytes()[at] {
            b'[' => index += 1,
            b']' => index -= 1,
            _ => {}
        }
        if rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            let word = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let word = &rest[..word.unwrap_or(rest.len())];
            let named = scope.constants.get(word).map(|&of| (of, word.len()));
            let (constant, length) = match literal(rest).or(named) {
                Some((of, length)) => (one_more(of), length),
                None => (None, word.len()),
            };
            let change = constant.filter(|_| index == 0);
            found.extend(change.map(|change| (at..at + length, change)));
            at += length;
            continue;
        }
        let operator = OTHERS.iter().find(|(from, _)| rest.starts_with(from));
        let Some(&(from, other)) = operator.filter(|_| index == 0) else {
            at += 1;
            continue;
        };
        // A minus in front of an operand alone has no counterpart.
        let before = text[..at].trim_end().chars().next_back();
        let binary =
            before.is_some_and(|c| c.is_alphanumeric() || matches!(c, ')' | ']' | '}' | '_'));
        if from != other && (binary || !matches!(from, "+" | "-")) {
            found.push((at..at + from.len(), other.into()));
        }
        at += from.len();
    }
    found
}
