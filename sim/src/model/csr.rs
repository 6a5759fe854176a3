//! Registers and doorbells of BAR0.

use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::regs::{
    self, MAX_CMD_LOG_SIZE, Params2, Params3, STATS_BASE, control, feature, status,
};

use super::{Model, params3};
use crate::nic::NS_PER_CYCLE;

/// Register PARAMS2: the data path the model's transmit rate stands for.
pub(super) const PARAMS2: Params2 = Params2 {
    data_width: 512,
    core_clock_mhz: (1000 / NS_PER_CYCLE) as u16,
};

/// Register STATUS of a healthy card.
const READY: u32 = status::LINK_UP | status::READY;

/// A register access on its way to the card.
#[derive(Clone)]
pub(super) enum Access {
    Write(u64, u32),
    Read(u64),
}

/// The registers that hold state.
#[derive(Clone, Default)]
pub(super) struct Csr {
    pub(super) enabled: bool,
    pub(super) cmd_base: u64,
    pub(super) cpl_base: u64,
    pub(super) cmd_log_size: u32,
    /// Command producer index.
    pub(super) cmd_pi: u32,
    /// Commands completed.
    pub(super) cmd_ci: u16,
    scratch: u32,
}

fn set_low(register: &mut u64, value: u32) {
    *register = *register & !0xffff_ffff | u64::from(value);
}

fn set_high(register: &mut u64, value: u32) {
    *register = *register & 0xffff_ffff | u64::from(value) << 32;
}

impl Model {
    /// One cycle: register accesses in the order they were made.
    pub(super) fn step_bus(&mut self) {
        for access in std::mem::take(&mut self.bus) {
            match access {
                Access::Write(offset, value) => self.write_register(offset, value),
                Access::Read(offset) => self.answer = Some(self.read_register(offset)),
            }
        }
    }

    fn write_register(&mut self, offset: u64, value: u32) {
        if offset >= doorbell::QP_BASE {
            if self.csr.enabled {
                self.ring(offset, value);
            }
            return;
        }
        if self.env.has(feature::EXCEPTION) && self.exceptions.write(offset as u32, value) {
            return;
        }
        if self.env.has(feature::CLASSES) && self.egress.write(offset as u32, value) {
            return;
        }
        if self.notify.write(offset as u32, value)
            || self.reaction.write(offset as u32, value)
            || self.env.swift.write(offset as u32, value)
        {
            return;
        }
        let csr = &mut self.csr;
        match offset as u32 {
            regs::CONTROL if value & control::ENGINE_RESET != 0 => self.reset_engine(),
            regs::CONTROL => csr.enabled = value & control::ENABLE != 0,
            regs::CMD_BASE_LO => set_low(&mut csr.cmd_base, value),
            regs::CMD_BASE_HI => set_high(&mut csr.cmd_base, value),
            regs::CPL_BASE_LO => set_low(&mut csr.cpl_base, value),
            regs::CPL_BASE_HI => set_high(&mut csr.cpl_base, value),
            regs::CMD_LOG_SIZE if !csr.enabled => {
                csr.cmd_log_size = value.min(MAX_CMD_LOG_SIZE.into())
            }
            regs::CMD_PI => csr.cmd_pi = value,
            regs::SCRATCH => csr.scratch = value,
            _ => {}
        }
    }

    fn read_register(&mut self, offset: u64) -> u32 {
        let Ok(offset) = u32::try_from(offset) else {
            return 0;
        };
        let csr = &self.csr;
        match offset {
            regs::MAGIC => regs::MAGIC_VALUE,
            regs::VERSION => regs::ABI_VERSION,
            regs::PARAMS => u32::from_le_bytes(self.params.emit()),
            regs::PARAMS2 => u32::from_le_bytes(PARAMS2.emit()),
            regs::PARAMS3 => self.params3(),
            regs::FEATURES => self.env.features,
            regs::CONTROL => csr.enabled.into(),
            regs::STATUS => {
                let bit = |set, bit| if set { bit } else { 0 };
                let dma = &self.env.dma;
                READY
                    | bit(dma.failed, status::DMA_ERROR)
                    | bit(dma.ring_failed, status::RING_ERROR)
            }
            regs::CMD_BASE_LO => csr.cmd_base as u32,
            regs::CMD_BASE_HI => (csr.cmd_base >> 32) as u32,
            regs::CPL_BASE_LO => csr.cpl_base as u32,
            regs::CPL_BASE_HI => (csr.cpl_base >> 32) as u32,
            regs::CMD_LOG_SIZE => csr.cmd_log_size,
            regs::CMD_PI => csr.cmd_pi,
            regs::CMD_CI => csr.cmd_ci.into(),
            regs::SCRATCH => csr.scratch,
            regs::EXC_BASE_LO..=regs::EXC_STATUS => self.exceptions.read(offset).unwrap_or(0),
            regs::MIN_TIME_BETWEEN_CNPS | regs::CNP_CONFIG => self.notify.read(offset).unwrap_or(0),
            regs::RP_CONFIG..=regs::INITIAL_ALPHA_VALUE => self.reaction.read(offset).unwrap_or(0),
            regs::TRUST..=regs::PFC_STORM if self.env.has(feature::CLASSES) => {
                self.egress.read(offset).unwrap_or(0)
            }
            regs::SWIFT_TARGET..=regs::SWIFT_STEP => self.env.swift.read(offset),
            STATS_BASE.. => self.env.stats.read32((offset - STATS_BASE) as usize / 4),
            _ => 0,
        }
    }

    /// PARAMS3: what features that are not there count is 0.
    fn params3(&self) -> u32 {
        let Params3 { log_ah, log_srq } = params3(&self.params);
        let of = |feature, log| if self.env.has(feature) { log } else { 0 };
        let params = Params3 {
            log_ah: of(feature::UD, log_ah),
            log_srq: of(feature::SRQ, log_srq),
        };
        u32::from_le_bytes(params.emit())
    }

    /// A doorbell. One of a queue that the build does not have is ignored.
    fn ring(&mut self, offset: u64, value: u32) {
        let number = |base| ((offset - base) / doorbell::STRIDE) as u32;
        match offset {
            doorbell::CQ_BASE.. if !offset.is_multiple_of(doorbell::STRIDE) => {}
            doorbell::SRQ_BASE.. => self.env.ring_srq(number(doorbell::SRQ_BASE), value as u16),
            doorbell::CQ_BASE.. => self.env.arm(number(doorbell::CQ_BASE), value),
            _ => {
                let qpn = number(doorbell::QP_BASE);
                let Some(qp) = self.qps.get_mut(qpn as usize) else {
                    return;
                };
                if offset == doorbell::sq(qpn) {
                    qp.sq.producer = value as u16;
                } else {
                    qp.rq.producer = value as u16;
                }
                qp.flush(&mut self.env);
                self.schedule(qpn, false);
            }
        }
    }
}
