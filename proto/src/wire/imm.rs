//! Immediate data (ImmDt), and the invalidate extended transport header (IETH), IB1 9.3, the latter
//! in [`ieth`]. Their values are plain `u32`.

header! {
    /// View of immediate data.
    "ImmDt" [4] {
        /// The 32 bits handed to the receiver's completion, as a big-endian number.
        IMM [32] => imm / set_imm: u32,
    }
}

/// Invalidate extended transport header.
pub mod ieth {
    header! {
        /// View of an invalidate extended transport header.
        "IETH" [4] {
            /// The key the responder shall invalidate.
            R_KEY [32] => rkey / set_rkey: u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::samples;

    #[test]
    fn captured_immediate() {
        let bytes = &samples::RC_WRITE_ONLY_IMM[70..74];
        assert_eq!(Header::new_checked(bytes).unwrap().imm(), 0xdead_be00);
        let mut header = Header::new([0; LEN]);
        header.set_imm(0xdead_be00);
        assert_eq!(header.into_inner(), bytes);
    }

    #[test]
    fn invalidate() {
        let mut header = ieth::Header::new([0; ieth::LEN]);
        header.set_rkey(0x0a0b_0c0d);
        assert_eq!(header.rkey(), 0x0a0b_0c0d);
        assert_eq!(header.into_inner(), [0x0a, 0x0b, 0x0c, 0x0d]);
    }
}
