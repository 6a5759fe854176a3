//! Memories that a build needs, read from its Verilog: what a part must have before anything else can fit.

use std::collections::BTreeMap;

use ferroce_hdl::emit::Module;

/// Block RAMs of 18 Kib and UltraRAMs of UltraScale+.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memories {
    /// RAMB18; two are a RAMB36.
    pub ramb18: u64,
    /// URAM288.
    pub uram: u64,
}

/// Words and bits of a RAMB18 with one read and one write port (UG573, table 1-2).
const RAMB18: [(u64, u64); 6] = [
    (512, 36),
    (1024, 18),
    (2048, 9),
    (4096, 4),
    (8192, 2),
    (16384, 1),
];
/// Words and bits of an UltraRAM (UG573, chapter 2).
const URAM: (u64, u64) = (4096, 72);

impl Memories {
    /// Those of a build; children stand before parents in `modules`.
    #[must_use]
    pub fn of(modules: &[Module]) -> Self {
        let mut known = BTreeMap::<&str, Self>::new();
        let mut whole = Self::default();
        for module in modules {
            let mut sum = Self::default();
            for line in module.text.lines() {
                let first = line.split_whitespace().next().unwrap_or_default();
                let child = known.get(first).copied();
                sum = sum.and(child.unwrap_or_else(|| Self::of_line(line).unwrap_or_default()));
            }
            known.insert(&module.name, sum);
            whole = sum;
        }
        whole
    }

    /// Whole block RAMs.
    #[must_use]
    pub fn ramb36(self) -> u64 {
        self.ramb18.div_ceil(2)
    }

    fn and(self, other: Self) -> Self {
        Self {
            ramb18: self.ramb18 + other.ramb18,
            uram: self.uram + other.uram,
        }
    }

    /// `(* ram_style = "block" *) reg [333:0] mem [0:8191];`
    fn of_line(line: &str) -> Option<Self> {
        let (_, rest) = line.split_once("ram_style = \"")?;
        let (style, rest) = rest.split_once('"')?;
        let number = |from: &str| {
            rest.split_once(from)?
                .1
                .split([':', ']'])
                .next()?
                .parse()
                .ok()
        };
        let (bits, words): (u64, u64) = (number("reg [")?, number("mem [0:")?);
        let (bits, words) = (bits + 1, words + 1);
        let take = |(w, b): (u64, u64)| words.div_ceil(w) * bits.div_ceil(b);
        match style {
            "block" => Some(Self {
                ramb18: RAMB18.into_iter().map(take).min()?,
                uram: 0,
            }),
            "ultra" => Some(Self {
                ramb18: 0,
                uram: take(URAM),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_of_all_instances_are_summed() {
        let module = |name: &str, text: &str| Module {
            name: name.into(),
            text: text.into(),
            kind: Default::default(),
        };
        let modules = [
            module(
                "deep",
                "    (* ram_style = \"ultra\" *) reg [333:0] mem [0:8191];",
            ),
            module(
                "shallow",
                "    (* ram_style = \"block\" *) reg [71:0] mem [0:511];\n    deep u_deep (",
            ),
            module(
                "lut",
                "    (* ram_style = \"distributed\" *) reg [71:0] mem [0:31];",
            ),
            module("top", "    shallow u_a (\n    shallow u_b (\n    lut u_c ("),
        ];
        let of = Memories::of(&modules);
        assert_eq!((of.ramb18, of.ramb36(), of.uram), (4, 2, 20));
    }
}
