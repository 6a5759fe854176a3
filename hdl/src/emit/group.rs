//! Cuts a kernel into independent pieces, each an `assign` or an `always @*` of its own.
//!
//! A kernel is one Rust function; as one `always` block it would make every output depend on every input, which
//! simulators take for combinational loops. Statements stay together if they assign the same signal, and if one reads
//! a signal before another assigns it again.
use std::collections::{BTreeMap, HashMap, HashSet};

use super::ir::{Expr, Stmt, Sym, Target};

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

/// Without assignments whose value nobody reads before the next one.
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
        return vec![Piece::Always(statements)];
    }
    let alone = |s| match s {
        Stmt::Assign(target, value) => Piece::Assign(target, value),
        Stmt::Comment(text) => Piece::Comment(text),
        _ => unreachable!("plain"),
    };
    statements.into_iter().map(alone).collect()
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
