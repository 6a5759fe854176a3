//! Local ACK timeout (IB1 9.7.6.1.3).

/// Transport timer of a 5-bit timeout code in ns: 4.096 us * 2^code. `None` for code 0: no timer.
///
/// The requester may declare a timeout after one to four times this time. Higher bits are ignored.
#[must_use]
pub const fn ack_timeout_ns(code: u8) -> Option<u64> {
    match code & 31 {
        0 => None,
        n => Some(4096 << n),
    }
}

#[cfg(test)]
mod tests {
    use super::ack_timeout_ns;

    #[test]
    fn doubles_with_each_code() {
        assert_eq!(ack_timeout_ns(0), None);
        assert_eq!(ack_timeout_ns(1), Some(8_192));
        assert_eq!(ack_timeout_ns(14), Some(67_108_864));
        assert_eq!(ack_timeout_ns(31), Some(8_796_093_022_208));
    }
}
