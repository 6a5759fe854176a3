//! Offsets and match scrutinees: expressions of type `usize`.
//!
//! The leaves are `Bits`, the operators those of `usize`, which do not wrap. The lowering keeps a bound of every sub-expression and computes in as many bits as the bound needs.
use num_bigint::BigUint;

use super::expr::operator;
use super::prefix::Sx;
use super::{Lower, Result, Typed};
use crate::error::Reason;
use crate::ir::{Binary as Op, Expr};
use crate::value;

/// A `usize`.
#[derive(Clone, Debug)]
pub(super) enum Index {
    Known(usize),
    /// A value not above `max`, in `expr.width()` bits.
    Chosen {
        expr: Expr,
        max: BigUint,
    },
}

impl Index {
    fn max(&self) -> BigUint {
        match self {
            Self::Known(n) => (*n).into(),
            Self::Chosen { max, .. } => max.clone(),
        }
    }

    fn width(&self) -> usize {
        match self {
            Self::Known(n) => value::bits_for(&(*n).into()),
            Self::Chosen { expr, .. } => expr.width(),
        }
    }

    fn in_bits(self, width: usize) -> Expr {
        match self {
            Self::Known(n) => Expr::number(width, n),
            Self::Chosen { expr, .. } => expr.extended(width),
        }
    }
}

impl Lower<'_> {
    pub(super) fn index(&mut self, e: &Sx) -> Result<Index> {
        match (e.head(), e.rest()) {
            ("paren", [x]) => self.index(x),
            ("o", [op, a, b]) => match (self.index(a)?, self.index(b)?) {
                (Index::Known(x), Index::Known(y)) => known(x, operator(op.atom()), y),
                (left, right) => chosen(left, operator(op.atom()), right),
            },
            ("not" | "neg", _) => Err(Reason::Unsupported(
                "this operator on an index",
                "name the value with `let`",
            )),
            _ => match self.typed(e)? {
                Typed::Integer { value, .. } => to_usize(&value).map(Index::Known),
                Typed::Value(v) => Ok(match v.expr {
                    Expr::Const { value, .. } => Index::Known(to_usize(&value)?),
                    expr => Index::Chosen {
                        max: value::ones(expr.width()),
                        expr,
                    },
                }),
            },
        }
    }
}

fn to_usize(value: &BigUint) -> Result<usize> {
    usize::try_from(value)
        .map_err(|_| Reason::LiteralTooWide(value.to_string(), usize::BITS as usize))
}

fn known(x: usize, op: Op, y: usize) -> Result<Index> {
    let result = match op {
        Op::Add => x.checked_add(y),
        Op::Sub => x.checked_sub(y),
        Op::Mul => x.checked_mul(y),
        Op::Shl => u32::try_from(y)
            .ok()
            .filter(|y| *y < usize::BITS)
            .map(|y| x << y),
        Op::Shr => u32::try_from(y)
            .ok()
            .filter(|y| *y < usize::BITS)
            .map(|y| x >> y),
        Op::And => Some(x & y),
        Op::Or => Some(x | y),
        Op::Xor => Some(x ^ y),
        _ => None,
    };
    result.map(Index::Known).ok_or(Reason::Unsupported(
        "this arithmetic on an index",
        "name the value with `let`",
    ))
}

fn chosen(left: Index, op: Op, right: Index) -> Result<Index> {
    let both = left.width().max(right.width());
    let (operator, max, width) = match (op, &right) {
        (Op::Add, _) => (Op::Add, left.max() + right.max(), 0),
        // An index below zero panics in Rust, so the minuend bounds the difference.
        (Op::Sub, _) => (Op::Sub, left.max(), both),
        (Op::Mul, Index::Known(n)) if n.is_power_of_two() => {
            return chosen(left, Op::Shl, Index::Known(n.trailing_zeros() as usize));
        }
        (Op::Mul, _) => (Op::Mul, left.max() * right.max(), both),
        (Op::And, _) => (Op::And, left.max().min(right.max()), both),
        (Op::Or, _) => (Op::Or, value::ones(both), both),
        (Op::Xor, _) => (Op::Xor, value::ones(both), both),
        (Op::Shr, Index::Known(n)) => (Op::Shr, left.max() >> *n, left.width()),
        // x * 2^n appends n zeros.
        (Op::Shl, Index::Known(n)) if *n < usize::BITS as usize => {
            let (max, width) = (left.max() << *n, left.width());
            let expr = left.in_bits(width);
            let expr = if *n == 0 {
                expr
            } else {
                Expr::Concat(vec![expr, Expr::number(*n, 0u8)])
            };
            return Ok(Index::Chosen { expr, max });
        }
        _ => {
            return Err(Reason::Unsupported(
                "this arithmetic on an index",
                "name the value with `let`",
            ));
        }
    };
    let width = width.max(value::bits_for(&max));
    let right = if operator == Op::Shr {
        let w = right.width();
        right.in_bits(w)
    } else {
        right.in_bits(width)
    };
    let expr = Expr::Binary(operator, Box::new(left.in_bits(width)), Box::new(right));
    Ok(Index::Chosen { expr, max })
}
