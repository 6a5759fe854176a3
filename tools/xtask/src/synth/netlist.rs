//! A netlist that Yosys mapped: what it takes and how many LUTs lie between its registers.
//!
//! Levels: a LUT is 1, entering a carry chain is 1 and each further hop along it 0, the multiplexers inside a slice are 0.
//! Registers, RAMs and the ports of the block begin and end a path.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

/// What `write_json` of Yosys writes, as far as it is needed here.
#[derive(Deserialize)]
struct File {
    modules: BTreeMap<String, Module>,
}

#[derive(Deserialize)]
struct Module {
    ports: BTreeMap<String, Port>,
    cells: BTreeMap<String, Cell>,
    netnames: BTreeMap<String, Net>,
}

#[derive(Deserialize)]
struct Port {
    direction: String,
    bits: Vec<Value>,
}

#[derive(Deserialize)]
struct Cell {
    #[serde(rename = "type")]
    kind: String,
    port_directions: BTreeMap<String, String>,
    connections: BTreeMap<String, Vec<Value>>,
}

#[derive(Deserialize)]
struct Net {
    bits: Vec<Value>,
}

/// Resources of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// LUTs of any size.
    pub lut: u64,
    /// Flip-flops.
    pub ff: u64,
    /// Block RAMs of 36 Kbit; one of 18 Kbit is half.
    pub bram36: f64,
    /// UltraRAMs.
    pub uram: u64,
    /// Memories and shift registers made of LUTs, in cells.
    pub lutram: u64,
    /// LUT levels of the longest path.
    pub levels: u32,
    /// The net or register where it ends; empty if it has no name.
    pub worst: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Begins and ends paths.
    State,
    Lut,
    Mux,
    Carry,
    /// Buffers and constants.
    Free,
    /// Not known: as a LUT.
    Other,
}

fn class(kind: &str) -> Class {
    const STATE: [&str; 8] = ["FD", "RAMB", "URAM", "SRL", "RAM32", "RAM64", "DSP", "$_"];
    const STATE_TOO: [&str; 4] = ["RAM128", "RAM256", "RAMD", "LATCH"];
    const FREE: [&str; 6] = ["BUFG", "IBUF", "OBUF", "GND", "VCC", "INV"];
    let starts = |list: &[&str]| list.iter().any(|head| kind.starts_with(head));
    if starts(&FREE) || kind == "$scopeinfo" {
        Class::Free
    } else if starts(&STATE) || starts(&STATE_TOO) {
        Class::State
    } else if kind.starts_with("LUT") {
        Class::Lut
    } else if kind.starts_with("MUXF") {
        Class::Mux
    } else if kind.starts_with("CARRY") {
        Class::Carry
    } else {
        Class::Other
    }
}

/// Inputs of a state element that are no data.
const CLOCKS: [&str; 5] = ["C", "CLK", "CLKARDCLK", "CLKBWRCLK", "WCLK"];

struct Node<'a> {
    class: Class,
    /// Pin and net.
    inputs: Vec<(&'a str, u64)>,
    /// One of the nets it drives.
    output: Option<u64>,
}

