//! The conformance suite on every target; see `ferroce_tests::conformance`.

mod defects;

use ferroce_tests::conformance::run::{Outcome, Report, Target, suite, suite_of};
use ferroce_tests::conformance::{Case, LONG_LIVES, SLOW, all, table};
use ferroce_tests::world::World;

/// Runs all cases on a target, an engine in the world by the place of the case, and prints the table.
fn run(target: Target, around: impl Fn(usize) -> World + Sync) {
    passes(suite(&[target], "", false, around).expect("the engine builds"));
}

/// Runs every second case; those of [`SLOW`] all on the narrow engine.
fn run_half(width: usize, around: impl Fn(usize) -> World + Sync) {
    let is_here = |(place, case): &(usize, &Case)| match SLOW.contains(&case.name) {
        true => width == 64,
        false => (place % 2 == 0) == (width == 512),
    };
    let (places, cases): (Vec<_>, _) = (0..).zip(all()).filter(is_here).unzip();
    let around = |place: usize| around(places[place]);
    passes(suite_of(&[Target::Rtl(width)], cases, false, around).expect("the engine builds"));
}

fn passes(report: Report) {
    println!("{}\n{}", table::plain(&report), table::summary(&report));
    let failures = report.failures();
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
    let mut outcomes = report.rows.iter().flat_map(|(_, outcomes)| outcomes);
    assert!(
        outcomes.all(|outcome| *outcome == Outcome::Passed),
        "a case was not run: FEATURES lacks what it needs"
    );
}

#[test]
fn model() {
    run(Target::Model, |_| World::Fast);
}

/// The world of the case at a place of the suite, in one of three runs: each case meets all worlds in the three. `cargo xtask conformance
/// --world` has all of any width and world.
fn turn(run: usize) -> impl Fn(usize) -> World {
    move |place| World::ALL[(place + run) % World::ALL.len()]
}

#[test]
fn rtl_512() {
    run_half(512, turn(0));
}

/// The other half.
#[test]
fn rtl_64() {
    run_half(64, turn(1));
}

#[test]
#[ignore = "takes minutes"]
fn all_worlds_and_widths() {
    for first in 0..3 {
        run(Target::Rtl(512), turn(first));
        run(Target::Rtl(64), turn(first));
    }
}

#[test]
#[ignore = "takes minutes"]
fn many_incarnations() {
    for case in LONG_LIVES {
        let report =
            suite(&Target::ALL, case.name, false, |_| World::Fast).expect("the engine builds");
        let failures = report.failures();
        assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
    }
}

#[test]
fn names_are_those_of_one_case() {
    let mut names: Vec<_> = all().chain(LONG_LIVES).map(|case| case.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a name stands for two cases");
    assert!(count >= 120, "{count} cases");
    for name in SLOW {
        assert!(names.contains(&name), "no case is named {name}");
    }
}

#[test]
fn the_page_lists_the_cases() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/conformance.md");
    let page = std::fs::read_to_string(path).expect("the page is committed");
    assert_eq!(
        table::cases_of(&page),
        table::cases_of(&table::blank()),
        "{} is not current: run cargo xtask conformance --write",
        table::PATH
    );
}
