//! The memory regions that give every access the answer it got.

use super::input::{Announcement, Refusal};

/// Bytes beyond which the accesses do not show a region any more.
const MAX_BYTES: u64 = 1 << 28;

/// A memory region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) rkey: u32,
    pub(super) addr: u64,
    /// Bytes, at least 1.
    pub(super) len: u64,
}

impl Target {
    fn end(&self) -> u64 {
        self.addr + self.len
    }

    fn holds(&self, addr: u64, len: u64) -> bool {
        addr >= self.addr && addr - self.addr + len <= self.len
    }

    /// Grows to hold `len` bytes at `addr`, and says whether that was possible.
    fn grow(&mut self, addr: u64, len: u64) -> bool {
        let Some(end) = addr.checked_add(len) else {
            return false;
        };
        let (first, end) = (self.addr.min(addr), self.end().max(end));
        if end - first > MAX_BYTES {
            return false;
        }
        (self.addr, self.len) = (first, end - first);
        true
    }
}

/// Regions in the making: accesses that were executed, and those that were refused.
pub(super) struct Regions {
    targets: Vec<Target>,
    /// Key and first address that the responder announced.
    announced: Option<(u32, u64)>,
    denied: Vec<(usize, Target)>,
}

/// Regions, and the memory under them.
pub(super) struct Layout {
    pub(super) targets: Vec<Target>,
    /// Address and length of pieces that do not touch.
    pub(super) pieces: Vec<(u64, usize)>,
}

impl Regions {
    pub(super) fn new(announced: Option<&Announcement>) -> Self {
        Self {
            targets: Vec::new(),
            announced: announced.map(|a| (a.rkey, a.addr)),
            denied: Vec::new(),
        }
    }

    /// `len` bytes at `addr` were accessed with `rkey`.
    pub(super) fn allow(
        &mut self,
        number: usize,
        rkey: u32,
        addr: u64,
        len: u32,
    ) -> Result<(), Refusal> {
        if len == 0 {
            // Needs no region.
            return Ok(());
        }
        let access = Target {
            rkey,
            addr,
            len: len.into(),
        };
        let fits = match self.targets.iter_mut().find(|t| t.rkey == rkey) {
            Some(target) => target.grow(addr, len.into()),
            None => {
                self.targets.push(access);
                addr.checked_add(len.into()).is_some() && access.len <= MAX_BYTES
            }
        };
        if fits {
            return Ok(());
        }
        Err(Refusal::Underivable {
            number,
            what: format!(
                "{len} bytes at {addr:#x} make the region of rkey {rkey:#x} larger than {MAX_BYTES} bytes"
            ),
        })
    }

    /// `len` bytes at `addr` were not to be accessed with `rkey`.
    pub(super) fn deny(
        &mut self,
        number: usize,
        rkey: u32,
        addr: u64,
        len: u32,
    ) -> Result<(), Refusal> {
        let len = len.into();
        self.denied.push((number, Target { rkey, addr, len }));
        Ok(())
    }

    /// These keys must be valid until a SEND invalidates them. A region that nothing was done to is anywhere.
    pub(super) fn know(&mut self, keys: &[u32]) {
        for (place, &rkey) in keys.iter().enumerate() {
            if self.targets.iter().all(|target| target.rkey != rkey) {
                let addr = (place as u64 + 1) * 0x1000;
                self.targets.push(Target { rkey, addr, len: 1 });
            }
        }
    }

    /// Accesses that were refused miss by as little as possible: with a known key by one byte, with an
    /// unknown one by nothing but the key.
    pub(super) fn finish(mut self) -> Result<Layout, Refusal> {
        if let Some((rkey, addr)) = self.announced {
            match self.targets.iter_mut().find(|t| t.rkey == rkey) {
                Some(target) => {
                    target.grow(addr, 1);
                }
                None => self.targets.push(Target { rkey, addr, len: 1 }),
            }
        }
        for (number, Target { rkey, addr, len }) in self.denied {
            match self.targets.iter_mut().find(|t| t.rkey == rkey) {
                Some(target) if target.holds(addr, len) => {
                    return Err(Refusal::Underivable {
                        number,
                        what: format!(
                            "{len} bytes at {addr:#x} were refused to rkey {rkey:#x}, which others \
                             around it were not; why is not on the wire"
                        ),
                    });
                }
                Some(target) if addr >= target.addr && len > 1 => {
                    target.grow(addr, len - 1);
                }
                Some(_) => {}
                None => {
                    for target in &mut self.targets {
                        target.grow(addr, len);
                    }
                }
            }
        }
        let mut spans: Vec<_> = self.targets.iter().map(|t| (t.addr, t.end())).collect();
        spans.sort_unstable();
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        for (first, end) in spans {
            match pieces.last_mut() {
                Some(piece) if first <= piece.1 => piece.1 = piece.1.max(end),
                _ => pieces.push((first, end)),
            }
        }
        let pieces = pieces.iter().map(|(at, end)| (*at, (end - at) as usize));
        Ok(Layout {
            pieces: pieces.collect(),
            targets: self.targets,
        })
    }
}
