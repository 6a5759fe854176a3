//! What a card is and can do, from its registers.

use std::fmt;

use bitflags::bitflags;
use ferroce_proto::abi::regs::{self, Params, Params2, Params3, feature, status};
use ferroce_proto::abi::{cq, qpc, wqe};

use crate::{Backend, shell};

bitflags! {
    /// What a build of the card can do (register FEATURES).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Features: u32 {
        /// RC SEND and WRITE.
        const RC = feature::RC;
        /// RC READ.
        const READ = feature::READ;
        /// RC atomics.
        const ATOMIC = feature::ATOMIC;
        /// UC.
        const UC = feature::UC;
        /// UD.
        const UD = feature::UD;
        /// Shared receive queues.
        const SRQ = feature::SRQ;
        /// IPv6.
        const IPV6 = feature::IPV6;
        /// VLAN tags.
        const VLAN = feature::VLAN;
        /// Event queues and interrupts.
        const EVENTS = feature::EVENTS;
        /// Gather and scatter lists of 16 entries and inline data beyond the first slot.
        const LONG_WQE = feature::LONG_WQE;
        /// RC SEND with invalidate.
        const INVALIDATE = feature::INVALIDATE;
        /// Exception queue: raw frames.
        const EXCEPTION = feature::EXCEPTION;
        /// Completion queues change their size.
        const RESIZE_CQ = feature::RESIZE_CQ;
        /// Memory windows.
        const MEM_WINDOW = feature::MEM_WINDOW;
        /// Packets marked CE draw CNPs.
        const CNP = feature::CNP;
        /// Limits of queue pairs, and CNPs that slow queue pairs down.
        const RATES = feature::RATES;
        /// Traffic classes, and pauses of the peer by priority.
        const CLASSES = feature::CLASSES;
        /// Windows of queue pairs.
        const SEND_WINDOW = feature::SEND_WINDOW;
        /// Congestion control by round-trip times.
        const SWIFT = feature::SWIFT;
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bitflags::parser::to_writer(self, f)
    }
}

/// Version of the contract between driver and card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AbiVersion {
    /// Cards and drivers of equal major version understand each other.
    pub major: u16,
    /// Raised by additions.
    pub minor: u16,
}

impl AbiVersion {
    /// What this driver speaks.
    pub const DRIVER: Self = Self::from_register(regs::ABI_VERSION);

    pub(crate) const fn from_register(value: u32) -> Self {
        Self {
            major: (value >> 16) as u16,
            minor: value as u16,
        }
    }
}

impl fmt::Display for AbiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Identity and limits of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Contract version of the card.
    pub abi_version: AbiVersion,
    /// First 8 hexadecimal digits of the source commit of the build; 0 = unknown.
    pub build: u32,
    /// What the card can do.
    pub features: Features,
    /// Queue pairs, of which numbers 0 and 1 are reserved (IB1 3.9.2).
    pub max_qp: u32,
    /// Memory regions.
    pub max_mr: u32,
    /// Completion queues.
    pub max_cq: u32,
    /// Messages that all queue pairs together may have unacknowledged.
    pub max_outstanding: u32,
    /// Entries of the GID table.
    pub max_gid: u32,
    /// Address handles.
    pub max_ah: u32,
    /// Shared receive queues.
    pub max_srq: u32,
    /// Event queues.
    pub max_eq: u32,
    /// Slots of a send queue, and entries of a receive queue.
    pub max_qp_wr: u32,
    /// Entries of a completion queue.
    pub max_cqe: u32,
    /// Entries of a gather list.
    pub max_send_sge: u32,
    /// Entries of a scatter list.
    pub max_recv_sge: u32,
    /// Bytes of inline data.
    pub max_inline_data: u32,
    /// READs and atomics outstanding of a queue pair, each way; 0 if the card has neither.
    pub max_rd_atomic: u8,
    /// Bytes of a message.
    pub max_msg_size: u32,
    /// Width of the data path in bits.
    pub data_width: u32,
    /// Core clock in MHz.
    pub core_clock_mhz: u32,
}

/// Slots of a send WQE with the longest gather list.
const MAX_SEND_SLOTS: usize =
    1 + (wqe::MAX_SGE - wqe::SEND_SGES_FIRST).div_ceil(wqe::SLOT_BYTES / wqe::SGE_BYTES);

/// Reads the register of `offset` as its four bytes.
fn bytes(backend: &impl Backend, offset: u32) -> [u8; 4] {
    backend.read32(offset.into()).to_le_bytes()
}

