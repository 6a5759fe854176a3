//! Frames of an attacker beside a healthy connection, see [`ferroce_tests::hostile`].

use ferroce_tests::conformance::run::Target;
use ferroce_tests::hostile::attack;

/// The worlds take turns.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=4;

fn frames(target: Target) {
    for seed in SEEDS {
        let report = attack(target, 1000, seed).unwrap_or_else(|what| panic!("{what}"));
        assert!(report.messages > 60 && report.revived > 3, "{report:?}");
    }
}

#[test]
fn model() {
    frames(Target::Model);
}

#[test]
fn rtl_512() {
    frames(Target::Rtl(512));
}

#[test]
fn rtl_64() {
    frames(Target::Rtl(64));
}
