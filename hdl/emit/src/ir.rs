//! Typed Verilog: what the lowering writes and the printer prints.
//!
//! Invariant: operands of arithmetic, bitwise and comparing operators have equal widths, and both sides of an
//! assignment too. Verilog's context rules then never widen anything, so every expression has its Rust value.
use num_bigint::BigUint;

/// Index of a symbol in its module's table.
pub(crate) type Sym = usize;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    /// A number, with the name it has in the source if it has one.
    Const {
        width: usize,
        value: BigUint,
        label: Option<String>,
    },
    /// A whole signal.
    Signal {
        sym: Sym,
        width: usize,
    },
    /// Bits known at elaboration, with the name of the struct field if it is one.
    Select {
        sym: Sym,
        low: usize,
        width: usize,
        field: Option<String>,
    },
    /// Bits chosen at run time.
    SelectAt {
        sym: Sym,
        at: Box<Expr>,
        width: usize,
    },
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// Most significant first.
    Concat(Vec<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Not,
    Neg,
    All,
    Any,
    Xor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Binary {
    /// The result is one bit whatever the operands are.
    pub(crate) fn is_truth(self) -> bool {
        use Binary::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge)
    }
}

impl Expr {
    pub(crate) fn number(width: usize, value: impl Into<BigUint>) -> Self {
        Self::Const {
            width,
            value: value.into(),
            label: None,
        }
    }

    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Const { width, .. }
            | Self::Signal { width, .. }
            | Self::Select { width, .. }
            | Self::SelectAt { width, .. } => *width,
            Self::Unary(Unary::Not | Unary::Neg, x) => x.width(),
            Self::Unary(..) => 1,
            Self::Binary(op, left, _) => {
                if op.is_truth() {
                    1
                } else {
                    left.width()
                }
            }
            Self::Concat(parts) => parts.iter().map(Self::width).sum(),
        }
    }

    /// Zero-extended to `width` bits, which is not less than its own.
    pub(crate) fn extended(self, width: usize) -> Self {
        let missing = width - self.width();
        match self {
            x if missing == 0 => x,
            Self::Const { value, .. } => Self::number(width, value),
            x => Self::Concat(vec![Self::number(missing, 0u8), x]),
        }
    }

    /// Calls `f` with every signal read and the bits read of it.
    pub(crate) fn reads(&self, f: &mut dyn FnMut(Sym, Bits)) {
        match self {
            Self::Const { .. } => {}
            Self::Signal { sym, .. } => f(*sym, Bits::All),
            Self::Select {
                sym, low, width, ..
            } => f(*sym, Bits::Range(*low, *width)),
            Self::SelectAt { sym, at, .. } => {
                f(*sym, Bits::All);
                at.reads(f);
            }
            Self::Unary(_, x) => x.reads(f),
            Self::Binary(_, a, b) => {
                a.reads(f);
                b.reads(f);
            }
            Self::Concat(parts) => parts.iter().for_each(|x| x.reads(f)),
        }
    }
}

/// Which bits of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bits {
    All,
    /// Lowest bit and count.
    Range(usize, usize),
}

/// What is assigned.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    Whole(Sym),
    Part {
        sym: Sym,
        low: usize,
        width: usize,
        field: Option<String>,
    },
    PartAt {
        sym: Sym,
        at: Expr,
        width: usize,
    },
}

impl Target {
    pub(crate) fn sym(&self) -> Sym {
        match self {
            Self::Whole(sym) | Self::Part { sym, .. } | Self::PartAt { sym, .. } => *sym,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stmt {
    Assign(Target, Expr),
    /// `if`, `else if`..., `else`.
    If(Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    /// Scrutinee, arms, `default`.
    Case(Expr, Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    Comment(String),
}

impl Stmt {
    /// Calls `f` with every assignment in it.
    pub(crate) fn writes(&self, f: &mut dyn FnMut(&Target)) {
        match self {
            Self::Assign(target, _) => f(target),
            Self::If(arms, rest) | Self::Case(_, arms, rest) => {
                arms.iter()
                    .flat_map(|(_, body)| body)
                    .chain(rest)
                    .for_each(|s| s.writes(f));
            }
            Self::Comment(_) => {}
        }
    }

    /// Calls `f` with every signal read in it.
    pub(crate) fn reads(&self, f: &mut dyn FnMut(Sym, Bits)) {
        match self {
            Self::Assign(target, value) => {
                if let Target::PartAt { at, .. } = target {
                    at.reads(f);
                }
                value.reads(f);
            }
            Self::If(arms, rest) | Self::Case(_, arms, rest) => {
                if let Self::Case(on, ..) = self {
                    on.reads(f);
                } else {
                    arms.iter().for_each(|(test, _)| test.reads(f));
                }
                arms.iter()
                    .flat_map(|(_, body)| body)
                    .chain(rest)
                    .for_each(|s| s.reads(f));
            }
            Self::Comment(_) => {}
        }
    }
}
