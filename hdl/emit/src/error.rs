//! Why a block cannot be given its Rust meaning in Verilog.
use std::fmt;

use thiserror::Error;

/// One refusal: where, in which expression, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub struct EmitError {
    /// Path of the block from the top, for instance `top.rx.fifo[2]`.
    pub block: String,
    /// File and line of the statement, where there is one.
    pub at: Option<String>,
    /// What is wrong and what to write instead.
    pub reason: Reason,
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Some(at) => write!(f, "{at}: {}: {}", self.block, self.reason),
            None => write!(f, "{}: {}", self.block, self.reason),
        }
    }
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// The block does not say its name.
    #[error(
        "the block has no name: write `describe!(\"name\", \"What it does.\");` in its `impl Logic`"
    )]
    NoName,
    /// A name that Verilog cannot have.
    #[error("`{0}` cannot be a Verilog name ({1}): rename the field or block")]
    BadName(String, &'static str),
    /// Two things of one module print under one name.
    #[error("`{0}` and `{1}` would both print as `{2}`: rename one")]
    NameClash(String, String, String),
    /// Two different blocks declare one name.
    #[error(
        "another block named `{name}` ({other}) has different contents: make the name tell them apart, \
         `describe!(\"{name}\", <suffix from the parameters>, ..)`"
    )]
    ModuleClash {
        /// The name both declare.
        name: String,
        /// Path of the first block of that name.
        other: String,
    },
    /// Not a signal, constant, enum variant or loop variable of the block.
    #[error("`{0}` is no signal, constant or local of this block")]
    UnknownName(String),
    /// The value of a child's input is the one of the step before in Rust.
    #[error(
        "reads back `{0}`, an input of a child: name the value with `let` and use that in both places"
    )]
    ChildInputRead(String),
    /// Operands of different width.
    #[error("{0} bits stand against {1}: `.resize::<_>()` gives both sides one width")]
    WidthMismatch(usize, usize),
    /// A literal beyond the range of its type; the Rust model would panic or truncate.
    #[error("{0} does not fit in {1} bits")]
    LiteralTooWide(String, usize),
    /// A literal whose width nothing tells.
    #[error("the width of the literal is not known here: write `let x: Bits<N> = ..`")]
    LiteralWidth,
    /// An element of an array of signals or blocks is chosen at run time.
    #[error(
        "index `{0}` is not known at elaboration: use literals and loop variables, or a `match`"
    )]
    DynamicIndex(String),
    /// Bits beyond the end of a signal.
    #[error("bit {0} of a value of {1} bits")]
    OutOfRange(usize, usize),
    /// A match arm that is no literal or variant of the scrutinee's type.
    #[error(
        "pattern `{0}` is no value of the matched type: use an integer literal, `true`, `false` or a variant"
    )]
    Pattern(String),
    /// Not all values are matched.
    #[error("not every value is matched: end with `_ =>`")]
    NotExhaustive,
    /// Assigned on some paths only.
    #[error(
        "`{0}` keeps its old value on some path (a latch): assign a default at the top of the kernel"
    )]
    Latch(String),
    /// Never assigned.
    #[error("`{0}` is never driven")]
    Undriven(String),
    /// Driven twice.
    #[error("`{0}` is driven a second time")]
    DoubleDriver(String),
    /// Driven from the wrong side.
    #[error("`{0}` is an output of a child or an input of this block and cannot be driven here")]
    DrivesInput(String),
    /// Read before it has a value in this pass.
    #[error("reads `{0}` before it is assigned: move the assignment up")]
    ReadBeforeWrite(String),
    /// An `always @*` that reads nothing never runs in an event-driven simulator (IEEE 1364-2005, 9.7.5).
    #[error("`{0}` depends on no signal: assign it once, as a constant")]
    Constant(String),
    /// Anything else.
    #[error("{0} is not supported: {1}")]
    Unsupported(&'static str, &'static str),
}
