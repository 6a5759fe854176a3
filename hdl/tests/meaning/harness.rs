//! Runs the vectors: in Rust while blocks are added, in Verilator all at once.
use std::fmt::Write;
use std::process::Command;

use ferroce_hdl::emit::{self, Design, Direction};
use ferroce_hdl::prelude::*;

use crate::common;

/// Steps at the start with reset on: before it registers have a value in Rust and none in Verilog.
pub(crate) const UNDER_RESET: usize = 4;

/// A block under test.
pub(crate) trait Case: Block {
    /// Sets the inputs of step number `step`.
    fn drive(&mut self, step: usize, random: &mut Random);
}

/// Random values that meet corners often.
pub(crate) struct Random(fastrand::Rng);

impl Random {
    /// Zero, all ones, one bit, a small number or anything.
    pub(crate) fn bits<const N: usize>(&mut self) -> Bits<N> {
        let kind = self.0.u8(0..8);
        let one = self.0.usize(0..N);
        let mut value = Bits::<N>::default();
        for bit in 0..N {
            let set = match kind {
                0 => false,
                1 => true,
                2 => bit == one,
                3 => bit < 3 && self.0.bool(),
                _ => self.0.bool(),
            };
            value = value.replace_bit(bit, set);
        }
        value
    }

    pub(crate) fn bit(&mut self) -> bool {
        self.0.bool()
    }

    /// A number below `bound`.
    pub(crate) fn below<const N: usize>(&mut self, bound: u64) -> Bits<N> {
        self.0.u64(0..bound).into()
    }
}

/// All cases with the values of their ports, vector by vector.
pub(crate) struct Bench {
    seed: u64,
    vectors: usize,
    random: Random,
    cases: Vec<(Design, Vec<Vec<String>>)>,
}

impl Bench {
    pub(crate) fn from_environment() -> Self {
        let number = |name: &str, default: u64| {
            std::env::var(name).map_or(default, |text| {
                text.parse()
                    .unwrap_or_else(|_| panic!("{name}: a number, not `{text}`"))
            })
        };
        let seed = number("FERROCE_SEED", 1);
        let vectors = number("FERROCE_VECTORS", 1000) as usize;
        Self {
            seed,
            vectors,
            random: Random(fastrand::Rng::with_seed(seed)),
            cases: vec![],
        }
    }

    /// Emits the block and runs it in Rust.
    pub(crate) fn add(&mut self, mut block: impl Case) {
        let design = emit::verilog(&block).unwrap_or_else(|errors| {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            panic!("\n{}", errors.join("\n"))
        });
        block.connect_all();
        let mut rows = vec![];
        for step in 0..self.vectors {
            block.drive(step, &mut self.random);
            assert!(
                simulate(&mut block, 100),
                "{} does not settle in Rust",
                design.top
            );
            let mut ports = Ports {
                depth: 0,
                values: vec![],
            };
            block.accept("top", &mut ports);
            rows.push(ports.values);
        }
        self.cases.push((design, rows));
    }

    /// Runs the same vectors in Verilator.
    pub(crate) fn compare(self) {
        let folder = common::folder("meaning");
        let write = |name: &str, text: String| {
            std::fs::write(folder.join(name), text).expect("writes into target/tmp")
        };
        let mut modules = std::collections::BTreeMap::new();
        for module in self.cases.iter().flat_map(|(design, _)| &design.modules) {
            let known = modules.insert(&module.name, &module.text);
            assert!(
                known.is_none_or(|text| *text == module.text),
                "two modules are called {}",
                module.name
            );
        }
        write(
            "all.v",
            modules
                .into_values()
                .cloned()
                .collect::<Vec<_>>()
                .join("\n")
                + &self.wrapper(),
        );
        write("main.cpp", self.main());
        write("vectors.txt", self.vectors_text());
        let flags = [
            "--cc",
            "--exe",
            "--build",
            "-Wall",
            "-Wno-DECLFILENAME",
            "--top-module",
            "all",
        ];
        let make = "OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0";
        let cxx = ["-MAKEFLAGS", make, "all.v", "main.cpp"];
        let build = Command::new("verilator")
            .args(flags)
            .args(cxx)
            .current_dir(&folder)
            .output();
        let build = build.expect("Verilator is installed");
        let log = [build.stdout, build.stderr].concat();
        assert!(build.status.success(), "{}", String::from_utf8_lossy(&log));
        let run = Command::new(folder.join("obj_dir/Vall"))
            .current_dir(&folder)
            .output()
            .expect("the model was built");
        let text = String::from_utf8_lossy(&run.stdout);
        assert!(
            run.status.success(),
            "repeat with FERROCE_SEED={}\n{text}",
            self.seed
        );
        println!("{text}");
    }

