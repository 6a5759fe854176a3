//! The figures that the engine had: `tools/xtask/baseline.json`.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

use super::OF_THE_MACHINE;
use crate::report::{Figure, Value};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/baseline.json");
/// Two figures are the same within this share, which is that of the last digit kept.
const TOLERANCE: f64 = 1e-6;

/// Figures by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Baseline {
    figures: BTreeMap<String, Figure>,
}

impl Baseline {
    /// The committed one.
    pub(super) fn load() -> Result<Self> {
        let text = fs::read_to_string(PATH).with_context(|| format!("cannot read {PATH}"))?;
        let list: Vec<Figure> = serde_json::from_str(&text).with_context(|| PATH.to_owned())?;
        Ok(Self::default().updated(&list))
    }

    /// With these figures in place of those of the same name.
    pub(super) fn updated(&self, figures: &[Figure]) -> Self {
        let mut new = self.clone();
        let is_kept = |figure: &&Figure| !OF_THE_MACHINE.contains(&&*figure.name);
        for figure in figures.iter().filter(is_kept) {
            new.figures.insert(figure.name.clone(), figure.clone());
        }
        new
    }

    /// Writes it where the next one is loaded from.
    pub(super) fn store(&self) -> Result<()> {
        let list: Vec<_> = self.figures.values().cloned().map(rounded).collect();
        let mut text = serde_json::to_string_pretty(&list).context("the baseline")?;
        text.push('\n');
        fs::write(PATH, text).with_context(|| format!("cannot write {PATH}"))
    }

    /// The figure of that name.
    pub(super) fn of(&self, name: &str) -> Option<f64> {
        Some(self.figures.get(name)?.value.as_f64())
    }

    /// Which figures are worse, and which better, each in words.
    pub(super) fn compare(&self, figures: &[Figure]) -> (Vec<String>, Vec<String>) {
        let (mut worse, mut better) = (Vec::new(), Vec::new());
        for figure in figures {
            let Some(old) = self.of(&figure.name) else {
                continue;
            };
            let (name, new, unit) = (&figure.name, figure.value.as_f64(), &figure.unit);
            let gain = if unit == "bytes/cycle" {
                new - old
            } else {
                old - new
            };
            let line = || format!("{name}: {new:.3} {unit}, the baseline has {old:.3}");
            let margin = TOLERANCE * old.abs().max(1.0);
            if gain < -margin {
                worse.push(line());
            } else if gain > margin {
                better.push(line());
            }
        }
        (worse, better)
    }
}

/// As it stands in the file: six digits behind the point.
fn rounded(figure: Figure) -> Figure {
    let value = match figure.value {
        Value::Measure(measure) => Value::Measure((measure * 1e6).round() / 1e6),
        count @ Value::Count(_) => count,
    };
    Figure { value, ..figure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_worse_is_found() {
        let figures = |goodput: f64, cycles: u64| {
            vec![
                Figure::new("goodput", goodput, "bytes/cycle"),
                Figure::new("latency", cycles, "cycles"),
            ]
        };
        let old = Baseline::default().updated(&figures(60.0, 40));
        let found = |goodput, cycles| {
            let (worse, better) = old.compare(&figures(goodput, cycles));
            (worse.len(), better.len())
        };
        assert_eq!(found(60.0, 40), (0, 0));
        assert_eq!(found(59.9, 40), (1, 0));
        assert_eq!(found(60.1, 39), (0, 2));
        assert_eq!(found(60.0, 41), (1, 0));
        let differences = old.compare(&figures(59.0, 40)).0.concat();
        assert_eq!(
            differences,
            "goodput: 59.000 bytes/cycle, the baseline has 60.000"
        );
        let unknown = [Figure::new("new", 1, "cycles")];
        assert_eq!(old.compare(&unknown), (vec![], vec![]));
    }

    #[test]
    fn the_speed_of_the_machine_is_of_no_baseline() {
        let figures = OF_THE_MACHINE.map(|name| Figure::new(name, 7, "s"));
        assert_eq!(Baseline::default().updated(&figures), Baseline::default());
    }
}
