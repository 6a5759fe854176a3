//! Expressions that stand for values: `Bits`, `Bit`, `Signed`, enums and structs.
use num_bigint::BigUint;
use rust_hdl_core::ast::{VerilogExpression as E, VerilogOp as Op, VerilogOpUnary as Un};
use rust_hdl_core::prelude::TypeKind;

use super::{Lower, Result, Typed, Value};
use crate::emit::error::Reason;
use crate::emit::ir::{Binary, Expr, Unary};
use crate::emit::scope::Role;
use crate::emit::{name, value};

/// rust-hdl shifts by at most a `u64` and computes `integer << bits` in 64 bits.
const LITERAL_BITS: usize = 64;

impl Lower<'_> {
    /// Lowers to exactly `width` bits.
    pub(super) fn sized(&mut self, e: &E, width: usize) -> Result<Value> {
        let typed = self.typed(e)?;
        let value = fit(typed, width)?;
        match value.expr.width() {
            found if found == width => Ok(value),
            found => Err(Reason::WidthMismatch(found, width)),
        }
    }

    /// Lowers to a value that has a width of its own.
    pub(super) fn value(&mut self, e: &E) -> Result<Value> {
        match self.typed(e)? {
            Typed::Value(value) => Ok(value),
            Typed::Integer { .. } => Err(Reason::LiteralWidth),
        }
    }

    /// Lowers a condition.
    pub(super) fn condition(&mut self, e: &E) -> Result<Expr> {
        Ok(self.sized(e, 1)?.expr)
    }

    pub(super) fn typed(&mut self, e: &E) -> Result<Typed> {
        Ok(Typed::Value(match e {
            E::Signal(name) => return self.read(name),
            E::Literal(literal) => match value::of_literal(literal) {
                (1, bit) => Value::bits(Expr::number(1, bit)),
                (_, integer) => return Ok(Typed::integer(integer)),
            },
            E::Paren(x) => return self.typed(x),
            E::Cast(x, width) => {
                let typed = self.typed(x)?;
                let value = fit(typed, *width)?;
                Value::bits(self.resize(value.expr, *width))
            }
            E::Signed(x) => {
                let value = self.value(x)?;
                if value.signed {
                    // rust-hdl recurses for ever on the most negative value.
                    return Err(Reason::Unsupported(
                        "signed_bit_cast",
                        "extend the sign by hand",
                    ));
                }
                Value {
                    signed: true,
                    ..value
                }
            }
            E::Unsigned(x) => Value {
                signed: false,
                descriptor: None,
                ..self.value(x)?
            },
            E::Unary(op, x) => self.unary(op, x)?,
            E::Binary(a, op, b) => return self.binary(a, op, b),
            E::Index(x, i) => {
                let base = self.value(x)?;
                let index = self.index(i)?;
                Value::bits(self.bit(base.expr, index)?)
            }
            E::Slice(x, width, i) => self.slice(x, *width, i)?,
            E::IndexReplace(x, i, number) if matches!(&**i, E::Signal(n) if n == "~width") => {
                let pending = self.pending.len();
                let width = self.value(x)?.expr.width();
                self.pending.truncate(pending);
                return Ok(Typed::Value(self.sized(number, width)?));
            }
            E::IndexReplace(x, i, bit) => {
                let base = self.value(x)?;
                let (index, bit) = (self.index(i)?, self.sized(bit, 1)?);
                Value::bits(self.replace_bit(base.expr, index, bit.expr)?)
            }
        }))
    }

    /// Reads a signal, constant, variant or loop variable.
    fn read(&mut self, raw: &str) -> Result<Typed> {
        if let Some((_, value)) = self.loops.iter().rev().find(|(name, _)| name == raw) {
            return Ok(Typed::integer(*value));
        }
        if let Some(id) = Self::own(raw, "") {
            let value = self.lets.get(id).cloned();
            return value
                .map(Typed::Value)
                .ok_or_else(|| Reason::UnknownName(id.into()));
        }
        let key = self.key(raw)?;
        if let Some((value, label)) = self.scope.integer(&key) {
            return Ok(Typed::Integer {
                value: value.into(),
                label: Some(label.into()),
            });
        }
        let (expr, descriptor) = if let Some(named) = self.scope.named(&key) {
            (named.value.clone(), named.descriptor.clone())
        } else {
            let Some(sym) = self.scope.symbol(&key) else {
                if raw.contains("val()") {
                    return Err(Reason::Unsupported(
                        "a field of a field",
                        "put the inner struct into a `Signal<Local, _>`",
                    ));
                }
                return Err(Reason::UnknownName(raw.replace('$', ".")));
            };
            let symbol = &self.scope.symbols[sym];
            if matches!(symbol.role, Role::ChildInput(_)) {
                return Err(Reason::ChildInputRead(name::rust(&key)));
            }
            if symbol.clock {
                return Err(Reason::Unsupported(
                    "a clock as data",
                    "use `clock!` or `link`",
                ));
            }
            (
                Expr::Signal {
                    sym,
                    width: symbol.width,
                },
                symbol.descriptor.clone(),
            )
        };
        let signed = descriptor
            .as_ref()
            .is_some_and(|d| matches!(d.kind, TypeKind::Signed(_)));
        Ok(Typed::Value(Value {
            expr,
            signed,
            descriptor,
        }))
    }

    fn unary(&mut self, op: &Un, x: &E) -> Result<Value> {
        let x = self.value(x)?;
        let op = match op {
            Un::Not => Unary::Not,
            Un::Neg => Unary::Neg,
            Un::All => Unary::All,
            Un::Any => Unary::Any,
            Un::Xor => Unary::Xor,
        };
        let keeps_type = matches!(op, Unary::Not | Unary::Neg);
        let expr = match x.expr {
            // A reduction of one bit is the bit.
            bit if !keeps_type && bit.width() == 1 => bit,
            operand => Expr::Unary(op, Box::new(operand)),
        };
        Ok(Value {
            expr,
            signed: x.signed && keeps_type,
            descriptor: None,
        })
    }

    fn binary(&mut self, a: &E, op: &Op, b: &E) -> Result<Typed> {
        let (left, right) = (self.typed(a)?, self.typed(b)?);
        if let (Typed::Integer { value: x, .. }, Typed::Integer { value: y, .. }) = (&left, &right)
        {
            return fold(x, op, y);
        }
        let op = operator(op);
        if matches!(op, Binary::Shl | Binary::Shr) {
            return self.shift(left, op, right).map(Typed::Value);
        }
        let (left, right) = match (left, right) {
            (Typed::Value(l), r) => {
                let r = fit(r, l.expr.width())?;
                (l, r)
            }
            (l, Typed::Value(r)) => (fit(l, r.expr.width())?, r),
            _ => unreachable!("two integers were folded"),
        };
        let (wl, wr) = (left.expr.width(), right.expr.width());
        let signed = left.signed || right.signed;
        let (l, r) = match op {
            // `Bits<N> + Bit` is defined.
            Binary::Add if wr == 1 => (left.expr, right.expr.extended(wl)),
            // `Signed<16> * Signed<16>` is the only product.
            Binary::Mul if signed && wl == 16 && wr == 16 => {
                (sign_extended(left.expr), sign_extended(right.expr))
            }
            Binary::Mul => {
                return Err(Reason::Unsupported(
                    "this product",
                    "Rust has it for `Signed<16>` only",
                ));
            }
            _ if wl != wr => return Err(Reason::WidthMismatch(wl, wr)),
            Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge if signed => (
                Expr::Signed(Box::new(left.expr)),
                Expr::Signed(Box::new(right.expr)),
            ),
            _ => (left.expr, right.expr),
        };
        let expr = always(op, &l, &r).unwrap_or_else(|| Expr::Binary(op, Box::new(l), Box::new(r)));
        Ok(Typed::Value(Value {
            expr,
            signed: signed && !op.is_truth(),
            descriptor: None,
        }))
    }

    fn shift(&mut self, left: Typed, op: Binary, right: Typed) -> Result<Value> {
        let left = fit(left, LITERAL_BITS)?;
        let width = left.expr.width();
        let amount = match right {
            Typed::Integer { value, .. } if value >= width.into() => {
                return Ok(Value::bits(Expr::number(width, 0u8)));
            }
            Typed::Integer { value, .. } => Expr::number(value::bits_for(&value), value),
            Typed::Value(v) if v.expr.width() > LITERAL_BITS => {
                return Err(Reason::Unsupported(
                    "a shift amount of more than 64 bits",
                    "cut it with `get_bits`",
                ));
            }
            Typed::Value(v) => v.expr,
        };
        Ok(Value::bits(Expr::Binary(
            op,
            Box::new(left.expr),
            Box::new(amount),
        )))
    }
}

