//! Every port of a top has its constraints, and every constraint its port.
use std::collections::{BTreeMap, BTreeSet};

use super::{card, file, hollow, shells};
use ferroce::emit::{Board, Bundle};

/// Ports of the top, bit by bit as constraints name them, and whether it is an output.
fn ports(bundle: &Bundle, board: Board) -> BTreeMap<String, bool> {
    let name = format!("ferroce_{}", board.name());
    let text = file(bundle, &format!("shell/{name}.v"));
    let list = text.split_once(&format!("module {name} (\n")).unwrap().1;
    let list = list.split_once(");\n").unwrap().0;
    let mut ports = BTreeMap::new();
    for line in list.lines().filter(|line| !line.is_empty()) {
        let words: Vec<_> = line
            .trim()
            .trim_end_matches(',')
            .split_whitespace()
            .collect();
        let (output, port) = (words[0] == "output", *words.last().unwrap());
        assert!(["input", "output", "inout"].contains(&words[0]), "{line}");
        match words[2].strip_prefix('[') {
            None => assert!(ports.insert(port.to_owned(), output).is_none()),
            Some(range) => {
                let top: usize = range.split(':').next().unwrap().parse().unwrap();
                for bit in 0..=top {
                    ports.insert(format!("{port}[{bit}]"), output);
                }
            }
        }
    }
    ports
}

/// Lines of commands: not comments.
fn commands(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty())
}

/// The port that a constraint names.
fn named(line: &str) -> Option<String> {
    let rest = line.split_once("[get_ports ")?.1;
    let end = rest.rfind(']').unwrap();
    Some(rest[..end].trim_matches(['{', '}']).to_owned())
}

const LPF: &str = "constraints/versa_ecp5.lpf";

/// What is wrong with the constraints of a board for open tools: LPF.
fn faults_lpf(bundle: &Bundle, board: Board) -> Vec<String> {
    let ports = ports(bundle, board);
    let mut faults = vec![];
    let mut sites = BTreeMap::new();
    let mut kinds = BTreeSet::new();
    let mut clocks = BTreeSet::new();
    for line in commands(file(bundle, LPF)) {
        let words: Vec<_> = line.split(['"', ' ', ';']).collect();
        let quoted: Vec<_> = line.split('"').skip(1).step_by(2).collect();
        match (words[0], &quoted[..]) {
            ("LOCATE", [port, site]) => {
                if let Some(other) = sites.insert((*site).to_owned(), (*port).to_owned()) {
                    faults.push(format!("pin {site} is {other} and {port}"));
                }
            }
            ("IOBUF", [port]) => _ = kinds.insert((*port).to_owned()),
            ("FREQUENCY", [port]) => _ = clocks.insert((*port).to_owned()),
            ("BLOCK" | "SYSCONFIG", []) => {}
            _ => faults.push(line.to_owned()),
        }
    }
    let placed: BTreeSet<_> = sites.into_values().collect();
    for port in placed.iter().chain(&kinds).chain(&clocks) {
        if !ports.contains_key(port) {
            faults.push(format!("{port} is no port"));
        }
    }
    for port in ports.keys() {
        let clock = !port.contains("tx") && port.contains("clk");
        let want = [
            (placed.contains(port), "pin"),
            (kinds.contains(port), "I/O type"),
            (!clock || clocks.contains(port), "frequency"),
        ];
        let missing = want.iter().filter(|(there, _)| !there);
        faults.extend(missing.map(|(_, what)| format!("{port} has no {what}")));
    }
    faults
}

