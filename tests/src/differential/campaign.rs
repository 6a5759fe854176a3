//! Many seeds, on all processors.

use std::env;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use ferroce_system::pool;

use super::case::Case;
use super::generate::Class;
use super::scenario::Scenario;
use super::{Pairing, Setup};

/// Variable with the only seed to run.
const SEED: &str = "FERROCE_SEED";

/// Variable with a file that an earlier failure left: the only case to run.
const CASE: &str = "FERROCE_CASE";

/// Variable with the folder for such files.
const CASES: &str = "FERROCE_CASES";

/// Variable with the number of scenarios instead of the usual.
const SCENARIOS: &str = "FERROCE_SCENARIOS";

/// Comparisons spent on making a scenario that fails smaller.
const SHRINKING: u32 = 200;

/// Runs the scenarios of some seeds, each in one pairing in turn, on as many threads as there are processors.
/// `$FERROCE_SEED` picks one seed, in all pairings; `$FERROCE_SCENARIOS` sets how many seeds from the first on. What fails
/// is saved, made smaller, as a file in `$FERROCE_CASES` (else in the target folder); `$FERROCE_CASE` picks such a file.
///
/// # Panics
/// If implementations differ, with the lowest seed found, what is left of its scenario, and the differences.
pub fn run(name: &str, class: Class, seeds: RangeInclusive<u64>, setup: impl Fn() -> Setup + Sync) {
    if let Some(path) = env::var_os(CASE) {
        return replay(name, Path::new(&path), &setup());
    }
    if let Some(seed) = number(SEED) {
        let setup = setup();
        for pairing in Pairing::ALL {
            check(name, &setup, seed, class, pairing).unwrap_or_else(|report| panic!("{report}"));
        }
        return;
    }
    let first = *seeds.start();
    let last = number(SCENARIOS).map_or(*seeds.end(), |count| first + count.max(1) - 1);
    println!("{name}: seeds {first} to {last}");
    let checked = pool::try_each(pool::processors(), first..=last, || {
        let setup = setup();
        move |seed| check(name, &setup, seed, class, Pairing::of(seed))
    });
    checked.unwrap_or_else(|report| panic!("{report}"));
}

fn check(
    name: &str,
    setup: &Setup,
    seed: u64,
    class: Class,
    pairing: Pairing,
) -> Result<(), String> {
    setup
        .check(seed, class, pairing, SHRINKING)
        .map_err(|mismatch| {
            let case = Case {
                campaign: name.into(),
                seed,
                class,
                features: setup.features,
                pairing,
                left: mismatch.left,
            };
            let folder = env::var_os(CASES).map_or_else(folder, PathBuf::from);
            let saved = match case.save(&folder) {
                Ok(path) => format!("{CASE}={}", path.display()),
                Err(e) => format!("{SEED}={seed} (no file in {}: {e})", folder.display()),
            };
            report(
                setup,
                &case,
                &mismatch.scenario,
                &mismatch.differences,
                &saved,
            )
        })
}

/// Runs the case of a file, if it is one of this campaign.
fn replay(name: &str, path: &Path, setup: &Setup) {
    let case = Case::load(path).unwrap_or_else(|e| panic!("{CASE}={}: {e}", path.display()));
    if case.campaign != name {
        return println!("{name}: {} is of {}", path.display(), case.campaign);
    }
    let scenario = case.scenario();
    let differences = setup.compare(&scenario, case.pairing);
    let again = format!("{CASE}={}", path.display());
    let report = report(setup, &case, &scenario, &differences, &again);
    assert!(differences.is_empty(), "{report}");
}

fn report(
    setup: &Setup,
    case: &Case,
    scenario: &Scenario,
    differences: &[String],
    again: &str,
) -> String {
    let (reference, subject) = (setup.reference.name, setup.subject.name);
    let Case {
        campaign,
        pairing,
        seed,
        ..
    } = case;
    let all = if differences.is_empty() {
        "(nothing: the run is not repeatable)".into()
    } else {
        differences.join("\n")
    };
    format!(
        "{campaign}: {subject} ({pairing:?}) differs from {reference}, seed {seed}; repeat with {again}\n{all}\n{scenario}"
    )
}

/// Where cases go by default: beside the test's other products.
fn folder() -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    let target = program.ancestors().nth(3).unwrap_or(Path::new("."));
    target.join("differential-cases")
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is `{text}`; a decimal number is expected")))
}
