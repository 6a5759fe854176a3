//! Cells: the small blocks everything else is made of.
pub mod clock;
pub mod reg;
