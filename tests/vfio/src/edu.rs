//! `edu` of QEMU (`docs/specs/edu.rst` there): registers, and what is checked with them.

use std::os::fd::AsFd;

use anyhow::{Result, bail, ensure};
use ferroce_driver::vfio::Vfio;
use ferroce_driver::{Backend, BackendError, DmaAccess, eventfd};
use rustix::mm::MapFlags;

use crate::memory::Memory;

/// Bytes of BAR0.
pub(crate) const BAR_BYTES: u64 = 1 << 20;

/// Writes a register.
fn write32(card: &Vfio, offset: u64, value: u32) {
    // SAFETY: the device reaches memory that is mapped, to which no reference exists.
    unsafe { card.write32(offset, value) };
}

const ID: u64 = 0x00;
const LIVENESS: u64 = 0x04;
const RAISE: u64 = 0x60;
const ACKNOWLEDGE: u64 = 0x64;
const SOURCE: u64 = 0x80;
const DESTINATION: u64 = 0x88;
const COUNT: u64 = 0x90;
const COMMAND: u64 = 0x98;

/// Bits of the command register; the first clears when the transfer is done.
const RUN: u32 = 1;
const TO_MEMORY: u32 = 2;
const INTERRUPT: u32 = 4;

/// Its own buffer of 4096 bytes; QEMU 7.2 ends on a transfer of all of them.
const BUFFER: usize = 0x4_0000;
const BYTES: usize = 4000;

/// Bounds waits against hanging only.
const LIMIT_NS: u64 = 60_000_000_000;

fn start(card: &Vfio, source: usize, destination: usize, command: u32) {
    write32(card, SOURCE, source as u32);
    write32(card, DESTINATION, destination as u32);
    write32(card, COUNT, BYTES as u32);
    write32(card, COMMAND, RUN | command);
}

fn transfer(card: &Vfio, source: usize, destination: usize, command: u32) -> Result<()> {
    start(card, source, destination, command);
    let begun = card.now_ns();
    while card.read32(COMMAND) & RUN != 0 {
        ensure!(
            card.now_ns() - begun < LIMIT_NS,
            "the transfer does not end"
        );
        card.relax();
    }
    Ok(())
}

/// Copies `from` through the device to `to`.
fn copy(card: &Vfio, from: usize, to: usize) -> Result<()> {
    transfer(card, from, BUFFER, 0)?;
    transfer(card, BUFFER, to, TO_MEMORY)
}

/// A transfer that is still under way when this process is ended.
pub(crate) fn start_endless(card: &Vfio, memory: &Memory) {
    start(card, BUFFER, memory.addr(), TO_MEMORY);
}

fn pattern(seed: usize) -> Vec<u8> {
    (0..BYTES).map(|i| (i * 7 + i / 256 + seed) as u8).collect()
}

/// Registers, DMA both ways, interrupts, and what must be refused.
pub(crate) fn check(card: &Vfio) -> Result<()> {
    let id = card.read32(ID);
    ensure!(id == 0x0100_00ed, "identity reads {id:#x}");
    write32(card, LIVENESS, 0x1234_5678);
    let inverse = card.read32(LIVENESS);
    ensure!(inverse == !0x1234_5678, "liveness reads {inverse:#x}");
    ensure!(
        card.bar_len() == BAR_BYTES,
        "BAR0: {} bytes",
        card.bar_len()
    );
    println!("ok registers");

    let page = card.page_size();
    ensure!(page == 4096, "pages of {page} bytes");
    let memory = Memory::low(4 * page)?;
    memory.map(card)?;
    memory.write(0, &pattern(1));
    copy(card, memory.addr(), memory.addr() + 2 * page)?;
    ensure!(memory.read(2 * page, BYTES) == pattern(1), "copied wrong");
    println!("ok DMA both ways");

    check_interrupts(card, &memory)?;
    check_blocked(card, &memory)?;
    check_read_only(card, &memory)?;
    check_refused(card, &memory)?;

    let huge = Memory::at(0x0a00_0000, 2 << 20, MapFlags::PRIVATE | MapFlags::HUGETLB)?;
    huge.map(card)?;
    memory.write(0, &pattern(2));
    let far = (1 << 20) + page;
    copy(card, memory.addr(), huge.addr() + far)?;
    ensure!(
        huge.read(far, BYTES) == pattern(2),
        "huge page copied wrong"
    );
    huge.unmap(card)?;
    println!("ok huge page");

    // The reset clears all state of the card but its mappings; it works on.
    card.reset()?;
    memory.write(0, &pattern(3));
    copy(card, memory.addr(), memory.addr() + 2 * page)?;
    ensure!(
        memory.read(2 * page, BYTES) == pattern(3),
        "copied wrong after reset"
    );
    memory.unmap(card)?;
    println!("ok reset");
    Ok(())
}

fn check_interrupts(card: &Vfio, memory: &Memory) -> Result<()> {
    ensure!(card.vectors() == 1, "{} vectors", card.vectors());
    let event = card.interrupt(0)?;
    let other = card.interrupt(0)?;
    ensure!(!card.wait_readable(event.as_fd(), 0), "raised too early");
    write32(card, RAISE, 8);
    ensure!(card.wait_readable(event.as_fd(), LIMIT_NS), "not raised");
    ensure!(
        eventfd::clear(&other) && !eventfd::clear(&event),
        "two events"
    );
    write32(card, ACKNOWLEDGE, 8);
    start(card, memory.addr(), BUFFER, INTERRUPT);
    ensure!(
        card.wait_readable(event.as_fd(), LIMIT_NS),
        "no end of transfer"
    );
    write32(card, ACKNOWLEDGE, 0x100);
    let refused = card.interrupt(1);
    let is_named = matches!(
        refused,
        Err(BackendError::NoVector {
            vector: 1,
            vectors: 1
        })
    );
    ensure!(is_named, "vector 1: {refused:?}");
    println!("ok interrupt");
    Ok(())
}

