//! The program in C that is written from the host contract alone, against cards in processes of their own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::Served;

/// A path below the root of the repository.
fn root(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

/// Compiles the program, without a warning.
fn compile(to: &Path) {
    let status = Command::new("gcc")
        .args([
            "-std=c11",
            "-O1",
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Werror",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
            "-I",
        ])
        .arg(root("driver/include"))
        .arg(root("driver/examples/c/write.c"))
        .arg("-o")
        .arg(to)
        .status();
    assert!(status.expect("gcc is installed with g++").success());
}

fn run(program: &Path, socket: &Path) -> Output {
    Command::new(program).arg(socket).output().unwrap()
}

#[test]
fn a_program_in_c_brings_the_card_up_and_writes() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("write");
    compile(&program);
    for dut in ["model", "rtl512"] {
        let card = Served::start(folder.path(), dut, dut, "none");
        // A second run finds a card that a client left in use.
        for _ in 0..2 {
            let output = run(&program, &card.socket);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{dut}: {error}");
            assert!(text.contains("3000 bytes written"), "{dut}: {text}");
            assert!(
                text.contains("4 packets sent, 1 acknowledged"),
                "{dut}: {text}"
            );
        }
        assert!(card.end().0.success());
    }
}

#[test]
fn the_program_in_c_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("write");
    compile(&program);
    let output = run(&program, &folder.path().join("none"));
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        text.contains("no card at") && text.lines().count() == 1,
        "{text}"
    );
}

#[test]
fn the_header_is_one_for_cpp_too() {
    let status = Command::new("g++")
        .args([
            "-std=c++11",
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Werror",
            "-fsyntax-only",
            "-x",
            "c++",
        ])
        .arg(root("driver/include/ferroce_abi.h"))
        .args(["-include", "cstddef"])
        .status();
    assert!(status.unwrap().success());
}
