//! The result of an emission.
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io, panic};

use rust_hdl_core::prelude::{AtomKind, Block, TypeDescriptor, TypeKind};

use super::collect::{self, Body, Node};
use super::error::{EmitError, Reason};
use super::lower::width_of;
use super::parametric::{self, Kind};
use super::{module, name};

/// A block and everything below it in Verilog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    /// Children before parents, the top module last. Equal blocks share one.
    pub modules: Vec<Module>,
    /// Name of the top module.
    pub top: String,
    /// Ports of the top module, in the order of the port list.
    pub ports: Vec<Port>,
}

/// One module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its name; a file of its own is to be called `<name>.v`.
    pub name: String,
    /// Its Verilog.
    pub text: String,
    /// The block it was made of.
    pub kind: Kind,
}

/// A port of the top module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Verilog name, for instance `s_axis_rx_tdata`.
    pub name: String,
    /// The field in Rust, for instance `s_axis_rx.tdata`.
    pub path: String,
    /// Bits.
    pub width: usize,
    /// Seen from the block.
    pub direction: Direction,
    /// Parts of a struct, flattened; empty for plain bits.
    pub fields: Vec<Field>,
}

/// Direction of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Driven from outside.
    In,
    /// Driven by the block.
    Out,
}

/// A field of a struct-typed port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// `psn`, or `reth.length` inside a nested struct.
    pub path: String,
    /// Lowest bit in the port.
    pub offset: usize,
    /// Bits.
    pub width: usize,
}

impl Design {
    /// All modules in one text.
    pub fn source(&self) -> String {
        self.modules
            .iter()
            .map(|m| m.text.as_str())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// The same with one module for all sizes of a block where that can be.
    ///
    /// # Panics
    /// If a module with its parameters put in is not the one it stands for.
    #[must_use]
    pub fn parametric(&self) -> Self {
        Self {
            modules: parametric::parametric(&self.modules),
            ..self.clone()
        }
    }

    /// Writes every module to a file of its own in `folder`, `<name>.v`.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        self.modules
            .iter()
            .try_for_each(|m| fs::write(folder.join(format!("{}.v", m.name)), &m.text))
    }

    /// A fingerprint of [`Design::source`] that is the same on every machine (FNV-1a, 128 bits, hexadecimal).
    pub fn hash(&self) -> String {
        let prime = 0x0000_0000_0100_0000_0000_0000_0000_013b_u128;
        let basis = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
        let hash = self.source().bytes().fold(basis, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(prime)
        });
        format!("{hash:032x}")
    }
}

/// Emits `top` and everything below it.
///
/// # Errors
/// Everything that has no Verilog of the same meaning, block by block.
pub fn verilog(top: &dyn Block) -> Result<Design, Vec<EmitError>> {
    let tree = collect::tree(top);
    let mut emission = Emission {
        modules: vec![],
        known: BTreeMap::new(),
        errors: vec![],
    };
    let top = emission.module(&tree);
    match top {
        Some(top) if emission.errors.is_empty() => Ok(Design {
            modules: emission.modules,
            top,
            ports: ports(&tree),
        }),
        _ => Err(emission.errors),
    }
}

/// Runs `work` on a thread with a stack of 1 GiB: blocks are built by value, and large ones exceed the usual stack.
///
/// # Panics
/// If `work` does, with its message.
pub fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    const STACK: usize = 1 << 30;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, work);
        let thread =
            thread.expect("no thread with a stack of 1 GiB: raise the limit of address space");
        thread
            .join()
            .unwrap_or_else(|cause| panic::resume_unwind(cause))
    })
}

struct Emission {
    modules: Vec<Module>,
    /// Name to index of the module and path of its first instance.
    known: BTreeMap<String, (usize, String)>,
    errors: Vec<EmitError>,
}

impl Emission {
    /// Emits `node` and what is below it; the name of its module unless it was refused.
    fn module(&mut self, node: &Node) -> Option<String> {
        let children: Vec<_> = node
            .children
            .iter()
            .map(|child| match child.body {
                Body::Register(_) => Some(String::new()),
                _ => self.module(child),
            })
            .collect();
        let name = self.accept(node)?;
        let children: Option<Vec<String>> = children.into_iter().collect();
        // A refused child does not hide what is wrong here.
        let names = children
            .clone()
            .unwrap_or_else(|| vec![String::new(); node.children.len()]);
        match module::text(node, &name, &names) {
            Ok(text) => {
                children?;
                self.keep(node, name, text)
            }
            Err(errors) => {
                self.errors.extend(errors);
                None
            }
        }
    }

    /// The name of the module, if it may have one.
    fn accept(&mut self, node: &Node) -> Option<String> {
        let reason = match (&node.body, &node.description) {
            (Body::Register(_), _) => {
                Reason::Unsupported("a register as the top", "put it into a block")
            }
            (Body::Foreign, _) => {
                Reason::Unsupported("a black box", "instantiate it in hand-written Verilog")
            }
            (Body::Custom(_), _) if !node.children.is_empty() => Reason::Unsupported(
                "a block of text with sub-blocks",
                "put the text into a sub-block",
            ),
            (_, None) => Reason::NoName,
            (_, Some(description)) => match name::check(&description.name) {
                Ok(()) => return Some(name::module(&description.name)),
                Err(reason) => reason,
            },
        };
        self.refuse(node, reason);
        None
    }

    /// Files the module, or finds the equal one that is there.
    fn keep(&mut self, node: &Node, name: String, text: String) -> Option<String> {
        if let Some((index, other)) = self.known.get(&name) {
            if self.modules[*index].text != text {
                let (name, other) = (name::block_of(&name).into(), other.clone());
                self.refuse(node, Reason::ModuleClash { name, other });
                return None;
            }
            return Some(name);
        }
        self.known
            .insert(name.clone(), (self.modules.len(), node.path.clone()));
        self.modules.push(Module {
            name: name.clone(),
            text,
            kind: node
                .description
                .as_ref()
                .map(|d| d.kind.clone())
                .unwrap_or_default(),
        });
        Some(name)
    }

    fn refuse(&mut self, node: &Node, reason: Reason) {
        self.errors.push(EmitError {
            block: node.path.clone(),
            at: None,
            reason,
        });
    }
}

fn ports(node: &Node) -> Vec<Port> {
    let port = |leaf: &collect::Leaf| {
        let direction = match leaf.kind {
            AtomKind::InputParameter => Direction::In,
            AtomKind::OutputParameter => Direction::Out,
            _ => return None,
        };
        let mut fields = vec![];
        if let TypeKind::Composite(_) = leaf.descriptor.kind {
            flatten(&leaf.descriptor, "", 0, &mut fields);
        }
        let (name, path) = (name::verilog(&leaf.key), name::rust(&leaf.key));
        Some(Port {
            name,
            path,
            width: leaf.width,
            direction,
            fields,
        })
    };
    node.signals.iter().filter_map(port).collect()
}

fn flatten(descriptor: &TypeDescriptor, path: &str, mut offset: usize, out: &mut Vec<Field>) {
    match &descriptor.kind {
        TypeKind::Composite(fields) => {
            for field in fields {
                let path = if path.is_empty() {
                    field.fieldname.clone()
                } else {
                    format!("{path}.{}", field.fieldname)
                };
                flatten(&field.kind, &path, offset, out);
                offset += width_of(&field.kind);
            }
        }
        _ => out.push(Field {
            path: path.into(),
            offset,
            width: width_of(descriptor),
        }),
    }
}
