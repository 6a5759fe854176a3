//! What was measured last, cell by cell in the target folder; a part of `docs/interop.md` is made from it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::matrix::{Cell, NOT_POSSIBLE, PROGRAMS, Side, all};
use super::run::Outcome;
use crate::dut::Dut;
use crate::output::write;
use crate::tools;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/interop.md");

/// Where cells that were run are kept, so that a long run can go on later.
fn path() -> PathBuf {
    tools::target_folder().join("interop.json")
}

/// The lines of the page between which the measured part stands.
const BEGIN: &str = "<!-- measured: cargo xtask interop --write -->";
const END: &str = "<!-- end of what was measured -->";

/// A cell that was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    /// RoCEv2 packets, both ways.
    packets: u64,
    /// Packets whose ICRC or form was wrong.
    wrong: u64,
    /// Frames lost on purpose, both ways.
    lost: u64,
}

/// Cells by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// What answered.
    peer: String,
    cells: BTreeMap<String, Run>,
}

impl Record {
    /// That of this machine; empty if there is none yet.
    pub(super) fn load() -> Result<Self> {
        let path = path();
        match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).with_context(|| path.display().to_string()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(e) => Err(e).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Takes over a cell that was run now.
    pub(super) fn update(&mut self, peer: &str, outcome: &Outcome) {
        peer.clone_into(&mut self.peer);
        let run = Run {
            failure: outcome.failure.clone(),
            packets: outcome.frames.sent + outcome.frames.received,
            wrong: outcome.frames.wrong.len() as u64,
            lost: outcome.lost.unwrap_or_default(),
        };
        self.cells.insert(outcome.cell.to_string(), run);
        // A cell that is no more in the matrix goes.
        let names: Vec<_> = all().iter().map(Cell::to_string).collect();
        self.cells.retain(|name, _| names.contains(name));
    }

    /// Writes it, and the part of the page.
    pub(super) fn store(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(self).context("the record")? + "\n";
        write(&path(), &text)?;
        let page = fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE}"))?;
        let page = spliced(&page, &self.section())
            .with_context(|| format!("{PAGE} does not have the lines {BEGIN} and {END}"))?;
        fs::write(PAGE, page).with_context(|| format!("cannot write {PAGE}"))
    }

    /// The measured part of the page.
    fn section(&self) -> String {
        let columns = [Dut::Rtl512, Dut::Model].map(|card| [(card, false), (card, true)]);
        let columns = columns.concat();
        let mut text = format!("The peer is {}.\n\n| program | our side |", self.peer);
        for (card, loss) in &columns {
            let loss = if *loss { ", 1 % lost" } else { "" };
            let _ = write!(text, " {}{loss} |", card.name());
        }
        text += "\n|---|---|";
        text += &"---|".repeat(columns.len());
        let cells = all();
        for program in &PROGRAMS {
            for side in [Side::Client, Side::Server] {
                let side_name = if side == Side::Client {
                    "client"
                } else {
                    "server"
                };
                let _ = write!(text, "\n| `{}` | {side_name} |", program.name);
                for &(card, loss) in &columns {
                    let is_of = |cell: &&Cell| {
                        cell.program == program
                            && (cell.side, cell.card, cell.loss) == (side, card, loss)
                    };
                    let here: Vec<_> = cells.iter().filter(is_of).collect();
                    let _ = write!(text, " {} |", self.mark(&here));
                }
            }
        }
        text += "\n\n";
        let sum = |count: fn(&Run) -> u64| self.cells.values().map(count).sum::<u64>();
        let _ = writeln!(
            text,
            "{} of {} cells were run; {} RoCEv2 packets were captured, {} of them with a wrong ICRC or form; {} frames were lost on purpose.\n",
            self.cells.len(),
            cells.len(),
            sum(|run| run.packets),
            sum(|run| run.wrong),
            sum(|run| run.lost),
        );
        let failed = self
            .cells
            .iter()
            .filter_map(|(name, run)| Some((name, run.failure.as_ref()?)));
        for (name, why) in failed {
            let _ = writeln!(text, "* `{name}` failed: {why}");
        }
        for (what, why) in NOT_POSSIBLE {
            let _ = writeln!(text, "* Not possible: {what}: {why}.");
        }
        text
    }

    /// How many of `cells` passed, of those that were run.
    fn mark(&self, cells: &[&Cell]) -> String {
        if cells.is_empty() {
            return "-".into();
        }
        let runs = cells
            .iter()
            .filter_map(|cell| self.cells.get(&cell.to_string()));
        let (mut run, mut passed) = (0, 0);
        for found in runs {
            run += 1;
            passed += u32::from(found.failure.is_none());
        }
        match run {
            0 => "not run".into(),
            _ if run == cells.len() => format!("{passed}/{run}"),
            _ => format!("{passed}/{run} of {}", cells.len()),
        }
    }
}

/// `page` with another text between the lines [`BEGIN`] and [`END`].
fn spliced(page: &str, section: &str) -> Option<String> {
    let (head, rest) = page.split_once(BEGIN)?;
    let (_, tail) = rest.split_once(END)?;
    Some(format!("{head}{BEGIN}\n{section}{END}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop::capture::Frames;

    fn outcome(cell: Cell, failure: Option<&str>) -> Outcome {
        Outcome {
            cell,
            failure: failure.map(str::to_owned),
            is_run: true,
            is_cut_off: false,
            tries: 1,
            frames: Frames {
                sent: 2,
                received: 3,
                ..Frames::default()
            },
            lost: Some(1),
            took: std::time::Duration::ZERO,
            folder: "x".into(),
        }
    }

    #[test]
    fn the_page_has_what_was_run() {
        let cells = all();
        let rtl = |cell: &&Cell| cell.card == Dut::Rtl512;
        let mut outcomes: Vec<_> = cells
            .iter()
            .filter(rtl)
            .map(|c| outcome(*c, None))
            .collect();
        outcomes[0].failure = Some("the peer ended with 1: why".into());
        let mut record = Record::default();
        outcomes.iter().for_each(|o| record.update("soft", o));
        let text = record.section();
        assert!(text.contains("The peer is soft."), "{text}");
        let row = "| `ibv_rc_pingpong` | client | 3/4 | 4/4 | not run | not run |";
        assert!(text.contains(row), "{text}");
        let row = "| `ibv_ud_pingpong` | server | 4/4 | - | not run | - |";
        assert!(text.contains(row), "{text}");
        let failed = format!("* `{}` failed: the peer ended with 1: why", cells[0]);
        assert!(text.contains(&failed), "{text}");
        assert!(
            text.contains("208 of 416 cells were run; 1040 RoCEv2 packets"),
            "{text}"
        );
        // A later run replaces what it ran.
        record.update("soft", &outcome(cells[0], None));
        assert!(!record.section().contains("failed: the peer"));
    }

    #[test]
    fn a_page_without_its_marks_is_refused() {
        assert_eq!(spliced("a page", "x"), None);
        let page = format!("a\n{BEGIN}\nold{END}\nb\n");
        let new = format!("a\n{BEGIN}\nnew\n{END}\nb\n");
        assert_eq!(spliced(&page, "new\n"), Some(new));
    }
}
