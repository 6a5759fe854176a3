//! Order between this processor and the card. Rust's fences order threads; a card is none.

use std::sync::atomic::{Ordering, fence};

/// What was written to memory before is there before the card hears of it by a register.
#[inline]
pub(crate) fn before_register() {
    // Stores are seen in order on x86, also by devices.
    fence(Ordering::Release);
    // SAFETY: a barrier.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("dmb oshst", options(nostack, preserves_flags));
    }
    // SAFETY: a barrier.
    #[cfg(target_arch = "riscv64")]
    unsafe {
        std::arch::asm!("fence ow, ow", options(nostack, preserves_flags));
    }
    // `sync`, the only one that orders memory and registers.
    #[cfg(target_arch = "powerpc64")]
    fence(Ordering::SeqCst);
}

/// What was read before, as the word that says that an entry is written, is read before all that follows is read or written.
#[inline]
pub(crate) fn after_read() {
    fence(Ordering::AcqRel);
    // SAFETY: a barrier.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("dmb oshld", options(nostack, preserves_flags));
    }
    // SAFETY: a barrier.
    #[cfg(target_arch = "riscv64")]
    unsafe {
        std::arch::asm!("fence ir, iorw", options(nostack, preserves_flags));
    }
}

#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "powerpc64"
)))]
compile_error!(
    "no barriers between this processor and a device are known: add them to driver/src/barrier.rs"
);
