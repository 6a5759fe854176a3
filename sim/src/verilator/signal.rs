//! Handles to ports and to fields of ports, resolved once by name.

/// A bit range of a port of one model: a whole port, or a field of it.
///
/// Handles come from a [`Model`](super::Model) only, so the range always lies within its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signal {
    /// Number of the model, unique in the process.
    pub(super) model: u32,
    /// Index of the port in the spec.
    pub(super) port: u32,
    /// Lowest bit.
    pub(super) offset: u32,
    /// Width in bits.
    pub(super) width: u32,
}

/// A [`Signal`] that the harness drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Input(pub(super) Signal);

/// A [`Signal`] that the model drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Output(pub(super) Signal);

impl Signal {
    /// Width in bits.
    pub fn width(self) -> usize {
        self.width as usize
    }

    /// Number of 32-bit words that hold the signal.
    pub fn words(self) -> usize {
        self.width().div_ceil(32)
    }
}

impl From<Input> for Signal {
    fn from(input: Input) -> Self {
        input.0
    }
}

impl From<Output> for Signal {
    fn from(output: Output) -> Self {
        output.0
    }
}

impl Input {
    /// Width in bits.
    pub fn width(self) -> usize {
        self.0.width()
    }
}

impl Output {
    /// Width in bits.
    pub fn width(self) -> usize {
        self.0.width()
    }
}
