//! The conformance suite on every target; see `ferroce_tests::conformance`.

mod defects;

use ferroce_tests::conformance::run::{Target, suite};
use ferroce_tests::conformance::{LONG_LIVES, all, table};
use ferroce_tests::world::World;

/// Runs all cases on a target, an engine in the world by the place of the case, and prints the table.
fn run(target: Target, around: impl Fn(usize) -> World + Sync) {
    let report = suite(&[target], "", false, around).expect("the engine builds");
    println!("{}\n{}", table::plain(&report), table::summary(&report));
    let failures = report.failures();
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
}

#[test]
fn model() {
    run(Target::Model, |_| World::Fast);
}

/// The world of the case at a place in the first, second and third run: each width meets each world with a third of the
/// cases, and each case meets all worlds in the three. `cargo xtask conformance --world` has all of any width and world.
fn turn(run: usize) -> impl Fn(usize) -> World {
    move |place| World::ALL[(place + run) % World::ALL.len()]
}

#[test]
fn rtl_512() {
    run(Target::Rtl(512), turn(0));
}

#[test]
fn rtl_64() {
    run(Target::Rtl(64), turn(1));
}

#[test]
#[ignore = "takes minutes"]
fn third_world() {
    run(Target::Rtl(512), turn(2));
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
