//! A kernel or helper function with what it names: its constants and the functions it calls.
use std::collections::HashMap;
use std::rc::Rc;

use super::prefix::{Sx, parse};

/// A kernel or a helper function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    pub(super) file: String,
    pub(super) constants: Vec<(String, u64)>,
    pub(super) functions: HashMap<String, Rc<Source>>,
    pub(super) parameters: Vec<String>,
    pub(super) body: Vec<Sx>,
}

impl Source {
    /// The kernel in `text`, if it is one.
    pub(crate) fn of(text: &str) -> Option<Self> {
        text.starts_with(crate::KERNEL)
            .then(|| Self::read(&parse(text)))
    }

    fn read(all: &Sx) -> Self {
        let mut source = Self {
            file: String::new(),
            constants: vec![],
            functions: HashMap::new(),
            parameters: vec![],
            body: vec![],
        };
        for part in all.rest() {
            match (part, part.head(), part.rest()) {
                (Sx::Text(file), ..) => source.file = file.clone(),
                (_, "const", [key, value]) => {
                    source
                        .constants
                        .push((key.atom().into(), value.atom().parse().unwrap_or_default()));
                }
                (_, "fn", [name, code]) => {
                    source
                        .functions
                        .insert(name.atom().into(), Rc::new(Self::read(code)));
                }
                (_, "parameters", names) => {
                    source.parameters = names.iter().map(|n| n.atom().into()).collect()
                }
                _ => source.body.push(part.clone()),
            }
        }
        source
    }

    /// Constants of it and of all functions it calls that have a name to print.
    pub(crate) fn named_constants(&self) -> Vec<(String, u64)> {
        let own = self
            .constants
            .iter()
            .filter(|(key, _)| !key.starts_with('#'));
        let mut all: Vec<_> = own
            .map(|(key, value)| (key.replace("::", "$"), *value))
            .collect();
        for function in self.functions.values() {
            all.extend(function.named_constants());
        }
        all.sort();
        all.dedup();
        all
    }
}
