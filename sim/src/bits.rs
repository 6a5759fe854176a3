//! Bit ranges of little-endian word arrays: bit `i` is bit `i % 32` of word `i / 32`.
//!
//! By hand: every bench moves each of its signals this way in each cycle.

/// The `width` bits (1 to 64) of `words` from bit `offset` up.
///
/// # Panics
/// If the range is wider than 64 bits or not within `words`.
pub fn extract(words: &[u32], offset: usize, width: usize) -> u64 {
    assert!((1..=64).contains(&width), "{width} bits, not 1 to 64");
    let (first, low) = (offset / 32, offset % 32);
    // Of 64 bits there may be some in three words.
    let touched = words[first..(offset + width).div_ceil(32)].iter();
    let bits = touched
        .rev()
        .fold(0, |bits, &word| bits << 32 | u128::from(word));
    (bits >> low) as u64 & mask(width)
}

/// Replaces the `width` bits (1 to 64) of `words` from bit `offset` up by the lowest of `value`.
///
/// # Panics
/// If the range is wider than 64 bits or not within `words`.
pub fn insert(words: &mut [u32], offset: usize, width: usize, value: u64) {
    assert!((1..=64).contains(&width), "{width} bits, not 1 to 64");
    let (first, low) = (offset / 32, offset % 32);
    let mut bits = u128::from(value & mask(width)) << low;
    let mut replaced = u128::from(mask(width)) << low;
    for word in &mut words[first..(offset + width).div_ceil(32)] {
        *word = *word & !(replaced as u32) | bits as u32;
        (bits, replaced) = (bits >> 32, replaced >> 32);
    }
}

/// Copies the `width` bits of `words` from bit `offset` up to the start of `out`, whose last word
/// is filled with zeros.
///
/// # Panics
/// If the range is not within `words`, or `out` is not of `width.div_ceil(32)` words.
pub fn read(words: &[u32], offset: usize, width: usize, out: &mut [u32]) {
    assert_eq!(out.len(), width.div_ceil(32), "words for {width} bits");
    for (at, out) in (0..width).step_by(32).zip(out) {
        *out = extract(words, offset + at, (width - at).min(32)) as u32;
    }
}

/// Replaces the `width` bits of `words` from bit `offset` up by the lowest of `value`.
///
/// # Panics
/// If the range is not within `words`, or `value` is not of `width.div_ceil(32)` words.
pub fn write(words: &mut [u32], offset: usize, width: usize, value: &[u32]) {
    assert_eq!(value.len(), width.div_ceil(32), "words for {width} bits");
    for (at, value) in (0..width).step_by(32).zip(value) {
        insert(words, offset + at, (width - at).min(32), (*value).into());
    }
}

/// The lowest `width` bits (0 to 64) set.
pub fn mask(width: usize) -> u64 {
    if width >= 64 { !0 } else { (1 << width) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bits `offset + width - 1 .. offset`, one at a time.
    fn bits(words: &[u32], offset: usize, width: usize) -> Vec<bool> {
        (offset..offset + width)
            .map(|i| words[i / 32] >> (i % 32) & 1 != 0)
            .collect()
    }

    proptest! {
        #[test]
        fn inserted_bits_are_extracted_and_nothing_else_changes(
            words in prop::collection::vec(any::<u32>(), 4),
            (offset, width) in (0usize..128).prop_flat_map(|o| (Just(o), 1..=(128 - o).min(64))),
            value: u64,
        ) {
            let mut changed = words.clone();
            insert(&mut changed, offset, width, value);
            prop_assert_eq!(extract(&changed, offset, width), value & mask(width));
            let end = offset + width;
            prop_assert_eq!(bits(&changed, 0, offset), bits(&words, 0, offset));
            prop_assert_eq!(bits(&changed, end, 128 - end), bits(&words, end, 128 - end));
        }

        #[test]
        fn written_words_are_read_and_nothing_else_changes(
            words in prop::collection::vec(any::<u32>(), 8),
            (offset, width) in prop_oneof![0usize..256, (0usize..8).prop_map(|word| word * 32)]
                .prop_flat_map(|o| (Just(o), 1..=256 - o)),
            seed: u32,
        ) {
            let mut value: Vec<_> = (0..width.div_ceil(32) as u32).map(|i| seed.rotate_left(i)).collect();
            let mut changed = words.clone();
            write(&mut changed, offset, width, &value);
            let mut out = vec![0; value.len()];
            read(&changed, offset, width, &mut out);
            if width % 32 != 0 {
                *value.last_mut().unwrap() &= mask(width % 32) as u32;
            }
            prop_assert_eq!(out, value);
            let end = offset + width;
            prop_assert_eq!(bits(&changed, 0, offset), bits(&words, 0, offset));
            prop_assert_eq!(bits(&changed, end, 256 - end), bits(&words, end, 256 - end));
        }
    }
}
