//! The engine: registers and reset around the core.
//!
//! ```text
//!  s_axil ─► csr ─ doorbells, command ring ─► core ═► m_axi
//!             └ reset ─► restart ─ halt, rst ─►│
//!                            s_axis_rx ═══════►│═══► m_axis_tx
//! ```

pub mod builds;
pub mod control;
pub mod core;
pub mod egress;
pub mod failures;
pub mod receive;
pub mod sections;
pub mod transmit;

use ferroce_proto::abi::rates::line_rate;
use ferroce_proto::abi::regs::{Params, Params2, Params3, feature};

use self::core::Core;
use crate::bus::time::CLOCK_MHZ;
use crate::control::csr::Csr;
use crate::control::restart::{REST, Restart};
use crate::eth::gid_table::GID_ENTRIES;
use crate::prelude::*;

/// Log2 of the event queues.
pub const LOG_EQ: usize = 3;
/// Log2 of the shared receive queues.
pub const LOG_SRQ: usize = 6;
/// What this build does, register FEATURES.
pub const FEATURES: u32 = feature::RC
    | feature::READ
    | feature::ATOMIC
    | feature::UC
    | feature::UD
    | feature::SRQ
    | feature::IPV6
    | feature::VLAN
    | feature::EVENTS
    | feature::LONG_WQE
    | feature::INVALIDATE
    | feature::EXCEPTION
    | feature::RESIZE_CQ
    | feature::MEM_WINDOW
    | feature::CNP
    | feature::RATES
    | feature::CLASSES
    | feature::SEND_WINDOW
    | feature::SWIFT;
/// This build does `what`, a bit of [`feature`].
const fn has(what: u32) -> bool {
    FEATURES & what != 0
}

/// The engine, with a data path of `W` bits = `K` bytes.
///
/// It has 2^`Q` queue pairs, 2^`M` memory regions, 2^`C` completion queues and 2^`O` outstanding messages. The store of
/// payload to send holds 2 * 2^`G` beats, the packet buffer 2^`R`, the buffers of the host's own frames 2^`B`, the queues of frames of a class 2^`A`, that of
/// its acknowledgements 2^`E`, all of them 2^`F`; the largest frame of the transport has `T`.
#[derive(Block)]
pub struct Engine<
    const W: usize,
    const K: usize,
    const Q: usize,
    const M: usize,
    const C: usize,
    const O: usize,
    const G: usize,
    const R: usize,
    const B: usize,
    const A: usize,
    const E: usize,
    const F: usize,
    const T: usize,
> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Frames from the MAC, without preamble and FCS.
    pub s_axis_rx: AxisIn<W, K>,
    /// Frames to the MAC, without FCS, not padded.
    pub m_axis_tx: AxisOut<W, K>,
    /// Priorities that the peer pauses, as the MAC says, in this clock.
    pub pause_req: Signal<In, Bits<8>>,
    /// Priorities whose pause time runs in the MAC: their class has stopped, or their pause is not obeyed.
    pub pause_ack: Signal<Out, Bits<8>>,
    /// Much waits in front of `s_axis_rx`: each class that sends pauses asks for one.
    pub rx_backlog: Signal<In, Bit>,
    /// Priorities that the peer is to pause: the MAC sends the frames.
    pub pause_send: Signal<Out, Bits<8>>,
    /// Registers and doorbells: BAR0.
    pub s_axil: AxiLiteIn,
    /// Host memory.
    pub m_axi: AxiOut<W, K>,
    /// MSI-X vector to send.
    pub irq_vector: Signal<Out, Bits<11>>,
    /// `irq_vector` is valid.
    pub irq_valid: Signal<Out, Bit>,
    /// It is taken in this cycle.
    pub irq_ready: Signal<In, Bit>,

    csr: Csr<Q, C>,
    restart: Restart,
    core: Core<W, K, Q, M, C, O, G, R, B, A, E, F, T>,
    #[init(word(Self::PARAMS.emit()))]
    params: Constant<Bits<32>>,
    #[init(word(Self::PARAMS2.emit()))]
    params2: Constant<Bits<32>>,
    #[init(word(Self::PARAMS3.emit()))]
    params3: Constant<Bits<32>>,
    #[init(word(FEATURES.to_le_bytes()))]
    features: Constant<Bits<32>>,
    #[init(word([0; 4]))]
    build: Constant<Bits<32>>,
    #[init(Constant::new(u64::from(line_rate(W as u16)).to_bits()))]
    line_rate: Constant<Bits<20>>,
}

