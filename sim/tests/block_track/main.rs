//! What decides on responses and brings placements into order, as Verilog, against the rules in plain Rust.
mod activity;
mod order;
mod random;
mod reference;
mod rig;
mod track;

use ferroce_sim::random::Pauses;

/// Random pauses.
fn uneven() -> Pauses {
    Pauses::new(0.3, 6)
}
