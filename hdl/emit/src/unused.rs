//! Bits that nothing in a module reads: one wire names them, so that a linter and a reader know that none was forgotten.
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use num_bigint::BigUint;

use super::collect::{Body, Node};
use super::direct::Direct;
use super::group::Piece;
use super::ir::{Bits, Expr, Sym, Target};
use super::print::{indent, line};
use super::scope::{Role, Scope};
use super::value::ones;

/// The wire. Linters take the word `unused` in a name as a promise.
pub(crate) const NAME: &str = "unused_bits";

/// Characters of a line of it.
const LONGEST: usize = 100;

/// What is read of each signal.
pub(crate) struct Reads<'a> {
    scope: &'a Scope,
    /// For each symbol the one it is wired to.
    alias: &'a [Sym],
    bits: HashMap<Sym, BigUint>,
}

impl<'a> Reads<'a> {
    /// Those of the children of `node` and of `pieces`.
    pub(crate) fn new(
        node: &Node,
        scope: &'a Scope,
        alias: &'a [Sym],
        direct: &Direct,
        pieces: &[Piece],
    ) -> Self {
        let bits = HashMap::new();
        let mut reads = Self { scope, alias, bits };
        for piece in pieces {
            match piece {
                Piece::Assign(target, value) => {
                    if let Target::PartAt { at, .. } = target {
                        reads.expression(at);
                    }
                    reads.expression(value);
                }
                Piece::Always(code) => {
                    let mut note = |sym, bits| reads.note(sym, bits);
                    code.iter().for_each(|statement| statement.reads(&mut note));
                }
                Piece::Comment(_) => {}
            }
        }
        for (sym, symbol) in scope.symbols.iter().enumerate() {
            match (symbol.role, direct.get(&sym)) {
                (Role::Output, _) => reads.note(sym, Bits::All),
                (Role::ChildInput(child), _) if is_ignored(&node.children[child], &symbol.key) => {}
                (Role::ChildInput(_), Some(value)) => reads.expression(value),
                (Role::ChildInput(_), None) => reads.note(sym, Bits::All),
                _ => {}
            }
        }
        reads
    }

    fn expression(&mut self, value: &Expr) {
        value.reads(&mut |sym, bits| self.note(sym, bits));
    }

    pub(crate) fn note(&mut self, sym: Sym, bits: Bits) {
        let sym = self.alias[sym];
        let bits = match bits {
            Bits::All => ones(self.scope.symbols[sym].width),
            Bits::Range(low, width) => ones(width) << low,
        };
        *self.bits.entry(sym).or_default() |= bits;
    }

    /// The wire, or nothing if all bits are read.
    pub(crate) fn print(&self, direct: &Direct) -> String {
        let stands = |sym: &Sym| self.alias[*sym] == *sym && !direct.contains_key(sym);
        let mut parts: Vec<_> = (0..self.scope.symbols.len())
            .filter(stands)
            .flat_map(|sym| {
                let symbol = &self.scope.symbols[sym];
                let read = self.bits.get(&sym).cloned().unwrap_or_default();
                missing(&symbol.name, symbol.width, read)
            })
            .collect();
        parts.sort();
        wire(&parts)
    }
}

/// The wire of a module whose body is `text`, of its `inputs` and of the wires that the text declares.
pub(crate) fn of_text(inputs: &[(String, usize)], text: &str) -> String {
    let mut bits: BTreeMap<&str, (usize, BigUint)> = BTreeMap::new();
    for (name, width) in inputs {
        bits.insert(name, (*width, BigUint::ZERO));
    }
    for line in text.lines().map(str::trim) {
        let line = match declared(line) {
            Some((name, width, rest)) => {
                bits.insert(name, (width, BigUint::ZERO));
                rest
            }
            None => line.split("//").next().unwrap_or_default(),
        };
        let line = match line.strip_prefix("assign ") {
            Some(assigned) => assigned.split_once('=').map_or("", |(_, value)| value),
            None => line,
        };
        for (name, selected) in words(line) {
            if let Some((width, read)) = bits.get_mut(name) {
                *read |= selected.map_or(ones(*width), |(high, low)| ones(high + 1 - low) << low);
            }
        }
    }
    let parts = bits.into_iter();
    let parts = parts.flat_map(|(name, (width, read))| missing(name, width, read));
    wire(&parts.collect::<Vec<_>>())
}

/// Name, width and rest of `wire [3:0] name...`.
fn declared(line: &str) -> Option<(&str, usize, &str)> {
    let (range, rest) = line.strip_prefix("wire [")?.split_once("] ")?;
    let width = range.split_once(':')?.0.parse::<usize>().ok()? + 1;
    let end = rest.find(|c| !is_of_word(c))?;
    let value = rest[end..].split_once('=').map_or("", |(_, value)| value);
    Some((&rest[..end], width, value))
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The words of a line, with the bits that are taken of each; `None`: all.
fn words(line: &str) -> impl Iterator<Item = (&str, Option<(usize, usize)>)> {
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = &rest[rest.find(is_of_word)?..];
        let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind;
        let selected = behind.strip_prefix('[').and_then(|text| {
            let text = text.split_once(']')?.0;
            let (high, low) = text.split_once(':').unwrap_or((text, text));
            Some((high.parse().ok()?, low.parse().ok()?))
        });
        Some((word, selected))
    })
}

/// The bits of `name` that are not `read`, as they are selected.
fn missing(name: &str, width: usize, read: BigUint) -> Vec<String> {
    if read == BigUint::ZERO {
        return vec![name.into()];
    }
    let selected = |bits: RangeInclusive<u64>| match bits.start() == bits.end() {
        true => format!("{name}[{}]", bits.start()),
        false => format!("{name}[{}:{}]", bits.end(), bits.start()),
    };
    let missing = ranges(&(ones(width) ^ read)).into_iter();
    missing.map(selected).collect()
}

/// The clock and the reset of a register without reset: nothing is printed for it.
fn is_ignored(child: &Node, key: &str) -> bool {
    matches!(child.body, Body::Register(None)) && key.ends_with("clock$rst")
}

/// `[0, 1, 5]` as `[0..=1, 5..=5]`.
fn ranges(bits: &BigUint) -> Vec<RangeInclusive<u64>> {
    let mut found: Vec<RangeInclusive<u64>> = vec![];
    for bit in (0..bits.bits()).filter(|bit| bits.bit(*bit)) {
        match found.last_mut() {
            Some(last) if last.end() + 1 == bit => *last = *last.start()..=bit,
            _ => found.push(bit..=bit),
        }
    }
    found
}

/// The wire that names `parts`.
fn wire(parts: &[String]) -> String {
    let mut out = String::new();
    if parts.is_empty() {
        return out;
    }
    line(&mut out, &indent(1), "// Nothing here reads these bits.");
    let mut text = format!("wire {NAME} = &{{1'b0");
    for part in parts {
        text.push(',');
        if text.len() + part.len() > LONGEST {
            line(&mut out, &indent(1), &text);
            text = indent(1);
        } else {
            text.push(' ');
        }
        text += part;
    }
    line(&mut out, &indent(1), &(text + "};"));
    out
}
