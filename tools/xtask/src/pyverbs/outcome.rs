//! What became of the tests.

use std::collections::BTreeMap;
use std::fmt::Write;

/// What became of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TestResult {
    /// It passed.
    Passed,
    /// It failed: the last line of why.
    Failed(String),
    /// It was not run: the suite's reason.
    Skipped(String),
}

/// A test and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// As the suite names it: `tests.test_pd.PDTest.test_alloc_pd`.
    pub(super) test: String,
    pub(super) result: TestResult,
}

impl Outcome {
    /// The test within the suite.
    pub(super) fn name(&self) -> &str {
        self.test.strip_prefix("tests.").unwrap_or(&self.test)
    }

    /// Its module.
    pub(super) fn module(&self) -> &str {
        self.name().split('.').next().unwrap_or_default()
    }
}

/// Passed, failed, skipped.
pub(super) type Counts = [usize; 3];

/// What became of all tests.
pub(super) struct Report {
    outcomes: Vec<Outcome>,
}

impl Report {
    pub(super) fn new(outcomes: Vec<Outcome>) -> Self {
        Self { outcomes }
    }

    /// Counts by module, in order of name.
    pub(super) fn modules(&self) -> BTreeMap<&str, Counts> {
        let mut modules = BTreeMap::new();
        for outcome in &self.outcomes {
            let counts: &mut Counts = modules.entry(outcome.module()).or_default();
            counts[match outcome.result {
                TestResult::Passed => 0,
                TestResult::Failed(_) => 1,
                TestResult::Skipped(_) => 2,
            }] += 1;
        }
        modules
    }

    /// Counts of all modules.
    pub(super) fn sums(&self) -> Counts {
        let mut sums = Counts::default();
        for counts in self.modules().values() {
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        sums
    }

    /// Reasons for skips, and the tests that they are of.
    pub(super) fn skips(&self) -> BTreeMap<&str, Vec<&Outcome>> {
        let mut skips: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for outcome in &self.outcomes {
            if let TestResult::Skipped(reason) = &outcome.result {
                skips.entry(reason.as_str()).or_default().push(outcome);
            }
        }
        skips
    }

    /// Tests of the modules that `is_meant` picks that failed.
    pub(super) fn failed(&self, is_meant: impl Fn(&str) -> bool) -> Vec<&Outcome> {
        let outcomes = self.outcomes.iter();
        let failed = outcomes.filter(|o| matches!(o.result, TestResult::Failed(_)));
        failed.filter(|o| is_meant(o.module())).collect()
    }

    /// The counts, each skip with its reason, each failure, for people.
    pub(super) fn plain(&self) -> String {
        let mut text = String::new();
        let mut line = |line: String| writeln!(text, "{line}").expect("a string grows");
        line(format!(
            "{:<26} {:>6} {:>6} {:>7}",
            "module", "passed", "failed", "skipped"
        ));
        for (module, [passed, failed, skipped]) in self.modules() {
            line(format!("{module:<26} {passed:>6} {failed:>6} {skipped:>7}"));
        }
        let [passed, failed, skipped] = self.sums();
        line(format!(
            "{:<26} {passed:>6} {failed:>6} {skipped:>7}",
            "all"
        ));
        for outcome in &self.outcomes {
            match &outcome.result {
                TestResult::Passed => {}
                TestResult::Failed(why) => line(format!("failed {}: {why}", outcome.name())),
                TestResult::Skipped(why) => line(format!("skipped {}: {why}", outcome.name())),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_counted_by_module() {
        let outcome = |test: &str, result| Outcome {
            test: format!("tests.{test}"),
            result,
        };
        let report = Report::new(vec![
            outcome("test_pd.PDTest.a", TestResult::Passed),
            outcome("test_pd.PDTest.b", TestResult::Skipped("no card".into())),
            outcome(
                "test_mr.MRTest.c",
                TestResult::Failed("AssertionError".into()),
            ),
            outcome("test_mr.MRTest.d", TestResult::Skipped("no card".into())),
        ]);
        assert_eq!(
            report.modules(),
            BTreeMap::from([("test_mr", [0, 1, 1]), ("test_pd", [1, 0, 1])])
        );
        assert_eq!(report.skips()["no card"].len(), 2);
        assert_eq!(report.failed(|_| true)[0].name(), "test_mr.MRTest.c");
        assert!(report.failed(|module| module == "test_pd").is_empty());
        let text = report.plain();
        for line in [
            "all                             1      1       2",
            "failed test_mr.MRTest.c: AssertionError",
            "skipped test_pd.PDTest.b: no card",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in {text}");
        }
    }
}
