//! The name and the doc line of a block.
//!
//! rust-hdl has no place for a module name. `Logic::timing` is a hook its simulator and generator never call, so
//! `describe!` answers it with one entry that carries the description.
use rust_hdl_core::prelude::{Logic, TimingInfo};

const MARK: &str = "describe!";

/// Names a block, inside its `impl Logic`, beside the kernel.
///
/// `describe!("csr", "Register file.")`, or with a suffix that tells parameterisations apart:
/// `describe!("fifo", format!("w{}_d{}", T::BITS, D), "First-in first-out queue.")`, or with one that needs the
/// block's own data: `describe!("crc", |this| format!("{}", this._lanes), "CRC-32.")`. The module is called
/// `<name>_<suffix>`; the doc line is printed above it.
#[macro_export]
macro_rules! describe {
    ($name: expr, $doc: expr $(,)?) => {
        fn timing(&self) -> Vec<$crate::prelude::TimingInfo> {
            $crate::emit::description($name, "", $doc)
        }
    };
    ($name: expr, |$this: ident| $suffix: expr, $doc: expr $(,)?) => {
        fn timing(&self) -> Vec<$crate::prelude::TimingInfo> {
            let $this = self;
            $crate::emit::description($name, &$suffix, $doc)
        }
    };
    ($name: expr, $suffix: expr, $doc: expr $(,)?) => {
        fn timing(&self) -> Vec<$crate::prelude::TimingInfo> {
            $crate::emit::description($name, &$suffix, $doc)
        }
    };
}

/// What `describe!` expands to.
pub fn description(name: &str, suffix: &str, doc: &str) -> Vec<TimingInfo> {
    let name = if suffix.is_empty() {
        name.into()
    } else {
        format!("{name}_{suffix}")
    };
    vec![TimingInfo {
        name,
        clock: MARK.into(),
        inputs: vec![doc.into()],
        outputs: vec![],
    }]
}
/// A block's own name and doc line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) name: String,
    pub(crate) doc: String,
}

impl Description {
    pub(crate) fn of(block: &dyn Logic) -> Option<Self> {
        let info = block.timing().into_iter().find(|info| info.clock == MARK)?;
        Some(Self {
            name: info.name,
            doc: info.inputs.concat(),
        })
    }
}
