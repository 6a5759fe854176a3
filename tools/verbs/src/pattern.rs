//! The bytes of test messages, which differ between sides and queue pairs.

use anyhow::{Result, bail};

/// Byte `i` of what a side sends over its queue pair `number`, counted from 0.
#[must_use]
pub fn byte(is_server: bool, number: usize, i: usize) -> u8 {
    let side = if is_server { 0xa5 } else { 0 };
    ((i.wrapping_mul(31) >> 3) as u8 ^ side).wrapping_add((number as u8).wrapping_mul(29))
}

/// The first `size` bytes of what a side sends over its queue pair `number`.
#[must_use]
pub fn message(is_server: bool, number: usize, size: usize) -> Vec<u8> {
    (0..size).map(|i| byte(is_server, number, i)).collect()
}

/// Checks `bytes` of a side.
///
/// # Errors
/// The first byte that is wrong.
pub fn check(bytes: &[u8], is_server: bool, number: usize) -> Result<()> {
    for (i, &found) in bytes.iter().enumerate() {
        let expected = byte(is_server, number, i);
        if found != expected {
            bail!("wrong data: byte {i} is {found:#04x}, expected {expected:#04x}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_byte_is_found() {
        let mut bytes = message(true, 3, 5000);
        check(&bytes, true, 3).unwrap();
        assert!(check(&bytes, false, 3).is_err() && check(&bytes, true, 2).is_err());
        bytes[4321] ^= 1;
        let error = check(&bytes, true, 3).unwrap_err().to_string();
        assert!(error.starts_with("wrong data: byte 4321 is 0x"), "{error}");
    }
}
