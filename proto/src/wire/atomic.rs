//! Atomic extended transport headers: AtomicETH of a request and AtomicAckETH of its
//! response (IB1 9.3), the latter in [`ack`].

header! {
    /// View of an atomic extended transport header.
    "AtomicETH" [28] {
        /// Virtual address at the responder, a multiple of 8.
        VA [64] => va / set_va: u64,
        /// Remote key.
        R_KEY [32] => rkey / set_rkey: u32,
        /// The new value of CmpSwap, the addend of FetchAdd.
        SWAP_ADD [64] => swap_add / set_swap_add: u64,
        /// The value CmpSwap compares with.
        COMPARE [64] => compare / set_compare: u64,
    }
}

/// Value of an atomic extended transport header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repr {
    /// Virtual address at the responder.
    pub va: u64,
    /// Remote key.
    pub rkey: u32,
    /// The new value of CmpSwap, the addend of FetchAdd.
    pub swap_add: u64,
    /// The value CmpSwap compares with.
    pub compare: u64,
}

impl Repr {
    /// Reads the value of a header.
    #[must_use]
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Self {
        Self {
            va: header.va(),
            rkey: header.rkey(),
            swap_add: header.swap_add(),
            compare: header.compare(),
        }
    }

    /// The bytes of the header.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let mut header = Header::new([0; LEN]);
        header.set_va(self.va);
        header.set_rkey(self.rkey);
        header.set_swap_add(self.swap_add);
        header.set_compare(self.compare);
        header.into_inner()
    }
}

/// Atomic ACK extended transport header (AtomicAckETH): what the memory held before.
pub mod ack {
    header! {
        /// View of an atomic ACK extended transport header.
        "AtomicAckETH" [8] {
            /// The value before the operation.
            ORIGINAL [64] => original / set_original: u64,
        }
    }

    /// Value of an atomic ACK extended transport header.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Repr {
        /// The value before the operation.
        pub original: u64,
    }

    impl Repr {
        /// Reads the value of a header.
        #[must_use]
        pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Self {
            Self {
                original: header.original(),
            }
        }

        /// The bytes of the header.
        #[must_use]
        pub fn emit(&self) -> [u8; LEN] {
            self.original.to_be_bytes()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::samples;
    use proptest::prelude::*;

    #[test]
    fn captured_request() {
        let bytes = &samples::RC_CMP_SWAP[54..82];
        let repr = Repr::parse(&Header::new_checked(bytes).unwrap());
        let expected = Repr {
            va: 0x7fbb_9028_b000,
            rkey: 0x150b,
            swap_add: 0x0123_4567_89ab_cdef,
            compare: 0xb0b7_aaa9_aca3_a6a5,
        };
        assert_eq!(repr, expected);
        assert_eq!(repr.emit(), bytes);
    }

    #[test]
    fn captured_response() {
        let bytes = &samples::RC_ATOMIC_ACK[58..66];
        let repr = ack::Repr::parse(&ack::Header::new_checked(bytes).unwrap());
        assert_eq!(repr.original, 0xb0b7_aaa9_aca3_a6a5);
        assert_eq!(repr.emit(), bytes);
    }

    proptest! {
        #[test]
        fn parse_then_emit(bytes: [u8; LEN], ack_bytes: [u8; ack::LEN]) {
            prop_assert_eq!(Repr::parse(&Header::new(bytes)).emit(), bytes);
            let ack = ack::Repr::parse(&ack::Header::new(ack_bytes));
            prop_assert_eq!(ack.emit(), ack_bytes);
        }
    }
}
