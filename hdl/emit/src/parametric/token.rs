//! The text of a module in words of which numbers are their own.
use num_bigint::BigUint;

use super::Instance;

/// A number.
#[derive(Clone, Debug)]
pub(super) struct Num {
    /// Bits of a sized literal.
    pub(super) width: Option<usize>,
    pub(super) value: BigUint,
    /// As it stands in the text.
    pub(super) text: String,
}

/// However it is written.
impl PartialEq for Num {
    fn eq(&self, other: &Self) -> bool {
        (self.width, &self.value) == (other.width, &other.value)
    }
}

impl Eq for Num {}

/// Where a number stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    /// The `localparam` or the parameter that it gives a value to.
    pub(super) name: Option<String>,
    /// Between brackets, colons and the like, where an expression needs no brackets of its own.
    pub(super) alone: bool,
}

impl Place {
    pub(super) fn named(name: &str) -> Self {
        Self {
            name: Some(name.into()),
            alone: true,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Text(String),
    /// The name of the module.
    Own,
    Num(Num, Place),
    /// A sub-block that has parameters.
    Child(String, Vec<(String, Num)>),
}

impl Token {
    pub(super) fn num(&self) -> &Num {
        match self {
            Self::Num(num, _) => num,
            _ => unreachable!("texts of one skeleton"),
        }
    }

    pub(super) fn pin(&self, at: usize) -> &Num {
        match self {
            Self::Child(_, pins) => &pins[at].1,
            _ => unreachable!("texts of one skeleton"),
        }
    }
}

/// Appends text.
fn push(out: &mut Vec<Token>, text: &str) {
    match out.last_mut() {
        Some(Token::Text(last)) => last.push_str(text),
        _ => out.push(Token::Text(text.into())),
    }
}

/// What two texts share that differ in numbers only.
pub(super) fn skeleton(tokens: &[Token]) -> String {
    let mut out = String::new();
    for token in tokens {
        match token {
            Token::Text(text) => out += text,
            Token::Own => out.push('\u{1}'),
            Token::Num(num, _) => out.push(if num.width.is_some() {
                '\u{2}'
            } else {
                '\u{3}'
            }),
            Token::Child(group, _) => out += group,
        }
    }
    out
}

/// A piece of text as it is read.
enum Word<'a> {
    Name(&'a str),
    Number(&'a str),
    /// Comment, string, sign, blanks.
    Other(&'a str),
}

fn words<'a>(text: &'a str) -> impl Iterator<Item = Word<'a>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let of = |test: fn(char) -> bool, from: &str| from.find(|c| !test(c)).unwrap_or(from.len());
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '`');
        let (end, kind): (usize, fn(&'a str) -> Word<'a>) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), Word::Other)
        } else if first == '"' {
            (
                rest[1..].find('"').map_or(rest.len(), |at| at + 2),
                Word::Other,
            )
        } else if first.is_ascii_digit() {
            let mut end = of(|c| c.is_ascii_digit(), rest);
            if let Some(base) = rest[end..].strip_prefix('\'') {
                end += 1 + of(|c| c.is_ascii_alphanumeric(), base);
            }
            (end, Word::Number)
        } else if is_name(first) {
            let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            (end, Word::Name)
        } else {
            (first.len_utf8(), Word::Other)
        };
        let (word, behind) = rest.split_at(end);
        rest = behind;
        Some(kind(word))
    })
}

/// The names in a text.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    words(text).filter_map(|word| match word {
        Word::Name(name) => Some(name),
        _ => None,
    })
}

fn number(text: &str) -> Option<Num> {
    let (width, value) = match text.split_once('\'') {
        None => (None, BigUint::parse_bytes(text.as_bytes(), 10)?),
        Some((width, digits)) => {
            let base = match digits.get(..1)? {
                "h" => 16,
                "d" => 10,
                "b" => 2,
                _ => return None,
            };
            let value = BigUint::parse_bytes(&digits.as_bytes()[1..], base)?;
            (Some(width.parse().ok()?), value)
        }
    };
    let text = text.into();
    Some(Num { width, value, text })
}

/// The words of the module `own`; `child` tells what stands for a module.
pub(super) fn tokens(
    text: &str,
    own: &str,
    child: &dyn Fn(&str) -> Option<Instance>,
) -> Vec<Token> {
    let text = with_single_bits(text);
    let mut out: Vec<Token> = vec![];
    let mut at = 0;
    for word in words(&text) {
        let (Word::Name(raw) | Word::Number(raw) | Word::Other(raw)) = word;
        let before = &text[..at];
        at += raw.len();
        match word {
            Word::Name(name) if name == own => out.push(Token::Own),
            Word::Name(name) => match child(name) {
                Some((group, pins)) => out.push(Token::Child(group, pins)),
                None => push(&mut out, name),
            },
            Word::Number(raw) => match number(raw) {
                Some(num) => out.push(Token::Num(num, place(before, &text[at..]))),
                None => push(&mut out, raw),
            },
            Word::Other(raw) => push(&mut out, raw),
        }
    }
    out
}

fn place(before: &str, behind: &str) -> Place {
    let line = before.rsplit('\n').next().unwrap_or_default();
    let name = line.trim_start().strip_prefix("localparam ");
    let name = name.and_then(|rest| rest.strip_suffix(" = "));
    let open = line.trim_end().ends_with(['[', ':', '(', '=']);
    let close = behind.trim_start().starts_with([']', ':', ')', ';']);
    Place {
        name: name.map(Into::into),
        alone: open && close,
    }
}

const DECLARATIONS: [&str; 6] = [
    "input  wire ",
    "output wire ",
    "output reg  ",
    "wire ",
    "reg  ",
    "reg ",
];

/// What declares signals in a line, and the rest of it.
fn declaration(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim_start();
    let head = DECLARATIONS.iter().find(|head| rest.starts_with(**head))?;
    Some(line.split_at(line.len() - rest.len() + head.len()))
}

/// Signals of one bit with the range that others have.
fn with_single_bits(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        match declaration(line) {
            Some((head, rest)) if !rest.starts_with('[') => {
                out += head;
                out += "[0:0] ";
                out += rest;
            }
            _ => out += line,
        }
    }
    out
}

/// Back again.
pub(super) fn without_single_bits(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        match declaration(line) {
            Some((head, rest)) => {
                out += head;
                out += rest.strip_prefix("[0:0] ").unwrap_or(rest);
            }
            None => out += line,
        }
    }
    out
}

/// The head of an instance: `ferroce_skid #(.WIDTH(8))`.
pub(super) fn child<'a>(
    group: &str,
    pins: impl ExactSizeIterator<Item = (&'a str, String)>,
) -> String {
    if pins.len() == 0 {
        return group.into();
    }
    let pins: Vec<_> = pins
        .map(|(name, text)| format!(".{name}({text})"))
        .collect();
    format!("{group} #({})", pins.join(", "))
}

/// `text` with what stands for the modules it has instances of.
pub(super) fn instances(text: &str, of: &dyn Fn(&str) -> Option<Instance>) -> String {
    let mut out = String::new();
    for word in words(text) {
        match word {
            Word::Name(name) => match of(name) {
                Some((group, pins)) => {
                    let pins = pins
                        .iter()
                        .map(|(name, num)| (name.as_str(), num.text.clone()));
                    out += &child(&group, pins);
                }
                None => out += name,
            },
            Word::Number(text) | Word::Other(text) => out += text,
        }
    }
    out
}
