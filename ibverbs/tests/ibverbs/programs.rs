//! C programs that use the library as no program of Debian does. Each prints what is not as it should be.

use ferroce_ibverbs::SONAME;
use ferroce_system::packages::{CXX, IBVERBS_DEV, Tool};

use crate::library::{Cards, compile};

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
    let source = format!("tests/ibverbs/{name}.c");
    compile(&source, &[SONAME], &program);
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
fn constants_are_sent() {
    run("constants");
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
