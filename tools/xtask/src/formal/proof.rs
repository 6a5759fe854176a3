//! What a proof is.

use ferroce_hdl::emit::Design;

use super::checker::Checker;

/// An error put into the emitted Verilog, which the proof must find.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bug {
    /// What is wrong then.
    pub(super) what: &'static str,
    /// Text that stands once in the source of the block.
    pub(super) from: &'static str,
    /// What stands there instead.
    pub(super) to: &'static str,
}

/// A proof.
pub(super) struct Proof {
    /// Its name, that of its checker's file.
    pub(super) name: &'static str,
    /// Emits the block.
    pub(super) block: fn() -> Design,
    /// What is checked.
    pub(super) checker: Checker,
    /// Cycles of the induction.
    pub(super) depth: u32,
    /// Steps in which what the checker wants to be reached is reached.
    pub(super) reach: u32,
    /// Each of these makes it fail.
    pub(super) bugs: &'static [Bug],
}
