//! From a kernel to typed Verilog: names are looked up in the module, every expression gets its width.
mod choice;
mod expr;
mod function;
mod index;
mod link;
mod place;
mod prefix;
mod select;
mod source;
mod stmt;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use num_bigint::BigUint;
use rust_hdl_core::prelude::TypeDescriptor;

use super::collect::{Body, Node};
use super::error::{EmitError, Reason};
use super::ir::{Expr, Stmt, Sym, Target};
use super::scope::Scope;
use prefix::Sx;
pub(crate) use select::width_of;
pub(crate) use source::Source;

type Result<T> = std::result::Result<T, Reason>;

/// The value of an expression, or an integer whose width the other side tells.
#[derive(Clone, Debug)]
enum Typed {
    Value(Value),
    Integer {
        value: BigUint,
        label: Option<String>,
    },
}

#[derive(Clone, Debug)]
struct Value {
    expr: Expr,
    descriptor: Option<Rc<TypeDescriptor>>,
}

impl Typed {
    fn integer(value: impl Into<BigUint>) -> Self {
        Self::Integer {
            value: value.into(),
            label: None,
        }
    }
}

impl Value {
    fn bits(expr: Expr) -> Self {
        Self {
            expr,
            descriptor: None,
        }
    }
}

/// A kernel in typed form.
pub(crate) struct Kernel {
    pub(crate) statements: Vec<Stmt>,
    /// Continuous connections: destination, source.
    pub(crate) links: Vec<(Sym, Sym)>,
    /// Signals that are 1 where an assertion does not hold, and what it says.
    pub(crate) assertions: Vec<(Sym, String)>,
}

/// Lowers the kernel of `node`; adds to `scope` the signals it needs.
pub(crate) fn kernel(
    node: &Node,
    scope: &mut Scope,
    source: &Source,
) -> std::result::Result<Kernel, Vec<EmitError>> {
    let registers = node
        .children
        .iter()
        .filter(|c| matches!(c.body, Body::Register(_)));
    let mut lower = Lower {
        node,
        scope,
        registers: registers.map(|c| c.key.clone()).collect(),
        sources: vec![Rc::new(source.clone())],
        prefixes: vec![String::new()],
        count: 0,
        loops: vec![],
        locals: HashMap::new(),
        pending: vec![],
        links: vec![],
        assertions: vec![],
        line: None,
        errors: vec![],
    };
    let mut statements = lower.held();
    lower.clocks(&source.body);
    statements.extend(lower.block(&source.body, true));
    if lower.errors.is_empty() {
        Ok(Kernel {
            statements,
            links: lower.links,
            assertions: lower.assertions,
        })
    } else {
        Err(lower.errors)
    }
}

struct Lower<'a> {
    node: &'a Node,
    scope: &'a mut Scope,
    /// Children that print as registers.
    registers: HashSet<String>,
    /// The kernel and the functions being copied into it.
    sources: Vec<Rc<Source>>,
    /// What the locals of each of them begin with.
    prefixes: Vec<String>,
    /// Makes names unique.
    count: usize,
    loops: Vec<(String, usize)>,
    locals: HashMap<String, Value>,
    /// Statements that stand before the one being lowered.
    pending: Vec<Stmt>,
    links: Vec<(Sym, Sym)>,
    assertions: Vec<(Sym, String)>,
    /// Where in the source the statement stands.
    line: Option<String>,
    errors: Vec<EmitError>,
}

impl Lower<'_> {
    fn refuse(&mut self, reason: Reason) {
        let error = EmitError {
            block: self.node.path.clone(),
            at: self.line.clone(),
            reason,
        };
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// Every register keeps its value unless the kernel gives it another.
    fn held(&self) -> Vec<Stmt> {
        let registers = self
            .node
            .children
            .iter()
            .filter(|c| self.registers.contains(&c.key));
        let hold = |register: &Node| {
            let port = |name| {
                let sym = self.scope.symbol(&format!("{}${name}", register.key));
                sym.expect("a register has both")
            };
            let (d, q) = (port("d"), port("q"));
            let width = self.scope.symbols[q].width;
            Stmt::Assign(Target::Whole(d), Expr::Signal { sym: q, width })
        };
        registers.map(hold).collect()
    }

    /// A loop variable or constant of the kernel or function being read, or a number.
    fn known(&self, name: &str) -> Option<u64> {
        let turn = self.loops.iter().rev().find(|(n, _)| n == name);
        let source = self.sources.last().expect("a kernel is being read");
        let constant = || source.constants.iter().find(|(n, _)| n == name);
        turn.map(|(_, value)| *value as u64)
            .or_else(|| constant().map(|(_, value)| *value))
            .or_else(|| name.parse().ok())
    }

    fn number(&self, sx: &Sx) -> Result<usize> {
        let found = self.known(sx.atom()).and_then(|n| n.try_into().ok());
        found.ok_or_else(|| Reason::UnknownName(sx.atom().into()))
    }

    /// The local that is called so in the source.
    fn local(&self, sx: &Sx) -> String {
        let prefix = self.prefixes.last().expect("a kernel is being read");
        format!("{prefix}{}", sx.atom())
    }

    fn fresh(&mut self, name: &str) -> String {
        self.count += 1;
        format!("{}.{name}", self.count)
    }

    /// What `work` gives, behind what it needs to stand before.
    fn apart(&mut self, work: impl FnOnce(&mut Self) -> Result<Vec<Stmt>>) -> Result<Vec<Stmt>> {
        let outer = std::mem::take(&mut self.pending);
        let statements = work(self);
        let mut all = std::mem::replace(&mut self.pending, outer);
        all.extend(statements?);
        Ok(all)
    }
}
