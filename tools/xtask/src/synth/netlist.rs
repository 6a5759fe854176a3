//! A netlist that Yosys mapped: what it takes, and how many LUTs lie between its registers.
//!
//! Levels: a LUT is 1, entering a carry chain is 1 and each further hop along it 0, the multiplexers inside a slice are 0.
//! Registers, RAMs and the ports of the block begin and end a path;
//! the address of a memory made of LUTs passes it as it does a LUT.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::names::Names;
use super::paths::Paths;

/// What `write_json` of Yosys writes, as far as it is needed here.
#[derive(Deserialize)]
struct File {
    modules: BTreeMap<String, Module>,
}

/// A module, flat.
#[derive(Deserialize)]
pub(super) struct Module {
    pub(super) ports: BTreeMap<String, Port>,
    pub(super) cells: BTreeMap<String, Cell>,
    pub(super) netnames: BTreeMap<String, Net>,
}

#[derive(Deserialize)]
pub(super) struct Port {
    direction: String,
    bits: Vec<Bit>,
}

#[derive(Deserialize)]
pub(super) struct Cell {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) port_directions: BTreeMap<String, String>,
    pub(super) connections: BTreeMap<String, Vec<Bit>>,
}

#[derive(Deserialize)]
pub(super) struct Net {
    pub(super) bits: Vec<Bit>,
    #[serde(default)]
    pub(super) attributes: BTreeMap<String, String>,
}

/// A bit of a connection: a net, or a constant.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Bit {
    Net(usize),
    Constant(#[allow(dead_code, reason = "only that it is no net")] String),
}

impl Bit {
    pub(super) fn net(&self) -> Option<usize> {
        match self {
            Bit::Net(net) => Some(*net),
            Bit::Constant(_) => None,
        }
    }
}

/// What a block takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// LUTs of any size that are logic.
    pub lut: u64,
    /// LUTs of the device that hold these, at most.
    pub packed: u64,
    /// Flip-flops.
    pub ff: u64,
    /// Block RAMs of 36 Kbit; one of 18 Kbit is half.
    pub bram36: f64,
    /// UltraRAMs.
    pub uram: u64,
    /// LUTs that are memories and shift registers.
    pub lutram: u64,
    /// LUT levels of the longest path.
    pub levels: u32,
    /// The longest paths of different ends, longest first.
    pub paths: Vec<Path>,
}

/// A path between two registers, memories or ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// LUT levels.
    pub levels: u32,
    /// Where it begins, without the bit.
    pub from: String,
    /// Where it ends, without the bit.
    pub to: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Begins and ends paths.
    State,
    /// Memory made of LUTs: written like a register, read like a LUT.
    LutRam,
    Lut,
    Mux,
    Carry,
    /// Buffers and constants.
    Free,
    /// Not known: as a LUT.
    Other,
}

