//! Offsets and match scrutinees: expressions of type `usize`.
//!
//! rust-hdl drops `.index()` from the tree, so the leaves are `Bits` and the operators those of `usize`, which do not
//! wrap. The lowering keeps a bound of every sub-expression and computes in as many bits as the bound needs.
use num_bigint::BigUint;
use rust_hdl_core::ast::{VerilogExpression as E, VerilogOp as Op};

use super::{Lower, Result, Typed};
use crate::emit::error::Reason;
use crate::emit::ir::{Binary, Expr};
use crate::emit::value;

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
    pub(super) fn index(&mut self, e: &E) -> Result<Index> {
        self.index_in(e, false)
    }

    /// `bracketed`: `e` stands in brackets, after which `.index()` may have stood.
    fn index_in(&mut self, e: &E, bracketed: bool) -> Result<Index> {
        match e {
            E::Paren(x) => self.index_in(x, true),
            E::Binary(a, op, b) => {
                let (left, right) = (self.index_in(a, false)?, self.index_in(b, false)?);
                match (left, right) {
                    (Index::Known(x), Index::Known(y)) => known(x, op, y),
                    _ if bracketed && matches!(op, Op::Add | Op::Shl) && !is_surely_usize(e) => {
                        Err(Reason::AmbiguousIndex)
                    }
                    (left, right) => chosen(left, op, right),
                }
            }
            E::Unary(..) if !bracketed => Err(Reason::Unsupported(
                "this operator on an index",
                "use a local signal",
            )),
            leaf => match self.typed(leaf)? {
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

/// `Bits` have no product, so an expression with one has type `usize` throughout.
fn is_surely_usize(e: &E) -> bool {
    match e {
        E::Paren(x) => is_surely_usize(x),
        E::Binary(a, op, b) => matches!(op, Op::Mul) || is_surely_usize(a) || is_surely_usize(b),
        _ => false,
    }
}

fn known(x: usize, op: &Op, y: usize) -> Result<Index> {
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
        Op::BitAnd => Some(x & y),
        Op::BitOr => Some(x | y),
        Op::BitXor => Some(x ^ y),
        _ => None,
    };
    result.map(Index::Known).ok_or(Reason::Unsupported(
        "this arithmetic on an index",
        "use a local signal",
    ))
}

fn chosen(left: Index, op: &Op, right: Index) -> Result<Index> {
    let both = left.width().max(right.width());
    let (operator, max, width) = match (op, &right) {
        (Op::Add, _) => (Binary::Add, left.max() + right.max(), 0),
        // An index below zero panics in Rust, so the minuend bounds the difference.
        (Op::Sub, _) => (Binary::Sub, left.max(), both),
        (Op::Mul, Index::Known(n)) if n.is_power_of_two() => {
            return chosen(left, &Op::Shl, Index::Known(n.trailing_zeros() as usize));
        }
        (Op::Mul, _) => (Binary::Mul, left.max() * right.max(), both),
        (Op::BitAnd, _) => (Binary::And, left.max().min(right.max()), both),
        (Op::BitOr, _) => (Binary::Or, value::ones(both), both),
        (Op::BitXor, _) => (Binary::Xor, value::ones(both), both),
        (Op::Shr, Index::Known(n)) => (Binary::Shr, left.max() >> *n, left.width()),
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
                "use a local signal",
            ));
        }
    };
    let width = width.max(value::bits_for(&max));
    let right = if operator == Binary::Shr {
        let w = right.width();
        right.in_bits(w)
    } else {
        right.in_bits(width)
    };
    let expr = Expr::Binary(operator, Box::new(left.in_bits(width)), Box::new(right));
    Ok(Index::Chosen { expr, max })
}
