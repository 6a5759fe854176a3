//! The card as a backend.

use std::os::fd::{BorrowedFd, OwnedFd};

use ferroce_driver::{Backend, BackendError, DmaAccess, Opened, eventfd};
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::regs::{self, Params2, Params3, control};

use super::{Fake, PAGE, TURN_NS};

impl Backend for Fake {
    fn read32(&self, offset: u64) -> u32 {
        let state = self.state();
        if state.gone {
            return u32::MAX;
        }
        let ready = state
            .ready_in
            .is_some_and(|turns| turns * TURN_NS <= state.now_ns);
        match offset as u32 {
            regs::MAGIC => state.magic,
            regs::VERSION => state.version,
            regs::PARAMS => u32::from_le_bytes(state.params.emit()),
            regs::PARAMS2 => u32::from_le_bytes(
                Params2 {
                    data_width: 512,
                    core_clock_mhz: 250,
                }
                .emit(),
            ),
            regs::PARAMS3 => u32::from_le_bytes(
                Params3 {
                    log_ah: 2,
                    log_srq: 1,
                }
                .emit(),
            ),
            regs::FEATURES => state.features.bits(),
            regs::CONTROL => state.control,
            regs::STATUS => 1 | u32::from(ready) << 1 | u32::from(state.ring_error) << 3,
            shell @ (0x8000 | 0x8004 | 0x8008) => state
                .shell
                .map_or(0, |words| words[(shell - 0x8000) as usize / 4]),
            // Counter i is i in its low and i + 1 in its high half.
            stats if stats >= regs::STATS_BASE => (stats - regs::STATS_BASE).div_ceil(8),
            other => state.register(other),
        }
    }

    unsafe fn write32(&self, offset: u64, value: u32) {
        let mut state = self.state();
        if state.gone {
            return;
        }
        if offset >= doorbell::QP_BASE {
            state.doorbells.push((offset, value));
            return;
        }
        match offset as u32 {
            regs::CONTROL if value & control::ENGINE_RESET != 0 => {
                state.resets += 1;
                state.control = 0;
                state.registers.clear();
                state.commands_done = 0;
            }
            regs::CONTROL => state.control = value,
            regs::CMD_PI => {
                assert_eq!(
                    state.control,
                    control::ENABLE,
                    "commands are heard when enabled"
                );
                state.registers.insert(regs::CMD_PI, value);
                state.run_commands();
            }
            other => {
                state.registers.insert(other, value);
            }
        }
    }

    unsafe fn map(&self, addr: *mut u8, len: usize, access: DmaAccess) -> Result<(), BackendError> {
        let mut state = self.state();
        let start = addr.expose_provenance();
        assert!(
            len > 0 && start.is_multiple_of(PAGE) && len.is_multiple_of(PAGE),
            "whole pages are mapped"
        );
        let before = state.mapped.range(..start + len).next_back();
        assert!(
            before.is_none_or(|(at, len)| at + len <= start),
            "mapped ranges are disjoint"
        );
        if state.refuse_map {
            let source = std::io::ErrorKind::OutOfMemory.into();
            return Err(BackendError::System {
                operation: "mapping",
                addr: start,
                len,
                source,
            });
        }
        let is_read_only = |&(from, to): &(usize, usize)| from < start + len && start < to;
        if access == DmaAccess::ReadWrite && state.read_only.iter().any(is_read_only) {
            let addr = start;
            return Err(BackendError::Fault { addr, len, access });
        }
        state.mapped.insert(start, len);
        state.accesses.insert(start, access);
        Ok(())
    }

    fn opened(&self) -> &Opened {
        &self.1
    }

    fn seed(&self) -> Option<u64> {
        self.state().seed
    }

    unsafe fn unmap(&self, addr: *mut u8, len: usize) -> Result<(), BackendError> {
        let mut state = self.state();
        if state.refuse_unmap {
            return Err(BackendError::System {
                operation: "unmapping",
                addr: addr.addr(),
                len,
                source: std::io::ErrorKind::Other.into(),
            });
        }
        state.accesses.remove(&addr.addr());
        let removed = state.mapped.remove(&addr.addr());
        assert_eq!(removed, Some(len), "a mapping is removed as a whole");
        Ok(())
    }

    fn relax(&self) {
        self.state().now_ns += TURN_NS;
    }

    fn now_ns(&self) -> u64 {
        self.state().now_ns
    }

    fn page_size(&self) -> usize {
        PAGE
    }
    fn bar_len(&self) -> u64 {
        self.state().bar_len
    }

    fn vectors(&self) -> u32 {
        self.state().vectors
    }

    fn interrupt(&self, vector: u32) -> Result<OwnedFd, BackendError> {
        let mut state = self.state();
        let vectors = state.vectors;
        if vector >= vectors {
            return Err(BackendError::NoVector { vector, vectors });
        }
        let fd = state
            .interrupts
            .entry(vector)
            .or_insert_with(|| eventfd::create().unwrap());
        Ok(fd.try_clone().unwrap())
    }

    fn wait_readable(&self, fd: BorrowedFd<'_>, timeout_ns: u64) -> bool {
        if eventfd::wait(fd, 0) {
            return true;
        }
        self.state().now_ns += timeout_ns;
        false
    }
}
