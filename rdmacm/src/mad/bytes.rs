//! Numbers in the bytes of a message, big endian.

/// Bytes of a MAD.
pub(crate) const MAD_BYTES: usize = 256;

/// A MAD, read and written by offsets.
#[derive(Clone, Copy)]
pub(crate) struct Bytes(pub(crate) [u8; MAD_BYTES]);

impl Bytes {
    pub(crate) fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut found = [0; N];
        found.copy_from_slice(&self.0[at..at + N]);
        found
    }

    pub(crate) fn set(&mut self, at: usize, value: &[u8]) {
        self.0[at..at + value.len()].copy_from_slice(value);
    }

    pub(crate) fn u8(&self, at: usize) -> u8 {
        self.0[at]
    }

    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.array(at))
    }

    /// Three bytes.
    pub(crate) fn u24(&self, at: usize) -> u32 {
        let [a, b, c] = self.array(at);
        u32::from_be_bytes([0, a, b, c])
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.array(at))
    }

    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from_be_bytes(self.array(at))
    }

    /// The low three bytes of `value`.
    pub(crate) fn set_u24(&mut self, at: usize, value: u32) {
        self.set(at, &value.to_be_bytes()[1..]);
    }

    pub(crate) fn set_u32(&mut self, at: usize, value: u32) {
        self.set(at, &value.to_be_bytes());
    }

    pub(crate) fn set_u64(&mut self, at: usize, value: u64) {
        self.set(at, &value.to_be_bytes());
    }
}
