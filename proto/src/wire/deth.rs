//! Datagram extended transport header (DETH): the sender of a datagram (IB1 9.3).

header! {
    /// View of a datagram extended transport header.
    "DETH" [8] {
        /// Queue key: must equal that of the receiving queue pair.
        Q_KEY [32] => qkey / set_qkey: u32,
        /// Reserved, 0 on transmit.
        RESV8 [8],
        /// Source queue pair number.
        SRC_QP [24] => src_qp / set_src_qp: u32,
    }
}

/// Value of a datagram extended transport header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repr {
    /// Queue key.
    pub qkey: u32,
    /// Source queue pair number, 24 bits.
    pub src_qp: u32,
}

impl Repr {
    /// Reads the value of a header; reserved bits are ignored.
    #[must_use]
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Self {
        Self {
            qkey: header.qkey(),
            src_qp: header.src_qp(),
        }
    }

    /// The bytes of the header.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let mut header = Header::new([0; LEN]);
        header.set_qkey(self.qkey);
        header.set_src_qp(self.src_qp);
        header.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::samples;
    use proptest::prelude::*;

    #[test]
    fn captured_header() {
        let bytes = &samples::UD_SEND_ONLY[54..62];
        let repr = Repr::parse(&Header::new_checked(bytes).unwrap());
        let expected = Repr {
            qkey: 0x1122_3344,
            src_qp: 0x2b,
        };
        assert_eq!(repr, expected);
        assert_eq!(repr.emit(), bytes);
    }

    proptest! {
        #[test]
        fn parse_then_emit_keeps_all_but_reserved_bits(mut bytes: [u8; LEN]) {
            field::RESV8.set(&mut bytes, 0);
            prop_assert_eq!(Repr::parse(&Header::new(bytes)).emit(), bytes);
        }
    }
}
