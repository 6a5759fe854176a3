//! What a netlist proves of the bits that are counted.
//!
//! Yosys makes one flat netlist of the engine. [`Constants`] looks for the bits that hold one value in every state the
//! netlist can reach: all registers and memories begin at 0, and what a cell can put out is joined to what its nets have
//! until nothing changes. A bit that has got only 0 or only 1 by then cannot change, whatever the tests do: a
//! field of a shared record that one source drives with constants, the high bits of a port that is wider than the build
//! needs. What a cell does is taken as known only for the cells of `cells`; all others put out anything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use super::cells::{Value, eval};

/// The bits of the signals of all modules that can never change.
#[derive(Debug, Default)]
pub struct Constants {
    /// By module and signal, of each bit the number of instances in which it is constant.
    constant: BTreeMap<String, BTreeMap<String, Vec<u32>>>,
    /// Instances of a module.
    instances: BTreeMap<String, u32>,
}

/// A design as Yosys writes it.
#[derive(Deserialize)]
struct Design {
    modules: BTreeMap<String, Module>,
}

#[derive(Default, Deserialize)]
struct Module {
    #[serde(default)]
    ports: BTreeMap<String, Port>,
    #[serde(default)]
    cells: BTreeMap<String, Cell>,
    #[serde(default)]
    netnames: BTreeMap<String, Net>,
}

#[derive(Deserialize)]
struct Port {
    direction: String,
    bits: Vec<Bit>,
}

/// A cell: its type, and by name its parameters and what is connected.
#[derive(Deserialize)]
pub(super) struct Cell {
    pub(super) r#type: String,
    #[serde(default)]
    pub(super) parameters: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) port_directions: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) connections: BTreeMap<String, Vec<Bit>>,
}

#[derive(Deserialize)]
struct Net {
    bits: Vec<Bit>,
}

/// A bit of a signal: the number of a net, or a value.
#[derive(Clone, Copy)]
pub(super) enum Bit {
    Net(usize),
    Is(Value),
}

