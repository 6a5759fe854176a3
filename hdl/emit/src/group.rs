//! Cuts a kernel into independent pieces, each an `assign` or an `always @*` of its own.
//!
//! A kernel is one Rust function; as one `always` block it would make every output depend on every input, which
//! simulators take for combinational loops. Statements stay together if they assign the same signal, and if one reads
//! a signal before another assigns it again.
use std::collections::{BTreeMap, HashMap, HashSet};

use num_bigint::BigUint;

use super::ir::{Expr, Stmt, Sym, Target};
use super::value;

/// One driver.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece {
    Assign(Target, Expr),
    /// Stands before the next one.
    Comment(String),
    Always(Vec<Stmt>),
}

/// The pieces in the order of their last statement, so that one stands behind what it reads. Comments go with the
/// statement behind them.
pub(crate) fn pieces(code: Vec<Stmt>) -> Vec<Piece> {
    let units = units(without_dead(code));
    let mut groups = Groups::new(units.len());
    let writers = writers(&units);
    for sharing in writers.values() {
        sharing
            .iter()
            .for_each(|unit| groups.join(sharing[0], *unit));
    }
    let readers: Vec<Vec<Sym>> = units.iter().map(|unit| reads(unit)).collect();
    for (unit, read) in readers.iter().enumerate() {
        for sharing in read.iter().filter_map(|sym| writers.get(sym)) {
            if sharing.iter().any(|writer| *writer > unit) {
                groups.join(unit, sharing[0]);
            }
        }
    }
    join_cycles(&mut groups, &readers, &writers);
    let mut pieces: BTreeMap<usize, (usize, Vec<Stmt>)> = BTreeMap::new();
    for (unit, statements) in units.into_iter().enumerate() {
        let (last, piece) = pieces.entry(groups.root(unit)).or_default();
        *last = unit;
        piece.extend(statements);
    }
    let mut pieces: Vec<_> = pieces.into_values().collect();
    pieces.sort_by_key(|(last, _)| *last);
    pieces
        .into_iter()
        .flat_map(|(_, statements)| piece(statements))
        .collect()
}

/// Top-level statements, each with the comments before it.
fn units(code: Vec<Stmt>) -> Vec<Vec<Stmt>> {
    let mut units = vec![vec![]];
    for statement in code {
        let ends = !matches!(statement, Stmt::Comment(_));
        units.last_mut().expect("never empty").push(statement);
        if ends {
            units.push(vec![]);
        }
    }
    units.retain(|unit: &Vec<Stmt>| unit.iter().any(|s| !matches!(s, Stmt::Comment(_))));
    units
}

fn writers(units: &[Vec<Stmt>]) -> HashMap<Sym, Vec<usize>> {
    let mut writers: HashMap<Sym, Vec<usize>> = HashMap::new();
    for (unit, statements) in units.iter().enumerate() {
        statements
            .iter()
            .for_each(|s| s.writes(&mut |t| writers.entry(t.sym()).or_default().push(unit)));
    }
    writers
}

fn reads(statements: &[Stmt]) -> Vec<Sym> {
    let mut found = vec![];
    statements
        .iter()
        .for_each(|s| s.reads(&mut |sym, _| found.push(sym)));
    found
}

/// Groups that read each other's signals become one: the strongly connected components of "writes what is read by".
fn join_cycles(groups: &mut Groups, readers: &[Vec<Sym>], writers: &HashMap<Sym, Vec<usize>>) {
    let mut forward = vec![vec![]; readers.len()];
    let mut backward = vec![vec![]; readers.len()];
    for (unit, read) in readers.iter().enumerate() {
        for sharing in read.iter().filter_map(|sym| writers.get(sym)) {
            let (from, to) = (groups.root(sharing[0]), groups.root(unit));
            forward[from].push(to);
            backward[to].push(from);
        }
    }
    // Kosaraju: visit backwards from the groups that finish last.
    let (mut seen, mut finished) = (vec![false; readers.len()], vec![]);
    (0..readers.len()).for_each(|start| visit(start, &forward, &mut seen, &mut finished));
    let mut seen = vec![false; readers.len()];
    for start in finished.into_iter().rev() {
        let mut component = vec![];
        visit(start, &backward, &mut seen, &mut component);
        component
            .iter()
            .for_each(|group| groups.join(start, *group));
    }
}

