//! Each shell stands in Verilator and Yosys, with stand-ins for the vendor's blocks.
use std::collections::BTreeSet;
use std::fs;

use super::{card, engine, file, has, hollow, log, run, shells, write};

fn command<'a>(readme: &'a str, program: &str) -> Vec<&'a str> {
    let line = readme.lines().find(|line| line.starts_with(program));
    line.unwrap().split(' ').skip(1).collect()
}

#[test]
fn verilator_and_yosys_read_every_shell() {
    if !has("verilator", "--version") || !has("yosys", "-V") {
        return;
    }
    for board in shells() {
        let bundle = hollow(board);
        let folder = tempfile::tempdir().unwrap();
        write(&bundle, folder.path());
        let words = command(file(&bundle, "README.md"), "verilator ");
        let output = run(folder.path(), "verilator", &words);
        assert!(output.status.success(), "{board:?}: {}", log(&output));

        let sources = file(&bundle, "ferroce.f").replace('\n', " ");
        let script = format!(
            "read_verilog stub/vendor.v {sources}; hierarchy -check -top ferroce_{0}; proc; check -assert; \
             select -assert-any t:ferroce_cdc_* ferroce_{0}",
            board.name()
        );
        let output = run(folder.path(), "yosys", &["-q", "-p", &script]);
        assert!(output.status.success(), "{board:?}: {}", log(&output));
    }
}

#[test]
fn a_shell_takes_the_whole_engine() {
    let board = card("u50");
    let (build, modules) = engine(512);
    let bundle = board.bundle(&build, modules).signed("0123456789abcdef");
    let top = file(&bundle, "rtl/ferroce.v");
    assert!(top.contains("localparam build = 32'h01234567;"), "BUILD");
    assert!(top.contains(", commit 0123456789abcdef. SPDX-License-Identifier"));
    let mut names = BTreeSet::new();
    for (path, text) in bundle.files().filter(|(p, _)| p.ends_with(".v")) {
        for line in text.lines().filter(|line| line.starts_with("module ")) {
            let name = line.split([' ', '(', '#']).nth(1).unwrap();
            assert!(names.insert(name), "{path}: module {name} is there twice");
        }
        assert!(text.starts_with("// "), "{path} has no doc line");
    }
    if !has("verilator", "--version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write(&bundle, folder.path());
    let words = command(file(&bundle, "README.md"), "verilator ");
    let output = run(folder.path(), "verilator", &words);
    assert!(output.status.success(), "{}", log(&output));
}

#[test]
fn what_is_left_open_is_seen() {
    if !has("verilator", "--version") {
        return;
    }
    // The lint is no formality: a port less, and it fails.
    let bundle = hollow(card("u50"));
    let folder = tempfile::tempdir().unwrap();
    write(&bundle, folder.path());
    let path = folder.path().join("shell/ferroce_nic_100g.v");
    let text = fs::read_to_string(&path).unwrap();
    let spoilt = text.replacen("        .irq_valid(irq_valid),\n", "", 1);
    assert_ne!(text, spoilt);
    fs::write(&path, spoilt).unwrap();
    let words = command(file(&bundle, "README.md"), "verilator ");
    let output = run(folder.path(), "verilator", &words);
    assert!(!output.status.success());
    assert!(log(&output).contains("irq_valid"), "{}", log(&output));
}
