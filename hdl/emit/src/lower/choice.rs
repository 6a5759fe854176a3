//! Values with choices in them: an `if` or `match` becomes a default and exceptions to it.
use super::place::To;
use super::prefix::Sx;
use super::{Lower, Result};
use crate::error::Reason;
use crate::ir::{Expr, Stmt};

/// It is an `if` or a `match`.
pub(super) fn is_choice(e: &Sx) -> bool {
    matches!(e.head(), "sel" | "choose")
}

impl Lower<'_> {
    /// `to = e`, where `e` may be an `if`, a `match` or a block.
    pub(super) fn give(&mut self, to: &To, e: &Sx) -> Result<Vec<Stmt>> {
        match (e.head(), e.rest()) {
            ("do", [before @ .., last]) => {
                let mut out = self.block(before, false);
                out.extend(self.apart(|lower| lower.give(to, last))?);
                Ok(out)
            }
            ("paren", [inner]) if is_choice(inner) => self.give(to, inner),
            ("cast", [width, inner]) if is_choice(inner) => self.give(to, &sized(width, inner)),
            ("sel", _) => self.give_if(to, e),
            ("choose", [on, arms @ ..]) => self.give_match(to, on, arms),
            _ => self.store(to, e),
        }
    }

    /// The last `else` as the default, then the others as exceptions to it.
    fn give_if(&mut self, to: &To, e: &Sx) -> Result<Vec<Stmt>> {
        let (mut arms, mut last) = (vec![], e);
        while let ("sel", [test, then, otherwise]) = (last.head(), last.rest()) {
            arms.push((test, then));
            last = only(otherwise);
        }
        // an arm that reads the target must not find the default there
        let itself = matches!(to, To::Place { read: Some(root), .. } if e.reads(root));
        let values: Vec<_> = arms.iter().map(|(_, then)| *then).collect();
        let (mut out, again) = match itself {
            true => (vec![], to.clone()),
            false => self.give_default(to, last, &values)?,
        };
        let exceptions = self.conditional(&arms, false, &mut |lower, arm, _| match arm {
            Some(then) => lower.give(&again, then),
            None if itself => lower.give(&again, last),
            None => Ok(vec![]),
        })?;
        out.append(&mut self.pending);
        out.extend(exceptions);
        Ok(out)
    }

    fn give_match(&mut self, to: &To, on: &Sx, arms: &[Sx]) -> Result<Vec<Stmt>> {
        let wild = |arm: &&Sx| arm.rest()[0].rest().iter().any(|p| p.atom() == "_");
        let default = arms.iter().find(wild).or(arms.last());
        let default = default.ok_or(Reason::NotExhaustive)?;
        let reads = |root: &str| on.reads(root) || arms.iter().any(|a| a.reads(root));
        let itself = matches!(to, To::Place { read: Some(root), .. } if reads(root));
        let values: Vec<Sx> = arms.iter().map(value_of).collect();
        let others: Vec<_> = arms
            .iter()
            .zip(&values)
            .filter(|(arm, _)| !std::ptr::eq(*arm, default))
            .map(|(_, value)| value)
            .collect();
        let (mut out, again) = match itself {
            true => (vec![], to.clone()),
            false => self.give_default(to, &value_of(default), &others)?,
        };
        let any = Sx::List(vec![Sx::Atom("of".into()), Sx::Atom("_".into())]);
        let mut cases: Vec<Sx> = arms
            .iter()
            .filter(|a| !std::ptr::eq(*a, default))
            .cloned()
            .collect();
        cases.push(Sx::List(vec![Sx::Atom("case".into()), any]));
        let exceptions = self.choice(on, &cases, false, &mut |lower, arm, _| match arm {
            Some(arm) if arm.rest().len() > 1 => lower.give(&again, &value_of(arm)),
            _ if itself => lower.give(&again, &value_of(default)),
            _ => Ok(vec![]),
        })?;
        out.append(&mut self.pending);
        out.extend(exceptions);
        Ok(out)
    }

    /// The first value of what other arms overwrite, and that place; a literal takes the width of one of them.
    fn give_default(&mut self, to: &To, e: &Sx, others: &[&Sx]) -> Result<(Vec<Stmt>, To)> {
        let id = match to {
            To::Let(id) | To::Mut(id) | To::Parameter(id) => id,
            To::Place { .. } => {
                let out = self.apart(|lower| lower.give(to, e))?;
                return Ok((out, to.clone()));
            }
        };
        let e = only(e);
        let literal = |e: &Sx| matches!(e.head(), "n" | "k");
        let out = if literal(e) {
            let sized = others
                .iter()
                .map(|e| only(e))
                .find(|e| !literal(e) && !is_choice(e) && e.head() != "do");
            let width = self.width_of(sized.ok_or(Reason::LiteralWidth)?)?;
            let value = self.sized(e, width)?;
            self.define(id, value, true)
        } else {
            self.apart(|lower| lower.give(&To::Mut(id.clone()), e))?
        };
        let Expr::Signal { sym, .. } = self.locals[id].expr else {
            unreachable!("a local that changes is a signal");
        };
        let again = To::Place {
            sym,
            part: None,
            read: None,
        };
        Ok((out, again))
    }

    /// The width of a value that is not used.
    fn width_of(&mut self, e: &Sx) -> Result<usize> {
        let pending = self.pending.len();
        let width = self.value(e)?.expr.width();
        self.pending.truncate(pending);
        Ok(width)
    }
}

/// The value of an arm of a `match`.
fn value_of(arm: &Sx) -> Sx {
    match &arm.rest()[1..] {
        [one] => one.clone(),
        code => Sx::List([&[Sx::Atom("do".into())], code].concat()),
    }
}

/// `(do x)` is x.
fn only(e: &Sx) -> &Sx {
    match (e.head(), e.rest()) {
        ("do" | "paren", [one]) => only(one),
        _ => e,
    }
}

/// The width of a choice, given to each of its values.
fn sized(width: &Sx, e: &Sx) -> Sx {
    let cast = |x: &Sx| match x.head() {
        "sel" | "choose" | "do" => sized(width, x),
        _ => Sx::List(vec![Sx::Atom("cast".into()), width.clone(), x.clone()]),
    };
    let Sx::List(parts) = e else { return e.clone() };
    let mut parts = parts.clone();
    let values = match e.head() {
        "sel" => &mut parts[2..],
        "do" => {
            let last = parts.len() - 1;
            &mut parts[last..]
        }
        _ => {
            for arm in &mut parts[2..] {
                if let Sx::List(arm) = arm
                    && let Some(last) = arm.last_mut()
                {
                    *last = cast(last);
                }
            }
            return Sx::List(parts);
        }
    };
    values.iter_mut().for_each(|value| *value = cast(value));
    Sx::List(parts)
}
