//! What the macros of `ferroce-kernel` write: the Rust reading of a kernel ([`At`], [`AtMut`], [`Wire`], [`fit`]), and the
//! text that the emission reads ([`text`]).
use crate::emit::KERNEL;

mod number;
mod place;
mod wire;

pub use number::{BitsExt, Fit, Konst, Offset, fit, known, konst, offset};
pub use place::{At, AtMut, GetBlock, GetValue, OpenBlock, OpenValue};
pub use wire::{Clocked, Ticks, Wire, WireChild, WirePort, Wired};

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

/// Names a block, inside its `impl Logic`, beside the kernel.
///
/// `describe!("csr", "Register file.")`, or with a suffix that tells parameterisations apart:
/// `describe!("fifo", format!("w{}_d{}", T::BITS, D), "First-in first-out queue.")`, or with one that needs the
/// block's own data: `describe!("crc", |this| format!("{}", this._lanes), "CRC-32.")`. The module is called
/// `ferroce_<name>_<suffix>`; the doc line is printed above it.
#[macro_export]
macro_rules! describe {
    ($name: expr, $doc: expr $(,)?) => {
        $crate::describe!(@timing this, $name, "", $doc);
    };
    ($name: expr, |$this: ident| $suffix: expr, $doc: expr $(,)?) => {
        $crate::describe!(@timing $this, $name, &$suffix, $doc);
    };
    ($name: expr, $suffix: expr, $doc: expr $(,)?) => {
        $crate::describe!(@timing this, $name, &$suffix, $doc);
    };
    (@timing $this: ident, $name: expr, $suffix: expr, $doc: expr) => {
        fn timing(&self) -> Vec<$crate::prelude::TimingInfo> {
            #[allow(unused_variables)]
            let $this = self;
            $crate::emit::description(
                $name,
                $suffix,
                $doc,
                <Self as $crate::front::Wired>::DOCS,
                <Self as $crate::front::Wired>::SIZES,
            )
        }
    };
}