/// Memory of the process that is not mapped is out of the card's reach, and so it is again after `unmap`.
fn check_blocked(card: &Vfio, memory: &Memory) -> Result<()> {
    let secret = Memory::at(0x0900_0000, card.page_size(), MapFlags::PRIVATE)?;
    secret.write(0, &pattern(9));
    // What the buffer holds is known before.
    copy(card, memory.addr(), memory.addr())?;
    transfer(card, secret.addr(), BUFFER, 0)?;
    transfer(card, BUFFER, memory.addr() + 4096, TO_MEMORY)?;
    ensure!(
        memory.read(4096, BYTES) != pattern(9),
        "the card read unmapped memory"
    );
    transfer(card, BUFFER, secret.addr(), TO_MEMORY)?;
    ensure!(
        secret.read(0, BYTES) == pattern(9),
        "the card wrote unmapped memory"
    );

    secret.map(card)?;
    copy(card, memory.addr(), secret.addr())?;
    ensure!(
        secret.read(0, BYTES) == memory.read(0, BYTES),
        "mapped, and not written"
    );
    secret.unmap(card)?;
    secret.write(0, &pattern(9));
    transfer(card, BUFFER, secret.addr(), TO_MEMORY)?;
    ensure!(
        secret.read(0, BYTES) == pattern(9),
        "the card wrote memory after unmap"
    );
    println!("ok blocked {:#x}", secret.addr());
    Ok(())
}

/// The card reads memory that the process may not write, and does not write it either.
fn check_read_only(card: &Vfio, memory: &Memory) -> Result<()> {
    let constants = Memory::at(0x0980_0000, card.page_size(), MapFlags::PRIVATE)?;
    constants.write(0, &pattern(6));
    constants.protect()?;
    let refused = constants.map(card);
    let is_named = matches!(refused, Err(BackendError::Fault { .. }));
    ensure!(is_named, "writes to constants: {refused:?}");
    constants.map_for(card, DmaAccess::Read)?;
    copy(card, constants.addr(), memory.addr())?;
    ensure!(
        memory.read(0, BYTES) == pattern(6),
        "constants copied wrong"
    );
    memory.write(0, &pattern(7));
    copy(card, memory.addr(), constants.addr())?;
    ensure!(
        constants.read(0, BYTES) == pattern(6),
        "the card wrote what is mapped for reading"
    );
    constants.unmap(card)?;
    println!("ok read only");
    Ok(())
}

fn check_refused(card: &Vfio, memory: &Memory) -> Result<()> {
    let page = card.page_size();
    let named = |what: &str, result: Result<(), BackendError>, is: fn(&BackendError) -> bool| {
        match result {
            Err(e) if is(&e) => {
                println!("{what}: {e}");
                Ok(())
            }
            other => bail!("{what}: {other:?}"),
        }
    };
    named("overlap", memory.map(card), |e| {
        matches!(e, BackendError::Overlap { .. })
    })?;
    let odd = Memory::at(0x0b00_0000, page / 2, MapFlags::PRIVATE)?;
    named("unaligned", odd.map(card), |e| {
        matches!(e, BackendError::Unaligned { .. })
    })?;
    // SAFETY: it is refused.
    let part = unsafe { card.unmap(std::ptr::without_provenance_mut(memory.addr()), page) };
    named("part", part, |e| {
        matches!(e, BackendError::NotMapped { .. })
    })?;
    let other = Memory::at(0x0c00_0000, page, MapFlags::PRIVATE)?;
    named("not mapped", other.unmap(card), |e| {
        matches!(e, BackendError::NotMapped { .. })
    })?;
    let hole = std::ptr::without_provenance_mut(0x0d00_0000);
    // SAFETY: there is no memory, which is what is to be refused.
    let hole = unsafe { card.map(hole, page, DmaAccess::Read) };
    named("hole", hole, |e| matches!(e, BackendError::Fault { .. }))?;
    // Where the platform has its interrupt controller nothing is translated.
    let reserved = Memory::at(0xfee0_0000, page, MapFlags::PRIVATE)?;
    named("reserved", reserved.map(card), |e| {
        matches!(e, BackendError::OutOfReach { .. })
    })?;
    println!("ok refused");
    Ok(())
}

/// The card reaches the memory of another device: 64 KiB of the BAR that `file` of sysfs is.
pub(crate) fn check_device_memory(card: &Vfio, file: &str) -> Result<()> {
    let memory = Memory::low(card.page_size())?;
    memory.map(card)?;
    let peer = Memory::of_device(file, 0x0a00_0000, 0x1_0000)?;
    peer.map(card)?;
    memory.write(0, &pattern(4));
    copy(card, memory.addr(), peer.addr() + 0x2000)?;
    ensure!(
        peer.read(0x2000, BYTES) == pattern(4),
        "device memory copied wrong"
    );
    peer.write(0x4000, &pattern(5));
    copy(card, peer.addr() + 0x4000, memory.addr())?;
    ensure!(
        memory.read(0, BYTES) == pattern(5),
        "copied wrong from device memory"
    );
    peer.unmap(card)?;
    memory.unmap(card)?;
    println!("ok device memory");
    Ok(())
}
