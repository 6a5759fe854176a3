//! Signals that a child or a register takes under another name: printed where they are taken, without a wire between.
use std::collections::HashMap;

use super::group::Piece;
use super::ir::{Expr, Sym, Target};
use super::scope::{Role, Scope};

/// For inputs of children what is connected to them.
pub(crate) type Direct = HashMap<Sym, Expr>;

/// A concatenation of more parts has a line of its own.
const MOST_PARTS: usize = 3;

/// Takes the `assign`s that only give a name out of `pieces`; one with a comment stays.
///
/// No piece reads an input of a child: the lowering refuses it.
pub(crate) fn take(scope: &Scope, pieces: &mut Vec<Piece>) -> Direct {
    let mut direct = Direct::new();
    let mut explained = false;
    pieces.retain(|piece| {
        let stays = explained;
        explained = matches!(piece, Piece::Comment(_));
        match piece {
            Piece::Assign(Target::Whole(sym), value)
                if !stays
                    && matches!(scope.symbols[*sym].role, Role::ChildInput(_))
                    && names(value) =>
            {
                direct.insert(*sym, value.clone());
                false
            }
            _ => true,
        }
    });
    direct
}

/// Bits as they are, without logic.
fn names(value: &Expr) -> bool {
    match value {
        Expr::Const { .. } | Expr::Signal { .. } | Expr::Select { .. } => true,
        Expr::Concat(parts) => parts.len() <= MOST_PARTS && parts.iter().all(names),
        Expr::SelectAt { .. } | Expr::Unary(..) | Expr::Binary(..) => false,
    }
}
