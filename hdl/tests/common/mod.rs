//! What the tests of the emission share: Verilator's lint and Yosys on a design.
#![allow(dead_code)] // not every test binary needs all of it
use std::path::PathBuf;
use std::process::Command;

use ferroce_hdl::emit::Design;

/// A fresh folder for the files of one test, below Cargo's folder for such.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("removes the files of the last run");
    }
    std::fs::create_dir_all(&folder).expect("creates a folder below target/tmp");
    folder
}

/// Writes one file per module and has Verilator and Yosys read them.
pub(crate) fn accepted(test: &str, design: &Design) {
    let folder = folder(test);
    design.write(&folder).expect("writes below target/tmp");
    let top = format!("{}.v", design.top);
    let lint = ["--lint-only", "-Wall", "--top-module", &design.top, &top];
    run(Command::new("verilator").args(lint).current_dir(&folder));
    if !present("yosys") {
        assert!(
            std::env::var_os("CI").is_none(),
            "Yosys is needed where CI is set: install it"
        );
        println!("skipped: Yosys is not installed");
        return;
    }
    let script = format!(
        "read_verilog *.v; hierarchy -check -top {}; proc; check -assert",
        design.top
    );
    run(Command::new("yosys")
        .args(["-q", "-p", &script])
        .current_dir(&folder));
}

fn present(tool: &str) -> bool {
    Command::new(tool).arg("-V").output().is_ok()
}

fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?} does not start: {e}"));
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(
        output.status.success() && !text.contains("%Warning"),
        "{command:?}:\n{text}"
    );
}
