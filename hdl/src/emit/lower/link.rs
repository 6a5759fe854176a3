//! `link`, `join` and the clock macros: ports wired to ports.
use rust_hdl_core::ast::{VerilogLink, VerilogLinkDetails};

use super::{Lower, Result};
use crate::emit::error::Reason;
use crate::emit::ir::Sym;
use crate::emit::name;
use crate::emit::scope::Role;

impl Lower<'_> {
    /// One wire of a `link` or `join`.
    pub(super) fn link(&mut self, link: &VerilogLink) -> Result<()> {
        let (destination, source) = match link {
            VerilogLink::Forward(d) => (self.end(&d.other_name, d)?, self.end(&d.owner_name, d)?),
            VerilogLink::Backward(d) => (self.end(&d.owner_name, d)?, self.end(&d.other_name, d)?),
            VerilogLink::Bidirectional(_) => {
                return Err(Reason::Unsupported(
                    "an inout port",
                    "use an input and an output",
                ));
            }
        };
        self.connect(destination, source)
    }

    fn end(&self, interface: &str, details: &VerilogLinkDetails) -> Result<Sym> {
        let field = details.my_name.trim_start_matches('.');
        let raw = if field.is_empty() {
            interface.into()
        } else {
            format!("{interface}.{field}")
        };
        self.scope
            .symbol(&self.key(&raw)?)
            .ok_or_else(|| Reason::UnknownName(raw.replace('$', ".")))
    }

    /// Wires every signal of the interface `destination` to its namesake in `source`.
    pub(super) fn connect_interface(&mut self, destination: &str, source: &str) -> Result<()> {
        let pairs: Vec<_> = self
            .scope
            .members(destination)
            .map(|(sym, rest)| (sym, self.scope.symbol(&format!("{source}${rest}"))))
            .collect();
        for (to, from) in pairs {
            self.connect(
                to,
                from.ok_or_else(|| Reason::UnknownName(name::rust(source)))?,
            )?;
        }
        Ok(())
    }

    pub(super) fn connect(&mut self, to: Sym, from: Sym) -> Result<()> {
        let (destination, source) = (&self.scope.symbols[to], &self.scope.symbols[from]);
        if !matches!(destination.role, Role::ChildInput(_) | Role::Output) {
            return Err(Reason::DrivesInput(name::rust(&destination.key)));
        }
        match source.role {
            Role::Input | Role::ChildOutput(_) => {}
            Role::ChildInput(_) => return Err(Reason::ChildInputRead(name::rust(&source.key))),
            _ => {
                return Err(Reason::Unsupported(
                    "a link from a signal this kernel drives",
                    "assign `x.next = y.val()` for each signal",
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
