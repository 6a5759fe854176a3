//! The ports of an instance, in the memory of the model.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::slice;

use super::Signal;
use super::spec::Port;
use crate::bits;

/// Addresses of the ports of one instance, by the port's index in the spec.
#[derive(Debug)]
pub(super) struct Ports(Box<[Slot]>);

/// Where a port is. Verilator stores up to 64 bits in the smallest integer that holds them, more
/// in 32-bit words, least significant first; bits above the width are 0.
#[derive(Debug, Clone, Copy)]
enum Slot {
    Byte(NonNull<u8>),
    Half(NonNull<u16>),
    Word(NonNull<u32>),
    Long(NonNull<u64>),
    Wide(NonNull<u32>, usize),
}

impl Ports {
    /// The ports `ports`, which are at `addresses`.
    ///
    /// # Safety
    /// Each address is that of the variable of its port in an instance. The instance is valid as long as
    /// the result is used, and changes its ports only while the result is borrowed mutably.
    pub(super) unsafe fn new(ports: &[Port], addresses: &[*mut c_void]) -> Self {
        let slot = |(port, address): (&Port, &*mut c_void)| {
            let address = NonNull::new(*address).expect("the model has an address for every port");
            match port.width {
                1..=8 => Slot::Byte(address.cast()),
                9..=16 => Slot::Half(address.cast()),
                17..=32 => Slot::Word(address.cast()),
                33..=64 => Slot::Long(address.cast()),
                width => Slot::Wide(address.cast(), width.div_ceil(32)),
            }
        };
        Self(ports.iter().zip(addresses).map(slot).collect())
    }

    /// The port of `signal`, whole, if of up to 64 bits.
    #[inline]
    pub(super) fn narrow(&self, signal: Signal) -> Option<u64> {
        // SAFETY: the address is that of a live variable of this type, see `new`.
        unsafe {
            match self.0[signal.port as usize] {
                Slot::Byte(at) => Some(at.read().into()),
                Slot::Half(at) => Some(at.read().into()),
                Slot::Word(at) => Some(at.read().into()),
                Slot::Long(at) => Some(at.read()),
                Slot::Wide(..) => None,
            }
        }
    }

    /// Replaces `signal`, of up to 64 bits, by the lowest bits of `value`.
    #[inline]
    pub(super) fn store(&mut self, signal: Signal, value: u64) {
        let (offset, width) = (signal.offset as usize, signal.width());
        let merge = |old: u64| {
            let mask = bits::mask(width) << offset;
            (old & !mask) | ((value << offset) & mask)
        };
        // SAFETY: as in `narrow`, and `&mut self` makes this the only access. Bits above the port's
        // width stay 0, as the signal lies within it.
        unsafe {
            match self.0[signal.port as usize] {
                Slot::Byte(at) => at.write(merge(at.read().into()) as u8),
                Slot::Half(at) => at.write(merge(at.read().into()) as u16),
                Slot::Word(at) => at.write(merge(at.read().into()) as u32),
                Slot::Long(at) => at.write(merge(at.read())),
                Slot::Wide(at, words) => {
                    let words = slice::from_raw_parts_mut(at.as_ptr(), words);
                    bits::insert(words, offset, width, value);
                }
            }
        }
    }

    /// The words of the port of `signal`, if of more than 64 bits.
    #[inline]
    pub(super) fn wide(&self, signal: Signal) -> Option<&[u32]> {
        match self.0[signal.port as usize] {
            // SAFETY: the address is that of a live array of this many words, see `new`.
            Slot::Wide(at, words) => Some(unsafe { slice::from_raw_parts(at.as_ptr(), words) }),
            _ => None,
        }
    }

    /// The words of the port of `signal`, if of more than 64 bits.
    ///
    /// # Safety
    /// The bits above the port's width are 0 again when the model is evaluated next: it indexes its
    /// memories with them.
    #[inline]
    pub(super) unsafe fn wide_mut(&mut self, signal: Signal) -> Option<&mut [u32]> {
        match self.0[signal.port as usize] {
            // SAFETY: as in `wide`, and `&mut self` makes this the only access.
            Slot::Wide(at, words) => Some(unsafe { slice::from_raw_parts_mut(at.as_ptr(), words) }),
            _ => None,
        }
    }
}