    /// One instance of every case, its ports led out.
    fn wrapper(&self) -> String {
        let (mut ports, mut body) = (vec![], String::new());
        for (index, (design, _)) in self.cases.iter().enumerate() {
            let mut pins = vec![];
            for port in &design.ports {
                let way = if port.direction == Direction::In {
                    "input"
                } else {
                    "output"
                };
                let name = format!("c{index}_{}", port.name);
                ports.push(format!("    {way} wire [{}:0] {name}", port.width - 1));
                pins.push(format!("        .{}({name})", port.name));
            }
            writeln!(
                body,
                "    {} u_c{index} (\n{}\n    );",
                design.top,
                pins.join(",\n")
            )
            .expect("a string");
        }
        format!(
            "\nmodule all (\n{}\n);\n{body}endmodule\n",
            ports.join(",\n")
        )
    }

    /// Reads a row, sets all inputs, evaluates, compares all outputs.
    fn main(&self) -> String {
        let (mut inputs, mut outputs) = (String::new(), String::new());
        for (index, (design, _)) in self.cases.iter().enumerate() {
            for port in &design.ports {
                let name = format!("c{index}_{}", port.name);
                match port.direction {
                    Direction::In => writeln!(inputs, "        set(top->{name}, next(vectors));"),
                    Direction::Out => {
                        writeln!(
                            outputs,
                            "        same(\"{}.{}\", row, top->{name}, next(vectors));",
                            design.top, port.path
                        )
                    }
                }
                .expect("a string");
            }
        }
        include_str!("main.cpp")
            .replace("@UNDER_RESET@", &UNDER_RESET.to_string())
            .replace("@INPUTS@\n", &inputs)
            .replace("@OUTPUTS@\n", &outputs)
    }

    /// A line per vector: all inputs of all cases, then all outputs.
    fn vectors_text(&self) -> String {
        let mut text = String::new();
        for row in 0..self.vectors {
            for wanted in [Direction::In, Direction::Out] {
                for (design, rows) in &self.cases {
                    let values = design
                        .ports
                        .iter()
                        .zip(&rows[row])
                        .filter(|(port, _)| port.direction == wanted);
                    values.for_each(|(_, value)| {
                        text.push_str(value);
                        text.push(' ');
                    });
                }
            }
            text.push('\n');
        }
        text
    }
}

/// The values of a block's own ports, in hexadecimal.
struct Ports {
    depth: usize,
    values: Vec<String>,
}

impl Probe for Ports {
    fn visit_start_scope(&mut self, _: &str, _: &dyn Block) {
        self.depth += 1;
    }

    fn visit_end_scope(&mut self, _: &str, _: &dyn Block) {
        self.depth -= 1;
    }

    fn visit_atom(&mut self, _: &str, atom: &dyn Atom) {
        if self.depth == 1 && atom.kind().is_parameter() {
            let literal = format!("{:x}", atom.verilog());
            self.values
                .push(literal.split_once("'h").expect("<bits>'h<hex>").1.into());
        }
    }
}
