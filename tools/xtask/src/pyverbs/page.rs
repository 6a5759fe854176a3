//! The page of the result.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::outcome::{Counts, Report};
use super::reasons::explain;

/// Where it stands in the repository.
pub(super) const PATH: &str = "docs/pyverbs.md";

const HEAD: &str = "# rdma-core's own tests

`cargo xtask pyverbs` runs the tests that rdma-core has for its verbs, in Python, on our `libibverbs.so.1` and a served
card; Debian 12 has them in python3-pyverbs (version 44). Queue pairs of one card talk to each other: frames to the own
address come back inside the card. This page is written by `cargo xtask pyverbs --write`.

```
cargo xtask pyverbs
cargo xtask pyverbs --dut model test_qp test_mr
```

Tests of other vendors' cards (`test_mlx5_*`, `test_efa*`) and of graphics processors (`test_cuda*`) are left out. This
version of the suite has no modules of their own for shared receive queues and asynchronous events. No test of a module
in bold may fail, else the task does. What soft-RoCE reaches in these tests has not been measured.
";

/// The page, of a run on `dut`.
pub(super) fn page(report: &Report, dut: &str, is_required: impl Fn(&str) -> bool) -> String {
    let mut text = format!(
        "{HEAD}\n## On {dut}\n\n| module | passed | failed | skipped |\n|---|--:|--:|--:|\n"
    );
    let mut line = |line: String| writeln!(text, "{line}").expect("a string grows");
    let mut sums = Counts::default();
    for (module, counts) in report.modules() {
        let [passed, failed, skipped] = counts;
        let module = match is_required(module) {
            true => format!("**{module}**"),
            false => module.to_owned(),
        };
        line(format!("| {module} | {passed} | {failed} | {skipped} |"));
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    let [passed, failed, skipped] = sums;
    line(format!("| all | {passed} | {failed} | {skipped} |"));
    line("\n## What is skipped\n\n| why | tests | what the suite says |\n|---|--:|---|".into());
    for (why, (tests, said)) in causes(report) {
        let said: Vec<_> = said
            .iter()
            .map(|reason| reason.replace('|', "\\|"))
            .collect();
        line(format!("| {why} | {tests} | {} |", said.join("; ")));
    }
    text
}

/// The causes of skips: how many tests each, and the suite's words.
fn causes(report: &Report) -> BTreeMap<&str, (usize, Vec<&str>)> {
    let mut causes: BTreeMap<_, (usize, Vec<_>)> = BTreeMap::new();
    for (reason, tests) in report.skips() {
        let (sum, said) = causes
            .entry(explain(reason).unwrap_or("not explained yet"))
            .or_default();
        *sum += tests.len();
        said.push(reason);
    }
    causes
}
