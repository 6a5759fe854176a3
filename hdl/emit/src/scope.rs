//! The names one module knows: its signals, its children's ports, constants and enum variants.
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use num_bigint::BigUint;
use rust_hdl_core::prelude::{AtomKind, TypeDescriptor, TypeKind, clog2};

use super::collect::{Body, Leaf, Node};
use super::error::Reason;
use super::ir::{Expr, Sym};
use super::{name, unused};

/// What a symbol is to the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Input,
    Output,
    Local,
    /// Input of the child of that index.
    ChildInput(usize),
    /// Output of the child of that index.
    ChildOutput(usize),
    /// Introduced by the lowering.
    Temporary,
}

impl Role {
    /// The kernel has to drive it, on every path.
    pub(crate) fn is_driven_here(self) -> bool {
        matches!(self, Self::Output | Self::Local | Self::ChildInput(_))
    }
}

/// A signal.
#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    /// Path as rust-hdl writes it.
    pub(crate) key: String,
    /// Verilog name.
    pub(crate) name: String,
    pub(crate) width: usize,
    pub(crate) role: Role,
    pub(crate) descriptor: Option<Rc<TypeDescriptor>>,
    /// Carries a clock.
    pub(crate) clock: bool,
}

/// A named value: a `Constant` field or a variant of an enum.
pub(crate) struct Named {
    pub(crate) value: Expr,
    pub(crate) descriptor: Option<Rc<TypeDescriptor>>,
}

/// All names of a module.
#[derive(Default)]
pub(crate) struct Scope {
    pub(crate) symbols: Vec<Symbol>,
    by_key: HashMap<String, Sym>,
    named: HashMap<String, Named>,
    integers: HashMap<String, u64>,
    taken: HashMap<String, String>,
    enums: HashSet<String>,
}

impl Scope {
    /// The scope of `node`, or every name that cannot stand.
    pub(crate) fn new(node: &Node) -> Result<Self, Vec<Reason>> {
        let mut scope = Self::default();
        let mut reasons = vec![];
        reasons.extend(scope.take(unused::NAME, unused::NAME).err());
        for leaf in &node.signals {
            reasons.extend(scope.own(leaf).err());
        }
        for (key, value) in node.description.iter().flat_map(|d| &d.constants) {
            reasons.extend(scope.take(last_segment(key), key).err());
            scope.integers.insert(key.clone(), *value);
        }
        for (index, child) in node.children.iter().enumerate() {
            if !matches!(child.body, Body::Register(_)) {
                reasons.extend(scope.take(&name::instance(&child.key), &child.key).err());
            }
            for leaf in &child.signals {
                reasons.extend(scope.port_of(index, child, leaf).err());
            }
        }
        if reasons.is_empty() {
            Ok(scope)
        } else {
            Err(reasons)
        }
    }

    fn own(&mut self, leaf: &Leaf) -> Result<(), Reason> {
        let role = match leaf.kind {
            AtomKind::InputParameter => Role::Input,
            AtomKind::OutputParameter => Role::Output,
            AtomKind::LocalSignal => Role::Local,
            AtomKind::Constant => return self.constant(leaf),
            _ => {
                return Err(Reason::Unsupported(
                    "an inout port",
                    "use an input and an output",
                ));
            }
        };
        self.add(leaf.key.clone(), leaf, role)
    }

    fn port_of(&mut self, index: usize, child: &Node, leaf: &Leaf) -> Result<(), Reason> {
        let role = match leaf.kind {
            AtomKind::InputParameter => Role::ChildInput(index),
            AtomKind::OutputParameter => Role::ChildOutput(index),
            _ => return Ok(()),
        };
        self.add(format!("{}${}", child.key, leaf.key), leaf, role)
    }

    fn add(&mut self, key: String, leaf: &Leaf, role: Role) -> Result<(), Reason> {
        if leaf.width == 0 {
            return Err(Reason::Unsupported(
                "a signal of 0 bits",
                "give it a bit, or leave it out",
            ));
        }
        self.variants(&leaf.descriptor)?;
        let name = name::verilog(&key);
        self.take(&name, &key)?;
        let descriptor = Some(leaf.descriptor.clone());
        let clock = leaf.is_clock();
        self.by_key.insert(key.clone(), self.symbols.len());
        self.symbols.push(Symbol {
            key,
            name,
            width: leaf.width,
            role,
            descriptor,
            clock,
        });
        Ok(())
    }

    fn constant(&mut self, leaf: &Leaf) -> Result<(), Reason> {
        self.variants(&leaf.descriptor)?;
        let label = name::verilog(&leaf.key);
        self.take(&label, &leaf.key)?;
        let value = Expr::Const {
            width: leaf.width,
            value: leaf.value.clone(),
            label: Some(label),
        };
        self.named.insert(
            leaf.key.clone(),
            Named {
                value,
                descriptor: Some(leaf.descriptor.clone()),
            },
        );
        Ok(())
    }

