//! The page of the results.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::outcome::{Counts, Report, TestResult};
use super::reasons::explain;

/// Name of the column of soft-RoCE.
pub(super) const RXE: &str = "rxe";

/// Where it stands in the repository.
pub(super) const PATH: &str = "docs/pyverbs.md";

const HEAD: &str = "# rdma-core's own tests

`cargo xtask pyverbs` runs the tests that rdma-core has for its verbs, in Python, on our `libibverbs.so.1` and a served
card; Debian 12 has them in python3-pyverbs (version 44), below `/usr/share/doc`. Queue pairs of one card talk to each
other: frames to the own address come back inside the card. This page is written by `cargo xtask pyverbs --write`.

```
cargo xtask pyverbs
cargo xtask pyverbs --dut model test_qp test_mr
```

Tests of other vendors' cards (`test_mlx5_*`, `test_efa*`) and of graphics processors (`test_cuda*`) are left out. This
version of the suite has no modules of their own for shared receive queues and asynchronous events; programs in
`ibverbs/tests` use both. If a test of a module in bold fails the task does. The column rxe is Linux soft-RoCE in a guest, with Debian's own
library, of which nothing is required: `cargo xtask pyverbs --rxe`.

## Results

Tests that passed, failed and were skipped.

";

/// The page, of a run on each card.
pub(super) fn page(reports: &[(&str, Report)], is_required: impl Fn(&str) -> bool) -> String {
    let mut text = HEAD.to_owned();
    let mut line = |line: String| writeln!(text, "{line}").expect("a string grows");
    let duts: Vec<_> = reports.iter().map(|(dut, _)| format!(" {dut} |")).collect();
    line(format!("| module |{}", duts.concat()));
    line(format!("|---|{}", "---|".repeat(duts.len())));
    let modules = reports.iter().flat_map(|(_, r)| r.modules().into_keys());
    let cell = |[passed, failed, skipped]: Counts| format!(" {passed}, {failed}, {skipped} |");
    for module in modules.collect::<BTreeSet<_>>() {
        let counts = reports
            .iter()
            .map(|(_, r)| r.modules().get(module).copied());
        let cells: Vec<_> = counts
            .map(|counts| cell(counts.unwrap_or_default()))
            .collect();
        let name = match is_required(module) {
            true => format!("**{module}**"),
            false => module.to_owned(),
        };
        line(format!("| {name} |{}", cells.concat()));
    }
    let sums: Vec<_> = reports.iter().map(|(_, r)| cell(r.sums())).collect();
    line(format!("| all |{}", sums.concat()));

    let failed = reports.iter().map(|(dut, r)| (dut, r.failed(|_| true)));
    let failed: Vec<_> = failed.filter(|(_, failed)| !failed.is_empty()).collect();
    if !failed.is_empty() {
        line("\n## What failed\n".into());
    }
    for (dut, outcomes) in failed {
        for outcome in outcomes {
            let why = match &outcome.result {
                TestResult::Failed(why) if *dut == RXE => why.clone(),
                TestResult::Failed(why) => format!("{why}; not explained yet"),
                _ => String::new(),
            };
            line(format!("* {dut}, `{}`: {why}", outcome.name()));
        }
    }
    line("\n## What is skipped\n\n| why | tests | what the suite says |\n|---|--:|---|".into());
    for (why, (tests, reasons)) in reports.first().map(|(_, r)| causes(r)).unwrap_or_default() {
        let reasons: Vec<_> = reasons
            .iter()
            .map(|reason| reason.replace('|', "\\|"))
            .collect();
        line(format!("| {why} | {tests} | {} |", reasons.join("; ")));
    }
    text
}

/// The causes of skips: how many tests each, and the suite's words.
fn causes(report: &Report) -> BTreeMap<&str, (usize, Vec<&str>)> {
    let mut causes: BTreeMap<_, (usize, Vec<_>)> = BTreeMap::new();
    for (reason, tests) in report.skips() {
        let why = explain(reason).unwrap_or("not explained yet");
        let (sum, reasons) = causes.entry(why).or_default();
        *sum += tests.len();
        reasons.push(reason);
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pyverbs::outcome::Outcome;

    #[test]
    fn the_page_has_a_column_for_each_card_and_a_cause_for_each_skip() {
        let outcome = |test: &str, result| Outcome {
            test: format!("tests.{test}"),
            result,
        };
        let skipped = || TestResult::Skipped("Create XRCD is not supported".into());
        let model = Report::new(vec![
            outcome("test_pd.PDTest.a", TestResult::Passed),
            outcome("test_odp.Odp.b", skipped()),
        ]);
        let rtl = Report::new(vec![
            outcome("test_pd.PDTest.a", TestResult::Failed("E | no".into())),
            outcome("test_odp.Odp.b", skipped()),
        ]);
        let text = page(&[("model", model), ("rtl512", rtl)], |module| {
            module == "test_pd"
        });
        for line in [
            "| module | model | rtl512 |",
            "| **test_pd** | 1, 0, 0 | 0, 1, 0 |",
            "| test_odp | 0, 0, 1 | 0, 0, 1 |",
            "| all | 1, 0, 1 | 0, 1, 1 |",
            "* rtl512, `test_pd.PDTest.a`: E | no; not explained yet",
            "| the engine has no XRC | 1 | Create XRCD is not supported |",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in {text}");
        }
    }
}
