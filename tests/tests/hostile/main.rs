//! Attackers of a card, beside connections that must not notice: see [`ferroce_tests::hostile`].

mod defects;

use ferroce_sim::bench;
use ferroce_tests::conformance::run::Target;
use ferroce_tests::hostile::{Disturbed, attack, disturb, misuse};
use ferroce_tests::world::World;
use ferroce_tests::{paused, soak};

mod model {
    use super::*;

    #[test]
    fn frames() {
        super::frames(Target::Model);
    }

    #[test]
    fn owner() {
        super::owner(Target::Model, seeds(1..=8), 500);
    }

    #[test]
    fn bus() {
        super::bus(Target::Model, seeds(1..=4), 4);
    }
}

mod rtl_512 {
    use super::*;

    #[test]
    fn frames() {
        super::frames(Target::Rtl(512));
    }

    #[test]
    fn owner() {
        super::owner(Target::Rtl(512), seeds(2..=2), 100);
    }

    #[test]
    fn bus() {
        super::bus(Target::Rtl(512), seeds(1..=2), 1);
    }
}

mod rtl_64 {
    use super::*;

    #[test]
    fn frames() {
        super::frames(Target::Rtl(64));
    }

    #[test]
    fn owner() {
        super::owner(Target::Rtl(64), seeds(3..=3), 60);
    }

    #[test]
    fn bus() {
        super::bus(Target::Rtl(64), seeds(3..=4), 1);
    }
}

/// `$FERROCE_SEED` picks one.
fn seeds(usual: std::ops::RangeInclusive<u64>) -> std::ops::RangeInclusive<u64> {
    match std::env::var_os("FERROCE_SEED") {
        Some(_) => bench::seed()..=bench::seed(),
        None => usual,
    }
}

/// One seed in each world.
fn frames(target: Target) {
    for world in World::ALL {
        let seed = (1..)
            .find(|seed| World::of(*seed) == world)
            .expect("each is drawn");
        let report = attack(target, 1000, seed).unwrap_or_else(|what| panic!("{what}"));
        assert!(report.messages > 60 && report.revived > 3, "{report:?}");
    }
}

fn owner(target: Target, seeds: std::ops::RangeInclusive<u64>, acts: u64) {
    for seed in seeds {
        let report = misuse(target, acts, seed, 60).unwrap_or_else(|what| panic!("{what}"));
        assert!(report.messages > 20 && report.completions > 3, "{report:?}");
        println!("{seed}: {report:?}");
    }
}

fn bus(target: Target, seeds: std::ops::RangeInclusive<u64>, bursts: u64) {
    let mut sum = Disturbed::default();
    for seed in seeds {
        let report = disturb(target, bursts, seed).unwrap_or_else(|what| panic!("{what}"));
        println!("{seed}: {report:?}");
        sum += report;
    }
    assert!(sum.messages > 100, "{sum:?}");
    // one seed may have a bridge, and few bursts no late access
    if std::env::var_os("FERROCE_SEED").is_none() {
        assert!(sum.failed > 0 && sum.gave_up > 0, "{sum:?}");
        assert!(sum.late > 0 || target != Target::Model, "{sum:?}");
    }
}

/// Rounds of endurance, see [`ferroce_tests::soak`].
#[test]
fn endurance() {
    let mut sum = soak::Soaked::default();
    for (target, seeds) in [(Target::Model, 1..=8), (Target::Rtl(64), 100..=100)] {
        for seed in seeds {
            sum += soak::round(target, 20_000, seed).unwrap_or_else(|what| panic!("{what}"));
        }
    }
    println!("{sum:?}");
    assert!(
        sum.messages > 500 && sum.deaths > 10 && sum.resets > 0,
        "{sum:?}"
    );
}

/// Rounds in which classes are paused, see [`ferroce_tests::paused`].
#[test]
fn paused_classes() {
    let mut sum = soak::Soaked::default();
    for (target, seeds) in [
        (Target::Model, seeds(1..=4)),
        (Target::Rtl(64), seeds(1..=1)),
    ] {
        for seed in seeds {
            sum += paused::round(target, 200_000, seed).unwrap_or_else(|what| panic!("{what}"));
        }
    }
    println!("{sum:?}");
    assert!(sum.messages > 5000, "{sum:?}");
    assert!(sum.requests_lost > 0 && sum.rnr_naks > 0, "{sum:?}");
}
