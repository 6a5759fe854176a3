//! RDMA extended transport header (RETH): where a WRITE goes or a READ comes from (IB1 9.3).

header! {
    /// View of an RDMA extended transport header.
    "RETH" [16] {
        /// Virtual address at the responder.
        VA [64] => va / set_va: u64,
        /// Remote key.
        R_KEY [32] => rkey / set_rkey: u32,
        /// Length of the whole message in bytes, up to [`MAX_DMA_LEN`](crate::wire::reth::MAX_DMA_LEN).
        DMA_LEN [32] => dma_len / set_dma_len: u32,
    }
}

/// Longest message in bytes: 2^31 (IB1 9.3).
pub const MAX_DMA_LEN: u32 = 1 << 31;

/// Value of an RDMA extended transport header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repr {
    /// Virtual address at the responder.
    pub va: u64,
    /// Remote key.
    pub rkey: u32,
    /// Length of the whole message in bytes.
    pub dma_len: u32,
}

impl Repr {
    /// Reads the value of a header.
    #[must_use]
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Self {
        Self {
            va: header.va(),
            rkey: header.rkey(),
            dma_len: header.dma_len(),
        }
    }

    /// The bytes of the header.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let mut header = Header::new([0; LEN]);
        header.set_va(self.va);
        header.set_rkey(self.rkey);
        header.set_dma_len(self.dma_len);
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
        let bytes = &samples::RC_READ_REQUEST[54..70];
        let repr = Repr::parse(&Header::new_checked(bytes).unwrap());
        let expected = Repr {
            va: 0x55d1_c369_c000,
            rkey: 0x397f,
            dma_len: 3000,
        };
        assert_eq!(repr, expected);
        assert_eq!(repr.emit(), bytes);
    }

    proptest! {
        #[test]
        fn parse_then_emit(bytes: [u8; LEN]) {
            prop_assert_eq!(Repr::parse(&Header::new(bytes)).emit(), bytes);
        }
    }
}