impl<'de> Deserialize<'de> for Bit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Bit;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a net or a value")
            }
            fn visit_u64<E: Error>(self, net: u64) -> Result<Bit, E> {
                Ok(Bit::Net(net as usize))
            }
            fn visit_str<E: Error>(self, value: &str) -> Result<Bit, E> {
                Ok(Bit::Is(Value::of(value)))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// The cells at every net.
type Users = BTreeMap<usize, Vec<usize>>;

/// What the nets of a flat netlist can hold.
#[derive(Default)]
pub(super) struct Nets {
    values: Vec<Value>,
    /// Nets that are assumed to stay 0, whatever drives them.
    held: BTreeSet<usize>,
    /// Nets that can hold more than before.
    changed: Vec<usize>,
}

impl Nets {
    pub(super) fn get(&self, bit: Bit) -> Value {
        match bit {
            Bit::Net(net) => self.values.get(net).copied().unwrap_or_default(),
            Bit::Is(value) => value,
        }
    }

    fn is_constant(&self, bit: Bit) -> bool {
        matches!(self.get(bit), Value::Zero | Value::One)
    }

    /// Adds what a bit can hold.
    pub(super) fn join(&mut self, bit: Bit, value: Value) {
        let Bit::Net(net) = bit else {
            return;
        };
        let value = match self.held.contains(&net) {
            true => Value::Zero,
            false => value,
        };
        if self.values.len() <= net {
            self.values.resize(net + 1, Value::default());
        }
        let joined = self.values[net].join(value);
        if joined != self.values[net] {
            self.values[net] = joined;
            self.changed.push(net);
        }
    }

    /// Everything that the nets of a module can hold, if the `held` ones are 0.
    fn of(module: &Module, held: BTreeSet<usize>) -> Self {
        let cells: Vec<_> = module.cells.values().collect();
        let mut users = Users::new();
        for (number, cell) in cells.iter().enumerate() {
            for &bit in cell.connections.values().flatten() {
                if let Bit::Net(net) = bit {
                    users.entry(net).or_default().push(number);
                }
            }
        }
        let mut nets = Self {
            held,
            ..Self::default()
        };
        for net in nets.held.clone() {
            nets.join(Bit::Net(net), Value::Zero);
        }
        let inputs = module.ports.values().filter(|p| p.direction != "output");
        for &bit in inputs.flat_map(|port| &port.bits) {
            nets.join(bit, Value::Any);
        }
        nets.settle(&cells, &users, (0..cells.len()).collect());
        // What has no value by now can be anything: a net that nothing drives, and then what an x alone reaches.
        let mut driven = BTreeSet::new();
        for cell in &cells {
            for &bit in cell.connections.get("Y").into_iter().flatten() {
                if let Bit::Net(net) = bit {
                    driven.insert(net);
                }
            }
        }
        for with_logic in [false, true] {
            for &net in users.keys() {
                let unknown = nets.get(Bit::Net(net)) == Value::None;
                if unknown && (with_logic || !driven.contains(&net)) {
                    nets.join(Bit::Net(net), Value::Any);
                }
            }
            nets.settle(&cells, &users, VecDeque::new());
        }
        nets
    }

    /// Joins what the cells put out until nothing changes; these are due, and those whose inputs have changed.
    fn settle(&mut self, cells: &[&Cell], users: &Users, mut due: VecDeque<usize>) {
        let mut is_due = vec![false; cells.len()];
        due.iter().for_each(|&number| is_due[number] = true);
        loop {
            for net in std::mem::take(&mut self.changed) {
                for &user in users.get(&net).into_iter().flatten() {
                    if !std::mem::replace(&mut is_due[user], true) {
                        due.push_back(user);
                    }
                }
            }
            let Some(number) = due.pop_front() else {
                return;
            };
            is_due[number] = false;
            eval(cells[number], self);
        }
    }
}

impl Constants {
    /// Reads what Yosys wrote: the modules below `top` with their instances, and the same as one flat netlist. The constants
    /// as they are, and if the bits are 0 of which `held` says so by module, signal and bit.
    ///
    /// # Errors
    /// No such text.
    pub fn read(
        top: &str,
        modules: &str,
        flat: &str,
        held: &dyn Fn(&str, &str, usize) -> bool,
    ) -> Result<[Self; 2], serde_json::Error> {
        let design: Design = serde_json::from_str(modules)?;
        let mut places = BTreeMap::new();
        walk(&design, top, String::new(), &mut places);
        let flat: Design = serde_json::from_str(flat)?;
        let empty = Module::default();
        let flat = flat.modules.get(top).unwrap_or(&empty);
        let mut zero = BTreeSet::new();
        for (module, signal, bits) in signals(flat, &places) {
            for (index, bit) in bits.iter().enumerate() {
                match *bit {
                    Bit::Net(net) if held(module, signal, index) => zero.insert(net),
                    _ => false,
                };
            }
        }
        Ok([BTreeSet::new(), zero].map(|zero| Self::of(&places, flat, zero)))
    }

    /// Those of the modules at `places`, if these nets of the flat netlist are held at 0.
    fn of(places: &Places, flat: &Module, zero: BTreeSet<usize>) -> Self {
        let mut constants = Self::default();
        for module in places.values() {
            *constants.instances.entry((*module).into()).or_default() += 1;
        }
        let nets = Nets::of(flat, zero);
        for (module, signal, net) in signals(flat, places) {
            let signals = constants.constant.entry(module.into()).or_default();
            let bits = signals.entry(signal.into()).or_default();
            bits.resize(bits.len().max(net.len()), 0);
            for (count, bit) in bits.iter_mut().zip(net) {
                *count += u32::from(nets.is_constant(*bit));
            }
        }
        constants
    }

    /// Whether a bit, `signal` or `signal[index]`, has one value in each instance of its module.
    #[must_use]
    pub fn holds(&self, module: &str, bit: &str) -> bool {
        let (signal, index) = bit.split_once('[').unwrap_or((bit, "0"));
        let count = || {
            let index: usize = index.trim_end_matches(']').parse().ok()?;
            self.constant.get(module)?.get(signal)?.get(index).copied()
        };
        let all = self.instances.get(module);
        all.is_some_and(|&all| count() == Some(all))
    }
}

/// The module of every instance, by path.
type Places<'a> = BTreeMap<String, &'a str>;

/// The signals of a flat netlist, with the module each stands in.
fn signals<'a>(
    flat: &'a Module,
    places: &'a Places<'a>,
) -> impl Iterator<Item = (&'a str, &'a str, &'a [Bit])> {
    flat.netnames.iter().filter_map(|(name, net)| {
        let (place, signal) = name.rsplit_once('.').unwrap_or(("", name));
        Some((*places.get(place)?, signal, net.bits.as_slice()))
    })
}

/// Adds the modules of `module` and of the instances below it.
fn walk<'a>(design: &'a Design, module: &'a str, path: String, places: &mut Places<'a>) {
    if let Some(content) = design.modules.get(module) {
        for (name, cell) in &content.cells {
            let inner = match path.as_str() {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            };
            walk(design, &cell.r#type, inner, places);
        }
        places.insert(path, module);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_is_constant_if_it_is_in_all_instances() {
        let modules = r#"{"modules": {
            "top": {"cells": {"a": {"type": "leaf"}, "b": {"type": "leaf"}}},
            "leaf": {"cells": {}}}}"#;
        let flat = r#"{"modules": {"top": {"ports": {"in": {"direction": "input", "bits": [7, 8]}}, "netnames": {
            "a.s": {"bits": ["0", "1", 7, "0"]},
            "b.s": {"bits": ["1", "1", 8, 9]},
            "t": {"bits": [7]},
            "u": {"bits": ["x"]},
            "v": {"bits": ["0"]},
            "a.none.w": {"bits": ["0"]}}}}}"#;
        let inputs = |module: &str, signal: &str, bit| (module, signal, bit) == ("leaf", "s", 2);
        let [constants, held] = Constants::read("top", modules, flat, &inputs).unwrap();
        let bits = ["s[0]", "s[1]", "s[2]", "s[3]", "s[4]", "w"];
        let found = bits.map(|bit| constants.holds("leaf", bit));
        assert_eq!(found, [true, true, false, false, false, false]);
        let found = ["t", "u", "v"].map(|bit| constants.holds("top", bit));
        assert_eq!(found, [false, false, true]);
        assert!(!constants.holds("none", "w"));
        assert!(held.holds("top", "t") && held.holds("leaf", "s[2]"));
        assert!(Constants::read("top", modules, "", &inputs).is_err());
    }
}
