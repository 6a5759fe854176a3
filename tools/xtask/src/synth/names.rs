//! What the nets of a flat netlist are called in the design.

use super::netlist::{Bit, Module, Net};

/// Names by net.
pub(super) struct Names<'a>(Vec<Option<(Rank, &'a str)>>);

/// The smaller, the better the name: not declared as a register; hierarchy and length.
type Rank = (bool, usize);

impl<'a> Names<'a> {
    /// Those of `module`; `source` is the Verilog it came from.
    pub(super) fn new(module: &'a Module, source: &str) -> Self {
        let lines: Vec<_> = source.lines().map(str::trim_start).collect();
        let mut best = vec![];
        for (name, net) in &module.netnames {
            // Behind a `$` stand names that the program made up.
            let given = match name.strip_prefix('$') {
                None => Some(name.as_str()),
                Some(made_up) => read_address(made_up),
            };
            let Some(name) = given else {
                continue;
            };
            let register = line(net).and_then(|line| lines.get(line.checked_sub(1)?));
            let register = register.is_some_and(|line| line.starts_with("reg "));
            let rank = (!register, name.len());
            for bit in net.bits.iter().filter_map(Bit::net) {
                if best.len() <= bit {
                    best.resize(bit + 1, None);
                }
                let known = &mut best[bit];
                if known.is_none_or(|(old, _)| rank < old) {
                    *known = Some((rank, name));
                }
            }
        }
        Self(best)
    }

    /// The name of `net`, without the bit, if a person gave it one.
    pub(super) fn find(&self, net: usize) -> Option<&'a str> {
        let (_, name) = self.0.get(net)?.as_ref()?;
        Some(name)
    }
}

/// The memory whose read address the program keeps in a register of its own: behind a `$` the name of this is
/// `\u_a.mem$rdreg[0]$q`.
fn read_address(name: &str) -> Option<&str> {
    Some(name.strip_prefix('\\')?.split_once("$rdreg[")?.0)
}

/// The line that declares a net.
fn line(net: &Net) -> Option<usize> {
    // file:line.column-line.column, and more of them behind a bar
    let place = net.attributes.get("src")?.split('|').next()?;
    place.rsplit_once(':')?.1.split('.').next()?.parse().ok()
}