/// What is wrong with the constraints of a board.
fn faults(bundle: &Bundle, board: Board) -> Vec<String> {
    if matches!(board, Board::VersaEcp5) {
        return faults_lpf(bundle, board);
    }
    let ports = ports(bundle, board);
    let mut faults = vec![];
    let mut sites = BTreeMap::new();
    let mut standards = BTreeSet::new();
    let mut timed = BTreeSet::new();
    for name in ["clocks", "pins", "config", "timing"] {
        for line in commands(file(bundle, &format!("constraints/{name}.xdc"))) {
            let Some(port) = named(line) else {
                if !line.ends_with("[current_design]")
                    && !line.starts_with("set_operating_conditions ")
                {
                    faults.push(format!("{name}: {line}"));
                }
                continue;
            };
            if !ports.contains_key(&port) {
                faults.push(format!("{name} names {port}, which is no port"));
            }
            let words: Vec<_> = line.split([' ', '{', '}']).collect();
            let after = |word: &str| words.iter().position(|w| *w == word).map(|i| words[i + 1]);
            if let Some(site) = after("PACKAGE_PIN")
                && let Some(other) = sites.insert(site.to_owned(), port.clone())
            {
                faults.push(format!("pin {site} is {other} and {port}"));
            }
            if after("IOSTANDARD").is_some() {
                standards.insert(port.clone());
            }
            let output = ports.get(&port).copied().unwrap_or_default();
            let delay = if output {
                "set_output_delay"
            } else {
                "set_input_delay"
            };
            if words[0] == "create_clock" || words[0] == delay {
                timed.insert(port);
            }
        }
    }
    let placed: BTreeSet<_> = sites.into_values().collect();
    for port in ports.keys() {
        let lane = port.contains("_rx_") || port.contains("_tx_");
        let clock = port.contains("refclk_");
        let want = [
            (placed.contains(port), "pin"),
            (lane || clock || standards.contains(port), "I/O standard"),
            (
                lane || port.ends_with("refclk_n") || timed.contains(port),
                "timing",
            ),
        ];
        let missing = want.iter().filter(|(there, _)| !there);
        faults.extend(missing.map(|(_, what)| format!("{port} has no {what}")));
    }
    faults
}

#[test]
fn every_port_has_its_constraints_and_every_constraint_its_port() {
    for board in shells() {
        let bundle = hollow(board);
        assert_eq!(faults(&bundle, board), [""; 0], "{board:?}");
        assert!(ports(&bundle, board).len() > 20, "{board:?}");
        let hbm = ["u50", "u55c", "u280"].contains(&board.name());
        let top = file(&bundle, &format!("shell/ferroce_{}.v", board.name()));
        assert_eq!(top.contains("assign hbm_cattrip = 1'b0;"), hbm, "{board:?}");
    }
}

#[test]
fn a_board_in_a_folder_of_ones_own_has_all_that_those_of_the_project_have() {
    let u50 = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../constraints/u50/board.toml"
    );
    let text = std::fs::read_to_string(u50).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("board.toml");
    std::fs::write(&path, text.replace("name = \"u50\"", "name = \"mine\"")).unwrap();
    let board = Board::find(folder.path().to_str().unwrap()).unwrap();
    let bundle = hollow(board);
    assert_eq!(faults(&bundle, board), [""; 0]);
    let paths = |bundle: &Bundle| -> BTreeSet<_> {
        let paths = bundle
            .files()
            .map(|(path, _)| path.replace("_u50", "_mine"));
        paths.collect()
    };
    assert_eq!(paths(&bundle), paths(&hollow(card("u50"))));
    std::fs::write(&path, "name = \"mine\"\n").unwrap();
    let why = Board::find(folder.path().to_str().unwrap()).unwrap_err();
    let why = why.to_string();
    assert!(why.contains("board.toml: ") && why.contains("missing field"));
    let why = Board::find("u51").unwrap_err().to_string();
    assert!(why.contains("u50") && why.contains("or a folder"), "{why}");
}

/// What is wrong when the first `from` of a file is `to`.
fn spoilt(board: Board, path: &str, from: &str, to: &str) -> String {
    let mut spoilt = Bundle::default();
    for (p, text) in hollow(board).files() {
        let new = match p == path {
            true => text.replacen(from, to, 1),
            false => text.to_owned(),
        };
        assert!(p != path || new != text, "{from} is not in {path}");
        spoilt.add(p, new);
    }
    faults(&spoilt, board).join("; ")
}

