//! How a register cell says that it is one.
use num_bigint::BigUint;
use rust_hdl_core::prelude::{Verilog, VerilogLiteral};

/// First word of the text that stands for a register.
const REGISTER: &str = "register";

/// The body of a register cell with ports `clock`, `d`, `q`: it prints inside its parent. `None` has no reset.
pub fn register(reset: Option<VerilogLiteral>) -> Verilog {
    Verilog::Custom(match reset {
        Some(value) => format!("{REGISTER} {value:x}"),
        None => REGISTER.into(),
    })
}

/// The reset value if `text` stands for a register.
pub(super) fn parse(text: &str) -> Option<Option<BigUint>> {
    match text.strip_prefix(REGISTER)? {
        "" => Some(None),
        reset => {
            let (_, hex) = reset.split_once("'h")?;
            Some(Some(BigUint::parse_bytes(hex.as_bytes(), 16)?))
        }
    }
}
