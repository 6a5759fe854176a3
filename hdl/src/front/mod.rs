//! What the macros of `ferroce-kernel` write: the Rust reading of a kernel ([`At`], [`AtMut`], [`Wire`], [`fit`]), and the
//! text that the emission reads ([`text`]).
mod number;
mod place;
mod wire;

pub use number::{BitsExt, Fit, Konst, Offset, fit, known, konst, offset};
pub use place::{At, AtMut, GetBlock, GetValue, OpenBlock, OpenValue};
pub use wire::{Clocked, Ticks, Wire, WireChild, WirePort, Wired};

/// First word of the text that stands for a kernel.
pub(crate) const KERNEL: &str = "(kernel ";

/// What `#[kernel]` and `#[kernel_fn]` hand to the emission: the body, the constants it names, the functions it calls.
pub fn text(
    file: &str,
    body: &str,
    constants: &[(&str, u64)],
    functions: &[(&str, String)],
) -> String {
    let constants: Vec<_> = constants
        .iter()
        .map(|(name, value)| format!("(const {name} {value})"))
        .collect();
    let functions: Vec<_> = functions
        .iter()
        .map(|(name, text)| format!("(fn {name} {text})"))
        .collect();
    format!(
        "{KERNEL}\"{file}\" {} {} {body})",
        constants.join(" "),
        functions.join(" ")
    )
}
