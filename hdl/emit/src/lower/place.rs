//! Places: where a value is read from and where it goes.
use rust_hdl_core::prelude::{TypeDescriptor, TypeKind};

use super::prefix::Sx;
use super::select::{field_at, width_of};
use super::{Lower, Result, Value};
use crate::error::Reason;
use crate::ir::{Expr, Stmt, Sym, Target};
use crate::name;
use crate::scope::Role;

/// What takes a value.
#[derive(Clone)]
pub(super) enum To {
    /// A new local, which another may not change.
    Let(String),
    /// A new local, which later statements change.
    Mut(String),
    /// A parameter of a function.
    Parameter(String),
    /// What exists already.
    Place {
        sym: Sym,
        /// Of a field: its lowest bit and width.
        part: Option<(usize, usize)>,
        /// The name that an arm of a choice must not read once the default stands. A register is read as it was.
        read: Option<String>,
    },
}

impl Lower<'_> {
    /// The path in the module of a port or interface.
    pub(super) fn path(&self, parts: &[Sx]) -> Result<String> {
        let known = |n: &str| self.known(n).and_then(|v| v.try_into().ok());
        let raw: Vec<_> = parts.iter().map(Sx::atom).collect();
        name::resolve_indices(&raw.join("$"), &known)
    }

    /// Longest prefix first found: the signal or constant, and the fields behind it.
    pub(super) fn place<'s>(&self, parts: &'s [Sx], write: bool) -> Result<(String, &'s [Sx])> {
        for n in 1..=parts.len() {
            let key = self.path(&parts[..n])?;
            if self.registers.contains(&key) {
                return Ok((
                    format!("{key}${}", if write { "d" } else { "q" }),
                    &parts[n..],
                ));
            }
            if self.scope.symbol(&key).is_some() || self.scope.named(&key).is_some() {
                return Ok((key, &parts[n..]));
            }
        }
        let raw: Vec<_> = parts.iter().map(Sx::atom).collect();
        Err(Reason::UnknownName(raw.join(".")))
    }

    /// The whole signal that `sx` reads, if it is one.
    pub(super) fn whole(&self, sx: &Sx) -> Option<Sym> {
        match (sx.head(), sx.rest()) {
            ("p", parts) => match self.place(parts, false) {
                Ok((key, [])) => self.scope.symbol(&key),
                _ => None,
            },
            ("v", [id]) => self.local_signal(id),
            _ => None,
        }
    }

    fn local_signal(&self, id: &Sx) -> Option<Sym> {
        match self.locals.get(&self.local(id))?.expr {
            Expr::Signal { sym, .. } => Some(sym),
            _ => None,
        }
    }

    pub(super) fn target(&self, sx: &Sx) -> Result<To> {
        let of_local = |id: &Sx| {
            let sym = self.local_signal(id);
            sym.ok_or_else(|| Reason::UnknownName(id.atom().into()))
        };
        let (sym, fields, read) = match (sx.head(), sx.rest()) {
            ("p", parts) => {
                let (key, fields) = self.place(parts, true)?;
                let sym = self.scope.symbol(&key);
                let sym = sym.ok_or_else(|| Reason::UnknownName(name::rust(&key)))?;
                let symbol = &self.scope.symbols[sym];
                if !symbol.role.is_driven_here() {
                    return Err(Reason::DrivesInput(name::rust(&symbol.key)));
                }
                let register = key
                    .strip_suffix("$d")
                    .is_some_and(|k| self.registers.contains(k));
                let root = parts[0].atom().split('[').next().unwrap_or_default();
                (sym, fields, (!register).then_some(root))
            }
            ("v", [id]) => (of_local(id)?, &[][..], Some(id.atom())),
            ("f", [local, fields @ ..]) if local.head() == "v" => {
                let id = &local.rest()[0];
                (of_local(id)?, fields, Some(id.atom()))
            }
            _ => {
                return Err(Reason::Unsupported(
                    "this target",
                    "assign to a signal, a register or a field",
                ));
            }
        };
        if self.scope.symbols[sym].clock {
            return Err(Reason::Unsupported(
                "a computed clock",
                "use the clock as it is, and an enable",
            ));
        }
        let part = match fields {
            [] => None,
            fields => Some(self.field_of(sym, fields)?),
        };
        Ok(To::Place {
            sym,
            part,
            read: read.map(Into::into),
        })
    }

    /// Lowest bit and width of a field of the record `sym`.
    fn field_of(&self, sym: Sym, fields: &[Sx]) -> Result<(usize, usize)> {
        let symbol = &self.scope.symbols[sym];
        let unknown = || Reason::UnknownName(name::rust(&symbol.key));
        let mut at = symbol.descriptor.as_deref().ok_or_else(unknown)?;
        let mut low = 0;
        for field in fields {
            let (offset, kind) = member(at, field.atom())?;
            low += offset;
            at = kind;
        }
        Ok((low, width_of(at)))
    }

    /// Stores a value that stands alone.
    pub(super) fn store(&mut self, to: &To, e: &Sx) -> Result<Vec<Stmt>> {
        match to {
            To::Let(id) => {
                let value = self.value(e)?;
                Ok(self.define(id, value, false))
            }
            To::Mut(id) => {
                let value = self.value(e)?;
                Ok(self.define(id, value, true))
            }
            To::Parameter(id) => {
                let value = self.value(e)?;
                // a part of what cannot change is its own name
                let fixed = matches!(value.expr, Expr::Select { sym, .. } if self.is_fixed(sym));
                if fixed {
                    self.locals.insert(id.clone(), value);
                    return Ok(vec![]);
                }
                Ok(self.define(id, value, false))
            }
            To::Place {
                sym, part: None, ..
            } => {
                // `x = x.replace_bit(i, b)` leaves the other bits alone
                if let ("replace", [x, at, bit]) = (e.head(), e.rest())
                    && self.whole(x) == Some(*sym)
                {
                    let bit = self.sized(bit, 1)?.expr;
                    return Ok(vec![Stmt::Assign(self.bit_target(*sym, at)?, bit)]);
                }
                let value = self.sized(e, self.scope.symbols[*sym].width)?.expr;
                Ok(vec![Stmt::Assign(Target::Whole(*sym), value)])
            }
            To::Place {
                sym,
                part: Some((low, width)),
                ..
            } => {
                let value = self.sized(e, *width)?.expr;
                let target = self.part_target(*sym, *low, *width)?;
                Ok(vec![Stmt::Assign(target, value)])
            }
        }
    }

    fn part_target(&mut self, sym: Sym, low: usize, width: usize) -> Result<Target> {
        let symbol = &self.scope.symbols[sym];
        let record = symbol.descriptor.clone();
        if width == symbol.width {
            return Ok(Target::Whole(sym));
        }
        let field = record
            .as_ref()
            .and_then(|d| Some((d, field_at(d, low, width)?.0)));
        let field = field
            .map(|(d, field)| self.scope.field_label(&d.name, &field))
            .transpose()?;
        Ok(Target::Part {
            sym,
            low,
            width,
            field,
        })
    }

    /// `let`: another name for what does not change in a pass, a signal for everything else.
    pub(super) fn define(&mut self, id: &str, mut value: Value, mutable: bool) -> Vec<Stmt> {
        let fixed = match value.expr {
            Expr::Signal { sym, .. } => self.is_fixed(sym),
            Expr::Const { .. } => true,
            _ => false,
        };
        if fixed && !mutable {
            self.locals.insert(id.into(), value);
            return vec![];
        }
        // `2.later_.x` is the parameter `x` of the second call of `later`; `x.2` the second `x`
        let words = id.split('.').filter(|w| w.parse::<usize>().is_err());
        let name: String = words.collect();
        let width = value.expr.width();
        let sym = self.scope.local(&name, width, value.descriptor.clone());
        let expr = std::mem::replace(&mut value.expr, Expr::Signal { sym, width });
        self.locals.insert(id.into(), value);
        vec![Stmt::Assign(Target::Whole(sym), expr)]
    }

    /// It has one value in a pass.
    fn is_fixed(&self, sym: Sym) -> bool {
        matches!(
            self.scope.symbols[sym].role,
            Role::Input | Role::ChildOutput(_)
        )
    }
}

/// Lowest bit and type of a field of a record.
pub(super) fn member<'d>(
    record: &'d TypeDescriptor,
    name: &str,
) -> Result<(usize, &'d TypeDescriptor)> {
    let unknown = || Reason::UnknownName(name.into());
    let TypeKind::Composite(fields) = &record.kind else {
        return Err(unknown());
    };
    let before = fields.iter().take_while(|f| f.fieldname != name);
    let low = before.map(|f| width_of(&f.kind)).sum();
    let field = fields.iter().find(|f| f.fieldname == name);
    Ok((low, &field.ok_or_else(unknown)?.kind))
}