/// Looks whether the parameters of a card are within what this driver and the contract can address: the first that is
/// not, with its value and its smallest and largest.
pub(crate) fn check_parameters(
    backend: &impl Backend,
) -> Result<(), (&'static str, u32, u32, u32)> {
    let params = Params::parse(&bytes(backend, regs::PARAMS));
    let params2 = Params2::parse(&bytes(backend, regs::PARAMS2));
    let params3 = Params3::parse(&bytes(backend, regs::PARAMS3));
    // doorbells of 8 bytes in a page of 1 MiB
    let doorbells = 17;
    for (parameter, value, minimum, maximum) in [
        ("log_qp", params.log_qp.into(), 2, doorbells),
        ("log_mr", params.log_mr.into(), 0, 24),
        ("log_cq", params.log_cq.into(), 0, 16),
        ("log_outstanding", params.log_outstanding.into(), 0, 24),
        ("log_gid", params.log_gid.into(), 0, 8),
        ("log_eq", params.log_eq.into(), 0, 8),
        ("log_srq", params3.log_srq.into(), 0, 16),
        ("log_ah", params3.log_ah.into(), 0, 24),
        (
            "data_width",
            params2.data_width.into(),
            8,
            u32::from(u16::MAX),
        ),
        (
            "core_clock_mhz",
            params2.core_clock_mhz.into(),
            1,
            u32::from(u16::MAX),
        ),
    ] {
        if !(minimum..=maximum).contains(&value) {
            return Err((parameter, value, minimum, maximum));
        }
    }
    Ok(())
}

impl DeviceInfo {
    pub(crate) fn read(backend: &impl Backend) -> Self {
        let read = |register: u32| backend.read32(register.into());
        let params = Params::parse(&bytes(backend, regs::PARAMS));
        let params2 = Params2::parse(&bytes(backend, regs::PARAMS2));
        let params3 = Params3::parse(&bytes(backend, regs::PARAMS3));
        let features = Features::from_bits_retain(read(regs::FEATURES));
        let of = |feature, log| {
            if features.contains(feature) {
                1u32 << log
            } else {
                0
            }
        };
        let (sges, max_inline_data) = if features.contains(Features::LONG_WQE) {
            (
                [wqe::MAX_SGE; 2],
                wqe::INLINE_FIRST + (MAX_SEND_SLOTS - 1) * wqe::SLOT_BYTES,
            )
        } else {
            (
                [wqe::SEND_SGES_FIRST, wqe::RECV_SGES_FIRST],
                wqe::INLINE_FIRST,
            )
        };
        Self {
            abi_version: AbiVersion::from_register(read(regs::VERSION)),
            build: read(regs::BUILD),
            features,
            max_qp: 1 << params.log_qp,
            max_mr: 1 << params.log_mr,
            max_cq: 1 << params.log_cq,
            max_outstanding: 1 << params.log_outstanding,
            max_gid: 1 << params.log_gid,
            max_ah: of(Features::UD, params3.log_ah),
            max_srq: of(Features::SRQ, params3.log_srq),
            max_eq: 1 << params.log_eq,
            max_qp_wr: 1 << 15,
            max_cqe: 1 << cq::MAX_LOG_CQE,
            max_send_sge: sges[0] as u32,
            max_recv_sge: sges[1] as u32,
            max_inline_data: max_inline_data as u32,
            max_rd_atomic: if features.intersects(Features::READ | Features::ATOMIC) {
                qpc::MAX_RD_ATOMIC
            } else {
                0
            },
            max_msg_size: wqe::MAX_MSG,
            data_width: params2.data_width.into(),
            core_clock_mhz: params2.core_clock_mhz.into(),
        }
    }
}

/// The statistics counters with their names. Reading a low half latches the high half: one reader at a time.
pub(crate) fn statistics(read: impl Fn(u64) -> u32) -> Vec<(&'static str, u64)> {
    let base = u64::from(regs::STATS_BASE);
    (base..)
        .step_by(8)
        .zip(regs::STATS)
        .map(|(at, &name)| {
            let low = u64::from(read(at));
            (name, low | u64::from(read(at + 4)) << 32)
        })
        .collect()
}

/// State of the card (register STATUS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The port has a link, as the shell of a board tells. Always, if nothing tells: an engine alone, as in simulation, knows
    /// of no link.
    pub link_up: bool,
    /// The card finished its reset.
    pub ready: bool,
    /// A DMA access failed: the card was given an address that is not mapped.
    pub dma_error: bool,
    /// A completion or an event could not be written: the driver takes the card for lost.
    pub ring_error: bool,
    /// The card reads as all ones: it is gone.
    pub absent: bool,
}

impl Status {
    pub(crate) fn read(backend: &impl Backend) -> Self {
        let value = backend.read32(regs::STATUS.into());
        Self {
            link_up: shell::link_up(backend).unwrap_or(value & status::LINK_UP != 0),
            ready: value & status::READY != 0,
            dma_error: value & status::DMA_ERROR != 0,
            ring_error: value & status::RING_ERROR != 0,
            absent: value == u32::MAX,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.absent {
            return f.write_str("the card reads as all ones: it is gone");
        }
        let yes_no = |yes| if yes { "yes" } else { "no" };
        write!(
            f,
            "link up: {}, ready: {}, DMA error: {}, ring error: {}",
            yes_no(self.link_up),
            yes_no(self.ready),
            yes_no(self.dma_error),
            yes_no(self.ring_error)
        )
    }
}
