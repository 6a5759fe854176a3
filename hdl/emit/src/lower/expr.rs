//! Expressions that stand for values: `Bits`, `Bit`, enums and records.
use num_bigint::BigUint;

use super::choice::is_choice;
use super::place::To;
use super::prefix::Sx;
use super::{Lower, Result, Typed, Value};
use crate::error::Reason;
use crate::ir::{Binary, Expr, Unary};
use crate::scope::Role;
use crate::{name, value};

/// rust-hdl shifts by at most a `u64` and computes `integer << bits` in 64 bits.
const LITERAL_BITS: usize = 64;

impl Lower<'_> {
    /// Lowers to exactly `width` bits.
    pub(super) fn sized(&mut self, e: &Sx, width: usize) -> Result<Value> {
        let typed = self.typed(e)?;
        let value = fit(typed, width)?;
        match value.expr.width() {
            found if found == width => Ok(value),
            found => Err(Reason::WidthMismatch(found, width)),
        }
    }

    /// Lowers to a value that has a width of its own.
    pub(super) fn value(&mut self, e: &Sx) -> Result<Value> {
        match self.typed(e)? {
            Typed::Value(value) => Ok(value),
            Typed::Integer { .. } => Err(Reason::LiteralWidth),
        }
    }

    /// Lowers a condition.
    pub(super) fn condition(&mut self, e: &Sx) -> Result<Expr> {
        Ok(self.sized(e, 1)?.expr)
    }

    pub(super) fn typed(&mut self, e: &Sx) -> Result<Typed> {
        Ok(Typed::Value(match (e.head(), e.rest()) {
            ("p", parts) => {
                let (key, fields) = self.place(parts, false)?;
                let whole = self.read(&key)?;
                return self.fields(whole, fields);
            }
            ("v", [id]) => return self.read_local(id).map(Typed::Value),
            ("f", [base, fields @ ..]) => {
                let base = self.value(base)?;
                return self.fields(base, fields);
            }
            ("n", [n]) => {
                let number = n.atom().parse::<BigUint>();
                let too_wide = |_| Reason::LiteralTooWide(n.atom().into(), LITERAL_BITS);
                return number.map(Typed::integer).map_err(too_wide);
            }
            ("b", [b]) => Value::bits(Expr::number(1, u8::from(b.atom() == "1"))),
            ("k", [name]) => {
                let key = name.atom().replace("::", "$");
                let (value, label) = self
                    .scope
                    .integer(&key)
                    .ok_or_else(|| Reason::UnknownName(name.atom().into()))?;
                return Ok(Typed::Integer {
                    value: value.into(),
                    label: Some(label.into()),
                });
            }
            ("l", [name]) => return self.number(name).map(Typed::integer),
            ("e", [path]) => return self.read(&variant(path.atom())).map(Typed::Value),
            ("paren", [x]) => return self.typed(x),
            ("not" | "neg" | "any" | "all" | "xor", [x]) => self.unary(e.head(), x)?,
            ("o", [op, a, b]) => return self.binary(a, operator(op.atom()), b),
            ("cast", [width, x]) if !is_choice(x) => {
                let (width, x) = (self.number(width)?, self.typed(x)?);
                let value = fit(x, width)?;
                Value::bits(self.resize(value.expr, width))
            }
            ("slice", [width, x, at]) => {
                let width = self.number(width)?;
                self.slice(x, width, at)?
            }
            ("bit", [x, at]) => {
                let base = self.value(x)?;
                let index = self.index(at)?;
                Value::bits(self.bit(base.expr, index)?)
            }
            ("replace", [x, at, bit]) => {
                let base = self.value(x)?;
                let (index, bit) = (self.index(at)?, self.sized(bit, 1)?);
                Value::bits(self.replace_bit(base.expr, index, bit.expr)?)
            }
            ("call", [name, arguments @ ..]) => return self.call(name.atom(), arguments),
            // a value with statements in it gets a name
            ("sel" | "choose" | "do" | "cast", _) => {
                let id = self.fresh("chosen");
                let given = self.apart(|lower| lower.give(&To::Let(id.clone()), e))?;
                self.pending.extend(given);
                self.locals[&id].clone()
            }
            _ => return Err(Reason::Unsupported("this expression", "see docs/hdl.md")),
        }))
    }

    /// Reads a signal, constant or variant.
    fn read(&mut self, key: &str) -> Result<Value> {
        if let Some(named) = self.scope.named(key) {
            return Ok(Value {
                expr: named.value.clone(),
                descriptor: named.descriptor.clone(),
            });
        }
        let sym = self.scope.symbol(key);
        let sym = sym.ok_or_else(|| Reason::UnknownName(name::rust(key)))?;
        let symbol = &self.scope.symbols[sym];
        if matches!(symbol.role, Role::ChildInput(_)) {
            return Err(Reason::ChildInputRead(name::rust(key)));
        }
        if symbol.clock {
            return Err(Reason::Unsupported("a clock as data", "use a register"));
        }
        let width = symbol.width;
        Ok(Value {
            expr: Expr::Signal { sym, width },
            descriptor: symbol.descriptor.clone(),
        })
    }

    fn read_local(&self, id: &Sx) -> Result<Value> {
        let value = self.locals.get(&self.local(id)).cloned();
        value.ok_or_else(|| Reason::UnknownName(id.atom().into()))
    }

    fn fields(&mut self, whole: Value, fields: &[Sx]) -> Result<Typed> {
        let value = fields
            .iter()
            .try_fold(whole, |base, field| self.field(base, field.atom()));
        value.map(Typed::Value)
    }

    fn unary(&mut self, op: &str, x: &Sx) -> Result<Value> {
        let x = self.value(x)?;
        let op = match op {
            "not" => Unary::Not,
            "neg" => Unary::Neg,
            "all" => Unary::All,
            "any" => Unary::Any,
            _ => Unary::Xor,
        };
        let keeps_type = matches!(op, Unary::Not | Unary::Neg);
        let expr = match x.expr {
            // A reduction of one bit is the bit.
            bit if !keeps_type && bit.width() == 1 => bit,
            operand => Expr::Unary(op, Box::new(operand)),
        };
        Ok(Value {
            expr,
            descriptor: None,
        })
    }

    fn binary(&mut self, a: &Sx, op: Binary, b: &Sx) -> Result<Typed> {
        let (left, right) = (self.typed(a)?, self.typed(b)?);
        if let (Typed::Integer { value: x, .. }, Typed::Integer { value: y, .. }) = (&left, &right)
        {
            return fold(x, op, y);
        }
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
        let (l, r) = match op {
            // `Bits<N> + Bit` is defined.
            Binary::Add if wr == 1 => (left.expr, right.expr.extended(wl)),
            Binary::Mul => {
                return Err(Reason::Unsupported("a product", "add shifted values"));
            }
            _ if wl != wr => return Err(Reason::WidthMismatch(wl, wr)),
            _ => (left.expr, right.expr),
        };
        let expr = always(op, &l, &r).unwrap_or_else(|| Expr::Binary(op, Box::new(l), Box::new(r)));
        Ok(Typed::Value(Value {
            expr,
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
                    "cut it with `low`",
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

/// The operators of integers that are all known.
fn fold(x: &BigUint, op: Binary, y: &BigUint) -> Result<Typed> {
    let truth = |b: bool| Ok(Typed::Value(Value::bits(Expr::number(1, u8::from(b)))));
    let overflow = || Reason::LiteralTooWide(format!("the result of {x} and {y}"), LITERAL_BITS);
    let amount = || {
        usize::try_from(y)
            .ok()
            .filter(|n| *n < LITERAL_BITS)
            .ok_or_else(overflow)
    };
    let value = match op {
        Binary::Eq => return truth(x == y),
        Binary::Ne => return truth(x != y),
        Binary::Lt => return truth(x < y),
        Binary::Le => return truth(x <= y),
        Binary::Gt => return truth(x > y),
        Binary::Ge => return truth(x >= y),
        Binary::Add => x + y,
        Binary::Sub if x >= y => x - y,
        Binary::Sub => return Err(overflow()),
        Binary::Mul => x * y,
        Binary::And => x & y,
        Binary::Or => x | y,
        Binary::Xor => x ^ y,
        Binary::Shl => x << amount()?,
        Binary::Shr => x >> amount()?,
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

/// The operator of the prefix form.
pub(super) fn operator(name: &str) -> Binary {
    match name {
        "+" => Binary::Add,
        "-" => Binary::Sub,
        "*" => Binary::Mul,
        "&" => Binary::And,
        "|" => Binary::Or,
        "^" => Binary::Xor,
        "<<" => Binary::Shl,
        ">>" => Binary::Shr,
        "==" => Binary::Eq,
        "!=" => Binary::Ne,
        "<" => Binary::Lt,
        "<=" => Binary::Le,
        ">" => Binary::Gt,
        _ => Binary::Ge,
    }
}

/// Type and variant of a path, as the scope has them.
pub(super) fn variant(path: &str) -> String {
    let mut parts: Vec<_> = path.split("::").collect();
    parts.split_off(parts.len().saturating_sub(2)).join("$")
}
