//! The scripts for Vivado run with stand-ins for its commands: Tcl is read by Yosys.
use std::fs;
use std::path::Path;

use super::{card, file, has, hollow, log, run, shells, write};

/// Commands of Vivado that the scripts use: each is written down, and answers what the scripts need to go on.
const PRELUDE: &str = r#"
proc call {name args} {
    puts "CALL $name $args"
    switch $name {
        get_files - get_ips - get_runs { return [lindex $args end] }
        get_property {
            switch [lindex $args 0] {
                PROGRESS { return "100%" }
                STATS.WNS - STATS.WHS - STATS.TPWS { return [expr {[lindex $args 0] eq $::late ? -0.010 : 0.010}] }
                default { return "answer" }
            }
        }
        report_bus_skew { return $::skew }
        report_cdc { return $::cdc }
        get_cells { return [expr {[string match $::merged [lindex $args end]] ? "one" : "one two"}] }
        list_property { return "CONFIG.mode_selection CONFIG.other" }
        set_property { if {[lindex $args 0] eq $::refuse} { error "no such property" } }
    }
}
foreach name {create_project create_ip set_property get_ips list_property generate_target add_files get_files current_fileset
    update_compile_order launch_runs wait_on_run get_property get_runs open_run close_design report_utilization
    get_cells report_timing_summary report_cdc report_clock_interaction report_bus_skew report_methodology report_drc report_power} {
    interp alias {} $name {} call $name
}
set late {}
set skew {Slack (MET)}
set cdc {CDC Report}
set merged {}
set refuse {}
"#;

/// What build.tcl calls with these settings, or its error.
fn build(folder: &Path, settings: &str, before: &str) -> Result<Vec<String>, String> {
    let script = format!("{PRELUDE}{before}\nset argv {{{settings}}}\nsource build.tcl\n");
    fs::write(folder.join("run.tcl"), script).unwrap();
    let output = run(folder, "yosys", &["-c", "run.tcl"]);
    let text = log(&output);
    if !output.status.success() || text.contains("ERROR") {
        return Err(text);
    }
    let calls = text.lines().filter_map(|line| line.strip_prefix("CALL "));
    Ok(calls.map(str::to_owned).collect())
}

#[test]
fn the_scripts_make_the_project_of_every_card() {
    if !has("yosys", "-V") {
        return;
    }
    for board in shells() {
        let bundle = hollow(board);
        if !bundle.files().any(|(path, _)| path == "build.tcl") {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        write(&bundle, folder.path());
        let calls = build(folder.path(), "until=impl gt_group=X9Y0~X9Y3 jobs=2", "").unwrap();
        let at = |part: &str| {
            let found = calls.iter().position(|call| call.contains(part));
            found.unwrap_or_else(|| panic!("{board:?}: nothing calls {part}: {calls:#?}"))
        };
        for source in file(&bundle, "ferroce.f").lines() {
            at(source);
        }
        at(&format!("set_property top ferroce_{}", board.name()));
        at("CONFIG.GT_GROUP_SELECT X9Y0~X9Y3");
        at("CONFIG.INCLUDE_RS_FEC 1");
        at("CONFIG.en_bridge_slv true");
        at("CONFIG.select_quad GTY_Quad_227");
        let site = if ["u200", "vcu118"].contains(&board.name()) {
            "X1Y2"
        } else {
            "PCIE4C_X1Y0"
        };
        if board.name() != "u250" {
            at(&format!("CONFIG.pcie_blk_locn {site}"));
        }
        at("CONFIG.PF0_MSIX_CAP_TABLE_SIZE_qdma 01F");
        at("launch_runs impl_1 -jobs 2");
        for (path, _) in bundle.files().filter(|(p, _)| p.ends_with(".xdc")) {
            let added = at(&format!(
                "add_files -fileset constrs_1 -norecurse {}",
                folder.path().join(path).display()
            ));
            if let Some(cell) = path.strip_prefix("constraints/scoped/") {
                let cell = cell.trim_end_matches(".xdc");
                assert!(at(&format!("set_property SCOPED_TO_REF {cell} ")) > added);
                assert!(
                    added > at("constraints/timing.xdc"),
                    "scoped ones come last"
                );
            }
        }
        for report in ["timing", "cdc", "utilization", "bus_skew", "power"] {
            at(&format!("/reports/{report}.rpt"));
        }
    }
}

#[test]
fn the_scripts_say_what_is_wrong() {
    if !has("yosys", "-V") {
        return;
    }
    let u50 = tempfile::tempdir().unwrap();
    write(&hollow(card("u50")), u50.path());
    for (settings, before, part) in [
        ("prat=xcu50", "", "prat=xcu50: no setting"),
        ("until=soon", "", "project, synth, impl or bit"),
        ("gt_group=", "", "gt_group: the sites"),
        (
            "",
            "set refuse CONFIG.mode_selection",
            "CONFIG.mode_selection cannot be Advanced",
        ),
        ("until=impl", "set late STATS.WNS", "not met (setup)"),
        ("until=impl", "set late STATS.WHS", "not met (hold)"),
        ("until=impl", "set late STATS.TPWS", "not met (pulse width)"),
        ("until=impl", "set skew {Slack (VIOLATED)}", "too far apart"),
        (
            "until=impl",
            "set cdc {CDC-1 Critical 1-bit unknown CDC circuitry}",
            "not safe",
        ),
        (
            "until=synth",
            "set merged {*/wr_gray_reg*}",
            "1 registers wr_gray, 2 registers wr_meta",
        ),
    ] {
        let error = build(u50.path(), settings, before).unwrap_err();
        assert!(error.contains(part), "{settings}: {error}");
    }
    // Everything in between runs.
    build(u50.path(), "until=project", "").unwrap();
}
