//! Packets that a receiver must count and drop.

use fastrand::Rng;

use crate::scoreboard::icrc::Roce;

/// Drop counters of the card, one of which each malformed packet must raise.
pub(super) const COUNTERS: [&str; 7] = [
    "rx_bad_frames",
    "rx_icrc_errors",
    "rx_malformed",
    "rx_not_roce",
    "rx_unknown_qp",
    "rx_wrong_transport",
    "rx_pkey_violations",
];

/// A copy of the RoCEv2 packet `frame` that is malformed in one way.
pub(super) fn copy(frame: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = frame.to_vec();
    let roce = Roce::locate(frame).expect("a RoCEv2 packet");
    let bth = roce.bth();
    match rng.u32(..7) {
        // A bit that the ICRC covers.
        0 => bytes[bth + 9 + rng.usize(..3)] ^= 1 << rng.u32(..8),
        1 => bytes.truncate(bth + rng.usize(..bytes.len() - bth)),
        2 => reseal(&roce, &mut bytes, |bytes| bytes[bth] = 0x1f),
        3 => reseal(&roce, &mut bytes, |bytes| bytes[bth + 1] |= 0x0f),
        4 => reseal(&roce, &mut bytes, |bytes| bytes[bth + 2] ^= 0x40),
        // UDP length.
        5 => bytes[bth - 3] ^= 4,
        // A queue pair that no card has as many of.
        _ => reseal(&roce, &mut bytes, |bytes| bytes[bth + 5] = 0xfe),
    }
    bytes
}

fn reseal(roce: &Roce, bytes: &mut [u8], change: impl FnOnce(&mut [u8])) {
    change(bytes);
    roce.seal(bytes);
}