#[test]
fn a_port_without_constraints_and_a_constraint_without_port_are_found() {
    let pins = "constraints/pins.xdc";
    for (path, from, to, part) in [
        (pins, "PACKAGE_PIN J18 ", "", "hbm_cattrip has no pin"),
        (
            pins,
            " IOSTANDARD LVCMOS18 PULLDOWN",
            " PULLDOWN",
            "hbm_cattrip has no I/O standard",
        ),
        (
            pins,
            "get_ports led_link",
            "get_ports led_lnk",
            "led_lnk, which is no port",
        ),
        (pins, "PACKAGE_PIN AL1 ", "PACKAGE_PIN AL2 ", "pin AL2 is "),
        (
            "constraints/timing.xdc",
            "set_output_delay 0 [get_ports led_fault]",
            "",
            "led_fault has no timing",
        ),
        (
            "constraints/clocks.xdc",
            "qsfp_refclk_p",
            "qsfp_refclk",
            "qsfp_refclk, which is no port",
        ),
        (
            "shell/ferroce_u50.v",
            "output wire        led_link,\n",
            "",
            "led_link, which is no port",
        ),
    ] {
        let found = spoilt(card("u50"), path, from, to);
        assert!(found.contains(part), "{from}: {found}");
    }
    for (path, from, to, part) in [
        (
            LPF,
            "LOCATE COMP \"rst_n\" SITE \"T1\";",
            "",
            "rst_n has no pin",
        ),
        (
            LPF,
            "IOBUF PORT \"led[3]\" IO_TYPE=LVCMOS25;",
            "",
            "led[3] has no I/O type",
        ),
        (LPF, "SITE \"U20\"", "SITE \"T20\"", "pin T20 is "),
        (
            LPF,
            "IOBUF PORT \"uart_rx\"",
            "IOBUF PORT \"uart_r\"",
            "uart_r is no port",
        ),
        (
            LPF,
            "eth0_rx_clk",
            "eth0_rx_ctl",
            "eth0_rx_clk has no frequency",
        ),
    ] {
        let found = spoilt(Board::VersaEcp5, path, from, to);
        assert!(found.contains(part), "{from}: {found}");
    }
}

#[test]
fn the_constraints_of_a_cell_name_its_ports_and_registers() {
    let bundle = hollow(card("u50"));
    let mut cells = 0;
    for (path, text) in bundle.files() {
        let Some(cell) = path.strip_prefix("constraints/scoped/") else {
            continue;
        };
        cells += 1;
        let cell = cell.trim_end_matches(".xdc");
        let verilog = file(&bundle, &format!("shell/{cell}.v"));
        let mut crossings = 0;
        for line in commands(text) {
            for part in line.split("[get_").skip(1) {
                let inner = part.split([']', '[']).next().unwrap();
                let (what, name) = inner.rsplit_once([' ', '{']).unwrap();
                let name = name.trim_matches(['{', '}']);
                let there = match what.split(' ').next().unwrap() {
                    "ports" => {
                        verilog.contains(&format!("wire             {name},"))
                            || verilog.contains(&format!(" {name},\n"))
                    }
                    "cells" | "pins" => {
                        crossings += 1;
                        let register = name.strip_suffix("_reg").unwrap();
                        verilog.contains(&format!(" {register} <= "))
                            || verilog.contains(&format!(" {register}  <= "))
                            || verilog.contains(&format!(" {register}   <= "))
                    }
                    "clocks" | "property" => true,
                    other => panic!("{path}: get_{other}"),
                };
                assert!(there, "{path}: {line}: {name}");
            }
        }
        assert!(crossings > 0, "{path}");
        assert!(verilog.contains("ASYNC_REG"), "{cell}");
    }
    assert_eq!(cells, 4);
}

#[test]
fn fusesoc_gets_every_constraint() {
    for board in shells() {
        let bundle = hollow(board);
        let core = file(&bundle, "ferroce.core");
        let paths = bundle.files().map(|(path, _)| path);
        for path in paths.filter(|path| path.starts_with("constraints/")) {
            assert!(core.contains(&format!(" - {path}")), "{path}:\n{core}");
        }
        // Edalize hands nextpnr one file.
        assert!(core.matches(".lpf").count() <= 1, "{core}");
    }
}
