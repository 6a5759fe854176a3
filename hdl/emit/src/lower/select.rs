//! Bits of expressions: Verilog selects bits of names only, so anything else goes through a temporary signal.
use num_bigint::BigUint;
use rust_hdl_core::prelude::{TypeDescriptor, TypeKind, clog2};

use super::index::Index;
use super::place::member;
use super::prefix::Sx;
use super::{Lower, Result, Value};
use crate::error::Reason;
use crate::ir::{Binary, Expr, Stmt, Sym, Target, Unary};
use crate::value;

impl Lower<'_> {
    /// A signal with the value of `expr` at this point of the kernel.
    fn hoist(&mut self, expr: Expr) -> (Sym, usize) {
        match expr {
            Expr::Signal { sym, width } => (sym, width),
            expr => {
                let width = expr.width();
                let sym = self.scope.temporary(width);
                self.pending.push(Stmt::Assign(Target::Whole(sym), expr));
                (sym, width)
            }
        }
    }

    fn hoisted(&mut self, expr: Expr) -> Expr {
        let (sym, width) = self.hoist(expr);
        Expr::Signal { sym, width }
    }

    /// Bits `low .. low + width`, all inside `expr`.
    pub(super) fn part(&mut self, expr: Expr, low: usize, width: usize) -> Expr {
        if low == 0 && width == expr.width() {
            return expr;
        }
        match expr {
            Expr::Const { value, .. } => Expr::number(width, (value >> low) & value::ones(width)),
            Expr::Select { sym, low: base, .. } => Expr::Select {
                sym,
                low: base + low,
                width,
                field: None,
            },
            // Bit for bit, and from the bottom up for carries: the part of the result is the result of the parts.
            Expr::Unary(op @ Unary::Not, x) => Expr::Unary(op, Box::new(self.part(*x, low, width))),
            Expr::Binary(op @ (Binary::And | Binary::Or | Binary::Xor), a, b) => {
                let (a, b) = (self.part(*a, low, width), self.part(*b, low, width));
                Expr::Binary(op, Box::new(a), Box::new(b))
            }
            Expr::Binary(op @ (Binary::Add | Binary::Sub), a, b) if low == 0 => {
                let (a, b) = (self.part(*a, low, width), self.part(*b, low, width));
                Expr::Binary(op, Box::new(a), Box::new(b))
            }
            Expr::Concat(parts) => self.part_of_concat(parts, low, width),
            expr => {
                let (sym, _) = self.hoist(expr);
                Expr::Select {
                    sym,
                    low,
                    width,
                    field: None,
                }
            }
        }
    }

    fn part_of_concat(&mut self, parts: Vec<Expr>, low: usize, width: usize) -> Expr {
        let (mut at, mut kept) = (0, vec![]);
        for part in parts.into_iter().rev() {
            let (start, end) = (low.max(at), (low + width).min(at + part.width()));
            at += part.width();
            if start < end {
                let below = at - part.width();
                kept.insert(0, self.part(part, start - below, end - start));
            }
        }
        if kept.len() == 1 {
            kept.remove(0)
        } else {
            Expr::Concat(kept)
        }
    }

    /// `resize`: cut at the top or filled with zeros.
    pub(super) fn resize(&mut self, expr: Expr, width: usize) -> Expr {
        if width < expr.width() {
            self.part(expr, 0, width)
        } else {
            expr.extended(width)
        }
    }

    /// `bit`.
    pub(super) fn bit(&mut self, base: Expr, index: Index) -> Result<Expr> {
        let size = base.width();
        match index {
            Index::Known(at) if at < size => Ok(self.part(base, at, 1)),
            Index::Known(at) => Err(Reason::OutOfRange(at, size)),
            Index::Chosen { .. } if size == 1 => Ok(base),
            Index::Chosen { expr, .. } => {
                let (sym, _) = self.hoist(base);
                let at = self.resize(expr, select_bits(size));
                Ok(Expr::SelectAt {
                    sym,
                    at: Box::new(at),
                    width: 1,
                })
            }
        }
    }

    /// `slice`.
    pub(super) fn slice(&mut self, x: &Sx, width: usize, at: &Sx) -> Result<Value> {
        let base = self.value(x)?;
        if width == 0 {
            return Err(Reason::Unsupported("a slice of 0 bits", "leave it out"));
        }
        let record = base.descriptor.as_ref();
        if record.is_some_and(|d| matches!(d.kind, TypeKind::Composite(_))) {
            return Err(Reason::Unsupported(
                "bits of a record",
                "convert it: `let all: Bits<N> = x.into();`",
            ));
        }
        let index = self.index(at)?;
        Ok(Value::bits(self.bits(base.expr, index, width)?))
    }

    /// A field of a record.
    pub(super) fn field(&mut self, base: Value, name: &str) -> Result<Value> {
        let unknown = || Reason::UnknownName(name.into());
        let record = base.descriptor.ok_or_else(unknown)?;
        let (low, kind) = member(&record, name)?;
        let width = width_of(kind);
        let label = self.scope.field_label(&record.name, name)?;
        let expr = match base.expr {
            Expr::Signal { sym, .. } => Expr::Select {
                sym,
                low,
                width,
                field: Some(label),
            },
            expr => self.part(expr, low, width),
        };
        Ok(Value {
            expr,
            descriptor: Some(kind.clone().into()),
        })
    }

    /// The bit of a signal that `replace_bit` assigns.
    pub(super) fn bit_target(&mut self, sym: Sym, at: &Sx) -> Result<Target> {
        let size = self.scope.symbols[sym].width;
        match self.index(at)? {
            Index::Known(low) if low >= size => Err(Reason::OutOfRange(low, size)),
            _ if size == 1 => Ok(Target::Whole(sym)),
            Index::Known(low) => Ok(Target::Part {
                sym,
                low,
                width: 1,
                field: None,
            }),
            Index::Chosen { expr, .. } => Ok(Target::PartAt {
                sym,
                at: self.resize(expr, select_bits(size)),
                width: 1,
            }),
        }
    }

    fn bits(&mut self, base: Expr, index: Index, width: usize) -> Result<Expr> {
        let size = base.width();
        match index {
            Index::Known(low) if low > size => Err(Reason::OutOfRange(low, size)),
            Index::Known(low) if low == size => Ok(Expr::number(width, 0u8)),
            Index::Known(low) => {
                let inside = width.min(size - low);
                Ok(self.part(base, low, inside).extended(width))
            }
            Index::Chosen { expr, max } if &max + width <= BigUint::from(size) && size > 1 => {
                let (sym, _) = self.hoist(base);
                let at = self.resize(expr, select_bits(size));
                Ok(Expr::SelectAt {
                    sym,
                    at: Box::new(at),
                    width,
                })
            }
            // May reach beyond the end, where Rust reads zeros and Verilog X.
            Index::Chosen { expr, .. } => {
                let shifted = Expr::Binary(Binary::Shr, Box::new(base), Box::new(expr));
                Ok(self.resize(shifted, width))
            }
        }
    }

    /// `replace_bit`.
    pub(super) fn replace_bit(&mut self, base: Expr, index: Index, bit: Expr) -> Result<Expr> {
        let size = base.width();
        match index {
            Index::Known(at) if at >= size => Err(Reason::OutOfRange(at, size)),
            Index::Known(at) => {
                let base = match base {
                    Expr::Unary(..) | Expr::Binary(..) | Expr::SelectAt { .. } => {
                        self.hoisted(base)
                    }
                    simple => simple,
                };
                let mut parts = vec![];
                if at + 1 < size {
                    parts.push(self.part(base.clone(), at + 1, size - at - 1));
                }
                parts.push(bit);
                if at > 0 {
                    parts.push(self.part(base, 0, at));
                }
                Ok(if parts.len() == 1 {
                    parts.remove(0)
                } else {
                    Expr::Concat(parts)
                })
            }
            Index::Chosen { expr, .. } => {
                let shifted = |x: Expr| {
                    Expr::Binary(
                        Binary::Shl,
                        Box::new(x.extended(size)),
                        Box::new(expr.clone()),
                    )
                };
                let hole = Expr::Unary(Unary::Not, Box::new(shifted(Expr::number(1, 1u8))));
                let kept = Expr::Binary(Binary::And, Box::new(base), Box::new(hole));
                Ok(Expr::Binary(
                    Binary::Or,
                    Box::new(kept),
                    Box::new(shifted(bit)),
                ))
            }
        }
    }
}

/// Bits of an index into `size` bits.
pub(super) fn select_bits(size: usize) -> usize {
    value::bits_for(&BigUint::from(size - 1))
}

/// Name and type of the field of a struct at these bits.
pub(super) fn field_at(
    descriptor: &TypeDescriptor,
    low: usize,
    width: usize,
) -> Option<(String, TypeDescriptor)> {
    let TypeKind::Composite(fields) = &descriptor.kind else {
        return None;
    };
    let mut at = 0;
    for field in fields {
        let size = width_of(&field.kind);
        if (at, size) == (low, width) {
            return Some((field.fieldname.clone(), field.kind.clone()));
        }
        at += size;
    }
    None
}

/// Width of a type.
pub(crate) fn width_of(descriptor: &TypeDescriptor) -> usize {
    match &descriptor.kind {
        TypeKind::Bits(n) | TypeKind::Signed(n) => *n,
        TypeKind::Enum(variants) => clog2(variants.len()),
        TypeKind::Composite(fields) => fields.iter().map(|f| width_of(&f.kind)).sum(),
    }
}
