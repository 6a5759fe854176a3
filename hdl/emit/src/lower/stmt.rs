//! Statements.
use rust_hdl_core::prelude::TypeKind;

use super::expr::variant;
use super::place::To;
use super::prefix::Sx;
use super::{Lower, Result, Value};
use crate::error::Reason;
use crate::ir::{Expr, Stmt, Unary};

/// Lowers one arm of a choice, or what holds where none is taken; true if it is executed in every pass.
pub(super) type Arm<'a, 's> =
    &'a mut dyn FnMut(&mut Lower<'_>, Option<&'s Sx>, bool) -> Result<Vec<Stmt>>;

impl Lower<'_> {
    /// `top`: executed in every pass, so ports may be wired here.
    pub(super) fn block(&mut self, code: &[Sx], top: bool) -> Vec<Stmt> {
        let mut out = vec![];
        for statement in code {
            match self.apart(|lower| lower.statement(statement, top)) {
                Ok(statements) => out.extend(statements),
                Err(reason) => self.refuse(reason),
            }
        }
        out
    }

    fn statement(&mut self, s: &Sx, top: bool) -> Result<Vec<Stmt>> {
        match (s.head(), s.rest()) {
            ("at", [line]) => {
                let file = &self.sources.last().expect("a kernel is being read").file;
                self.line = Some(format!("{file}:{}", line.atom()));
                Ok(vec![])
            }
            ("comment", [text]) => Ok(vec![Stmt::Comment(text.atom().into())]),
            ("let", [id, e]) => self.give(&To::Let(self.local(id)), e),
            ("letmut", [id, e]) => self.give(&To::Mut(self.local(id)), e),
            ("assign", [target, e]) => {
                if let Some(wired) = self.clock(target, e) {
                    return wired.map(|()| vec![]);
                }
                let to = self.target(target)?;
                self.give(&to, e)
            }
            ("if", arms) => {
                let (tests, rest): (Vec<_>, Vec<_>) =
                    arms.iter().partition(|arm| arm.head() == "arm");
                let tests: Vec<_> = tests.iter().map(|arm| (&arm.rest()[0], *arm)).collect();
                self.conditional(&tests, top, &mut |lower, arm, top| {
                    Ok(match arm {
                        Some(arm) => lower.block(&arm.rest()[1..], top),
                        None => rest.first().map_or(vec![], |e| lower.block(e.rest(), top)),
                    })
                })
            }
            ("match", [on, arms @ ..]) => self.choice(on, arms, top, &mut |lower, arm, top| {
                Ok(arm.map_or(vec![], |arm| lower.block(&arm.rest()[1..], top)))
            }),
            ("for", [name, from, to, code @ ..]) => {
                let (from, to) = (self.number(from)?, self.number(to)?);
                Ok(self.repeat(name.atom(), from..to, code, top))
            }
            ("forward", _) if !top => Err(Reason::Unsupported(
                "`forward!` inside `if` or `match`",
                "connect it unconditionally",
            )),
            ("forward", [to, from]) => self.forward(to, from).map(|()| vec![]),
            ("assert", [test, why]) => self.assertion(test, why.atom()),
            _ => Err(Reason::Unsupported("this statement", "see docs/hdl.md")),
        }
    }

    fn repeat(
        &mut self,
        name: &str,
        turns: std::ops::Range<usize>,
        code: &[Sx],
        top: bool,
    ) -> Vec<Stmt> {
        let mut out = vec![];
        for turn in turns {
            self.loops.push((name.into(), turn));
            let body = self.block(code, top);
            if body.len() > 1 {
                out.push(Stmt::Comment(format!("{name} = {turn}")));
            }
            out.extend(body);
            self.loops.pop();
        }
        out
    }

    fn assertion(&mut self, test: &Sx, why: &str) -> Result<Vec<Stmt>> {
        let test = self.condition(test)?;
        // a local of a branch is 0 outside of it: there nothing is broken
        let id = self.fresh("broken");
        let broken = Value::bits(Expr::Unary(Unary::Not, Box::new(test)));
        let statements = self.define(&id, broken, true);
        if let Expr::Signal { sym, .. } = self.locals[&id].expr {
            self.assertions.push((sym, why.into()));
        }
        Ok(statements)
    }

    /// An `if` with its `else if`s, each a condition and what `arm` lowers.
    pub(super) fn conditional<'s>(
        &mut self,
        tests: &[(&Sx, &'s Sx)],
        top: bool,
        arm: Arm<'_, 's>,
    ) -> Result<Vec<Stmt>> {
        let mut arms = vec![];
        for (test, body) in tests {
            let test = self.condition(test)?;
            // Decided at elaboration (loop variables): only the branch taken is printed.
            let known = match &test {
                Expr::Const { value, .. } => Some(*value != 0u8.into()),
                _ => None,
            };
            let always = top && arms.is_empty() && known == Some(true);
            if known != Some(false) {
                let body = self.apart(|lower| arm(lower, Some(body), always))?;
                if known == Some(true) {
                    return Ok(chain(arms, body));
                }
                arms.push((test, body));
            }
        }
        let top = top && arms.is_empty();
        let rest = self.apart(|lower| arm(lower, None, top))?;
        Ok(chain(arms, rest))
    }

    /// A `match`; `arm` lowers `(case (of pattern..) body..)`.
    pub(super) fn choice<'s>(
        &mut self,
        on: &Sx,
        cases: &'s [Sx],
        top: bool,
        arm: Arm<'_, 's>,
    ) -> Result<Vec<Stmt>> {
        let on = self.value(on)?;
        let width = on.expr.width();
        let variants = match on.descriptor.as_deref().map(|d| &d.kind) {
            Some(TypeKind::Enum(variants)) => Some(variants.clone()),
            _ => None,
        };
        let values = match &variants {
            Some(variants) => variants.len(),
            None if width == 1 => 2,
            None => usize::MAX,
        };
        let mut arms: Vec<(Expr, Vec<Stmt>)> = vec![];
        let mut default = None;
        for case in cases {
            for pattern in case.rest()[0].rest() {
                let label = match pattern.atom() {
                    "_" => None,
                    name => Some(self.pattern(name, width, variants.as_deref())?),
                };
                if let Expr::Const { .. } = on.expr {
                    let hit = label.is_none_or(|label| same_number(&label, &on.expr));
                    if hit {
                        return self.apart(|lower| arm(lower, Some(case), top));
                    }
                    continue;
                }
                match label {
                    None => default = Some(self.apart(|lower| arm(lower, Some(case), false))?),
                    Some(label) if arms.iter().all(|(known, _)| *known != label) => {
                        arms.push((label, self.apart(|lower| arm(lower, Some(case), false))?));
                    }
                    Some(_) => {}
                }
            }
        }
        let default = match default {
            Some(body) => body,
            None if matches!(on.expr, Expr::Const { .. }) => return Err(Reason::NotExhaustive),
            // The last arm also takes the codes that no variant has.
            None if arms.len() == values => {
                let (label, mut body) = arms.pop().expect("a type has values");
                if let Expr::Const {
                    label: Some(label), ..
                } = label
                {
                    body.insert(0, Stmt::Comment(label));
                }
                body
            }
            None => return Err(Reason::NotExhaustive),
        };
        Ok(vec![Stmt::Case(on.expr, arms, default)])
    }

    /// What a pattern stands for: a variant, a constant or a literal.
    fn pattern(&self, name: &str, width: usize, variants: Option<&[String]>) -> Result<Expr> {
        let wrong = || Reason::Pattern(name.into());
        if let Some(variants) = variants {
            let key = variant(name);
            let known = variants.iter().any(|v| v.replace("::", "$") == key);
            let named = self.scope.named(&key).filter(|_| known);
            return named.map(|n| n.value.clone()).ok_or_else(wrong);
        }
        let key = name.replace("::", "$");
        let constant = self.scope.integer(&key);
        let value = match name {
            "true" => 1u8.into(),
            "false" => 0u8.into(),
            _ => constant
                .map(|(n, _)| n.into())
                .or_else(|| crate::value::parse_integer(name))
                .ok_or_else(wrong)?,
        };
        if value.bits() as usize > width {
            return Err(wrong());
        }
        Ok(Expr::Const {
            width,
            value,
            label: constant.map(|(_, label)| label.into()),
        })
    }
}

fn chain(arms: Vec<(Expr, Vec<Stmt>)>, rest: Vec<Stmt>) -> Vec<Stmt> {
    match arms.is_empty() {
        true => rest,
        false => vec![Stmt::If(arms, rest)],
    }
}

fn same_number(a: &Expr, b: &Expr) -> bool {
    matches!((a, b), (Expr::Const { value: a, .. }, Expr::Const { value: b, .. }) if a == b)
}