/// Gives an integer the width `width`; leaves values alone.
fn fit(typed: Typed, width: usize) -> Result<Value> {
    match typed {
        Typed::Value(value) => Ok(value),
        Typed::Integer { value, .. } if value.bits() as usize > width => {
            Err(Reason::LiteralTooWide(value.to_string(), width))
        }
        Typed::Integer { value, label } => Ok(Value::bits(Expr::Const {
            width,
            value,
            label,
        })),
    }
}

/// Doubles the width and keeps the sign: (x ^ s) - s, where s is the weight of the sign bit.
fn sign_extended(x: Expr) -> Expr {
    let width = x.width();
    let weight = Expr::number(2 * width, BigUint::from(1u8) << (width - 1));
    let flipped = Expr::Binary(
        Binary::Xor,
        Box::new(x.extended(2 * width)),
        Box::new(weight.clone()),
    );
    Expr::Binary(Binary::Sub, Box::new(flipped), Box::new(weight))
}

/// The operators of integers that are all known.
fn fold(x: &BigUint, op: &Op, y: &BigUint) -> Result<Typed> {
    let truth = |b: bool| Ok(Typed::Value(Value::bits(Expr::number(1, u8::from(b)))));
    let overflow = || Reason::LiteralTooWide(format!("the result of {x} and {y}"), LITERAL_BITS);
    let amount = || {
        usize::try_from(y)
            .ok()
            .filter(|n| *n < LITERAL_BITS)
            .ok_or_else(overflow)
    };
    let value = match op {
        Op::Eq => return truth(x == y),
        Op::Ne => return truth(x != y),
        Op::Lt => return truth(x < y),
        Op::Le => return truth(x <= y),
        Op::Gt => return truth(x > y),
        Op::Ge => return truth(x >= y),
        Op::Add => x + y,
        Op::Sub if x >= y => x - y,
        Op::Sub => return Err(overflow()),
        Op::Mul => x * y,
        Op::BitAnd => x & y,
        Op::BitOr => x | y,
        Op::BitXor => x ^ y,
        Op::Shl => x << amount()?,
        Op::Shr => x >> amount()?,
        Op::LogicalAnd | Op::LogicalOr => return Err(Reason::LiteralWidth),
    };
    if value.bits() as usize > LITERAL_BITS {
        Err(overflow())
    } else {
        Ok(Typed::integer(value))
    }
}

