//! Statements of a kernel.
use std::mem::take;

use num_bigint::BigUint;
use rust_hdl_core::ast::{
    VerilogBlock, VerilogBlockOrConditional as Otherwise, VerilogConditional,
    VerilogExpression as E, VerilogMatch, VerilogStatement as S,
};
use rust_hdl_core::prelude::TypeKind;

use super::index::Index;
use super::{Lower, Result, print_rust, select};
use crate::emit::error::Reason;
use crate::emit::ir::{Expr, Stmt, Sym, Target};
use crate::emit::kernel::{CLAIM, LINE};
use crate::emit::scope::Role;
use crate::emit::{name, value};

const IN_BRANCH: Reason = Reason::Unsupported(
    "a link or clock inside `if` or `match`",
    "connect it unconditionally",
);

impl Lower<'_> {
    /// `top`: executed in every pass, so ports may be wired here.
    pub(super) fn block(&mut self, code: &VerilogBlock, top: bool) -> Vec<Stmt> {
        let outer = take(&mut self.pending);
        let mut out = vec![];
        for statement in code {
            if let S::Comment(text) = statement
                && let Some(line) = text.strip_prefix(LINE)
            {
                self.line = Some(line.into());
                continue;
            }
            let lowered = self.statement(statement, top);
            out.append(&mut self.pending);
            match lowered {
                Ok(statements) => out.extend(statements),
                Err(reason) => self.refuse(print_rust::statement(statement), reason),
            }
        }
        self.pending = outer;
        out
    }

    fn statement(&mut self, statement: &S, top: bool) -> Result<Vec<Stmt>> {
        match statement {
            S::Assignment(target, value) => self.assignment(target, value, top),
            S::SliceAssignment {
                base,
                width,
                offset,
                replacement,
            } => {
                let sym = self.target(base)?;
                let named;
                let (width, offset) = match Self::field_name(offset) {
                    Some(field) => {
                        let descriptor = self.scope.symbols[sym].descriptor.clone();
                        let (low, width) = Self::field(descriptor.as_deref(), field)?;
                        named = E::Literal((low as u64).into());
                        (width, &named)
                    }
                    None => (*width, offset),
                };
                let value = self.sized(replacement, width)?.expr;
                let target = self.part_target(sym, offset, width)?;
                Ok(vec![Stmt::Assign(target, value)])
            }
            S::If(conditional) => self.conditional(conditional, top),
            S::Match(m) => self.choice(m, top),
            // `self.i` and the loop variable `i` are one name in the tree.
            S::Loop(l) if self.scope.has(&l.index) => Err(Reason::LoopVariable(l.index.clone())),
            S::Loop(l) => {
                let mut out = vec![];
                for i in l.from.as_usize()..l.to.as_usize() {
                    self.loops.push((l.index.clone(), i));
                    let body = self.block(&l.block, top);
                    if body.len() > 1 {
                        out.push(Stmt::Comment(format!("{} = {i}", l.index)));
                    }
                    out.extend(body);
                    self.loops.pop();
                }
                Ok(out)
            }
            S::Comment(text) if text.starts_with(CLAIM) => {
                let (id, why) = text
                    .trim_start_matches(CLAIM)
                    .split_once(' ')
                    .unwrap_or_default();
                if let Some(Expr::Signal { sym, .. }) = self.lets.get(id).map(|v| &v.expr) {
                    self.claims.push((*sym, why.into()));
                }
                Ok(vec![])
            }
            S::Comment(text) => Ok(text
                .lines()
                .map(|line| Stmt::Comment(line.trim().into()))
                .collect()),
            S::Link(_) if !top => Err(IN_BRANCH),
            S::Link(links) => links
                .iter()
                .try_for_each(|link| self.link(link))
                .map(|()| vec![]),
            S::Macro(code) => Ok(self.block(code, top)),
        }
    }

    fn assignment(&mut self, target: &E, value: &E, top: bool) -> Result<Vec<Stmt>> {
        if let E::Signal(to) = target {
            if let Some(id) = Self::own(to, "let") {
                return self.define(id, value, false);
            }
            if let Some(id) = Self::own(to, "mut") {
                return self.define(id, value, true);
            }
            // a parameter is its argument
            if let Some(id) = Self::own(to, "par") {
                let pending = self.pending.len();
                let argument = self.value(value)?;
                if let Expr::Select { sym, .. } = argument.expr
                    && self.pending.len() == pending
                    && matches!(
                        self.scope.symbols[sym].role,
                        Role::Input | Role::ChildOutput(_)
                    )
                {
                    self.lets.insert(id.into(), argument);
                    return Ok(vec![]);
                }
                self.pending.truncate(pending);
                return self.define(id, value, false);
            }
        }
        if let (E::Signal(to), E::Signal(from)) = (target, value)
            && !to.starts_with('~')
            && !from.starts_with('~')
        {
            let (to, from) = (self.key(to)?, self.key(from)?);
            match self.scope.symbol(&to) {
                Some(sym) if self.scope.symbols[sym].clock => {
                    let source = self
                        .scope
                        .symbol(&from)
                        .filter(|s| self.scope.symbols[*s].clock);
                    let source = source.ok_or_else(|| Reason::UnknownName(name::rust(&from)))?;
                    return if top {
                        self.connect(sym, source).map(|()| vec![])
                    } else {
                        Err(IN_BRANCH)
                    };
                }
                None if self.scope.members(&to).next().is_some() => {
                    return if top {
                        self.connect_interface(&to, &from).map(|()| vec![])
                    } else {
                        Err(IN_BRANCH)
                    };
                }
                _ => {}
            }
        }
        let sym = self.target(target)?;
        if self.scope.symbols[sym].clock {
            return Err(Reason::Unsupported(
                "a computed clock",
                "use the clock as it is, and an enable",
            ));
        }
        // `x = x.replace_bit(i, b)` leaves the other bits alone.
        if let E::IndexReplace(base, index, bit) = value
            && matches!(&**base, E::Signal(from) if self.named(from)? == Some(sym))
        {
            let bit = self.sized(bit, 1)?.expr;
            let target = self.part_target(sym, index, 1)?;
            return Ok(vec![Stmt::Assign(target, bit)]);
        }
        let value = self.sized(value, self.scope.symbols[sym].width)?.expr;
        Ok(vec![Stmt::Assign(Target::Whole(sym), value)])
    }

    /// `let`: another name for what does not change in a pass, a signal for everything else.
    fn define(&mut self, id: &str, value: &E, mutable: bool) -> Result<Vec<Stmt>> {
        let mut value = self.value(value)?;
        let fixed = match value.expr {
            Expr::Signal { sym, .. } => matches!(
                self.scope.symbols[sym].role,
                Role::Input | Role::ChildOutput(_)
            ),
            Expr::Const { .. } => true,
            _ => false,
        };
        if fixed && !mutable {
            self.lets.insert(id.into(), value);
            return Ok(vec![]);
        }
        // `2.behind_.x` is the parameter `x` of the second call of `behind`; `x.2` the second `x`
        let words = id.split('.').filter(|w| w.parse::<usize>().is_err());
        let name: String = words.collect();
        let width = value.expr.width();
        let sym = self.scope.local(&name, width, value.descriptor.clone());
        let expr = std::mem::replace(&mut value.expr, Expr::Signal { sym, width });
        self.lets.insert(id.into(), value);
        Ok(vec![Stmt::Assign(Target::Whole(sym), expr)])
    }

    /// The signal behind the name of a local, a port or a register.
    fn named(&self, raw: &str) -> Result<Option<Sym>> {
        match Self::own(raw, "") {
            Some(id) => Ok(match self.lets.get(id).map(|v| &v.expr) {
                Some(Expr::Signal { sym, .. }) => Some(*sym),
                _ => None,
            }),
            None => Ok(self.scope.symbol(&self.key(raw)?)),
        }
    }

    /// A signal this kernel may drive.
    fn target(&mut self, e: &E) -> Result<Sym> {
        let E::Signal(raw) = e else {
            return Err(Reason::Unsupported(
                "this target",
                "assign to `x.next` or `x.next.field`",
            ));
        };
        let sym = self
            .named(raw)?
            .ok_or_else(|| Reason::UnknownName(raw.trim_end_matches("$next").replace('$', ".")))?;
        let symbol = &self.scope.symbols[sym];
        if Self::own(raw, "").is_some() || symbol.role.is_driven_here() {
            Ok(sym)
        } else {
            Err(Reason::DrivesInput(name::rust(&symbol.key)))
        }
    }

    fn part_target(&mut self, sym: Sym, offset: &E, width: usize) -> Result<Target> {
        let (size, descriptor) = (
            self.scope.symbols[sym].width,
            self.scope.symbols[sym].descriptor.clone(),
        );
        match self.index(offset)? {
            Index::Known(low) if low + width > size => {
                Err(Reason::OutOfRange(low + width - 1, size))
            }
            Index::Known(low) => {
                let field = descriptor
                    .as_ref()
                    .and_then(|d| Some((d, select::field_at(d, low, width)?.0)));
                let field = field
                    .map(|(d, field)| self.scope.field_label(&d.name, &field))
                    .transpose()?;
                Ok(if width == size {
                    Target::Whole(sym)
                } else {
                    Target::Part {
                        sym,
                        low,
                        width,
                        field,
                    }
                })
            }
            Index::Chosen { .. } if size == 1 => Ok(Target::Whole(sym)),
            Index::Chosen { expr, .. } => Ok(Target::PartAt {
                sym,
                at: self.resize(expr, select::select_bits(size)),
                width,
            }),
        }
    }

    fn conditional(&mut self, first: &VerilogConditional, top: bool) -> Result<Vec<Stmt>> {
        let (mut arms, mut next) = (vec![], Some(first));
        let mut rest = vec![];
        while let Some(conditional) = next.take() {
            let test = self.condition(&conditional.test)?;
            let known = match &test {
                Expr::Const { value, .. } => Some(*value != 0u8.into()),
                _ => None,
            };
            // Decided at elaboration (loop variables): only the branch taken is printed.
            let unconditional = top && arms.is_empty();
            if known != Some(false) {
                let body = self.block(&conditional.then, unconditional && known == Some(true));
                if known == Some(true) {
                    rest = body;
                    break;
                }
                arms.push((test, body));
            }
            match &conditional.otherwise {
                Otherwise::Block(code) => rest = self.block(code, top && arms.is_empty()),
                Otherwise::Conditional(inner) => match &**inner {
                    S::If(inner) => next = Some(inner),
                    other => rest = self.block(&vec![other.clone()], top && arms.is_empty()),
                },
                Otherwise::None => {}
            }
        }
        Ok(if arms.is_empty() {
            rest
        } else {
            vec![Stmt::If(arms, rest)]
        })
    }

    fn choice(&mut self, m: &VerilogMatch, top: bool) -> Result<Vec<Stmt>> {
        if let Some((on, variants)) = self.enum_value(&m.test) {
            let width = on.width();
            let find = |lower: &Self, pattern: &str| {
                let named = lower.scope.named(pattern).map(|n| n.value.clone());
                named.filter(|n| {
                    n.width() == width && variants.iter().any(|v| v.replace("::", "$") == pattern)
                })
            };
            if let Expr::Const { .. } = on {
                let hit = |pattern: &str| {
                    pattern == "default" || find(self, pattern).as_ref() == Some(&on)
                };
                let arm = m
                    .cases
                    .iter()
                    .find(|c| hit(&c.condition))
                    .ok_or(Reason::NotExhaustive)?;
                return Ok(self.block(&arm.block, top));
            }
            return self.case(m, on, variants.len(), find);
        }
        match self.index(&m.test)? {
            Index::Known(n) => {
                let hit =
                    |pattern: &str| pattern == "default" || self.number(pattern) == Some(n.into());
                let arm = m
                    .cases
                    .iter()
                    .find(|c| hit(&c.condition))
                    .ok_or(Reason::NotExhaustive)?;
                Ok(self.block(&arm.block, top))
            }
            Index::Chosen { expr, .. } => {
                let width = expr.width();
                let values = if width == 1 { 2 } else { usize::MAX };
                let find = |lower: &Self, pattern: &str| {
                    let value = lower
                        .number(pattern)
                        .filter(|n| n.bits() as usize <= width)?;
                    let label = lower.scope.integer(pattern).map(|(_, label)| label.into());
                    Some(Expr::Const {
                        width,
                        value,
                        label,
                    })
                };
                self.case(m, expr, values, find)
            }
        }
    }

    /// A pattern of an integer or `bool`.
    fn number(&self, pattern: &str) -> Option<BigUint> {
        match pattern {
            "true" => Some(1u8.into()),
            "false" => Some(0u8.into()),
            name => self
                .scope
                .integer(name)
                .map(|(n, _)| n.into())
                .or_else(|| value::parse_integer(name)),
        }
    }

    /// `values`: how many different arms cover everything without `_`.
    fn case(
        &mut self,
        m: &VerilogMatch,
        on: Expr,
        values: usize,
        find: impl Fn(&Self, &str) -> Option<Expr>,
    ) -> Result<Vec<Stmt>> {
        let mut arms: Vec<(Expr, Vec<Stmt>)> = vec![];
        let mut default = None;
        for case in &m.cases {
            if case.condition == "default" {
                default = Some(self.block(&case.block, false));
                break;
            }
            let label = find(self, &case.condition);
            let label = label.ok_or_else(|| Reason::Pattern(case.condition.replace('$', "::")))?;
            if arms.iter().all(|(known, _)| *known != label) {
                arms.push((label, self.block(&case.block, false)));
            }
        }
        let default = match default {
            Some(body) => body,
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
        Ok(vec![Stmt::Case(on, arms, default)])
    }

    /// The scrutinee if its type is an enum, with the variants.
    fn enum_value(&mut self, e: &E) -> Option<(Expr, Vec<String>)> {
        match e {
            E::Paren(x) => self.enum_value(x),
            E::Signal(_) | E::Slice(..) => {
                let pending = self.pending.len();
                let value = self.value(e).ok();
                match value.and_then(|v| Some((v.expr, v.descriptor?.kind.clone()))) {
                    Some((expr, TypeKind::Enum(variants))) => Some((expr, variants)),
                    _ => {
                        self.pending.truncate(pending);
                        None
                    }
                }
            }
            _ => None,
        }
    }
}
