//! Linear maps over GF(2) to 32 bits, printed as sums of bits with few LUTs.
use std::collections::VecDeque;
use std::fmt::Write;

/// Inputs of a LUT.
const LUT: usize = 6;

/// A linear map with its rows in groups: the columns that count towards the same rows of a group are summed once.
///
/// `R` rows of a group share 2^R - 1 sums, each of far fewer columns than a row has.
pub(super) struct Shared {
    /// By group: the lowest row, and by rows, as bits of a number less 1, the columns that count towards just these.
    pub(super) groups: Vec<(usize, Vec<Vec<usize>>)>,
}

impl Shared {
    /// The map of `columns` with at most `most` rows in a group.
    pub(super) fn new(columns: &[u32], most: usize) -> Self {
        let count = 32_usize.div_ceil(most);
        let group = |g: usize| {
            let (low, end) = (32 * g / count, 32 * (g + 1) / count);
            let rows = |column: u32| (column >> low) as usize & ((1 << (end - low)) - 1);
            let of = |sum| (0..columns.len()).filter(move |&i| rows(columns[i]) == sum);
            (
                low,
                (1..1 << (end - low)).map(|s| of(s).collect()).collect(),
            )
        };
        Self {
            groups: (0..count).map(group).collect(),
        }
    }

    /// The sums that make row `row`: group, place in the group, columns.
    fn row(&self, row: usize) -> impl Iterator<Item = (usize, usize, &[usize])> {
        let group = self.groups.iter().rposition(|group| group.0 <= row);
        let group = group.expect("the first group begins with row 0");
        let (low, sums) = &self.groups[group];
        let counts = move |(at, columns): (usize, &'_ Vec<usize>)| {
            (at + 1) >> (row - low) & 1 == 1 && !columns.is_empty()
        };
        let sums = sums.iter().enumerate();
        sums.filter(move |&(at, columns)| counts((at, columns)))
            .map(move |(at, columns)| (group, at, &columns[..]))
    }

    /// The sums that make row `row`, by their names: bits of `{name}_{group}`.
    pub(super) fn terms(&self, row: usize, name: &str) -> Vec<String> {
        self.row(row)
            .map(|(group, at, _)| format!("{name}_{group}[{at}]"))
            .collect()
    }
}

/// The sum of `terms` with parentheses round what one LUT can take.
pub(super) fn xor(terms: impl IntoIterator<Item = String>) -> String {
    let mut terms: VecDeque<String> = terms.into_iter().collect();
    while terms.len() > LUT {
        let lut: Vec<String> = terms.drain(..LUT).collect();
        terms.push_back(format!("({})", lut.join(" ^ ")));
    }
    match terms.is_empty() {
        true => "1'b0".into(),
        false => Vec::from(terms).join(" ^ "),
    }
}

/// Appends an assignment of `width` bits, each an expression of its own.
pub(super) fn assign(text: &mut String, target: &str, width: usize, bit: impl Fn(usize) -> String) {
    let bits: Vec<String> = (0..width).rev().map(bit).collect();
    let _ = writeln!(text, "{target} {{\n        {}}};", bits.join(",\n        "));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::crc::{Map, beat_columns};

    #[test]
    fn shared_sums_make_the_rows() {
        for (columns, most) in [
            (beat_columns(512), 6),
            (beat_columns(64), 3),
            (Map::zero_bytes(64).columns().to_vec(), 3),
        ] {
            let shared = Shared::new(&columns, most);
            for row in 0..32 {
                let mut found: Vec<usize> =
                    shared.row(row).flat_map(|sum| sum.2.to_vec()).collect();
                found.sort_unstable();
                let counts = (0..columns.len()).filter(|&i| columns[i] >> row & 1 == 1);
                assert_eq!(found, counts.collect::<Vec<_>>(), "row {row}");
            }
        }
    }

    #[test]
    fn parentheses_hold_a_lut() {
        let terms = |n: usize| (0..n).map(|i| i.to_string());
        assert_eq!(xor(terms(0)), "1'b0");
        assert_eq!(xor(terms(3)), "0 ^ 1 ^ 2");
        assert_eq!(xor(terms(8)), "6 ^ 7 ^ (0 ^ 1 ^ 2 ^ 3 ^ 4 ^ 5)");
    }
}
