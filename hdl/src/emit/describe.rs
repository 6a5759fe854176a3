//! The name, the doc line and the constants of a block.
//!
//! rust-hdl has no place for a module name. `Logic::timing` is a hook its simulator and generator never call, so
//! `describe!` answers it with entries that carry the description.
use rust_hdl_core::prelude::{Logic, TimingInfo};

const MARK: &str = "describe!";

/// Names a block, inside its `impl Logic`, beside the kernel.
///
/// `describe!("csr", "Register file.")`, or with a suffix that tells parameterisations apart:
/// `describe!("fifo", format!("w{}_d{}", T::BITS, D), "First-in first-out queue.")`, or with one that needs the
/// block's own data: `describe!("crc", |this| format!("{}", this._lanes), "CRC-32.")`. The module is called
/// `<name>_<suffix>`; the doc line is printed above it.
///
/// Integer constants and const parameters that the kernel uses follow the doc line:
/// `describe!("csr", "Register file."; MAGIC, abi::regs::DOORBELL, W)`. They take the width of what they meet, as
/// literals do.
#[macro_export]
macro_rules! describe {
    ($name: expr, $doc: expr $(; $($constant: path),+)? $(,)?) => {
        $crate::describe!(@timing this, $name, "", $doc, [$($($constant),+)?]);
    };
    ($name: expr, |$this: ident| $suffix: expr, $doc: expr $(; $($constant: path),+)? $(,)?) => {
        $crate::describe!(@timing $this, $name, &$suffix, $doc, [$($($constant),+)?]);
    };
    ($name: expr, $suffix: expr, $doc: expr $(; $($constant: path),+)? $(,)?) => {
        $crate::describe!(@timing this, $name, &$suffix, $doc, [$($($constant),+)?]);
    };
    (@timing $this: ident, $name: expr, $suffix: expr, $doc: expr, [$($constant: path),*]) => {
        fn timing(&self) -> Vec<$crate::prelude::TimingInfo> {
            #[allow(unused_variables)]
            let $this = self;
            $crate::emit::description(
                $name,
                $suffix,
                $doc,
                &[$((stringify!($constant), $constant as u64)),*],
            )
        }
    };
}

/// What `describe!` expands to.
pub fn description(
    name: &str,
    suffix: &str,
    doc: &str,
    constants: &[(&str, u64)],
) -> Vec<TimingInfo> {
    let name = if suffix.is_empty() {
        name.into()
    } else {
        format!("{name}_{suffix}")
    };
    let entry = |name: String, text: String| TimingInfo {
        name,
        clock: MARK.into(),
        inputs: vec![text],
        outputs: vec![],
    };
    let constants = constants.iter().map(|(path, value)| {
        let path: String = path.split_whitespace().collect();
        entry(path.replace("::", "$"), value.to_string())
    });
    [entry(name, doc.into())]
        .into_iter()
        .chain(constants)
        .collect()
}

/// What a block says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) name: String,
    pub(crate) doc: String,
    /// Path as rust-hdl writes it, and value.
    pub(crate) constants: Vec<(String, u64)>,
}

impl Description {
    pub(crate) fn of(block: &dyn Logic) -> Option<Self> {
        let mut entries = block.timing().into_iter().filter(|info| info.clock == MARK);
        let first = entries.next()?;
        let constants = entries
            .filter_map(|info| Some((info.name, info.inputs.concat().parse().ok()?)))
            .collect();
        Some(Self {
            name: first.name,
            doc: first.inputs.concat(),
            constants,
        })
    }
}
