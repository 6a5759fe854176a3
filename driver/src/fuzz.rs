//! Readers of strangers' bytes that are not public, for `fuzz/`.

/// Reads a frame as [`Neighbours`](crate::Neighbours) does.
pub fn neighbour(frame: &[u8]) {
    crate::neighbour::read(frame);
}
