//! Debian's ping-pong programs, both sides on a card of their own.

use ferroce_system::packages::{CXX, IBVERBS_UTILS, Tool};

use crate::library::Cards;

const TOOLS: [Tool; 2] = [IBVERBS_UTILS, CXX];

/// Runs both sides on golden models.
fn pingpong(program: &str, options: &str, iters: u32) {
    play(Cards::with(&TOOLS), program, options, iters);
}

/// Runs both sides; each must say that it did all.
fn play(cards: Option<Cards>, program: &str, options: &str, iters: u32) {
    let Some(cards) = cards else {
        return;
    };
    for text in cards.both(program, &format!("{options} -n {iters}")) {
        let all = format!("{iters} iters in ");
        assert!(text.lines().any(|line| line.starts_with(&all)), "{text}");
    }
    cards.assert_healthy();
}

#[test]
fn rc() {
    pingpong("ibv_rc_pingpong", "-g 0 -s 3000 -r 16 -c", 20);
}

#[test]
fn rc_over_ipv4_with_events() {
    pingpong("ibv_rc_pingpong", "-g 1 -e -r 16 -c", 20);
}

#[test]
fn uc() {
    pingpong("ibv_uc_pingpong", "-g 0 -r 16", 20);
}

#[test]
fn ud() {
    pingpong("ibv_ud_pingpong", "-g 0 -r 16", 20);
}

#[test]
fn srq() {
    pingpong("ibv_srq_pingpong", "-g 1 -q 4 -r 64", 20);
}

#[test]
fn rc_with_the_newer_interface() {
    pingpong("ibv_rc_pingpong", "-g 1 -N -r 16 -c", 20);
}

#[test]
fn rc_on_engines() {
    let cards = Cards::engines(64, &TOOLS);
    play(cards, "ibv_rc_pingpong", "-g 1 -s 3000 -r 16 -c", 5);
}
