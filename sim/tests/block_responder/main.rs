//! The blocks of the responder as Verilog, against the rules in plain Rust.
mod drive;
mod reference;
mod responder;
mod rig;
mod rq_fetch;
mod rx_check;
