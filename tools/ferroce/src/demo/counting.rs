//! The file that the demo sends unless another is named: 65,536 lines of 64 bytes, 4 MiB.
//!
//! Line n holds the byte at which it begins (six hexadecimal digits), n, and n in English words, padded with spaces. No
//! two beats of 64 bytes are alike and each says where it belongs, so that one out of place is seen at a glance.

use std::fmt::Write as _;

/// What it is called on the screen.
pub(super) const NAME: &str = "65536 lines of text";
/// Lines of it.
const LINES: usize = 65536;

const ONES: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = [
    "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];

/// A number in words.
fn words(n: usize) -> String {
    let (base, mut text) = match n {
        0..20 => return ONES[n].to_owned(),
        20..100 if n.is_multiple_of(10) => return TENS[n / 10].to_owned(),
        20..100 => return format!("{}-{}", TENS[n / 10], ONES[n % 10]),
        100..1000 => (100, format!("{} hundred", ONES[n / 100])),
        _ => (1000, format!("{} thousand", words(n / 1000))),
    };
    if !n.is_multiple_of(base) {
        text = format!("{text} {}", words(n % base));
    }
    text
}

/// The file.
pub(super) fn text() -> Vec<u8> {
    let mut text = String::with_capacity(64 * LINES);
    for n in 0..LINES {
        let line = format!("{:06x} {n:5} {}", 64 * n, words(n));
        let _ = writeln!(text, "{line:63}");
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_64_bytes_and_name_their_place() {
        use sha2::{Digest, Sha256};
        let digest = Sha256::digest(text());
        assert_eq!(digest[..4], [0xfa, 0x23, 0x3d, 0x9f], "its SHA-256");
        let text = String::from_utf8(text()).unwrap();
        assert_eq!(text.lines().count(), LINES);
        assert!(text.lines().all(|line| line.len() == 63));
        let line = text.lines().nth(110).unwrap();
        assert_eq!(line.trim_end(), "001b80   110 one hundred ten");
    }
}