pub(super) fn class(kind: &str) -> Class {
    const STATE: [&str; 7] = ["FD", "RAMB", "URAM", "SRL", "DSP", "$_", "LATCH"];
    const FREE: [&str; 6] = ["BUFG", "IBUF", "OBUF", "GND", "VCC", "INV"];
    let starts = |list: &[&str]| list.iter().any(|head| kind.starts_with(head));
    if starts(&FREE) || kind == "$scopeinfo" {
        Class::Free
    } else if starts(&STATE) {
        Class::State
    } else if kind.starts_with("RAM") {
        Class::LutRam
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

/// LUTs of the device that hold so many of one input to six: any two of five inputs together share one, which has two
/// outputs (UG574). Others may, if some of their inputs are the same.
fn packed([one, two, three, four, five, six]: [u64; 6]) -> u64 {
    let small = two + one.saturating_sub(four);
    three + four + five + six + small.saturating_sub(three).div_ceil(2)
}

/// LUTs of a slice that a memory or a shift register takes (UG974).
fn memory_luts(kind: &str) -> u64 {
    match kind {
        "RAM32M16" | "RAM64M8" | "RAM32X16DR8" | "RAM64X8SW" | "RAM256X1D" | "RAM512X1S" => 8,
        "RAM32M" | "RAM64M" | "RAM128X1D" | "RAM256X1S" => 4,
        "RAM32X1D" | "RAM64X1D" | "RAM128X1S" => 2,
        "RAM32X1S" | "RAM64X1S" => 1,
        srl if srl.starts_with("SRL") => 1,
        _ => 0,
    }
}

/// Inputs of a state element that are no data.
const CLOCKS: [&str; 5] = ["C", "CLK", "CLKARDCLK", "CLKBWRCLK", "WCLK"];

/// Paths that a cost names.
const WORST: usize = 10;

/// Reads the cost of the module `top` from what `write_json` wrote of it, flattened and mapped. `source` is the Verilog
/// that was read, which tells registers from other nets; `""` if it is not at hand.
///
/// # Errors
/// The text is not of that form, has a loop of combinational cells, or a memory was made of flip-flops.
pub fn cost(json: &str, top: &str, source: &str) -> Result<Cost> {
    let module = &module(json, top)?;
    let mut paths = Paths::new(module);
    // Where a path ends, and a net of what it ends in: of a register its output.
    let mut ends = vec![];
    for cell in module.cells.values() {
        if !matches!(class(&cell.kind), Class::State | Class::LutRam) {
            continue;
        }
        let pins = |output: bool| {
            let of = move |pin: &str| {
                cell.port_directions
                    .get(pin)
                    .is_some_and(|d| (d == "output") == output)
            };
            let pins = cell.connections.iter().filter(move |(pin, _)| of(pin));
            pins.filter(|(pin, _)| !CLOCKS.contains(&pin.as_str()))
                .flat_map(|(_, bits)| bits.iter().filter_map(Bit::net))
        };
        let driven = pins(true).next();
        for net in pins(false) {
            ends.push((paths.levels(net)?, net, driven.unwrap_or(net)));
        }
    }
    for port in module.ports.values().filter(|p| p.direction == "output") {
        for net in port.bits.iter().filter_map(Bit::net) {
            ends.push((paths.levels(net)?, net, net));
        }
    }
    ends.sort_by_key(|&(levels, net, _)| (std::cmp::Reverse(levels), net));
    let names = Names::new(module, source);
    let mut seen = BTreeSet::new();
    let mut worst = vec![];
    for &(levels, net, driven) in ends.iter().filter(|end| end.0 > 0) {
        let name = |found: Option<&str>| found.unwrap_or("no name").to_owned();
        let from = name(names.find(paths.begin(net)));
        let to = name(names.find(driven).or_else(|| names.find(net)));
        if seen.insert((from.clone(), to.clone())) {
            worst.push(Path { levels, from, to });
        }
        if worst.len() == WORST {
            break;
        }
    }
    let count = |heads: &[&str]| {
        let of = |cell: &&Cell| heads.iter().any(|head| cell.kind.starts_with(head));
        module.cells.values().filter(of).count() as u64
    };
    Ok(Cost {
        lut: count(&["LUT"]),
        packed: packed(["LUT1", "LUT2", "LUT3", "LUT4", "LUT5", "LUT6"].map(|kind| count(&[kind]))),
        ff: count(&["FD"]),
        bram36: count(&["RAMB36"]) as f64 + count(&["RAMB18"]) as f64 / 2.0,
        uram: count(&["URAM"]),
        lutram: module.cells.values().map(|c| memory_luts(&c.kind)).sum(),
        levels: ends.first().map_or(0, |end| end.0),
        paths: worst,
    })
}

/// The module `top` of what `write_json` wrote, for any family.
///
/// # Errors
/// The text is not of that form, or a memory was made of flip-flops.
pub(super) fn module(json: &str, top: &str) -> Result<Module> {
    let mut file: File = serde_json::from_str(json).context("the netlist of Yosys")?;
    let module = file.modules.remove(top);
    let module = module.with_context(|| format!("no module {top} in the netlist"))?;
    no_memory_of_registers(&module)?;
    Ok(module)
}

/// Yosys names the registers of a memory that it could not map `NAME[0]`, `NAME[1]`...
fn no_memory_of_registers(module: &Module) -> Result<()> {
    let of_memory = |name: &&String| {
        let stem = name.strip_suffix(']').and_then(|rest| {
            let (stem, word) = rest.rsplit_once('[')?;
            word.bytes().all(|b| b.is_ascii_digit()).then_some(stem)
        });
        stem.is_some_and(|stem| stem == "mem" || stem.ends_with(".mem"))
    };
    let found = module.netnames.keys().find(of_memory);
    ensure!(
        found.is_none(),
        "a memory was made of flip-flops, not of RAM: {}",
        found.map_or("", String::as_str)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cell(kind: &str, inputs: &[(&str, u64)], output: u64) -> Value {
        let out = if kind == "RAM32M16" { "DOA" } else { "O" };
        let mut connections = json!({out: [output]});
        let mut directions = json!({out: "output"});
        for (pin, bit) in inputs {
            connections[pin] = json!([bit]);
            directions[pin] = json!("input");
        }
        json!({"type": kind, "connections": connections, "port_directions": directions})
    }

    fn netlist(cells: &[Value], names: &Value) -> String {
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
        json!({"modules": {"t": {"ports": ports, "cells": cells, "netnames": names}}}).to_string()
    }

    fn path(levels: u32, from: &str, to: &str) -> Path {
        let (from, to) = (from.into(), to.into());
        Path { levels, from, to }
    }

    #[test]
    fn levels_are_counted_from_register_to_register() {
        let names = json!({
            "x": {"bits": [2]},
            "y": {"bits": [9, "0"]},
            "u.state": {"bits": [3]},
            "$auto$9": {"bits": [9]},
            "sum": {"bits": [10, 20]},
            "rdata": {"bits": [15]},
            "other.s_sum": {"bits": [10, 20]},
        });
        let text = netlist(
            &[
                cell("FDRE", &[("C", 1), ("D", 2)], 3),
                cell("LUT2", &[("I0", 3), ("I1", 2)], 4),
                cell("LUT1", &[("I0", 4)], 5),
                cell("MUXF7", &[("I0", 5), ("I1", 4)], 6),
                // entered by DI: a level; along the chain: none
                cell("CARRY4", &[("DI", 6)], 7),
                cell("CARRY4", &[("CI", 7), ("DI", 3)], 8),
                cell("LUT3", &[("I0", 8)], 9),
                cell("FDRE", &[("C", 1), ("D", 9)], 10),
                cell("FDRE", &[("C", 1), ("D", 9)], 20),
                // a clock through a LUT is no data
                cell("LUT6", &[("I0", 9)], 11),
                cell("RAMB36E2", &[("CLKARDCLK", 11), ("DIN", 9)], 12),
                cell("RAMB18E2", &[("DIN", 12)], 13),
                cell("RAM32M16", &[("DIA", 13), ("ADDRA", 6), ("ADDRH", 8)], 14),
                // behind a memory made of LUTs: a level more than the address that is read, whatever that of the write is
                cell("FDRE", &[("C", 1), ("D", 14)], 15),
            ],
            &names,
        );
        let cost = cost(&text, "t", "").unwrap();
        // Two bits of a register are one path; a RAM without a name is called after what enters it.
        let mut ends: Vec<_> = cost
            .paths
            .iter()
            .map(|p| (p.levels, p.to.as_str()))
            .collect();
        ends.sort_unstable();
        assert_eq!(ends, [(3, "no name"), (3, "rdata"), (4, "sum"), (4, "y")]);
        assert!(
            cost.paths
                .iter()
                .all(|p| ["x", "u.state", "no name"].contains(&p.from.as_str()))
        );
        let resources = (cost.lut, cost.ff, cost.bram36, cost.uram, cost.lutram);
        assert_eq!(resources, (4, 4, 1.5, 0, 8));
        // A LUT2 with a LUT3, a LUT1, a LUT6.
        assert_eq!(cost.packed, 3);
        // Three pairs of a LUT2 with a LUT3, of two LUT2, of a LUT1 with a LUT4.
        assert_eq!(packed([1, 3, 1, 1, 0, 0]), 3);
        assert_eq!(packed([0, 1, 2, 0, 1, 0]), 3);
    }

    #[test]
    fn a_path_through_the_block_counts_too() {
        let names = json!({"x": {"bits": [2]}, "y": {"bits": [9, "0"]}});
        let text = netlist(&[cell("LUT1", &[("I0", 2)], 9)], &names);
        let cost = cost(&text, "t", "").unwrap();
        assert_eq!((cost.levels, cost.paths), (1, vec![path(1, "x", "y")]));
    }

    #[test]
    fn a_register_is_called_as_it_is_declared() {
        let net = |bits, line| json!({"bits": bits, "attributes": {"src": format!("in.v:{line}.3-{line}.9")}});
        let names = json!({"a.s": net([9], 2), "a.deep.state": net([9], 1), "q": net([2], 2)});
        let text = netlist(&[cell("LUT1", &[("I0", 2)], 9)], &names);
        let cost = cost(&text, "t", "reg state;\nwire s;\n").unwrap();
        assert_eq!(cost.paths, [path(1, "q", "a.deep.state")]);
    }

    #[test]
    fn a_loop_is_refused() {
        let cells = [
            cell("LUT2", &[("I0", 4), ("I1", 2)], 9),
            cell("LUT1", &[("I0", 9)], 4),
        ];
        let error = cost(&netlist(&cells, &json!({})), "t", "")
            .unwrap_err()
            .to_string();
        assert!(error.contains("loop"), "{error}");
    }

    #[test]
    fn nets_that_meet_again_are_no_loop() {
        let cells = [
            cell("LUT1", &[("I0", 2)], 3),
            cell("LUT2", &[("I0", 3), ("I1", 2)], 4),
            cell("LUT3", &[("I0", 4), ("I1", 3), ("I2", 2)], 9),
        ];
        let cost = cost(&netlist(&cells, &json!({})), "t", "").unwrap();
        assert_eq!(cost.levels, 3);
    }

    #[test]
    fn a_memory_of_flip_flops_is_refused() {
        for (name, refused) in [("u.ram.mem[17]", true), ("u.ram.mem_q", false)] {
            let names = json!({name: {"bits": [3]}});
            let text = netlist(&[cell("FDRE", &[("C", 1), ("D", 2)], 3)], &names);
            let result = cost(&text, "t", "");
            assert_eq!(result.is_err(), refused, "{name}");
        }
    }
}
