//! Drivers of signals and their order: refuses latches, undriven and doubly driven signals, and reads before the first
//! write.
use std::collections::{HashMap, HashSet};

use num_bigint::BigUint;

use super::error::{EmitError, Reason};
use super::ir::{Bits, Expr, Stmt, Sym, Target};
use super::lower::Kernel;
use super::scope::{Role, Scope, Symbol};
use super::{name, value};

/// For each signal the bits that surely have a value of this pass.
type Assigned = HashMap<Sym, BigUint>;

/// Everything wrong with the drivers of a kernel.
pub(crate) fn drivers(scope: &Scope, kernel: &Kernel, path: &str) -> Vec<EmitError> {
    let linked: HashSet<Sym> = kernel.links.iter().map(|(to, _)| *to).collect();
    let mut check = Check {
        scope,
        linked,
        touched: HashSet::new(),
        reasons: vec![],
    };
    let mut assigned = Assigned::new();
    check.block(&kernel.statements, &mut assigned);
    for (sym, symbol) in scope
        .symbols
        .iter()
        .enumerate()
        .filter(|(_, s)| s.role.is_driven_here())
    {
        let missing = value::ones(symbol.width) ^ assigned.remove(&sym).unwrap_or_default();
        match (check.linked.contains(&sym), check.touched.contains(&sym)) {
            (true, true) => check.reason(Reason::DoubleDriver(name::rust(&symbol.key))),
            (true, false) => {}
            (false, false) => check.reason(Reason::Undriven(name::rust(&symbol.key))),
            (false, true) if missing == BigUint::ZERO => {}
            (false, true) => check.reason(Reason::Latch(bits_text(symbol, &missing))),
        }
    }
    let of = |reason| EmitError {
        block: path.into(),
        at: None,
        reason,
    };
    check.reasons.into_iter().map(of).collect()
}

struct Check<'a> {
    scope: &'a Scope,
    linked: HashSet<Sym>,
    /// Assigned on some path.
    touched: HashSet<Sym>,
    reasons: Vec<Reason>,
}

impl Check<'_> {
    fn reason(&mut self, reason: Reason) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    fn block(&mut self, code: &[Stmt], assigned: &mut Assigned) {
        for statement in code {
            match statement {
                Stmt::Assign(target, value) => self.assign(target, value, assigned),
                Stmt::If(arms, rest) => {
                    for (test, _) in arms {
                        self.read(test, assigned);
                    }
                    self.branches(arms, rest, assigned);
                }
                Stmt::Case(on, arms, rest) => {
                    self.read(on, assigned);
                    self.branches(arms, rest, assigned);
                }
                Stmt::Comment(_) => {}
            }
        }
    }

    fn branches(&mut self, arms: &[(Expr, Vec<Stmt>)], rest: &[Stmt], assigned: &mut Assigned) {
        let before = assigned.clone();
        self.block(rest, assigned);
        for (_, body) in arms {
            let mut after = before.clone();
            self.block(body, &mut after);
            assigned.retain(|sym, bits| {
                *bits &= after.get(sym).cloned().unwrap_or_default();
                *bits != BigUint::ZERO
            });
        }
    }

    fn assign(&mut self, target: &Target, value: &Expr, assigned: &mut Assigned) {
        let sym = target.sym();
        let symbol = &self.scope.symbols[sym];
        self.read(value, assigned);
        self.touched.insert(sym);
        let bits = match target {
            Target::Whole(_) => value::ones(symbol.width),
            Target::Part { low, width, .. } => value::ones(*width) << *low,
            Target::PartAt { at: index, .. } => {
                self.read(index, assigned);
                BigUint::ZERO
            }
        };
        *assigned.entry(sym).or_default() |= bits;
    }

    fn read(&mut self, e: &Expr, assigned: &Assigned) {
        let mut early = vec![];
        e.reads(&mut |sym, bits| {
            let symbol = &self.scope.symbols[sym];
            if !matches!(symbol.role, Role::Local | Role::Output) || self.linked.contains(&sym) {
                return;
            }
            let needed = match bits {
                Bits::All => value::ones(symbol.width),
                Bits::Range(low, width) => value::ones(width) << low,
            };
            let missing = assigned.get(&sym).map_or(needed.clone(), |have| {
                &needed & (&needed ^ (&needed & have))
            });
            if missing != BigUint::ZERO {
                early.push(Reason::ReadBeforeWrite(bits_text(symbol, &missing)));
            }
        });
        for reason in early {
            self.reason(reason);
        }
    }
}

/// The signal, with the bits in question if they are not all.
fn bits_text(symbol: &Symbol, bits: &BigUint) -> String {
    let name = name::rust(&symbol.key);
    if *bits == value::ones(symbol.width) {
        return name;
    }
    let (low, high) = (bits.trailing_zeros().unwrap_or(0), bits.bits() - 1);
    if low == high {
        format!("{name} bit {low}")
    } else {
        format!("{name} bits {high}:{low}")
    }
}
