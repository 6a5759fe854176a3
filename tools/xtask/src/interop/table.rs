//! What a run found, as a table.

use std::fmt::Write as _;

use super::run::Outcome;

/// The table of a run: a line a cell.
pub(super) fn table(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    let head = ("cell", "", "s", "sent", "received", "lost");
    let _ = writeln!(
        text,
        "{:<52} {:<6} {:>6} {:>7} {:>8} {:>5}",
        head.0, head.1, head.2, head.3, head.4, head.5
    );
    for outcome in outcomes {
        let mark = if outcome.failure.is_none() {
            "pass"
        } else {
            "FAIL"
        };
        let lost = outcome.lost.map_or("-".to_owned(), |lost| lost.to_string());
        let _ = writeln!(
            text,
            "{:<52} {mark:<6} {:>6.1} {:>7} {:>8} {lost:>5}",
            outcome.cell.to_string(),
            outcome.took.as_secs_f64(),
            outcome.frames.sent,
            outcome.frames.received,
        );
        if outcome.tries > 1 {
            let tries = outcome.tries;
            let _ = writeln!(
                text,
                "    run {tries} times: one side was done and its last acknowledgement lost"
            );
        }
        if let Some(failure) = &outcome.failure {
            let _ = writeln!(text, "    {failure}");
            let _ = writeln!(text, "    {}", outcome.folder.display());
        }
    }
    text
}

/// One line about all of it.
pub(super) fn summary(outcomes: &[Outcome]) -> String {
    let failed = outcomes.iter().filter(|o| o.failure.is_some()).count();
    let sum = |count: &dyn Fn(&Outcome) -> u64| outcomes.iter().map(count).sum::<u64>();
    let packets = sum(&|o| o.frames.sent + o.frames.received);
    let wrong = sum(&|o| o.frames.wrong.len() as u64);
    let lost = sum(&|o| o.lost.unwrap_or_default());
    let passed = outcomes.len() - failed;
    format!(
        "{passed} passed, {failed} failed; {packets} RoCEv2 packets captured, {wrong} of them wrong; {lost} frames lost"
    )
}
