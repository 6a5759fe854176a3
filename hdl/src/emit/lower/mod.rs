//! From rust-hdl's syntax tree of a kernel to typed Verilog with the kernel's meaning in Rust.
mod expr;
mod index;
mod link;
mod print_rust;
mod select;
mod stmt;

use std::collections::HashMap;
use std::rc::Rc;

use num_bigint::BigUint;
use rust_hdl_core::ast;
use rust_hdl_core::prelude::{TypeDescriptor, TypeKind};

use super::error::{EmitError, Reason};
use super::ir::{Expr, Stmt, Sym};
use super::scope::Scope;

pub(crate) use select::width_of;

type Result<T> = std::result::Result<T, Reason>;

/// An expression with its Rust type as far as it matters.
#[derive(Clone, Debug)]
enum Typed {
    /// An integer literal, constant or loop variable: takes the width of what it meets.
    Integer {
        value: BigUint,
        label: Option<String>,
    },
    Value(Value),
}

/// A value of known width.
#[derive(Clone, Debug)]
struct Value {
    expr: Expr,
    signed: bool,
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
            signed: false,
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
    pub(crate) claims: Vec<(Sym, String)>,
}

/// Lowers one kernel; adds to `scope` the signals it needs.
pub(crate) struct Lower<'a> {
    scope: &'a mut Scope,
    path: &'a str,
    errors: Vec<EmitError>,
    /// Loop variables in force, innermost last.
    loops: Vec<(String, usize)>,
    /// Assignments to temporaries that stand before the statement being lowered.
    pending: Vec<Stmt>,
    links: Vec<(Sym, Sym)>,
    /// `let`s of the kernel.
    lets: HashMap<String, Value>,
    claims: Vec<(Sym, String)>,
    /// Where in the source the statement stands.
    line: Option<String>,
}

impl<'a> Lower<'a> {
    /// Lowers the kernel of the block at `path`.
    pub(crate) fn kernel(
        scope: &'a mut Scope,
        path: &'a str,
        code: &ast::VerilogBlock,
    ) -> std::result::Result<Kernel, Vec<EmitError>> {
        let mut lower = Self {
            scope,
            path,
            errors: vec![],
            loops: vec![],
            pending: vec![],
            links: vec![],
            lets: HashMap::new(),
            claims: vec![],
            line: None,
        };
        let statements = lower.block(code, true);
        if lower.errors.is_empty() {
            Ok(Kernel {
                statements,
                links: lower.links,
                claims: lower.claims,
            })
        } else {
            Err(lower.errors)
        }
    }

    fn refuse(&mut self, at: String, reason: Reason) {
        let at = match &self.line {
            Some(line) => format!("{line}: {at}"),
            None => at,
        };
        let error = EmitError {
            block: self.path.into(),
            at: Some(at),
            reason,
        };
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// A name of the kernel's own, `~kind$id`.
    fn own<'n>(name: &'n str, kind: &str) -> Option<&'n str> {
        name.strip_prefix('~')?
            .strip_prefix(kind)?
            .strip_prefix('$')
    }

    /// The field that an offset names.
    fn field_name(offset: &ast::VerilogExpression) -> Option<&str> {
        match offset {
            ast::VerilogExpression::Signal(name) => Self::own(name, "field"),
            _ => None,
        }
    }

    /// Low bit and width of the field `path` of the record `descriptor`.
    fn field(descriptor: Option<&TypeDescriptor>, path: &str) -> Result<(usize, usize)> {
        let mut at = descriptor.ok_or_else(|| Reason::UnknownName(path.replace('$', ".")))?;
        let mut low = 0;
        for name in path.split('$') {
            let TypeKind::Composite(fields) = &at.kind else {
                return Err(Reason::UnknownName(name.into()));
            };
            let before = fields.iter().take_while(|f| f.fieldname != name);
            low += before.map(|f| width_of(&f.kind)).sum::<usize>();
            let field = fields.iter().find(|f| f.fieldname == name);
            at = &field.ok_or_else(|| Reason::UnknownName(name.into()))?.kind;
        }
        Ok((low, width_of(at)))
    }

    /// The value of a loop variable or of a constant of the description.
    fn known(&self, name: &str) -> Option<usize> {
        let variable = self
            .loops
            .iter()
            .rev()
            .find(|(variable, _)| variable == name);
        variable
            .map(|(_, value)| *value)
            .or_else(|| self.scope.integer(name)?.0.try_into().ok())
    }

    /// The path of a signal with array indices put in, as a key of the scope.
    fn key(&self, raw: &str) -> Result<String> {
        let path = raw
            .trim_start_matches('.')
            .replace("::", "$")
            .replace('.', "$");
        super::name::resolve_indices(path.trim_end_matches("$next"), &|name| self.known(name))
    }
}
