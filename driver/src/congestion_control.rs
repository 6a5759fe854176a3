//! The algorithms of congestion control.

/// What slows an RC queue pair down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CongestionControl {
    /// DCQCN, by CNPs.
    #[default]
    Dcqcn,
    /// Swift, by round-trip times.
    Swift,
}