/// Depth first from `start`; appends nodes as they are finished.
fn visit(start: usize, edges: &[Vec<usize>], seen: &mut [bool], finished: &mut Vec<usize>) {
    let mut open = vec![(start, 0)];
    if std::mem::replace(&mut seen[start], true) {
        return;
    }
    while let Some((at, next)) = open.pop() {
        match edges[at].get(next) {
            None => finished.push(at),
            Some(&to) => {
                open.push((at, next + 1));
                if !std::mem::replace(&mut seen[to], true) {
                    open.push((to, 0));
                }
            }
        }
    }
}

/// Without assignments whose value is not read before the next one.
fn without_dead(code: Vec<Stmt>) -> Vec<Stmt> {
    let mut overwritten = HashSet::new();
    let mut kept = vec![];
    for statement in code.into_iter().rev() {
        if let Stmt::Assign(Target::Whole(sym), _) = &statement
            && !overwritten.insert(*sym)
        {
            continue;
        }
        statement.reads(&mut |sym, _| {
            overwritten.remove(&sym);
        });
        kept.push(statement);
    }
    kept.reverse();
    kept
}

/// Plain assignments to different bits need no `always`.
fn piece(statements: Vec<Stmt>) -> Vec<Piece> {
    let mut ranges: Vec<(Sym, usize, usize)> = vec![];
    let plain = statements.iter().all(|s| match s {
        Stmt::Comment(_) => true,
        Stmt::Assign(target, _) => {
            let range = match target {
                Target::Whole(sym) => (*sym, 0, usize::MAX),
                Target::Part {
                    sym, low, width, ..
                } => (*sym, *low, low + width),
                Target::PartAt { .. } => return false,
            };
            let free = ranges
                .iter()
                .all(|r| r.0 != range.0 || r.2 <= range.1 || range.2 <= r.1);
            ranges.push(range);
            free
        }
        _ => false,
    });
    let own = reads(&statements)
        .iter()
        .any(|sym| ranges.iter().any(|r| r.0 == *sym));
    if !plain || own {
        let fixed = constants(&statements);
        return fixed.unwrap_or_else(|| vec![Piece::Always(statements)]);
    }
    let alone = |s| match s {
        Stmt::Assign(target, value) => Piece::Assign(target, value),
        Stmt::Comment(text) => Piece::Comment(text),
        _ => unreachable!("plain"),
    };
    statements.into_iter().map(alone).collect()
}

/// Assignments of constants of which later ones replace bits of earlier ones, without the bits replaced: in an
/// `always` that reads nothing they would never run.
fn constants(statements: &[Stmt]) -> Option<Vec<Piece>> {
    let mut fixed: HashMap<Sym, BigUint> = HashMap::new();
    let mut pieces = vec![];
    for statement in statements.iter().rev() {
        let (target, value) = match statement {
            Stmt::Assign(target, value) => (target, value),
            Stmt::Comment(text) => {
                pieces.push(Piece::Comment(text.clone()));
                continue;
            }
            _ => return None,
        };
        let Expr::Const {
            width,
            value: number,
            ..
        } = value
        else {
            return None;
        };
        let start = match target {
            Target::Whole(_) => 0,
            Target::Part { low, .. } => *low,
            Target::PartAt { .. } => return None,
        };
        let known = fixed.entry(target.sym()).or_default();
        let is_free = |bit: usize| !known.bit((start + bit) as u64);
        if (0..*width).all(is_free) {
            pieces.push(Piece::Assign(target.clone(), value.clone()));
        } else {
            let mut bit = 0;
            while bit < *width {
                let run = (bit..*width).take_while(|at| is_free(*at)).count();
                if run > 0 {
                    let part = Target::Part {
                        sym: target.sym(),
                        low: start + bit,
                        width: run,
                        field: None,
                    };
                    let bits = (number >> bit) & value::ones(run);
                    pieces.push(Piece::Assign(part, Expr::number(run, bits)));
                }
                bit += run.max(1);
            }
        }
        *known |= value::ones(*width) << start;
    }
    pieces.reverse();
    Some(pieces)
}

/// A signal of an `always` that reads none but its own.
pub(crate) fn asleep(pieces: &[Piece]) -> Option<Sym> {
    pieces.iter().find_map(|piece| {
        let Piece::Always(code) = piece else {
            return None;
        };
        let mut written = vec![];
        code.iter()
            .for_each(|s| s.writes(&mut |target| written.push(target.sym())));
        let wakes = reads(code).iter().any(|sym| !written.contains(sym));
        (!wakes).then(|| written[0])
    })
}

/// Union-find; the root of a group is its first statement.
struct Groups(Vec<usize>);

impl Groups {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn root(&self, mut at: usize) -> usize {
        while self.0[at] != at {
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}
