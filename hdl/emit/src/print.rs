//! Typed Verilog as text.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;

use num_bigint::BigUint;

use super::direct::Direct;
use super::ir::{Binary, Expr, Stmt, Sym, Target, Unary};
use super::scope::Scope;

/// Prints the expressions and statements of one module, and remembers which named constants they use.
pub(crate) struct Printer<'a> {
    scope: &'a Scope,
    /// For each symbol the one it is wired to.
    alias: &'a [Sym],
    direct: &'a Direct,
    /// Text and value.
    labels: RefCell<BTreeMap<String, (String, BigUint)>>,
}

/// Four blanks a level.
pub(crate) fn indent(level: usize) -> String {
    " ".repeat(4 * level)
}

/// A sized literal.
pub(crate) fn literal(width: usize, value: &BigUint) -> String {
    match width {
        1 => format!("1'b{value}"),
        _ if *value < 10u8.into() => format!("{width}'d{value}"),
        _ => format!("{width}'h{value:x}"),
    }
}

/// `[7:0] `, or nothing for one bit.
pub(crate) fn range(width: usize) -> String {
    if width == 1 {
        String::new()
    } else {
        format!("[{}:0] ", width - 1)
    }
}

impl<'a> Printer<'a> {
    pub(crate) fn new(scope: &'a Scope, alias: &'a [Sym], direct: &'a Direct) -> Self {
        Self {
            scope,
            alias,
            direct,
            labels: RefCell::default(),
        }
    }

    pub(crate) fn name(&self, sym: Sym) -> &str {
        &self.scope.symbols[self.alias[sym]].name
    }

    /// What a child or a register takes: a signal, or what would be assigned to it.
    pub(crate) fn taken(&self, sym: Sym) -> String {
        match self.direct.get(&sym) {
            Some(value) => self.expression(value),
            None => self.name(sym).into(),
        }
    }

    /// The name of a constant; its value if the name stands for another width already.
    fn label(&self, name: &str, text: String, value: BigUint) -> String {
        let mut labels = self.labels.borrow_mut();
        let known = labels
            .entry(name.into())
            .or_insert_with(|| (text.clone(), value));
        if known.0 == text { name.into() } else { text }
    }

    pub(crate) fn expression(&self, e: &Expr) -> String {
        match e {
            Expr::Const {
                width,
                value,
                label: None,
            } => literal(*width, value),
            Expr::Const {
                width,
                value,
                label: Some(label),
            } => self.label(label, literal(*width, value), value.clone()),
            Expr::Signal { sym, .. } => self.name(*sym).into(),
            Expr::Select {
                sym,
                low,
                width,
                field,
            } => self.part(*sym, *low, *width, field.as_deref()),
            Expr::SelectAt { sym, at, width } => self.part_at(*sym, at, *width),
            Expr::Unary(op, x) => self.unary(*op, x),
            Expr::Binary(op, a, b) => self.binary(*op, a, b),
            Expr::Concat(parts) => {
                let mut flat = vec![];
                flatten(parts, &mut flat);
                let parts: Vec<_> = flat.iter().map(|x| self.expression(x)).collect();
                format!("{{{}}}", parts.join(", "))
            }
        }
    }

    fn part(&self, sym: Sym, low: usize, width: usize, field: Option<&str>) -> String {
        let name = self.name(sym);
        match (field, width) {
            // A signal of one bit has no bits to select; a structure of one bit is one.
            (_, 1) if self.scope.symbols[sym].width == 1 => name.into(),
            (Some(field), 1) => {
                format!("{name}[{}]", self.label(field, low.to_string(), low.into()))
            }
            (Some(field), _) => {
                format!(
                    "{name}[{} +: {width}]",
                    self.label(field, low.to_string(), low.into())
                )
            }
            (None, 1) => format!("{name}[{low}]"),
            (None, _) => format!("{name}[{}:{low}]", low + width - 1),
        }
    }

    /// As [`part`](Self::part), from a bit on that the design chooses.
    fn part_at(&self, sym: Sym, at: &Expr, width: usize) -> String {
        let (name, at) = (self.name(sym), self.expression(at));
        match width {
            1 => format!("{name}[{at}]"),
            _ => format!("{name}[{at} +: {width}]"),
        }
    }

    fn unary(&self, op: Unary, x: &Expr) -> String {
        let sign = match op {
            Unary::Not if x.width() == 1 => "!",
            Unary::Not => "~",
            Unary::Neg => "-",
            Unary::All => "&",
            Unary::Any => "|",
            Unary::Xor => "^",
        };
        match x {
            Expr::Unary(..) | Expr::Binary(..) => format!("{sign}({})", self.expression(x)),
            _ => format!("{sign}{}", self.expression(x)),
        }
    }

