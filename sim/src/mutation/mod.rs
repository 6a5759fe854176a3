//! Mutation of emitted Verilog: what no test notices is either without effect or not tested.
//!
//! [`sites`] finds what can be broken, [`schemata`] puts many mutants into one text so that a model is built once, [`benches`]
//! does so in the design of each test of a block.

pub mod benches;
mod changes;
pub mod schemata;
pub mod sites;
