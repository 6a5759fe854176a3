//! The hierarchy of a block as a tree: what a `Probe` sees, put in order.
use std::rc::Rc;

use num_bigint::BigUint;
use rust_hdl_core::prelude::*;

use super::describe::Description;
use super::{lower, register, value};

/// One block and everything below it.
pub(crate) struct Node {
    /// Path from the top, in rust-hdl's writing of the last segment (`stage$0`).
    pub(crate) key: String,
    /// Path from the top as a person writes it.
    pub(crate) path: String,
    pub(crate) description: Option<Description>,
    pub(crate) body: Body,
    pub(crate) signals: Vec<Leaf>,
    pub(crate) children: Vec<Node>,
}

/// What a block consists of.
pub(crate) enum Body {
    /// A kernel, or nothing at all.
    Kernel(lower::Source),
    /// Verilog text.
    Custom(String),
    /// A register with its reset value, if it has one.
    Register(Option<BigUint>),
    /// rust-hdl's forms for external modules.
    Foreign,
}

/// A port, local signal or constant.
pub(crate) struct Leaf {
    /// Path inside the block: `s$payload`.
    pub(crate) key: String,
    pub(crate) kind: AtomKind,
    pub(crate) width: usize,
    pub(crate) descriptor: Rc<TypeDescriptor>,
    /// Value of a constant.
    pub(crate) value: BigUint,
}

impl Leaf {
    pub(crate) fn is_clock(&self) -> bool {
        self.descriptor.name == Clock::descriptor().name
    }
}

fn body(code: Verilog) -> Body {
    match code {
        Verilog::Empty => Body::Kernel(lower::Source::default()),
        Verilog::Custom(text) => match register::parse(&text) {
            Some(reset) => Body::Register(reset),
            None => match lower::Source::of(&text) {
                Some(source) => Body::Kernel(source),
                None => Body::Custom(text),
            },
        },
        Verilog::Combinatorial(_) | Verilog::Blackbox(_) | Verilog::Wrapper(_) => Body::Foreign,
    }
}

/// Walks `top` into a tree.
pub(crate) fn tree(top: &dyn Block) -> Node {
    let mut walk = Walk {
        open: vec![],
        namespace: vec![],
        done: None,
    };
    top.accept("top", &mut walk);
    walk.done.expect("a block opens and closes its scope")
}

struct Walk {
    open: Vec<Node>,
    namespace: Vec<String>,
    done: Option<Node>,
}

impl Probe for Walk {
    fn visit_start_scope(&mut self, name: &str, block: &dyn Block) {
        let own = super::name::rust(name);
        let path = self
            .open
            .last()
            .map_or(own.clone(), |parent| format!("{}.{own}", parent.path));
        let (mut description, body) = (Description::of(block), body(block.hdl()));
        if let (Some(description), Body::Kernel(source)) = (&mut description, &body) {
            description.constants.extend(source.named_constants());
        }
        self.open.push(Node {
            key: name.into(),
            path,
            description,
            body,
            signals: vec![],
            children: vec![],
        });
    }

    fn visit_end_scope(&mut self, _: &str, _: &dyn Block) {
        let node = self.open.pop().expect("scopes nest");
        match self.open.last_mut() {
            Some(parent) => parent.children.push(node),
            None => self.done = Some(node),
        }
    }

    fn visit_start_namespace(&mut self, name: &str, _: &dyn Block) {
        self.namespace.push(name.into());
    }

    fn visit_end_namespace(&mut self, _: &str, _: &dyn Block) {
        self.namespace.pop();
    }

    fn visit_atom(&mut self, name: &str, atom: &dyn Atom) {
        let mut key = self.namespace.clone();
        key.push(name.into());
        let constant = atom.kind() == AtomKind::Constant;
        let leaf = Leaf {
            key: key.join("$"),
            kind: atom.kind(),
            width: atom.bits(),
            descriptor: Rc::new(atom.descriptor()),
            value: if constant {
                value::of_literal(&atom.verilog()).1
            } else {
                BigUint::ZERO
            },
        };
        self.open
            .last_mut()
            .expect("a signal stands in a block")
            .signals
            .push(leaf);
    }
}
