//! Mutants in the benches of blocks: `$FERROCE_MUTANTS` is a file of [`listed`] mutants, `$FERROCE_MUTANT` the number of the one
//! to be, and what a bench has of them is added to the file `$FERROCE_MUTANTS_MET`, a number a line.
//!
//! A bench may have a block in another size than the engine has it, so a mutant is known by its lines without numbers.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write as _;

use super::schemata::{CHOICE, Choice, put_into};
use super::sites::{self, Mutant, without_sizes};
use crate::verilator::{Dut, Spec};

/// Cycles of a bench with a mutant: without one none gets near, with one it may never end.
pub const LIFE: u64 = 20_000_000;

/// A mutant in a text, whatever the sizes of its block.
type Key = (String, String, String);

/// The keys of mutants, and which of those with this key each is.
fn keys(mutants: &[Mutant]) -> Vec<(Key, usize)> {
    let mut seen = BTreeMap::new();
    let mut keys = Vec::new();
    for mutant in mutants {
        let block = without_sizes(&mutant.module);
        let key = (block, shape(&mutant.was), shape(&mutant.mutated));
        let nth = seen.entry((&mutant.module, key.clone())).or_insert(0);
        *nth += 1;
        keys.push((key, *nth));
    }
    keys
}

/// A line with `#` for each number, whatever its width and base; the digits of a name stay.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '\'');
        let word = word.unwrap_or(rest.len()).max(first.len_utf8());
        shape += match first.is_ascii_digit() {
            true => "#",
            false => &rest[..word],
        };
        rest = &rest[word..];
    }
    shape
}

/// The text of `$FERROCE_MUTANTS` for some of all mutants of a design, which are numbered from 1.
#[must_use]
pub fn listed(all: &[Mutant], chosen: &[Mutant]) -> String {
    let keys = keys(all);
    let of = |mutant: &Mutant| {
        all.iter()
            .position(|it| it == mutant)
            .expect("it is one of all")
    };
    let line = |mutant| {
        let ((block, was, mutated), nth) = &keys[of(mutant)];
        format!("{block}\t{nth}\t{was}\t{mutated}\n")
    };
    chosen.iter().map(line).collect()
}

/// What a line of [`listed`] names.
fn parsed(line: &str) -> Option<(Key, usize)> {
    let [block, nth, was, mutated] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
    Some((
        (block.to_owned(), was.to_owned(), mutated.to_owned()),
        nth.parse().ok()?,
    ))
}

/// Puts the mutants that `$FERROCE_MUTANTS` lists into a design, where it has them.
///
/// # Panics
/// If the files cannot be read or written: the run of a mutant would say nothing.
pub(crate) fn put_listed(spec: &mut Spec) {
    let Some(file) = env::var_os("FERROCE_MUTANTS") else {
        return;
    };
    let listed = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let listed: Vec<_> = listed
        .lines()
        .map(|line| parsed(line).expect(line))
        .collect();
    let blocks: Vec<_> = listed
        .iter()
        .map(|((block, ..), _)| block.as_str())
        .collect();
    let own = sites::mutants(&spec.source, &blocks);
    // a mutant in two sizes of a block has two numbers
    let mut numbers = BTreeMap::<_, Vec<usize>>::new();
    for (key, number) in listed.iter().zip(1..) {
        numbers.entry(key).or_default().push(number);
    }
    let mut met = Vec::new();
    let mut choices = Vec::new();
    for (mutant, key) in own.iter().zip(keys(&own)) {
        for &number in numbers.get(&key).into_iter().flatten() {
            met.push(number);
            choices.push(Choice::of((number, mutant)));
        }
    }
    if !choices.is_empty() {
        put_into(spec, choices);
    }
    if let Some(file) = env::var_os("FERROCE_MUTANTS_MET") {
        let text: String = met.iter().map(|number| format!("{number}\n")).collect();
        let file = OpenOptions::new().create(true).append(true).open(file);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.expect("what the bench has can be said");
    }
}

/// Makes a device the mutant of `$FERROCE_MUTANT`, if it has it, and says whether there is one to be.
pub(crate) fn choose(dut: &mut Dut) -> bool {
    let number = env::var("FERROCE_MUTANT").ok().and_then(|n| n.parse().ok());
    if let (Some(number), Ok(choice)) = (number, dut.input(CHOICE)) {
        dut.set(choice, number);
    }
    number.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGINE: &str = "module a_q8 (\n);\n    assign x = y_2[7:0] + 8'd1;\n    assign x = y_2[7:0] + 8'd1;\nendmodule\n";

    #[test]
    fn a_mutant_is_known_in_another_size() {
        let all = sites::mutants(ENGINE, &["a"]);
        let text = listed(&all, &all[2..3]);
        assert_eq!(
            text,
            "a\t2\tassign x = y_2[#:#] + #;\tassign x = y_2[#:#] - #;\n"
        );
        let mut small = Spec::new("top", ENGINE.replace("q8", "q4").replace("8'd1", "4'hc"));
        small.source += "module top (\n);\nendmodule\n";
        let own = sites::mutants(&small.source, &["a"]);
        let key = parsed(text.trim_end()).unwrap();
        let at: Vec<_> = keys(&own).iter().map(|own| *own == key).collect();
        assert_eq!(at, [false, false, true, false]);
    }
}
