//! Queue pairs that end in the midst of traffic, see [`ferroce_tests::former`].
//!
//! `$FERROCE_ROUNDS` sets how many rounds each card has instead of the usual, `$FERROCE_SEED` picks one seed.

use ferroce_system::pool;
use ferroce_tests::conformance::run::Target;
use ferroce_tests::former::rounds;

/// Rounds of each card, and those of a seed.
const ROUNDS: u64 = 100;
const ROUNDS_OF_A_SEED: u64 = 50;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is `{text}`; a decimal number is expected")))
}

fn nothing_of_a_former_life_is_seen(target: Target) {
    let count = number("FERROCE_ROUNDS").unwrap_or(ROUNDS).max(1);
    let last = count.div_ceil(ROUNDS_OF_A_SEED);
    let seeds = number("FERROCE_SEED").map_or(1..=last, |seed| seed..=seed);
    let name = target.name();
    println!("{name}: {count} rounds, seeds {seeds:?}");
    pool::each(pool::processors(), seeds, || {
        |seed| {
            let left = count - (seed.min(last) - 1) * ROUNDS_OF_A_SEED;
            if let Err(what) = rounds(target, seed, left.min(ROUNDS_OF_A_SEED)) {
                panic!("{name}: {what}\nrepeat with FERROCE_SEED={seed} FERROCE_ROUNDS={count}");
            }
        }
    });
}

#[test]
fn model() {
    nothing_of_a_former_life_is_seen(Target::Model);
}

#[test]
fn rtl_64() {
    nothing_of_a_former_life_is_seen(Target::Rtl(64));
}

#[test]
fn rtl_512() {
    nothing_of_a_former_life_is_seen(Target::Rtl(512));
}