/// Comparisons with an end of the range, which lint tools call constant.
fn always(op: Binary, l: &Expr, r: &Expr) -> Option<Expr> {
    let is = |x: &Expr, end: &BigUint| matches!(x, Expr::Const { value, .. } if value == end);
    let (zero, ones) = (BigUint::ZERO, value::ones(l.width()));
    let truth = match op {
        Binary::Lt => (is(r, &zero) || is(l, &ones)).then_some(false),
        Binary::Gt => (is(l, &zero) || is(r, &ones)).then_some(false),
        Binary::Le => (is(l, &zero) || is(r, &ones)).then_some(true),
        Binary::Ge => (is(r, &zero) || is(l, &ones)).then_some(true),
        _ => None,
    };
    truth.map(|b| Expr::number(1, u8::from(b)))
}

fn operator(op: &Op) -> Binary {
    match op {
        Op::Add => Binary::Add,
        Op::Sub => Binary::Sub,
        Op::Mul => Binary::Mul,
        Op::LogicalAnd => Binary::LogicalAnd,
        Op::LogicalOr => Binary::LogicalOr,
        Op::BitXor => Binary::Xor,
        Op::BitAnd => Binary::And,
        Op::BitOr => Binary::Or,
        Op::Shl => Binary::Shl,
        Op::Shr => Binary::Shr,
        Op::Eq => Binary::Eq,
        Op::Lt => Binary::Lt,
        Op::Le => Binary::Le,
        Op::Ne => Binary::Ne,
        Op::Ge => Binary::Ge,
        Op::Gt => Binary::Gt,
    }
}