/// Reads the cost of the module `top` from what `write_json` wrote of it, flattened and mapped.
///
/// # Errors
/// The text is not of that form, or has a loop of combinational cells.
pub fn cost(json: &str, top: &str) -> Result<Cost> {
    let file: File = serde_json::from_str(json).context("the netlist of Yosys")?;
    let module = file.modules.get(top);
    let module = module.with_context(|| format!("no module {top} in the netlist"))?;
    let mut nodes = Vec::with_capacity(module.cells.len());
    let mut driver: HashMap<u64, usize> = HashMap::new();
    for cell in module.cells.values() {
        let (mut inputs, mut output) = (vec![], None);
        for (pin, bits) in &cell.connections {
            let out = cell.port_directions.get(pin).is_some_and(|d| d == "output");
            for bit in bits.iter().filter_map(Value::as_u64) {
                if out {
                    driver.insert(bit, nodes.len());
                    output = Some(bit);
                } else {
                    inputs.push((pin.as_str(), bit));
                }
            }
        }
        let class = class(&cell.kind);
        nodes.push(Node {
            class,
            inputs,
            output,
        });
    }
    let mut paths = Paths {
        nodes: &nodes,
        driver: &driver,
        known: HashMap::new(),
    };
    let (mut levels, mut end) = (0, None);
    let of_state = nodes
        .iter()
        .filter(|n| n.class == Class::State)
        .flat_map(|n| n.inputs.iter().map(move |&(pin, bit)| (pin, bit, n.output)))
        .filter(|(pin, ..)| !CLOCKS.contains(pin))
        .map(|(_, bit, output)| (bit, output));
    let outputs = module.ports.values().filter(|p| p.direction == "output");
    let of_ports = outputs.flat_map(|p| p.bits.iter().filter_map(Value::as_u64));
    for (bit, behind) in of_state.chain(of_ports.map(|bit| (bit, None))) {
        let arrival = paths.arrival(bit)?;
        if arrival > levels {
            (levels, end) = (arrival, Some((bit, behind)));
        }
    }
    let count = |heads: &[&str]| {
        let of = |cell: &&Cell| heads.iter().any(|head| cell.kind.starts_with(head));
        module.cells.values().filter(of).count() as u64
    };
    Ok(Cost {
        lut: count(&["LUT"]),
        ff: count(&["FD"]),
        bram36: count(&["RAMB36"]) as f64 + count(&["RAMB18"]) as f64 / 2.0,
        uram: count(&["URAM"]),
        lutram: count(&["SRL", "RAM32", "RAM64", "RAM128", "RAM256", "RAMD"]),
        levels,
        worst: end.map_or_else(String::new, |(bit, behind)| {
            // What has no name of its own is called after the register or RAM it goes to.
            let own = name(module, bit);
            let named = |text: &String| !text.starts_with('$');
            let of_state = behind.map(|output| name(module, output)).filter(named);
            Some(own).filter(named).or(of_state).unwrap_or_default()
        }),
    })
}

/// A name that a person gave to a net, if there is one.
fn name(module: &Module, bit: u64) -> String {
    let mut best = format!("$net {bit}");
    for (name, net) in &module.netnames {
        let Some(at) = net.bits.iter().position(|b| b.as_u64() == Some(bit)) else {
            continue;
        };
        let whole = net.bits.len() == 1;
        best = if whole {
            name.clone()
        } else {
            format!("{name}[{at}]")
        };
        if !name.starts_with('$') {
            break;
        }
    }
    best
}

struct Paths<'a> {
    nodes: &'a [Node<'a>],
    driver: &'a HashMap<u64, usize>,
    /// Levels of a net; `None` while they are being found.
    known: HashMap<u64, Option<u32>>,
}

