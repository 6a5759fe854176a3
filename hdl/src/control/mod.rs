//! Control: registers, commands, statistics, and what ends things in order.
pub mod drain;
pub mod restart;