    fn binary(&self, op: Binary, a: &Expr, b: &Expr) -> String {
        let sign = match op {
            Binary::Add => "+",
            Binary::Sub => "-",
            Binary::Mul => "*",
            Binary::And => "&",
            Binary::Or => "|",
            Binary::Xor => "^",
            Binary::Shl => "<<",
            Binary::Shr => ">>",
            Binary::Eq => "==",
            Binary::Ne => "!=",
            Binary::Lt => "<",
            Binary::Le => "<=",
            Binary::Gt => ">",
            Binary::Ge => ">=",
        };
        // The left operand of a chain of one associative operator needs no brackets.
        let chain = matches!(op, Binary::Add | Binary::And | Binary::Or | Binary::Xor);
        let left = match a {
            Expr::Binary(inner, ..) if chain && *inner == op => self.expression(a),
            _ => self.operand(a),
        };
        let right = match (op, b) {
            // A shift amount is self-determined; as a plain number it reads best.
            (
                Binary::Shl | Binary::Shr,
                Expr::Const {
                    value, label: None, ..
                },
            ) => value.to_string(),
            _ => self.operand(b),
        };
        format!("{left} {sign} {right}")
    }

    fn operand(&self, x: &Expr) -> String {
        match x {
            Expr::Binary(..)
            | Expr::Unary(Unary::All | Unary::Any | Unary::Xor | Unary::Neg, _) => {
                format!("({})", self.expression(x))
            }
            _ => self.expression(x),
        }
    }

    pub(crate) fn target(&self, target: &Target) -> String {
        match target {
            Target::Whole(sym) => self.name(*sym).into(),
            Target::Part {
                sym,
                low,
                width,
                field,
            } => self.part(*sym, *low, *width, field.as_deref()),
            Target::PartAt { sym, at, width } => self.part_at(*sym, at, *width),
        }
    }

    pub(crate) fn block(&self, code: &[Stmt], level: usize, out: &mut String) {
        for statement in code {
            self.statement(statement, level, out);
        }
    }

    fn statement(&self, statement: &Stmt, level: usize, out: &mut String) {
        let pad = indent(level);
        match statement {
            Stmt::Comment(text) => line(out, &pad, &format!("// {text}")),
            Stmt::Assign(target, value) => {
                line(
                    out,
                    &pad,
                    &format!("{} = {};", self.target(target), self.expression(value)),
                );
            }
            Stmt::If(arms, rest) => {
                for (index, (test, body)) in arms.iter().enumerate() {
                    let head = if index == 0 { "if" } else { "end else if" };
                    line(
                        out,
                        &pad,
                        &format!("{head} ({}) begin", self.expression(test)),
                    );
                    self.block(body, level + 1, out);
                }
                if !rest.is_empty() {
                    line(out, &pad, "end else begin");
                    self.block(rest, level + 1, out);
                }
                line(out, &pad, "end");
            }
            Stmt::Case(on, arms, rest) => {
                line(out, &pad, &format!("case ({})", self.expression(on)));
                for (label, body) in arms {
                    self.arm(&self.expression(label), body, level + 1, out);
                }
                self.arm("default", rest, level + 1, out);
                line(out, &pad, "endcase");
            }
        }
    }

    fn arm(&self, label: &str, body: &[Stmt], level: usize, out: &mut String) {
        let pad = indent(level);
        match body {
            [] => line(out, &pad, &format!("{label}: ;")),
            [single @ Stmt::Assign(..)] => {
                let mut text = String::new();
                self.statement(single, 0, &mut text);
                line(out, &pad, &format!("{label}: {}", text.trim_end()));
            }
            body => {
                line(out, &pad, &format!("{label}: begin"));
                self.block(body, level + 1, out);
                line(out, &pad, "end");
            }
        }
    }

    /// `localparam` lines for the constants printed so far, those of one type by value.
    pub(crate) fn parameters(&self) -> String {
        let labels = self.labels.borrow();
        let mut sorted: Vec<_> = labels.iter().collect();
        sorted.sort_by_key(|(name, (_, value))| (name.split('_').next(), value));
        let mut out = String::new();
        for (name, (text, _)) in sorted {
            line(
                &mut out,
                &indent(1),
                &format!("localparam {name} = {text};"),
            );
        }
        out
    }
}

pub(crate) fn line(out: &mut String, pad: &str, text: &str) {
    writeln!(out, "{pad}{text}").expect("a string takes everything");
}

/// Concatenations inside concatenations, and neighbouring zeros as one.
fn flatten(parts: &[Expr], out: &mut Vec<Expr>) {
    for part in parts {
        match (part, out.last_mut()) {
            (Expr::Concat(inner), _) => flatten(inner, out),
            (
                Expr::Const {
                    width,
                    value,
                    label: None,
                },
                Some(Expr::Const {
                    width: before,
                    value: high,
                    label: None,
                }),
            ) => {
                *high = (&*high << *width) | value;
                *before += width;
            }
            _ => out.push(part.clone()),
        }
    }
}
