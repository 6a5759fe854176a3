//! The file that the demo sends is what its description says.

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

#[test]
fn lines_count_and_tell_their_place() {
    let text = include_str!("../data/counting.txt");
    assert_eq!(text.len(), 4 << 20);
    assert_eq!(text.lines().count(), 65536);
    for (n, line) in text.lines().enumerate() {
        let expected = format!("{:06x} {n:5} {}", 64 * n, words(n));
        assert_eq!(line, format!("{expected:63}"));
    }
}
