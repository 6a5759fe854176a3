//! C programs that use the library as no program of Debian does. Each prints what is not as it should be.

use std::process::Command;

use ferroce_ibverbs::SONAME;
use ferroce_system::packages::{CXX, IBVERBS_DEV, Tool};

use crate::folder::folder;
use crate::library::Cards;

const PACKAGES: &[Tool] = &[IBVERBS_DEV, CXX];

/// Compiles a program of this folder and runs it on a card.
fn run(name: &str) {
    if let Some(cards) = Cards::with(PACKAGES) {
        run_on(cards, name);
    }
}

fn run_on(cards: Cards, name: &str) {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join(name);
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ibverbs");
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Werror", "-o"]).arg(&program);
    cc.arg(format!("{sources}/{name}.c"));
    cc.arg("-L").arg(folder()).arg(format!("-l:{SONAME}"));
    let compiled = cc.output().unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let text = cards.run(program.to_str().unwrap(), "");
    assert_eq!(text, "");
    cards.assert_healthy();
}

#[test]
fn garbage_is_refused() {
    run("misuse");
}

#[test]
fn extended_objects_work() {
    run("extended");
}

#[test]
fn memory_windows_come_and_go() {
    run("windows");
}

#[test]
fn events_are_reported() {
    run("events");
}

#[test]
fn threads_share_a_channel() {
    run("channels");
}

#[test]
fn states_of_the_card_are_reported_and_left() {
    run("states");
}

#[test]
fn what_the_device_promises_can_be_had() {
    run("limits");
}

#[test]
fn a_list_rings_one_doorbell() {
    let Some((cards, doorbells)) = Cards::rung(PACKAGES) else {
        return;
    };
    run_on(cards, "list");
    assert_eq!(*doorbells.lock().unwrap(), [4]);
}
