//! Numbers in the bytes of a message, big endian.

/// Bytes of a MAD.
pub const MAD_BYTES: usize = 256;

/// A MAD, read and written by offsets.
#[derive(Clone, Copy)]
pub(super) struct Bytes(pub(super) [u8; MAD_BYTES]);

impl Bytes {
    pub(super) fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut found = [0; N];
        found.copy_from_slice(&self.0[at..at + N]);
        found
    }

    pub(super) fn set(&mut self, at: usize, value: &[u8]) {
        self.0[at..at + value.len()].copy_from_slice(value);
    }

    pub(super) fn u8(&self, at: usize) -> u8 {
        self.0[at]
    }

    pub(super) fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.array(at))
    }

    /// Three bytes.
    pub(super) fn u24(&self, at: usize) -> u32 {
        let [a, b, c] = self.array(at);
        u32::from_be_bytes([0, a, b, c])
    }

    pub(super) fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.array(at))
    }

    pub(super) fn u64(&self, at: usize) -> u64 {
        u64::from_be_bytes(self.array(at))
    }

    /// The low three bytes of `value`.
    pub(super) fn set_u24(&mut self, at: usize, value: u32) {
        self.set(at, &value.to_be_bytes()[1..]);
    }

    pub(super) fn set_u32(&mut self, at: usize, value: u32) {
        self.set(at, &value.to_be_bytes());
    }

    pub(super) fn set_u64(&mut self, at: usize, value: u64) {
        self.set(at, &value.to_be_bytes());
    }
}
