//! `forward!` and clocks: ports wired to ports.
use super::prefix::Sx;
use super::{Lower, Result};
use crate::error::Reason;
use crate::ir::Sym;
use crate::name;
use crate::scope::Role;

impl Lower<'_> {
    /// Clock and reset of every child whose clock the kernel does not wire itself.
    pub(super) fn clocks(&mut self, code: &[Sx]) {
        if self.scope.members("clock").next().is_none() {
            return;
        }
        for child in &self.node.children {
            let by_hand = |s: &Sx| match (s.head(), s.rest()) {
                ("forward" | "assign", [Sx::List(to), ..]) => {
                    to.get(1).is_some_and(|n| n.atom() == child.key)
                        && to.get(2).is_some_and(|n| n.atom() == "clock")
                }
                _ => false,
            };
            if code.iter().any(by_hand) {
                continue;
            }
            if let Err(reason) = self.wire(&format!("{}$clock", child.key), "clock") {
                self.refuse(reason);
            }
        }
    }

    /// `forward!(to <= from)`: a signal or all signals of an interface.
    pub(super) fn forward(&mut self, to: &Sx, from: &Sx) -> Result<()> {
        let (to, from) = (self.path(to.rest())?, self.path(from.rest())?);
        match (self.scope.symbol(&to), self.scope.symbol(&from)) {
            (Some(to), Some(from)) => self.either_way(to, from),
            _ if self.scope.members(&to).next().is_none() => {
                Err(Reason::UnknownName(name::rust(&to)))
            }
            _ => self.wire(&to, &from),
        }
    }

    /// Wires every signal of the interface `to` with its namesake in `from`.
    fn wire(&mut self, to: &str, from: &str) -> Result<()> {
        let pairs: Vec<_> = self
            .scope
            .members(to)
            .map(|(sym, rest)| (sym, self.scope.symbol(&format!("{from}${rest}"))))
            .collect();
        for (to, other) in pairs {
            let other = other.ok_or_else(|| Reason::UnknownName(name::rust(from)))?;
            self.either_way(to, other)?;
        }
        Ok(())
    }

    /// An interface has signals of both directions.
    fn either_way(&mut self, to: Sym, from: Sym) -> Result<()> {
        match self.scope.symbols[to].role {
            Role::Output | Role::ChildInput(_) => self.connect(to, from),
            _ => self.connect(from, to),
        }
    }

    /// `child.clock.clk = clock.clk`: a clock is wired, not computed.
    pub(super) fn clock(&mut self, target: &Sx, e: &Sx) -> Option<Result<()>> {
        let of = |sx: &Sx, write| match self.place(sx.rest(), write) {
            Ok((key, [])) if sx.head() == "p" => self.scope.symbol(&key),
            _ => None,
        };
        let (to, from) = (of(target, true)?, of(e, false)?);
        let clock = |sym: Sym| self.scope.symbols[sym].clock;
        (clock(to) && clock(from)).then(|| self.connect(to, from))
    }

    fn connect(&mut self, to: Sym, from: Sym) -> Result<()> {
        let (destination, source) = (&self.scope.symbols[to], &self.scope.symbols[from]);
        if !matches!(destination.role, Role::ChildInput(_) | Role::Output) {
            return Err(Reason::DrivesInput(name::rust(&destination.key)));
        }
        match source.role {
            Role::Input | Role::ChildOutput(_) => {}
            Role::ChildInput(_) => return Err(Reason::ChildInputRead(name::rust(&source.key))),
            _ => {
                return Err(Reason::Unsupported(
                    "`forward!` from a signal that this kernel drives",
                    "assign each signal",
                ));
            }
        }
        if destination.width != source.width {
            return Err(Reason::WidthMismatch(source.width, destination.width));
        }
        if self.links.iter().any(|(old, _)| *old == to) {
            return Err(Reason::DoubleDriver(name::rust(&destination.key)));
        }
        self.links.push((to, from));
        Ok(())
    }
}
