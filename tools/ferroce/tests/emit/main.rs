//! `cargo xtask emit` as a user runs it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn emit(words: &[&str], out: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ferroce"))
        .arg("emit")
        .args(words)
        .arg("--out")
        .arg(out)
        .output()
        .unwrap()
}

fn read(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            let below = read(&entry.path()).into_iter();
            files.extend(below.map(|(path, text)| (format!("{name}/{path}"), text)));
        } else {
            files.insert(name, fs::read_to_string(entry.path()).unwrap());
        }
    }
    files
}

#[test]
fn the_files_are_complete_and_the_same_from_run_to_run() {
    let dir = tempfile::tempdir().unwrap();
    let outs = ["a", "b"].map(|name| dir.path().join(name));
    for out in &outs {
        let output = emit(&["--board", "generic"], out);
        assert!(output.status.success(), "{output:?}");
    }
    let files = read(&outs[0]);
    assert!(files == read(&outs[1]), "the runs differ");

    let modules: Vec<_> = files["ferroce.f"].lines().collect();
    let verilog = files.keys().filter(|path| path.starts_with("rtl/"));
    let mut listed = modules.clone();
    listed.sort_unstable();
    assert_eq!(
        listed,
        verilog.collect::<Vec<_>>(),
        "files in the list and files"
    );
    assert_eq!(*modules.last().unwrap(), "rtl/ferroce.v");
    for path in modules {
        let text = &files[path];
        assert!(text.starts_with("// Ferroce "), "{path} has no head");
        let name = path.trim_start_matches("rtl/").trim_end_matches(".v");
        let module = text.lines().nth(4).unwrap();
        // Parameters follow, or ports.
        assert_eq!(
            module
                .trim_end_matches("();")
                .trim_end_matches(['(', '#', ' ']),
            format!("module {name}")
        );
        assert_eq!(text.matches("\nmodule ").count(), 1, "{path}");
        assert!(
            files["ferroce.core"].contains(&format!("- {path}\n")),
            "{path}"
        );
    }
    let top = &files["rtl/ferroce.v"];
    for bus in ["s_axis_rx", "m_axis_tx", "s_axil", "m_axi"] {
        assert!(top.contains(&format!(" wire {bus}_")) || top.contains(&format!("] {bus}_")));
        let associated = top.split_once("ASSOCIATED_BUSIF ").unwrap().1;
        let associated = associated.split_once(',').unwrap().0;
        assert!(associated.split(':').any(|b| b == bus), "{bus}");
    }
    assert_eq!(top.matches("X_INTERFACE_INFO").count(), 2);
    let ports = Ports::of(top, &files["README.md"]);
    assert_eq!(ports.missing(), [""; 0], "the table of ports lacks these");
    lint(&outs[0], &files["README.md"]);
}

/// Ports of a top, and the names in a README's table of them, where `*` stands for any end.
struct Ports<'a> {
    ports: Vec<&'a str>,
    table: Vec<&'a str>,
}

impl<'a> Ports<'a> {
    fn of(top: &'a str, readme: &'a str) -> Self {
        let list = top.split_once("\nmodule ferroce").unwrap().1;
        let lines = list.split_once(");\n").unwrap().0.lines().map(str::trim);
        let lines = lines.filter(|l| l.starts_with("input ") || l.starts_with("output "));
        let ports = lines.map(|l| l.rsplit(' ').next().unwrap().trim_end_matches(','));
        let section = readme.split_once("\n## Ports\n").unwrap().1;
        let section = section.split_once("\n## ").unwrap().0;
        let rows = section.lines().filter(|l| l.starts_with("| `"));
        let cells = rows.map(|row| row.split('|').nth(1).unwrap());
        Self {
            ports: ports.collect(),
            table: cells
                .flat_map(|cell| cell.split('`').skip(1).step_by(2))
                .collect(),
        }
    }

