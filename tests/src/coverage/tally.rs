//! What is covered of each block.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::block;
use super::data::{Kind, Point};
use super::exclude::Exclusion;

/// Signals of a block that a tally names.
pub const NAMED: usize = 6;

/// Covered, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share(pub u32, pub u32);

impl Share {
    fn add(&mut self, covered: bool) {
        self.0 += u32::from(covered);
        self.1 += 1;
    }

    /// Adds what another one has.
    pub fn join(&mut self, other: Self) {
        self.0 += other.0;
        self.1 += other.1;
    }

    /// In percent, rounded down to a tenth; 100 of nothing.
    #[must_use]
    pub fn percent(self) -> f64 {
        if self.1 == 0 {
            return 100.0;
        }
        (f64::from(self.0) / f64::from(self.1) * 1000.0).floor() / 10.0
    }
}

/// What is covered of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Lines with a statement.
    pub lines: Share,
    /// Arms of conditions.
    pub branches: Share,
    /// Bits that rose and fell.
    pub bits: Share,
    /// Arms and lines that nothing reached, by their first line.
    pub unreached: BTreeSet<String>,
    /// The [`NAMED`] signals with the most bits that did not change both ways: the bits as ranges.
    pub still: Vec<String>,
    /// Of how many such signals.
    pub still_signals: u32,
}

/// What is covered of the blocks of `source`, and how many lines, arms and bits each exclusion leaves out.
#[must_use]
pub fn tally(
    points: &[Point],
    source: &str,
    exclusions: &[Exclusion],
) -> (BTreeMap<String, Tally>, Vec<u32>) {
    let texts: Vec<_> = source.lines().map(str::trim).collect();
    let text = |line: usize| line.checked_sub(1).and_then(|at| texts.get(at)).copied();
    let mut blocks = BTreeMap::<String, Tally>::new();
    let mut left_out = vec![0; exclusions.len()];
    // A line may be counted with the arm it begins and with the one it is in.
    let mut lines = BTreeMap::<usize, (&str, bool)>::new();
    let mut still = BTreeMap::<(&str, &str), BTreeSet<usize>>::new();
    for point in points {
        let first = text(point.line).unwrap_or_default();
        let meant = exclusions.iter().position(|e| e.means(point, first));
        if let Some(number) = meant {
            left_out[number] += 1;
            continue;
        }
        let (name, covered) = (block(&point.module), point.count > 0);
        let tally = blocks.entry(name.into()).or_default();
        for line in point.lines.iter().cloned().flatten() {
            lines.entry(line).or_insert((name, false)).1 |= covered;
        }
        match point.kind {
            Kind::Toggle => {
                tally.bits.add(covered);
                let (signal, bit) = point.name.split_once('[').unwrap_or((&point.name, ""));
                let bit = bit.trim_end_matches(']').parse().unwrap_or(0);
                if !covered {
                    let module = point.module.as_str();
                    still.entry((module, signal)).or_default().insert(bit);
                }
                continue;
            }
            Kind::Branch => tally.branches.add(covered),
            Kind::Line => {}
        }
        if !covered {
            tally.unreached.insert(format!("{}: {first}", point.name));
        }
    }
    for (name, covered) in lines.into_values() {
        blocks.entry(name.into()).or_default().lines.add(covered);
    }
    let mut still: Vec<_> = still.into_iter().collect();
    still.sort_by_key(|(_, bits)| std::cmp::Reverse(bits.len()));
    for ((module, signal), bits) in still {
        let tally = blocks.entry(block(module).into()).or_default();
        tally.still_signals += 1;
        if tally.still.len() < NAMED {
            let bits = ranges(&bits);
            tally.still.push(format!("{signal}[{bits}] of {module}"));
        }
    }
    (blocks, left_out)
}

/// Numbers as ranges, the highest first.
fn ranges(numbers: &BTreeSet<usize>) -> String {
    let mut ranges = Vec::<(usize, usize)>::new();
    for &number in numbers.iter().rev() {
        match ranges.last_mut() {
            Some((_, low)) if *low == number + 1 => *low = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |(high, low): (usize, usize)| match high == low {
        true => high.to_string(),
        false => format!("{high}:{low}"),
    };
    ranges.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(kind: Kind, line: usize, name: &str, count: u64) -> Point {
        let lines = match kind {
            Kind::Toggle => vec![],
            _ => vec![line..=line + 1],
        };
        let (module, name) = ("skid_8".into(), name.into());
        Point {
            kind,
            module,
            line,
            name,
            lines,
            count,
        }
    }

    #[test]
    fn blocks_are_summed() {
        let source = "module skid_8;\nif (a)\nb = 1;\nelse\nc = 1;\nif (never)\nd = 1;\n";
        let mut points = vec![
            point(Kind::Branch, 2, "if", 7),
            point(Kind::Branch, 4, "else", 0),
            point(Kind::Branch, 6, "if", 0),
        ];
        let bits = [("a[0]", 1), ("a[1]", 0), ("a[2]", 0), ("a[4]", 0), ("b", 0)];
        points.extend(bits.map(|(name, count)| point(Kind::Toggle, 1, name, count)));
        let never = Exclusion {
            block: "skid".into(),
            line: "never".into(),
            ..Exclusion::default()
        };
        let (blocks, left_out) = tally(&points, source, &[never]);
        let skid = &blocks["skid"];
        assert_eq!(
            (skid.lines, skid.branches, skid.bits),
            (Share(2, 4), Share(1, 2), Share(1, 5))
        );
        assert_eq!(skid.unreached.iter().collect::<Vec<_>>(), ["else: else"]);
        assert_eq!(skid.still, ["a[4, 2:1] of skid_8", "b[0] of skid_8"]);
        assert_eq!(left_out, [1]);
        assert!((skid.bits.percent() - 20.0).abs() < 0.01);
    }
}
