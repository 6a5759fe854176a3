//! rust-hdl's expressions in Rust's writing, for messages.
use rust_hdl_core::ast::{
    VerilogExpression as E, VerilogOp as Op, VerilogOpUnary as Un, VerilogStatement as S,
};

use crate::emit::value;

/// The expression about as the kernel has it.
pub(super) fn expression(e: &E) -> String {
    match e {
        E::Signal(name) => name.trim_end_matches("$next").replace('$', "."),
        E::Literal(l) => match value::of_literal(l) {
            (1, v) => (v != 0u8.into()).to_string(),
            (_, v) if v < 4096u32.into() => v.to_string(),
            (_, v) => format!("0x{v:x}"),
        },
        E::Cast(x, bits) => format!("bit_cast::<{bits}, _>({})", expression(x)),
        E::Signed(x) => format!("signed_cast({})", expression(x)),
        E::Unsigned(x) => format!("unsigned_cast({})", expression(x)),
        E::Paren(x) => format!("({})", expression(x)),
        E::Binary(a, op, b) => format!("{} {} {}", expression(a), operator(op), expression(b)),
        E::Unary(Un::Not, x) => format!("!{}", expression(x)),
        E::Unary(Un::Neg, x) => format!("-{}", expression(x)),
        E::Unary(Un::All, x) => format!("{}.all()", expression(x)),
        E::Unary(Un::Any, x) => format!("{}.any()", expression(x)),
        E::Unary(Un::Xor, x) => format!("{}.xor()", expression(x)),
        E::Index(x, i) => format!("{}.get_bit({})", expression(x), expression(i)),
        E::Slice(x, n, i) => format!("{}.get_bits::<{n}>({})", expression(x), expression(i)),
        E::IndexReplace(x, i, v) => format!(
            "{}.replace_bit({}, {})",
            expression(x),
            expression(i),
            expression(v)
        ),
    }
}

fn operator(op: &Op) -> &'static str {
    match op {
        Op::Add => "+",
        Op::Sub => "-",
        Op::Mul => "*",
        Op::LogicalAnd => "&&",
        Op::LogicalOr => "||",
        Op::BitXor => "^",
        Op::BitAnd => "&",
        Op::BitOr => "|",
        Op::Shl => "<<",
        Op::Shr => ">>",
        Op::Eq => "==",
        Op::Lt => "<",
        Op::Le => "<=",
        Op::Ne => "!=",
        Op::Ge => ">=",
        Op::Gt => ">",
    }
}

/// The head of the statement: enough to find it.
pub(super) fn statement(s: &S) -> String {
    match s {
        S::Assignment(target, value) => format!("{} = {}", expression(target), expression(value)),
        S::SliceAssignment {
            base,
            width,
            offset,
            replacement,
        } => {
            let (base, offset, value) = (
                expression(base),
                expression(offset),
                expression(replacement),
            );
            format!("{base}[{offset} +: {width}] = {value}")
        }
        S::If(c) => format!("if {}", expression(&c.test)),
        S::Match(m) => format!("match {}", expression(&m.test)),
        S::Loop(l) => format!(
            "for {} in {}..{}",
            l.index,
            value::of_literal(&l.from).1,
            value::of_literal(&l.to).1
        ),
        S::Comment(text) => format!("// {text}"),
        S::Link(_) => "link".into(),
        S::Macro(_) => "clock!".into(),
    }
}
