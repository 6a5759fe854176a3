//! What was measured last: `tools/xtask/resources.json`, from which `docs/resources.md` is made.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::board::Routed;
use super::netlist::Cost;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/resources.json");

/// Growth that is let pass: what renaming a net does to the result of the mapper.
const TOLERANCE: f64 = 0.03;
/// Below this many, growth is let pass too.
const SMALL: f64 = 16.0;
/// LUT levels that a path may have.
pub(super) const LEVELS: u32 = 8;

/// What modules take, by name.
pub(super) type Costs = BTreeMap<String, Cost>;

/// Figures by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Name and version of the program that mapped the blocks and engines.
    pub tool: String,
    /// Each block by itself, in the standard build of 512 bits.
    pub blocks: Costs,
    /// Whole engines, flat.
    pub engines: Costs,
    /// Builds that were placed and routed, by board.
    pub boards: BTreeMap<String, Routed>,
}

impl Record {
    /// The committed one.
    pub(super) fn load() -> Result<Self> {
        let text = fs::read_to_string(PATH).with_context(|| format!("cannot read {PATH}"))?;
        serde_json::from_str(&text).with_context(|| PATH.to_owned())
    }

    /// Writes it where the next one is loaded from; of a block with its longest path only, which is what the page shows.
    pub(super) fn store(&self) -> Result<()> {
        let mut kept = self.clone();
        for cost in kept.blocks.values_mut() {
            cost.paths.truncate(1);
        }
        let text = serde_json::to_string_pretty(&kept).context("the record")? + "\n";
        fs::write(PATH, text).with_context(|| format!("cannot write {PATH}"))
    }
}

/// What is worse than before or than the limit allows, each in words.
pub(super) fn worse(name: &str, new: &Cost, old: Option<&Cost>) -> Vec<String> {
    let mut found = vec![];
    if let Some(old) = old {
        let figures = [
            ("LUTs", new.lut as f64, old.lut as f64),
            ("flip-flops", new.ff as f64, old.ff as f64),
            ("block RAMs", new.bram36, old.bram36),
            ("UltraRAMs", new.uram as f64, old.uram as f64),
            ("LUT RAMs", new.lutram as f64, old.lutram as f64),
        ];
        for (what, new, old) in figures {
            let memory = what.ends_with("RAMs");
            let slack = if memory { 0.0 } else { SMALL };
            if new > (old * (1.0 + TOLERANCE)).max(old + slack) {
                found.push(format!("{name}: {new} {what}, the baseline has {old}"));
            }
        }
    }
    if new.levels > LEVELS {
        let path = new.paths.first();
        let path = path.map_or(String::new(), |p| format!(", from {} to {}", p.from, p.to));
        found.push(format!(
            "{name}: {} LUT levels{path}; at most {LEVELS} are allowed",
            new.levels
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_worse_is_found() {
        let cost = |lut, bram36, levels| Cost {
            lut,
            bram36,
            levels,
            ..Cost::default()
        };
        let old = cost(1000, 2.0, 8);
        let found = |new: Cost| worse("csr", &new, Some(&old)).join("; ");
        assert_eq!(found(cost(1030, 2.0, 8)), "");
        assert_eq!(found(cost(900, 1.0, 1)), "");
        assert_eq!(
            found(cost(1031, 2.0, 8)),
            "csr: 1031 LUTs, the baseline has 1000"
        );
        assert_eq!(
            found(cost(1000, 2.5, 8)),
            "csr: 2.5 block RAMs, the baseline has 2"
        );
        assert!(found(cost(1000, 2.0, 9)).contains("9 LUT levels"));
        assert!(!worse("new", &cost(1, 0.0, 9), None).is_empty());
        // A few LUTs of a small block are no regress.
        assert!(worse("x", &cost(66, 0.0, 1), Some(&cost(50, 0.0, 1))).is_empty());
        assert!(!worse("x", &cost(67, 0.0, 1), Some(&cost(50, 0.0, 1))).is_empty());
    }
}
