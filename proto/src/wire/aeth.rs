//! ACK extended transport header (AETH): the responder's answer (IB1 9.3).

header! {
    /// View of an ACK extended transport header.
    "AETH" [4] {
        /// Syndrome, see [`Syndrome`](crate::wire::Syndrome).
        SYNDROME [8] => syndrome / set_syndrome: u8,
        /// Message sequence number: requests completed, modulo 2^24.
        MSN [24] => msn / set_msn: u32,
    }
}

/// Credit code of a responder without flow control: no limit is imposed (IB1 9.7.7).
pub const CREDITS_INVALID: u8 = 31;

/// Receive WQEs announced by each credit code 0 to 30.
pub const CREDITS: [u16; 31] = [
    0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
];

/// Receive WQEs a credit code announces; `None` when it sets no limit. Bits above the fifth are
/// ignored.
#[must_use]
pub const fn credits(code: u8) -> Option<u16> {
    match code & 31 {
        CREDITS_INVALID => None,
        code => Some(CREDITS[code as usize]),
    }
}

/// The largest credit code that announces no more than `count` receive WQEs.
#[must_use]
pub const fn credit_code(count: u32) -> u8 {
    let mut code = CREDITS.len() - 1;
    while CREDITS[code] as u32 > count {
        code -= 1;
    }
    code as u8
}

/// Least time a requester waits after an RNR NAK, in ns, by timer code 0 to 31 (IB1 9.7.5).
pub const RNR_TIMER_NS: [u32; 32] = [
    655_360_000,
    10_000,
    20_000,
    30_000,
    40_000,
    60_000,
    80_000,
    120_000,
    160_000,
    240_000,
    320_000,
    480_000,
    640_000,
    960_000,
    1_280_000,
    1_920_000,
    2_560_000,
    3_840_000,
    5_120_000,
    7_680_000,
    10_240_000,
    15_360_000,
    20_480_000,
    30_720_000,
    40_960_000,
    61_440_000,
    81_920_000,
    122_880_000,
    163_840_000,
    245_760_000,
    327_680_000,
    491_520_000,
];

/// Why a responder refuses a request (IB1 9.7.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum NakCode {
    /// A request before this one is missing; the NAK carries the PSN expected.
    PsnSequence = 0,
    /// The request is malformed, out of order within its message, or not supported.
    InvalidRequest = 1,
    /// Key, protection domain, access right or bounds do not allow it.
    RemoteAccess = 2,
    /// The responder cannot execute it.
    RemoteOperational = 3,
    /// Invalid request of a reliable datagram.
    InvalidRdRequest = 4,
}

impl NakCode {
    /// Code on the wire, 5 bits.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// NAK of a code; `None` when it is reserved.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::PsnSequence),
            1 => Some(Self::InvalidRequest),
            2 => Some(Self::RemoteAccess),
            3 => Some(Self::RemoteOperational),
            4 => Some(Self::InvalidRdRequest),
            _ => None,
        }
    }
}

/// What an AETH says (IB1 9.3): type in bits 6 and 5, value in bits 4 to 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syndrome {
    /// Everything up to the packet's PSN is done.
    Ack {
        /// Credit code, 5 bits, see [`credits`].
        credits: u8,
    },
    /// Receiver not ready: the request of this PSN is to be sent again later.
    RnrNak {
        /// Timer code, 5 bits, see [`RNR_TIMER_NS`].
        timer: u8,
    },
    /// The request of this PSN is refused.
    Nak(NakCode),
    /// A reserved syndrome, whole.
    Reserved(u8),
}

impl Syndrome {
    /// An ACK that sets no credit limit.
    pub const ACK: Self = Self::Ack {
        credits: CREDITS_INVALID,
    };

    /// Reads a syndrome.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        let value = bits & 0x1f;
        match bits >> 5 {
            0b000 => Self::Ack { credits: value },
            0b001 => Self::RnrNak { timer: value },
            0b011 => match NakCode::from_code(value) {
                Some(code) => Self::Nak(code),
                None => Self::Reserved(bits),
            },
            _ => Self::Reserved(bits),
        }
    }

    /// The eight bits on the wire; values above five bits are cut off.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Ack { credits } => credits & 0x1f,
            Self::RnrNak { timer } => 0x20 | (timer & 0x1f),
            Self::Nak(code) => 0x60 | code.code(),
            Self::Reserved(bits) => bits,
        }
    }
}

/// Value of an ACK extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Syndrome.
    pub syndrome: Syndrome,
    /// Message sequence number, 24 bits.
    pub msn: u32,
}

impl Repr {
    /// Reads the value of a header.
    #[must_use]
    pub fn parse<T: AsRef<[u8]>>(header: &Header<T>) -> Self {
        Self {
            syndrome: Syndrome::from_bits(header.syndrome()),
            msn: header.msn(),
        }
    }

    /// The bytes of the header.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let mut header = Header::new([0; LEN]);
        header.set_syndrome(self.syndrome.bits());
        header.set_msn(self.msn);
        header.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::samples;
    use proptest::prelude::*;

    #[test]
    fn captured_syndromes() {
        for (frame, syndrome, msn) in [
            (&samples::RC_ACK, Syndrome::Ack { credits: 31 }, 1),
            (&samples::RC_RNR_NAK, Syndrome::RnrNak { timer: 12 }, 0),
            (
                &samples::RC_NAK_SEQUENCE,
                Syndrome::Nak(NakCode::PsnSequence),
                6,
            ),
            (
                &samples::RC_NAK_ACCESS,
                Syndrome::Nak(NakCode::RemoteAccess),
                0,
            ),
        ] {
            let bytes = &frame[54..58];
            let repr = Repr::parse(&Header::new_checked(bytes).unwrap());
            assert_eq!(repr, Repr { syndrome, msn });
            assert_eq!(repr.emit(), bytes);
        }
    }

    #[test]
    fn credit_codes_round_down() {
        for (code, &count) in CREDITS.iter().enumerate() {
            assert_eq!(credit_code(u32::from(count)), code as u8);
            assert_eq!(credits(code as u8), Some(count));
        }
        assert_eq!(credit_code(5), 4);
        assert_eq!(credit_code(u32::MAX), 30);
        assert_eq!(credits(CREDITS_INVALID), None);
    }

    #[test]
    fn rnr_timers() {
        assert_eq!(RNR_TIMER_NS[0], 655_360_000);
        assert_eq!(RNR_TIMER_NS[12], 640_000);
        assert!(RNR_TIMER_NS[1..].is_sorted());
        // From code 4 on each code is twice the one two before it.
        for code in 4..32 {
            assert_eq!(RNR_TIMER_NS[code], 2 * RNR_TIMER_NS[code - 2], "{code}");
        }
    }

    #[test]
    fn reserved_syndromes() {
        for bits in [0x40, 0x65, 0x7f, 0x80, 0xff] {
            assert_eq!(Syndrome::from_bits(bits), Syndrome::Reserved(bits));
        }
    }

    proptest! {
        #[test]
        fn parse_then_emit(bytes: [u8; LEN]) {
            prop_assert_eq!(Repr::parse(&Header::new(bytes)).emit(), bytes);
        }
    }
}
