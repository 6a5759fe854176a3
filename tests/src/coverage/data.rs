//! The counters as Verilator writes them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Runs of the lines of a block of statements, without a condition.
    Line,
    /// Runs of those of an arm of a condition.
    Branch,
    /// Changes of a bit, in engines where it rose and fell.
    Toggle,
}

/// A counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// What it counts.
    pub kind: Kind,
    /// The module it stands in.
    pub module: String,
    /// Line in the Verilog, from 1.
    pub line: usize,
    /// What it is called: the bit of a signal, the arm of a condition.
    pub name: String,
    /// The lines that it counts, from 1; none of a bit.
    pub lines: Vec<RangeInclusive<usize>>,
    /// How often.
    pub count: u64,
}

/// A line that is none of a counter.
#[derive(Debug, thiserror::Error)]
#[error("no counter of Verilator: {0}")]
pub struct NoPoint(String);

/// Reads the counters of lines, branches and bits, those of all instances of a module as one.
///
/// # Errors
/// [`NoPoint`] with a line of another form.
pub fn points(text: &str) -> Result<Vec<Point>, NoPoint> {
    let lines = text.lines().filter(|line| line.starts_with("C '"));
    let mut points = BTreeMap::<_, Point>::new();
    for line in lines {
        if let Some(point) = point(line).ok_or_else(|| NoPoint(line.into()))? {
            let key = (
                point.module.clone(),
                point.line,
                point.kind,
                point.name.clone(),
            );
            let count = point.count;
            let known = points.entry(key).or_insert(Point { count: 0, ..point });
            known.count = known.count.saturating_add(count);
        }
    }
    Ok(points.into_values().collect())
}

/// The counter of a line `C 'pairs' count`, `None` inside if it is of another kind. A pair is a key and a value, each behind a
/// control character.
fn point(line: &str) -> Option<Option<Point>> {
    let (pairs, count) = line.strip_prefix("C '")?.rsplit_once("' ")?;
    let value = |key: &str| {
        let pairs = pairs.split('\u{1}').filter_map(|p| p.split_once('\u{2}'));
        pairs.into_iter().find(|(k, _)| *k == key).map(|(_, v)| v)
    };
    let (kind, module) = value("page")?.split_once('/')?;
    let kind = match kind {
        "v_line" => Kind::Line,
        "v_branch" => Kind::Branch,
        "v_toggle" => Kind::Toggle,
        _ => return Some(None),
    };
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    let lines = value("S").unwrap_or_default().split(',');
    Some(Some(Point {
        kind,
        module: module.into(),
        line: value("l")?.parse().ok()?,
        name: value("o")?.into(),
        lines: lines
            .filter(|text| !text.is_empty())
            .map(range)
            .collect::<Option<_>>()?,
        count: count.parse().ok()?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read() {
        let text = "# SystemC::Coverage-3\n\
            C '\u{1}f\u{2}source.v\u{1}l\u{2}7\u{1}n\u{2}27\u{1}page\u{2}v_toggle/skid_8\u{1}o\u{2}a[3]\u{1}h\u{2}TOP.x' 38\n\
            C '\u{1}f\u{2}source.v\u{1}l\u{2}9\u{1}page\u{2}v_branch/skid_8\u{1}o\u{2}else\u{1}S\u{2}9,11-12\u{1}h\u{2}TOP.x' 0\n\
            C '\u{1}f\u{2}source.v\u{1}l\u{2}7\u{1}n\u{2}27\u{1}page\u{2}v_toggle/skid_8\u{1}o\u{2}a[3]\u{1}h\u{2}TOP.y' 2\n\
            C '\u{1}f\u{2}source.v\u{1}l\u{2}9\u{1}page\u{2}v_user/skid_8\u{1}o\u{2}cover' 0\n";
        let points = points(text).unwrap();
        let (bit, arm) = (&points[0], &points[1]);
        assert_eq!(points.len(), 2);
        assert_eq!((bit.kind, bit.line, bit.count), (Kind::Toggle, 7, 40));
        assert_eq!((bit.module.as_str(), bit.name.as_str()), ("skid_8", "a[3]"));
        assert_eq!((arm.kind, arm.count), (Kind::Branch, 0));
        assert_eq!(arm.lines, [9..=9, 11..=12]);
        assert!(super::points("C 'x' 1").is_err());
    }
}
