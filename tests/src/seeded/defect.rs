//! What a defect is.

/// An expression that takes the place of a line's own.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The block, without sizes.
    pub block: &'static str,
    /// The line, without indentation; it stands once in the block.
    pub line: &'static str,
    /// The expression.
    pub becomes: &'static str,
}

/// A defect.
#[derive(Clone, Copy, Debug)]
pub struct Defect {
    /// Its name.
    pub name: &'static str,
    /// What is wrong with the card.
    pub what: &'static str,
    /// The conformance case that finds it, if there is one.
    pub case: Option<&'static str>,
    /// What puts it back.
    pub changes: &'static [Change],
}

/// One change.
pub(super) const fn change(
    block: &'static str,
    line: &'static str,
    becomes: &'static str,
) -> Change {
    Change {
        block,
        line,
        becomes,
    }
}
