//! Literals of rust-hdl and of Rust source text as numbers.
use num_bigint::BigUint;
use rust_hdl_core::prelude::VerilogLiteral;

/// Width in bits and value of a literal. The fields are private in rust-hdl; its hexadecimal form is `24'hff`.
pub(crate) fn of_literal(literal: &VerilogLiteral) -> (usize, BigUint) {
    let text = format!("{literal:x}");
    let parsed = text.split_once("'h").and_then(|(bits, hex)| {
        Some((
            bits.parse().ok()?,
            BigUint::parse_bytes(hex.as_bytes(), 16)?,
        ))
    });
    parsed.expect("rust-hdl prints literals as <bits>'h<hex>")
}

/// An unsigned integer literal as written in Rust: any base, `_`, type suffix.
pub(crate) fn parse_integer(text: &str) -> Option<BigUint> {
    let text = text.replace('_', "");
    let (digits, radix) = match text.get(..2) {
        Some("0x") => (&text[2..], 16),
        Some("0b") => (&text[2..], 2),
        Some("0o") => (&text[2..], 8),
        _ => (text.as_str(), 10),
    };
    let digits = [
        "usize", "u128", "u64", "u32", "u16", "u8", "i64", "i32", "i16", "i8",
    ]
    .iter()
    .find_map(|suffix| digits.strip_suffix(suffix))
    .unwrap_or(digits);
    BigUint::parse_bytes(digits.as_bytes(), radix)
}

/// `width` ones.
pub(crate) fn ones(width: usize) -> BigUint {
    (BigUint::from(1u8) << width) - 1u8
}

/// Bits needed for the values 0..=max, at least one.
pub(crate) fn bits_for(max: &BigUint) -> usize {
    (max.bits() as usize).max(1)
}
