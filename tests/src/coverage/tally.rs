//! What is covered of each block.

use std::collections::{BTreeMap, BTreeSet};

use ferroce_hdl::emit::block_of;

use super::block;
use super::data::{Kind, Point};
use super::exclude::Exclusion;
use super::netlist::Constants;

/// Covered, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Lines with a statement.
    pub lines: Share,
    /// Arms of conditions.
    pub branches: Share,
    /// Bits that rose and fell.
    pub bits: Share,
    /// Bits that cannot change, not among those.
    pub constant: u32,
    /// Bits that cannot change while those that are [held](Exclusion::held) do not, not among those either.
    pub held: u32,
    /// Arms and lines that nothing reached, by their first line.
    pub unreached: BTreeSet<String>,
    /// The signals with bits that did not change both ways, those with the most first: the bits as ranges.
    pub still: Vec<String>,
}

/// What is covered of the blocks of `source`, and how many lines, arms and bits each exclusion leaves out.
///
/// # Errors
/// Bits changed although they are among the `constants`, or among those `held` as well.
pub fn tally(
    points: &[Point],
    source: &str,
    exclusions: &[Exclusion],
    constants: &Constants,
    held: &Constants,
) -> Result<(BTreeMap<String, Tally>, Vec<u32>), String> {
    let texts: Vec<_> = source.lines().map(str::trim).collect();
    let text = |line: usize| line.checked_sub(1).and_then(|at| texts.get(at)).copied();
    let mut blocks = BTreeMap::<String, Tally>::new();
    let mut left_out = vec![0; exclusions.len()];
    // A line may be counted with the arm it begins and with the one it is in.
    let mut lines = BTreeMap::<usize, (&str, bool)>::new();
    let mut still = BTreeMap::<(&str, &str), BTreeSet<usize>>::new();
    let mut changed = Vec::new();
    for point in points {
        let first = text(point.line).unwrap_or_default();
        let (name, covered) = (block(&point.module), point.count > 0);
        let tally = blocks.entry(name.into()).or_default();
        let is = |constants: &Constants| {
            point.kind == Kind::Toggle && constants.holds(&point.module, &point.name)
        };
        if is(constants) && !covered {
            tally.constant += 1;
            continue;
        }
        let (signal, bit) = point.name.split_once('[').unwrap_or((&point.name, ""));
        let meant = exclusions.iter().position(|e| e.means(point, first));
        if let Some(number) = meant {
            left_out[number] += 1;
        }
        if is(held) {
            if covered {
                changed.push((signal, point.module.as_str()));
            }
            tally.held += u32::from(meant.is_none());
            continue;
        }
        if meant.is_some() {
            continue;
        }
        for line in point.lines.iter().cloned().flatten() {
            lines.entry(line).or_insert((name, false)).1 |= covered;
        }
        match point.kind {
            Kind::Toggle => {
                tally.bits.add(covered);
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
        let bits = ranges(&bits);
        let module = block_of(module);
        tally.still.push(format!("{signal}[{bits}] of {module}"));
    }
    if !changed.is_empty() {
        let count = changed.len();
        changed.dedup();
        return Err(format!(
            "{count} bits changed that are constants or held: {changed:?}"
        ));
    }
    Ok((blocks, left_out))
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
        let (module, name) = ("ferroce_skid_8".into(), name.into());
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
        let source = "module ferroce_skid_8;\nif (a)\nb = 1;\nelse\nc = 1;\nif (never)\nd = 1;\n";
        let mut points = vec![
            point(Kind::Branch, 2, "if", 7),
            point(Kind::Branch, 4, "else", 0),
            point(Kind::Branch, 6, "if", 0),
        ];
        let mut bits = vec![("a[0]", 1), ("a[1]", 0), ("a[2]", 0), ("a[4]", 0)];
        bits.extend([("b", 0), ("zero", 0)]);
        points.extend(
            bits.into_iter()
                .map(|(name, count)| point(Kind::Toggle, 1, name, count)),
        );
        let never = Exclusion {
            block: "skid".into(),
            line: "never".into(),
            ..Exclusion::default()
        };
        let flat = r#"{"modules": {"ferroce_skid_8": {"netnames": {"zero": {"bits": ["0"]}, "a": {"bits": [2, 3, "x"]}}}}}"#;
        let read = |held: &dyn Fn(&str, &str, usize) -> bool| {
            Constants::read(
                "ferroce_skid_8",
                r#"{"modules": {"ferroce_skid_8": {}}}"#,
                flat,
                held,
            )
            .unwrap()
        };
        let [constants, held] = read(&|_, signal, bit| (signal, bit) == ("a", 1));
        let tallied = tally(&points, source, &[never], &constants, &constants);
        let (blocks, left_out) = tallied.unwrap();
        let skid = &blocks["skid"];
        assert_eq!(
            (skid.lines, skid.branches, skid.bits),
            (Share(2, 4), Share(1, 2), Share(1, 5))
        );
        assert_eq!(skid.unreached.iter().collect::<Vec<_>>(), ["else: else"]);
        assert_eq!(skid.still, ["a[4, 2:1] of skid_8", "b[0] of skid_8"]);
        assert_eq!((left_out, skid.constant), (vec![1], 1));
        assert!((skid.bits.percent() - 20.0).abs() < 0.01);
        points.push(point(Kind::Toggle, 1, "zero", 1));
        assert!(tally(&points, source, &[], &constants, &constants).is_err());
        points.pop();
        let (blocks, _) = tally(&points, source, &[], &constants, &held).unwrap();
        assert_eq!((blocks["skid"].bits, blocks["skid"].held), (Share(1, 4), 1));
        let [_, held] = read(&|_, signal, bit| (signal, bit) == ("a", 0));
        assert!(tally(&points, source, &[], &constants, &held).is_err());
    }
}
