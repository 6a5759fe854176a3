//! The name and the doc line of a block.
//!
//! rust-hdl has no place for a module name. `Logic::timing` is a hook its simulator and generator never call, so
//! `describe!` answers it with an entry that carries the description.
use std::collections::HashMap;

use rust_hdl_core::prelude::{Logic, TimingInfo};

use super::name::SEPARATOR;
use super::parametric::Kind;

const MARK: &str = "describe!";

/// What `describe!` expands to.
pub fn description(
    name: &str,
    suffix: &str,
    doc: &str,
    fields: &[(&str, &str)],
    sizes: &[(&str, u64)],
) -> Vec<TimingInfo> {
    let full = match suffix {
        "" => name.into(),
        suffix => format!("{name}_{suffix}"),
    };
    let sizes = sizes.iter().map(|(name, value)| format!("{name}={value}"));
    vec![TimingInfo {
        name: full,
        clock: MARK.into(),
        inputs: [doc.into(), name.into()].into_iter().chain(sizes).collect(),
        outputs: fields
            .iter()
            .map(|(name, doc)| format!("{name} {doc}"))
            .collect(),
    }]
}

/// What a block says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) kind: Kind,
    /// Constants that the kernel names: path and value.
    pub(crate) constants: Vec<(String, u64)>,
    /// What the fields are for.
    fields: HashMap<String, String>,
}

impl Description {
    pub(crate) fn of(block: &dyn Logic) -> Option<Self> {
        let entry = block.timing().into_iter().find(|info| info.clock == MARK)?;
        Some(Self {
            name: entry.name,
            doc: entry.inputs.first().cloned().unwrap_or_default(),
            kind: entry
                .inputs
                .get(1..)
                .unwrap_or_default()
                .join(" ")
                .parse()
                .ok()?,
            constants: vec![],
            fields: entry.outputs.iter().filter_map(|f| split(f)).collect(),
        })
    }

    /// What the field of this path is for.
    pub(crate) fn field(&self, key: &str) -> Option<&str> {
        let field = key.split(SEPARATOR).next().unwrap_or(key);
        self.fields.get(field).map(String::as_str)
    }
}

fn split(field: &str) -> Option<(String, String)> {
    let (name, doc) = field.split_once(' ')?;
    Some((name.into(), doc.into()))
}