impl Paths<'_> {
    /// Levels from a register or port to `bit`. Without recursion: paths of a whole engine are deep.
    fn arrival(&mut self, bit: u64) -> Result<u32> {
        let mut stack = vec![bit];
        while let Some(&bit) = stack.last() {
            if let Some(Some(_)) = self.known.get(&bit) {
                stack.pop();
                continue;
            }
            let node = self.driver.get(&bit).map(|&at| &self.nodes[at]);
            let Some(node) = node.filter(|n| n.class != Class::State) else {
                self.known.insert(bit, Some(0));
                continue;
            };
            let waits = node.inputs.iter().map(|&(_, input)| input);
            let waits = waits.filter(|input| !matches!(self.known.get(input), Some(Some(_))));
            let waits: Vec<_> = waits.collect();
            if waits.is_empty() {
                let levels = node
                    .inputs
                    .iter()
                    .map(|&(pin, i)| self.through(node, pin, i));
                let levels = levels.max().unwrap_or(0);
                self.known.insert(bit, Some(levels));
                continue;
            }
            let looped = waits.iter().any(|input| self.known.contains_key(input));
            ensure!(!looped, "a loop of combinational cells at net {bit}");
            self.known.insert(bit, None);
            stack.extend(waits);
        }
        Ok(self.known[&bit].expect("found above"))
    }

    /// Levels behind `node` of a path that enters by `pin` from the net `input`.
    fn through(&self, node: &Node, pin: &str, input: u64) -> u32 {
        let before = self.known[&input].expect("found before its reader");
        let chained = || {
            let from = self.driver.get(&input).map(|&at| self.nodes[at].class);
            from == Some(Class::Carry) && matches!(pin, "CI" | "CIN" | "CYINIT")
        };
        let own = match node.class {
            Class::Lut | Class::Other => 1,
            Class::Carry => u32::from(!chained()),
            Class::Mux | Class::Free | Class::State => 0,
        };
        before + own
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cell(kind: &str, inputs: &[(&str, u64)], output: u64) -> Value {
        let mut connections = json!({"O": [output]});
        let mut directions = json!({"O": "output"});
        for (pin, bit) in inputs {
            connections[pin] = json!([bit]);
            directions[pin] = json!("input");
        }
        json!({"type": kind, "connections": connections, "port_directions": directions})
    }

    fn netlist(cells: &[Value]) -> String {
        let cells: serde_json::Map<_, _> = cells
            .iter()
            .enumerate()
            .map(|(i, c)| (format!("c{i}"), c.clone()))
            .collect();
        let ports = json!({
            "clk": {"direction": "input", "bits": [1]},
            "x": {"direction": "input", "bits": [2]},
            "y": {"direction": "output", "bits": [9, "0"]},
        });
        let names = json!({"$auto$9": {"bits": [9]}, "sum": {"bits": [7, 9]}});
        json!({"modules": {"t": {"ports": ports, "cells": cells, "netnames": names}}}).to_string()
    }

    #[test]
    fn levels_are_counted_from_register_to_register() {
        let text = netlist(&[
            cell("FDRE", &[("C", 1), ("D", 2)], 3),
            cell("LUT2", &[("I0", 3), ("I1", 2)], 4),
            cell("LUT1", &[("I0", 4)], 5),
            cell("MUXF7", &[("I0", 5), ("I1", 4)], 6),
            // entered by DI: a level; along the chain: none
            cell("CARRY4", &[("DI", 6)], 7),
            cell("CARRY4", &[("CI", 7), ("DI", 3)], 8),
            cell("LUT3", &[("I0", 8)], 9),
            cell("FDRE", &[("C", 1), ("D", 9)], 10),
            // a clock through a LUT is no data
            cell("LUT6", &[("I0", 9)], 11),
            cell("RAMB36E2", &[("CLKARDCLK", 11), ("DIN", 9)], 12),
            cell("RAMB18E2", &[("DIN", 12)], 13),
            cell("RAM32M16", &[("DIN", 13)], 14),
        ]);
        let expected = Cost {
            lut: 4,
            ff: 2,
            bram36: 1.5,
            uram: 0,
            lutram: 1,
            levels: 4,
            worst: "sum[1]".into(),
        };
        assert_eq!(cost(&text, "t").unwrap(), expected);
    }

    #[test]
    fn a_path_through_the_block_counts_too() {
        let text = netlist(&[cell("LUT1", &[("I0", 2)], 9)]);
        assert_eq!(cost(&text, "t").unwrap().levels, 1);
    }

    #[test]
    fn a_loop_is_refused() {
        let text = netlist(&[
            cell("LUT2", &[("I0", 4), ("I1", 2)], 9),
            cell("LUT1", &[("I0", 9)], 4),
        ]);
        let error = cost(&text, "t").unwrap_err().to_string();
        assert!(error.contains("loop"), "{error}");
    }

    #[test]
    fn nets_that_meet_again_are_no_loop() {
        let text = netlist(&[
            cell("LUT1", &[("I0", 2)], 3),
            cell("LUT2", &[("I0", 3), ("I1", 2)], 4),
            cell("LUT3", &[("I0", 4), ("I1", 3), ("I2", 2)], 9),
        ]);
        assert_eq!(cost(&text, "t").unwrap().levels, 3);
    }
}