    /// Makes the variants of every enum inside `descriptor` known.
    fn variants(&mut self, descriptor: &Rc<TypeDescriptor>) -> Result<(), Reason> {
        match &descriptor.kind {
            TypeKind::Enum(variants) => {
                let width = clog2(variants.len());
                let fresh = self.enums.insert(descriptor.name.clone());
                for (index, variant) in variants.iter().enumerate() {
                    let key = variant.replace("::", "$");
                    let label = Some(name::verilog(&key));
                    let value = Expr::Const {
                        width,
                        value: index.into(),
                        label,
                    };
                    if fresh {
                        self.take(&name::verilog(&key), variant)?;
                        self.named.insert(
                            key,
                            Named {
                                value,
                                descriptor: Some(descriptor.clone()),
                            },
                        );
                    } else if self
                        .named
                        .get(&key)
                        .is_none_or(|known| known.value != value)
                    {
                        return Err(Reason::BadName(
                            descriptor.name.clone(),
                            "two enums of this block share it",
                        ));
                    }
                }
                Ok(())
            }
            TypeKind::Composite(fields) => fields
                .iter()
                .try_for_each(|f| self.variants(&Rc::new(f.kind.clone()))),
            _ => Ok(()),
        }
    }

    /// Claims a Verilog name for what is called `key` in Rust.
    fn take(&mut self, name: &str, key: &str) -> Result<(), Reason> {
        name::check(name)?;
        match self.taken.insert(name.into(), key.into()) {
            None => Ok(()),
            Some(other) => Err(Reason::NameClash(
                name::rust(&other),
                name::rust(key),
                name.into(),
            )),
        }
    }

    pub(crate) fn symbol(&self, key: &str) -> Option<Sym> {
        self.by_key.get(key).copied()
    }

    pub(crate) fn named(&self, key: &str) -> Option<&Named> {
        self.named.get(key)
    }

    /// `value` of the type of `symbol`, by its name if that is an enum.
    pub(crate) fn value_of(&self, symbol: &Symbol, value: &BigUint) -> Expr {
        let variant = match symbol.descriptor.as_ref().map(|d| &d.kind) {
            Some(TypeKind::Enum(variants)) => usize::try_from(value)
                .ok()
                .and_then(|index| variants.get(index)),
            _ => None,
        };
        let named = variant.and_then(|v| self.named.get(&v.replace("::", "$")));
        named.map_or_else(
            || Expr::number(symbol.width, value.clone()),
            |n| n.value.clone(),
        )
    }

    /// A constant of the block's description, with the name it prints under.
    pub(crate) fn integer<'a>(&self, key: &'a str) -> Option<(u64, &'a str)> {
        Some((*self.integers.get(key)?, last_segment(key)))
    }

    /// All symbols of the interface `prefix`, with the rest of their path.
    pub(crate) fn members<'a>(&'a self, prefix: &str) -> impl Iterator<Item = (Sym, &'a str)> {
        let prefix = format!("{prefix}$");
        self.symbols
            .iter()
            .enumerate()
            .filter_map(move |(sym, s)| Some((sym, s.key.strip_prefix(&prefix)?)))
    }

    /// A new signal of the lowering's own.
    pub(crate) fn temporary(&mut self, width: usize) -> Sym {
        let name = (0..)
            .map(|n| format!("t{n}"))
            .find(|n| !self.taken.contains_key(n))
            .expect("names do not run out");
        self.taken.insert(name.clone(), name.clone());
        let symbol = Symbol {
            key: name.clone(),
            name,
            width,
            role: Role::Temporary,
            descriptor: None,
            clock: false,
        };
        self.symbols.push(symbol);
        self.symbols.len() - 1
    }

    /// A new signal for a `let` of the kernel, called `name` or about so.
    pub(crate) fn local(
        &mut self,
        name: &str,
        width: usize,
        descriptor: Option<Rc<TypeDescriptor>>,
    ) -> Sym {
        let taken = |n: &String| self.taken.contains_key(n) || name::check(n).is_err();
        let name = std::iter::once(name.to_owned())
            .chain((1..).map(|n| format!("{name}_{n}")))
            .find(|n| !taken(n))
            .expect("names do not run out");
        self.taken.insert(name.clone(), name.clone());
        self.symbols.push(Symbol {
            key: name.clone(),
            name,
            width,
            role: Role::Temporary,
            descriptor,
            clock: false,
        });
        self.symbols.len() - 1
    }

    /// Claims the name of a localparam for a struct field; the same name may be claimed again.
    pub(crate) fn field_label(&mut self, structure: &str, field: &str) -> Result<String, Reason> {
        let (label, key) = (
            format!("{structure}_{field}"),
            format!("{structure}::{field}"),
        );
        if self.taken.get(&label) != Some(&key) {
            self.take(&label, &key)?;
        }
        Ok(label)
    }
}

fn last_segment(key: &str) -> &str {
    key.rsplit(name::SEPARATOR).next().unwrap_or(key)
}