/// A register's value of 32 bits.
fn word(bytes: [u8; 4]) -> Constant<Bits<32>> {
    Constant::new(u64::from(u32::from_le_bytes(bytes)).to_bits())
}

impl<
    const W: usize,
    const K: usize,
    const Q: usize,
    const M: usize,
    const C: usize,
    const O: usize,
    const G: usize,
    const R: usize,
    const B: usize,
    const A: usize,
    const E: usize,
    const F: usize,
    const T: usize,
> Engine<W, K, Q, M, C, O, G, R, B, A, E, F, T>
{
    const PARAMS: Params = Params {
        log_qp: Q as u8,
        log_mr: M as u8,
        log_cq: C as u8,
        log_outstanding: O as u8,
        log_gid: GID_ENTRIES.ilog2() as u8,
        log_eq: LOG_EQ as u8,
    };
    const PARAMS2: Params2 = Params2 {
        data_width: W as u16,
        core_clock_mhz: CLOCK_MHZ,
    };
    /// As many address handles as queue pairs.
    const PARAMS3: Params3 = Params3 {
        log_ah: if has(feature::UD) { Q as u8 } else { 0 },
        log_srq: if has(feature::SRQ) { LOG_SRQ as u8 } else { 0 },
    };
}

impl<
    const W: usize,
    const K: usize,
    const Q: usize,
    const M: usize,
    const C: usize,
    const O: usize,
    const G: usize,
    const R: usize,
    const B: usize,
    const A: usize,
    const E: usize,
    const F: usize,
    const T: usize,
> Logic for Engine<W, K, Q, M, C, O, G, R, B, A, E, F, T>
{
    describe!(
        "ferroce",
        "RoCEv2 NIC engine: registers and reset around the core."
    );

    #[kernel]
    fn update(&mut self) {
        core.clock.clk = clock.clk;
        core.clock.rst = restart.core_rst.bit(REST);
        core.resets = restart.core_rst;
        restart.request = csr.reset;
        restart.idle = core.idle;
        csr.reset_done = restart.done;
        core.stall = restart.stall;

        forward!(s_axis_rx <= core.s_axis_rx);
        forward!(m_axis_tx <= core.m_axis_tx);
        forward!(s_axil <= csr.s_axil);
        forward!(m_axi <= core.m_axi);
        irq_vector = core.irq_vector;
        irq_valid = core.irq_valid;
        core.irq_ready = irq_ready;

        csr.params = params;
        csr.params2 = params2;
        csr.params3 = params3;
        csr.features = features;
        csr.build = build;
        csr.link_up = true;
        csr.ready = core.ready;
        copy!(csr <= core; dma_error, ring_error);
        copy!(core <= csr; enable, cmd_base, cpl_base, cmd_log_size, cmd_pi);
        csr.cmd_ci = core.cmd_ci;
        forward!(core.sq_doorbell <= csr.sq_doorbell);
        forward!(core.rq_doorbell <= csr.rq_doorbell);
        core.exception = csr.exception;
        csr.exception_status = core.exception_status;
        core.notify = csr.notify;
        core.congestion = csr.congestion;
        core.classes = csr.classes;
        core.pause_req = pause_req;
        core.rx_backlog = rx_backlog;
        pause_ack = core.pause_ack;
        pause_send = core.pause_send;
        csr.line_rate = line_rate;
        forward!(core.cq_doorbell <= csr.cq_doorbell);
        core.stat_index = csr.stat_index;
        core.stat_read = csr.stat_read;
        csr.stat_value = core.stat_value;
        csr.stat_valid = core.stat_valid;
    }
}
