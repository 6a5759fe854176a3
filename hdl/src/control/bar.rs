//! Places in BAR0 as the address decoder of [`csr`](super::csr) sees them, from the host contract.
use ferroce_proto::abi::doorbell;
use ferroce_proto::abi::rates::RP_RANGES;
use ferroce_proto::abi::regs::{self, Register, control};

/// Places of the registers in units of 4 bytes.
mod word {
    use super::regs;

    macro_rules! words {
        ($($name:ident),*) => { $( pub(crate) const $name: usize = regs::$name as usize / 4; )* };
    }
    words!(
        MAGIC,
        VERSION,
        BUILD,
        PARAMS,
        PARAMS2,
        FEATURES,
        CONTROL,
        STATUS,
        CMD_BASE_LO,
        CMD_BASE_HI,
        CPL_BASE_LO,
        CPL_BASE_HI,
        CMD_LOG_SIZE,
        CMD_PI,
        CMD_CI,
        SCRATCH,
        PARAMS3,
        EXC_BASE_LO,
        EXC_BASE_HI,
        EXC_CONFIG,
        EXC_RX_CI,
        EXC_TX_PI,
        EXC_STATUS,
        MIN_TIME_BETWEEN_CNPS,
        CNP_CONFIG,
        RP_CONFIG,
        LINE_RATE,
        TRUST,
        DSCP_PRIO_0,
        PRIO_CLASS,
        CLASS_WEIGHT,
        PFC_CONFIG,
        PFC_WATCHDOG,
        PFC_XOFF,
        PFC_XON,
        PFC_LOSSY,
        PFC_STORM,
        SWIFT_TARGET,
        SWIFT_RANGE,
        SWIFT_ALPHA,
        SWIFT_BETA,
        SWIFT_STEP
    );
}
pub(super) use word::*;

/// Log2 of the bytes that hold the registers, and that hold the counters.
const PAGE: u32 = 8;
const STATS_PAGE: u32 = 10;
/// The counters' page, the doorbells' region.
pub(super) const STATS_AT: u64 = (regs::STATS_BASE >> STATS_PAGE) as u64;
pub(super) const QP_AT: u64 = doorbell::QP_BASE >> 20;
pub(super) const CQ_AT: u64 = doorbell::CQ_BASE >> 20;
pub(super) const SRQ_AT: u64 = doorbell::SRQ_BASE >> 20;
/// Bits of an arm doorbell.
pub(super) const ARM_ANY: usize = doorbell::ARM_ANY.ilog2() as usize;
pub(super) const ARM_SOLICITED: usize = doorbell::ARM_SOLICITED.ilog2() as usize;
pub(super) const STATS: u64 = regs::STATS.len() as u64;
pub(super) const MAGIC_VALUE: u64 = regs::MAGIC_VALUE as u64;
pub(super) const VERSION_VALUE: u64 = regs::ABI_VERSION as u64;
pub(super) const ENABLE: usize = control::ENABLE.ilog2() as usize;
pub(super) const RESET: usize = control::ENGINE_RESET.ilog2() as usize;
/// MIN_TIME_BETWEEN_CNPS after reset.
pub(super) const MIN_TIME: u64 = regs::REGISTERS[MIN_TIME_BETWEEN_CNPS].reset as u64;
/// Largest log2 of the entries of the command rings.
pub(super) const MAX_LOG: u64 = regs::MAX_CMD_LOG_SIZE as u64;

/// The address decoder is made for these places.
const _: () = {
    let mut i = 0;
    while i < regs::REGISTERS.len() {
        let Register { offset, .. } = regs::REGISTERS[i];
        assert!(
            offset == 4 * i as u32 && offset < 1 << PAGE,
            "a register a word"
        );
        i += 1;
    }
    assert!(
        TRUST == LINE_RATE + RP_RANGES.len() && regs::REGISTERS.len() == SWIFT_STEP + 1,
        "all are in `word`"
    );
    assert!(regs::STATS_BASE.is_multiple_of(1 << STATS_PAGE) && 8 * STATS <= 1 << STATS_PAGE);
    assert!(doorbell::QP_BASE == 1 << 20 && doorbell::CQ_BASE == 2 << 20 && doorbell::STRIDE == 8);
    assert!(doorbell::SRQ_BASE == 3 << 20);
};