    /// Ports that the table leaves out, and names of it that no port has.
    fn missing(&self) -> Vec<&'a str> {
        let named = |port: &str, name: &str| match name.strip_suffix('*') {
            Some(head) => port.starts_with(head),
            None => port == name,
        };
        let ports = self.ports.iter();
        let unnamed = ports.filter(|port| !self.table.iter().any(|name| named(port, name)));
        let table = self.table.iter();
        let vain = table.filter(|name| !self.ports.iter().any(|port| named(port, name)));
        unnamed.chain(vain).copied().collect()
    }
}

#[test]
fn a_port_that_the_table_lacks_is_found() {
    let top = "\nmodule ferroce (\n    input  wire clk,\n    output wire [7:0] a_b,\n    output wire c\n);\n";
    let readme = "\n## Ports\n\n| ports | what |\n| `clk`, `a_*` | x |\n| `d` | y |\n\n## Next\n";
    let ports = Ports::of(top, readme);
    assert_eq!(ports.ports, ["clk", "a_b", "c"]);
    assert_eq!(ports.missing(), ["c", "d"]);
}

/// Runs a command that the head of the bench names; what it printed, if the simulator is there.
fn simulate(folder: &Path, simulator: &str) -> Option<String> {
    if Command::new(simulator).arg("-V").output().is_err() {
        assert!(
            std::env::var_os("CI").is_none(),
            "{simulator} is needed where CI is set"
        );
        println!("skipped: {simulator} is not installed");
        return None;
    }
    let bench = fs::read_to_string(folder.join("examples/bench.v")).unwrap();
    let head = format!("//   $ {simulator} ");
    let line = bench.lines().find(|line| line.starts_with(&head));
    let output = Command::new("sh")
        .args(["-c", line.unwrap().trim_start_matches("//   $ ")])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a customer runs first, as the head of the bench says it.
fn first_packet(width: &str) {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    assert!(emit(&["--width", width], &out).status.success());
    for simulator in ["iverilog", "verilator"] {
        let Some(text) = simulate(&out, simulator) else {
            continue;
        };
        let frames: Vec<_> = text.lines().filter(|l| l.starts_with("frame: ")).collect();
        assert_eq!(frames.len(), 2, "{simulator}: {text}");
        // To the station 02:00:00:00:00:02, IPv4; the BTH of a WRITE ONLY, then of an acknowledge.
        let opcodes = frames.iter().map(|frame| {
            assert!(frame.starts_with("frame: 02 00 00 00 00 02 "), "{frame}");
            frame.split(' ').nth(1 + 42).unwrap()
        });
        assert_eq!(opcodes.collect::<Vec<_>>(), ["0a", "11"], "{simulator}");
        assert!(
            text.contains("PASSED: 128 bytes written"),
            "{simulator}: {text}"
        );
    }
}

#[test]
fn the_bench_sends_a_first_packet() {
    first_packet("64");
}

#[test]
#[ignore = "compiles the engine of 512 bits once more"]
fn the_bench_sends_a_first_packet_of_a_wide_engine() {
    first_packet("512");
}

/// Runs the first command of the README.
fn lint(folder: &Path, readme: &str) {
    if Command::new("verilator").arg("--version").output().is_err() {
        assert!(
            std::env::var_os("CI").is_none(),
            "Verilator is needed where CI is set"
        );
        println!("skipped the lint: Verilator is not installed");
        return;
    }
    let line = readme.lines().find(|line| line.starts_with("verilator "));
    let output = Command::new("sh")
        .args(["-c", line.unwrap()])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn mistakes_are_refused_in_one_line_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    for (words, part) in [
        (["--qps", "100"], "a power of two from 16 to 16384"),
        (["--mrs", "131072"], "64 to 65536"),
        (["--width", "128"], "512 or 64"),
        (["--board", "u9"], "generic"),
        (
            ["--board=u50", "--width=64"],
            "the shell of u50 has a data path of 512 bits",
        ),
        (
            ["--board=versa_ecp5", "--width=512"],
            "versa_ecp5 has a data path of 64 bits",
        ),
    ] {
        let output = emit(&words, &out);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let line = String::from_utf8(output.stderr).unwrap();
        assert!(line.contains(part) && line.lines().count() == 1, "{line}");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }
    fs::write(&out, "mine").unwrap();
    assert_eq!(emit(&[], &out).status.code(), Some(2));
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
}
