//! Memory that another thread, or the card, may touch at the same time: by atomics, of 8 bytes where addresses allow it.
//!
//! In simulation a thread of this process is the card. What the two order by:
//!
//! | what | written | read |
//! |---|---|---|
//! | entry that the card writes | words in order, the last one with release | last word, `barrier::after_read`, the others |
//! | consumer record | behind `barrier::after_read`, when entries were read | with acquire, before the card writes them again |
//! | WQE, command | before the lock under which the doorbell is sent | behind that lock |
//! | payload | before the post, or before the completion | behind it: one of the rows above |
//!
//! With hardware the barriers of `barrier.rs` order the same.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

/// Bytes of the words that are moved in one access.
const WORD: usize = size_of::<u64>();

/// Reads shared memory, by whole words where they are aligned.
///
/// # Safety
/// `from` may be read for the length of `to`.
pub(crate) unsafe fn read(from: *const u8, to: &mut [u8]) {
    let mut done = 0;
    while done < to.len() {
        // SAFETY: inside of what the caller may read.
        let at = unsafe { from.add(done) };
        if at.addr().is_multiple_of(WORD) && to.len() - done >= WORD {
            // SAFETY: as before, and aligned.
            let word = unsafe { AtomicU64::from_ptr(at.cast_mut().cast()) }.load(Ordering::Relaxed);
            to[done..done + WORD].copy_from_slice(&word.to_ne_bytes());
            done += WORD;
        } else if at.addr().is_multiple_of(4) && to.len() - done >= 4 {
            // SAFETY: as before, and aligned.
            let word = unsafe { AtomicU32::from_ptr(at.cast_mut().cast()) }.load(Ordering::Relaxed);
            to[done..done + 4].copy_from_slice(&word.to_ne_bytes());
            done += 4;
        } else {
            // SAFETY: as before.
            to[done] = unsafe { AtomicU8::from_ptr(at.cast_mut()) }.load(Ordering::Relaxed);
            done += 1;
        }
    }
    // What the host wrote or read before it wrote a word of this is over.
    fence(Ordering::Acquire);
}

/// Writes shared memory, by whole words where they are aligned; the last word is seen no earlier than the others.
///
/// # Safety
/// `to` may be written for the length of `from`.
pub(crate) unsafe fn write(to: *mut u8, from: &[u8]) {
    let mut done = 0;
    while done < from.len() {
        // SAFETY: inside of what the caller may write.
        let at = unsafe { to.add(done) };
        let left = from.len() - done;
        match from[done..].first_chunk::<WORD>() {
            Some(word) if at.addr().is_multiple_of(WORD) => {
                // The owner bit of a ring entry is in its last word.
                let order = if left == WORD {
                    Ordering::Release
                } else {
                    Ordering::Relaxed
                };
                // SAFETY: as before, and aligned.
                unsafe { AtomicU64::from_ptr(at.cast()) }.store(u64::from_ne_bytes(*word), order);
                done += WORD;
            }
            _ => match from[done..].first_chunk::<4>() {
                Some(word) if at.addr().is_multiple_of(4) => {
                    // SAFETY: as before, and aligned.
                    let shared = unsafe { AtomicU32::from_ptr(at.cast()) };
                    shared.store(u32::from_ne_bytes(*word), Ordering::Relaxed);
                    done += 4;
                }
                _ => {
                    // SAFETY: as before.
                    unsafe { AtomicU8::from_ptr(at) }.store(from[done], Ordering::Relaxed);
                    done += 1;
                }
            },
        }
    }
}
