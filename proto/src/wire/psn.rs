//! Packet sequence number (PSN): 24-bit circular arithmetic (IB1 9.7).

use core::fmt;

/// Half of the number circle: the responder's duplicate region (IB1 9.7).
pub const HALF: u32 = 1 << 23;

/// All 24 bits.
pub const MASK: u32 = (1 << 24) - 1;

/// Signed distance from `b` to `a` on the circle of 24-bit numbers, -2^23 to 2^23 - 1.
///
/// Also the comparison of MSN and SSN. Bits above the 24th are ignored.
#[must_use]
pub const fn distance(a: u32, b: u32) -> i32 {
    (a.wrapping_sub(b) << 8) as i32 >> 8
}

/// A packet sequence number, 24 bits.
///
/// It has no order: on a circle only a distance is defined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psn(u32);

/// Where a request stands in the eyes of a responder (IB1 9.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// The PSN expected next.
    Expected,
    /// One of the 2^23 PSNs before: executed already.
    Duplicate,
    /// One of the 2^23 - 1 PSNs behind: requests in between are lost.
    Invalid,
}

impl Psn {
    /// A PSN of the low 24 bits of `value`.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self(value & MASK)
    }

    /// Its value, 0 to 2^24 - 1.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The PSN `n` packets later.
    #[must_use]
    pub const fn add(self, n: u32) -> Self {
        Self::new(self.0.wrapping_add(n))
    }

    /// The PSN `n` packets earlier.
    #[must_use]
    pub const fn sub(self, n: u32) -> Self {
        Self::new(self.0.wrapping_sub(n))
    }

    /// The PSN that follows.
    #[must_use]
    pub const fn next(self) -> Self {
        self.add(1)
    }

    /// The PSN before.
    #[must_use]
    pub const fn prev(self) -> Self {
        self.sub(1)
    }

    /// Signed distance from `other` to this PSN in packets, -2^23 to 2^23 - 1.
    #[must_use]
    pub const fn since(self, other: Self) -> i32 {
        distance(self.0, other.0)
    }

    /// Is one of the `len` PSNs from `start` on; `len` up to 2^24.
    #[must_use]
    pub const fn is_within(self, start: Self, len: u32) -> bool {
        self.sub(start.0).0 < len
    }

    /// Where a request of this PSN stands when `expected` is the next.
    #[must_use]
    pub const fn region(self, expected: Self) -> Region {
        match self.since(expected) {
            0 => Region::Expected,
            i32::MIN..=-1 => Region::Duplicate,
            1..=i32::MAX => Region::Invalid,
        }
    }
}

impl From<u32> for Psn {
    fn from(value: u32) -> Self {
        Self::new(value)
    }
}

impl From<Psn> for u32 {
    fn from(psn: Psn) -> Self {
        psn.0
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#08x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wraps() {
        assert_eq!(Psn::new(MASK).next(), Psn::new(0));
        assert_eq!(Psn::new(0).prev(), Psn::new(MASK));
        assert_eq!(Psn::new(2).since(Psn::new(MASK)), 3);
        assert_eq!(Psn::new(MASK).since(Psn::new(2)), -3);
        assert_eq!(Psn::new(HALF).since(Psn::new(0)), -(HALF as i32));
        assert_eq!(Psn::new(HALF - 1).since(Psn::new(0)), HALF as i32 - 1);
    }

    #[test]
    fn regions_meet_at_half_the_circle() {
        let e = Psn::new(0x10);
        assert_eq!(e.region(e), Region::Expected);
        assert_eq!(e.prev().region(e), Region::Duplicate);
        assert_eq!(e.sub(HALF).region(e), Region::Duplicate);
        assert_eq!(e.add(HALF - 1).region(e), Region::Invalid);
        assert_eq!(e.next().region(e), Region::Invalid);
    }

    proptest! {
        #[test]
        fn distance_undoes_add(a: u32, n in 0..HALF) {
            let a = Psn::new(a);
            prop_assert_eq!(a.add(n).since(a), n as i32);
            prop_assert_eq!(a.sub(n).since(a), -(n as i32));
            prop_assert_eq!(a.add(n).sub(n), a);
        }

        #[test]
        fn distance_is_antisymmetric_but_at_half(a: u32, b: u32) {
            let (a, b) = (Psn::new(a), Psn::new(b));
            let d = a.since(b);
            prop_assert_eq!(b.since(a), if d == -(HALF as i32) { d } else { -d });
            prop_assert_eq!(b.add(d as u32), a);
        }

        #[test]
        fn window_is_the_set_of_its_members(start: u32, len in 0u32..=64, n in 0u32..128) {
            let start = Psn::new(start);
            prop_assert_eq!(start.add(n).is_within(start, len), n < len);
            prop_assert!(!start.prev().is_within(start, len));
        }
    }
}
