//! Helper functions, copied into the kernel that calls them.
use super::place::To;
use super::prefix::Sx;
use super::{Lower, Result, Typed};
use crate::error::Reason;

impl Lower<'_> {
    pub(super) fn call(&mut self, name: &str, arguments: &[Sx]) -> Result<Typed> {
        let source = self.sources.last().expect("a kernel is being read");
        let function = source.functions.get(name).cloned();
        let function = function.ok_or_else(|| Reason::UnknownName(name.into()))?;
        let last = name.rsplit("::").next().unwrap_or(name);
        let prefix = self.fresh(&format!("{last}_"));
        for (parameter, argument) in function.parameters.iter().zip(arguments) {
            let to = To::Parameter(format!("{prefix}{parameter}"));
            let given = self.apart(|lower| lower.give(&to, argument))?;
            self.pending.extend(given);
        }
        let line = self.line.clone();
        self.sources.push(function.clone());
        self.prefixes.push(prefix);
        let loops = std::mem::take(&mut self.loops);
        let result = match function.body.split_last() {
            Some((value, before)) => {
                let before = self.block(before, false);
                self.pending.extend(before);
                self.typed(value)
            }
            None => Err(Reason::UnknownName(name.into())),
        };
        self.loops = loops;
        self.prefixes.pop();
        self.sources.pop();
        self.line = line;
        result
    }
}
